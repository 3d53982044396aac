// PASS: describe-accesses{ask=memref}
// Why an access is no view of memory.
//
// Two looked-up dimensions, a mask of both dimensions, a store to one place, a masked wrap.
//
// CHECK: tw.access = "reinterpret_cast idx to offset: [0], sizes: [32], strides: [1]"
// CHECK: tw.access = "no view: dimensions 0 and 1 are both looked up"
// CHECK: tw.access = "no view: its mask is no bound along a dimension"
// CHECK: tw.access = "no view: it writes the same elements all along dimension 0"
// CHECK: tw.access = "no view: dimension 0 wraps and has a mask"
// CHECK: tw.access = "no view: its pointer select of line 64 is no argument"
// CHECK: tw.access = "no view: its pointers are not one pointer plus offsets"

"builtin.module"() ({
  "tt.func"() <{sym_name = "no_views", function_type = (!tt.ptr<f32>, !tt.ptr<f32>, !tt.ptr<i32>, i32, i32) -> (), arg_attrs = [{tt.divisibility = 16 : i32}, {tt.divisibility = 16 : i32}, {tt.divisibility = 16 : i32}, {}, {}]}> ({
  ^bb0(%x: !tt.ptr<f32>, %y: !tt.ptr<f32>, %idx: !tt.ptr<i32>, %n: i32, %s: i32):
    %0 = "tt.make_range"() <{start = 0 : i32, end = 32 : i32}> : () -> tensor<32xi32>
    %1 = "tt.splat"(%idx) : (!tt.ptr<i32>) -> tensor<32x!tt.ptr<i32>>
    %2 = "tt.addptr"(%1, %0) : (tensor<32x!tt.ptr<i32>>, tensor<32xi32>) -> tensor<32x!tt.ptr<i32>>
    %3 = "tt.load"(%2) <{operandSegmentSizes = array<i32: 1, 0, 0>}> : (tensor<32x!tt.ptr<i32>>) -> tensor<32xi32>
    %4 = "tt.expand_dims"(%3) <{axis = 1 : i32}> : (tensor<32xi32>) -> tensor<32x1xi32>
    %5 = "tt.splat"(%s) : (i32) -> tensor<32x1xi32>
    %6 = "arith.muli"(%4, %5) : (tensor<32x1xi32>, tensor<32x1xi32>) -> tensor<32x1xi32>
    %7 = "tt.splat"(%x) : (!tt.ptr<f32>) -> tensor<32x1x!tt.ptr<f32>>
    %8 = "tt.addptr"(%7, %6) : (tensor<32x1x!tt.ptr<f32>>, tensor<32x1xi32>) -> tensor<32x1x!tt.ptr<f32>>
    %9 = "tt.expand_dims"(%3) <{axis = 0 : i32}> : (tensor<32xi32>) -> tensor<1x32xi32>
    %10 = "tt.broadcast"(%8) : (tensor<32x1x!tt.ptr<f32>>) -> tensor<32x32x!tt.ptr<f32>>
    %11 = "tt.broadcast"(%9) : (tensor<1x32xi32>) -> tensor<32x32xi32>
    %12 = "tt.addptr"(%10, %11) : (tensor<32x32x!tt.ptr<f32>>, tensor<32x32xi32>) -> tensor<32x32x!tt.ptr<f32>>
    %13 = "arith.constant"() <{value = 1.000000e+00 : f32}> : () -> f32
    %14 = "tt.splat"(%13) : (f32) -> tensor<32x32xf32>
    "tt.store"(%12, %14) : (tensor<32x32x!tt.ptr<f32>>, tensor<32x32xf32>) -> ()
    %15 = "tt.expand_dims"(%0) <{axis = 1 : i32}> : (tensor<32xi32>) -> tensor<32x1xi32>
    %16 = "arith.muli"(%15, %5) : (tensor<32x1xi32>, tensor<32x1xi32>) -> tensor<32x1xi32>
    %17 = "tt.addptr"(%7, %16) : (tensor<32x1x!tt.ptr<f32>>, tensor<32x1xi32>) -> tensor<32x1x!tt.ptr<f32>>
    %18 = "tt.expand_dims"(%0) <{axis = 0 : i32}> : (tensor<32xi32>) -> tensor<1x32xi32>
    %19 = "tt.broadcast"(%17) : (tensor<32x1x!tt.ptr<f32>>) -> tensor<32x32x!tt.ptr<f32>>
    %20 = "tt.broadcast"(%18) : (tensor<1x32xi32>) -> tensor<32x32xi32>
    %21 = "tt.addptr"(%19, %20) : (tensor<32x32x!tt.ptr<f32>>, tensor<32x32xi32>) -> tensor<32x32x!tt.ptr<f32>>
    %22 = "tt.broadcast"(%15) : (tensor<32x1xi32>) -> tensor<32x32xi32>
    %23 = "arith.cmpi"(%22, %20) <{predicate = 2 : i64}> : (tensor<32x32xi32>, tensor<32x32xi32>) -> tensor<32x32xi1>
    %24 = "arith.constant"() <{value = 2.000000e+00 : f32}> : () -> f32
    %25 = "tt.splat"(%24) : (f32) -> tensor<32x32xf32>
    "tt.store"(%21, %25, %23) : (tensor<32x32x!tt.ptr<f32>>, tensor<32x32xf32>, tensor<32x32xi1>) -> ()
    %26 = "arith.constant"() <{value = 0 : i32}> : () -> i32
    %27 = "tt.splat"(%26) : (i32) -> tensor<32x1xi32>
    %28 = "arith.muli"(%15, %27) : (tensor<32x1xi32>, tensor<32x1xi32>) -> tensor<32x1xi32>
    %29 = "tt.addptr"(%7, %28) : (tensor<32x1x!tt.ptr<f32>>, tensor<32x1xi32>) -> tensor<32x1x!tt.ptr<f32>>
    %30 = "tt.broadcast"(%29) : (tensor<32x1x!tt.ptr<f32>>) -> tensor<32x32x!tt.ptr<f32>>
    %31 = "tt.addptr"(%30, %20) : (tensor<32x32x!tt.ptr<f32>>, tensor<32x32xi32>) -> tensor<32x32x!tt.ptr<f32>>
    %32 = "arith.constant"() <{value = 3.000000e+00 : f32}> : () -> f32
    %33 = "tt.splat"(%32) : (f32) -> tensor<32x32xf32>
    "tt.store"(%31, %33) : (tensor<32x32x!tt.ptr<f32>>, tensor<32x32xf32>) -> ()
    %34 = "tt.splat"(%n) : (i32) -> tensor<32xi32>
    %35 = "arith.remsi"(%0, %34) : (tensor<32xi32>, tensor<32xi32>) -> tensor<32xi32>
    %36 = "tt.splat"(%x) : (!tt.ptr<f32>) -> tensor<32x!tt.ptr<f32>>
    %37 = "tt.addptr"(%36, %35) : (tensor<32x!tt.ptr<f32>>, tensor<32xi32>) -> tensor<32x!tt.ptr<f32>>
    %38 = "arith.cmpi"(%0, %34) <{predicate = 2 : i64}> : (tensor<32xi32>, tensor<32xi32>) -> tensor<32xi1>
    %39 = "arith.constant"() <{value = 4.000000e+00 : f32}> : () -> f32
    %40 = "tt.splat"(%39) : (f32) -> tensor<32xf32>
    "tt.store"(%37, %40, %38) : (tensor<32x!tt.ptr<f32>>, tensor<32xf32>, tensor<32xi1>) -> ()
    %41 = "arith.constant"() <{value = 3 : i32}> : () -> i32
    %42 = "arith.cmpi"(%n, %41) <{predicate = 4 : i64}> : (i32, i32) -> i1
    %43 = "arith.select"(%42, %x, %y) : (i1, !tt.ptr<f32>, !tt.ptr<f32>) -> !tt.ptr<f32>
    %44 = "tt.splat"(%43) : (!tt.ptr<f32>) -> tensor<32x!tt.ptr<f32>>
    %45 = "tt.addptr"(%44, %0) : (tensor<32x!tt.ptr<f32>>, tensor<32xi32>) -> tensor<32x!tt.ptr<f32>>
    %46 = "arith.constant"() <{value = 5.000000e+00 : f32}> : () -> f32
    %47 = "tt.splat"(%46) : (f32) -> tensor<32xf32>
    "tt.store"(%45, %47) : (tensor<32x!tt.ptr<f32>>, tensor<32xf32>) -> ()
    %48 = "tt.addptr"(%36, %0) : (tensor<32x!tt.ptr<f32>>, tensor<32xi32>) -> tensor<32x!tt.ptr<f32>>
    %49, %50 = "scf.while"(%n, %48) ({
    ^bb0(%51: i32, %52: tensor<32x!tt.ptr<f32>>):
      %53 = "arith.cmpi"(%51, %41) <{predicate = 4 : i64}> : (i32, i32) -> i1
      "scf.condition"(%53, %51, %52) : (i1, i32, tensor<32x!tt.ptr<f32>>) -> ()
    }, {
    ^bb0(%54: i32, %55: tensor<32x!tt.ptr<f32>>):
      %56 = "arith.constant"() <{value = 6.000000e+00 : f32}> : () -> f32
      %57 = "tt.splat"(%56) : (f32) -> tensor<32xf32>
      "tt.store"(%55, %57) : (tensor<32x!tt.ptr<f32>>, tensor<32xf32>) -> ()
      %58 = "tt.splat"(%54) : (i32) -> tensor<32xi32>
      %59 = "tt.addptr"(%55, %58) : (tensor<32x!tt.ptr<f32>>, tensor<32xi32>) -> tensor<32x!tt.ptr<f32>>
      %60 = "arith.constant"() <{value = 1 : i32}> : () -> i32
      %61 = "arith.subi"(%54, %60) : (i32, i32) -> i32
      "scf.yield"(%61, %59) : (i32, tensor<32x!tt.ptr<f32>>) -> ()
    }) : (i32, tensor<32x!tt.ptr<f32>>) -> (i32, tensor<32x!tt.ptr<f32>>)
    "tt.return"() : () -> ()
  }) : () -> ()
}) : () -> ()
