// PASS: describe-accesses{ask=nest}
// The strides of loop nests.
//
// A row-major tile, one that wraps, one that is looked up; pointers to another type, of elements as
// large, and of smaller ones.
//
// CHECK: tw.access = "strides s, 1"
// CHECK: tw.access = "strides s (jumps), 2 (jumps)"
// CHECK: tw.access = "strides 1"
// CHECK: tw.access = "no nest: its pointers are not affine along dimension 0"
// CHECK: tw.access = "strides s, 1"
// CHECK: tw.access = "no nest: its pointers are not affine along dimension 0"

"builtin.module"() ({
  "tt.func"() <{sym_name = "strides", function_type = (!tt.ptr<f32>, !tt.ptr<i32>, i32, i32) -> (), arg_attrs = [{tt.divisibility = 16 : i32}, {tt.divisibility = 16 : i32}, {}, {}]}> ({
  ^bb0(%x: !tt.ptr<f32>, %idx: !tt.ptr<i32>, %n: i32, %s: i32):
    %0 = "tt.make_range"() <{start = 0 : i32, end = 32 : i32}> : () -> tensor<32xi32>
    %1 = "tt.expand_dims"(%0) <{axis = 1 : i32}> : (tensor<32xi32>) -> tensor<32x1xi32>
    %2 = "tt.splat"(%s) : (i32) -> tensor<32x1xi32>
    %3 = "arith.muli"(%1, %2) : (tensor<32x1xi32>, tensor<32x1xi32>) -> tensor<32x1xi32>
    %4 = "tt.splat"(%x) : (!tt.ptr<f32>) -> tensor<32x1x!tt.ptr<f32>>
    %5 = "tt.addptr"(%4, %3) : (tensor<32x1x!tt.ptr<f32>>, tensor<32x1xi32>) -> tensor<32x1x!tt.ptr<f32>>
    %6 = "tt.expand_dims"(%0) <{axis = 0 : i32}> : (tensor<32xi32>) -> tensor<1x32xi32>
    %7 = "tt.broadcast"(%5) : (tensor<32x1x!tt.ptr<f32>>) -> tensor<32x32x!tt.ptr<f32>>
    %8 = "tt.broadcast"(%6) : (tensor<1x32xi32>) -> tensor<32x32xi32>
    %9 = "tt.addptr"(%7, %8) : (tensor<32x32x!tt.ptr<f32>>, tensor<32x32xi32>) -> tensor<32x32x!tt.ptr<f32>>
    %10 = "arith.constant"() <{value = 1.000000e+00 : f32}> : () -> f32
    %11 = "tt.splat"(%10) : (f32) -> tensor<32x32xf32>
    "tt.store"(%9, %11) : (tensor<32x32x!tt.ptr<f32>>, tensor<32x32xf32>) -> ()
    %12 = "tt.splat"(%n) : (i32) -> tensor<32xi32>
    %13 = "arith.remsi"(%0, %12) : (tensor<32xi32>, tensor<32xi32>) -> tensor<32xi32>
    %14 = "tt.expand_dims"(%13) <{axis = 1 : i32}> : (tensor<32xi32>) -> tensor<32x1xi32>
    %15 = "arith.muli"(%14, %2) : (tensor<32x1xi32>, tensor<32x1xi32>) -> tensor<32x1xi32>
    %16 = "tt.addptr"(%4, %15) : (tensor<32x1x!tt.ptr<f32>>, tensor<32x1xi32>) -> tensor<32x1x!tt.ptr<f32>>
    %17 = "arith.minsi"(%0, %12) : (tensor<32xi32>, tensor<32xi32>) -> tensor<32xi32>
    %18 = "tt.expand_dims"(%17) <{axis = 0 : i32}> : (tensor<32xi32>) -> tensor<1x32xi32>
    %19 = "arith.constant"() <{value = 2 : i32}> : () -> i32
    %20 = "tt.splat"(%19) : (i32) -> tensor<1x32xi32>
    %21 = "arith.muli"(%18, %20) : (tensor<1x32xi32>, tensor<1x32xi32>) -> tensor<1x32xi32>
    %22 = "tt.broadcast"(%16) : (tensor<32x1x!tt.ptr<f32>>) -> tensor<32x32x!tt.ptr<f32>>
    %23 = "tt.broadcast"(%21) : (tensor<1x32xi32>) -> tensor<32x32xi32>
    %24 = "tt.addptr"(%22, %23) : (tensor<32x32x!tt.ptr<f32>>, tensor<32x32xi32>) -> tensor<32x32x!tt.ptr<f32>>
    %25 = "arith.constant"() <{value = 2.000000e+00 : f32}> : () -> f32
    %26 = "tt.splat"(%25) : (f32) -> tensor<32x32xf32>
    "tt.store"(%24, %26) : (tensor<32x32x!tt.ptr<f32>>, tensor<32x32xf32>) -> ()
    %27 = "tt.splat"(%idx) : (!tt.ptr<i32>) -> tensor<32x!tt.ptr<i32>>
    %28 = "tt.addptr"(%27, %0) : (tensor<32x!tt.ptr<i32>>, tensor<32xi32>) -> tensor<32x!tt.ptr<i32>>
    %29 = "tt.load"(%28) <{operandSegmentSizes = array<i32: 1, 0, 0>}> : (tensor<32x!tt.ptr<i32>>) -> tensor<32xi32>
    %30 = "tt.expand_dims"(%29) <{axis = 1 : i32}> : (tensor<32xi32>) -> tensor<32x1xi32>
    %31 = "arith.muli"(%30, %2) : (tensor<32x1xi32>, tensor<32x1xi32>) -> tensor<32x1xi32>
    %32 = "tt.addptr"(%4, %31) : (tensor<32x1x!tt.ptr<f32>>, tensor<32x1xi32>) -> tensor<32x1x!tt.ptr<f32>>
    %33 = "tt.broadcast"(%32) : (tensor<32x1x!tt.ptr<f32>>) -> tensor<32x32x!tt.ptr<f32>>
    %34 = "tt.addptr"(%33, %8) : (tensor<32x32x!tt.ptr<f32>>, tensor<32x32xi32>) -> tensor<32x32x!tt.ptr<f32>>
    %35 = "arith.constant"() <{value = 3.000000e+00 : f32}> : () -> f32
    %36 = "tt.splat"(%35) : (f32) -> tensor<32x32xf32>
    "tt.store"(%34, %36) : (tensor<32x32x!tt.ptr<f32>>, tensor<32x32xf32>) -> ()
    %same = "tt.bitcast"(%9) : (tensor<32x32x!tt.ptr<f32>>) -> tensor<32x32x!tt.ptr<i32>>
    %words = "tt.load"(%same) <{operandSegmentSizes = array<i32: 1, 0, 0>}> : (tensor<32x32x!tt.ptr<i32>>) -> tensor<32x32xi32>
    %smaller = "tt.bitcast"(%9) : (tensor<32x32x!tt.ptr<f32>>) -> tensor<32x32x!tt.ptr<i8>>
    %bytes = "tt.load"(%smaller) <{operandSegmentSizes = array<i32: 1, 0, 0>}> : (tensor<32x32x!tt.ptr<i8>>) -> tensor<32x32xi8>
    "tt.return"() : () -> ()
  }) : () -> ()
}) : () -> ()
// -----
// Backwards, turned, the same all along, of a loop; a reshape that splits and one that merges.
//
// CHECK: tw.access = "strides -2, s"
// CHECK: tw.access = "strides 24, 3"
// CHECK: tw.access = "no nest: its pointers are not affine along dimension 0"
// CHECK: tw.access = "strides n*s, 0"

"builtin.module"() ({
  "tt.func"() <{sym_name = "others", function_type = (!tt.ptr<f32>, i32, i32) -> (), arg_attrs = [{tt.divisibility = 16 : i32}, {}, {}]}> ({
  ^bb0(%x: !tt.ptr<f32>, %n: i32, %s: i32):
    %0 = "tt.make_range"() <{start = 0 : i32, end = 32 : i32}> : () -> tensor<32xi32>
    %1 = "tt.expand_dims"(%0) <{axis = 1 : i32}> : (tensor<32xi32>) -> tensor<32x1xi32>
    %2 = "tt.splat"(%s) : (i32) -> tensor<32x1xi32>
    %3 = "arith.muli"(%1, %2) : (tensor<32x1xi32>, tensor<32x1xi32>) -> tensor<32x1xi32>
    %4 = "tt.splat"(%x) : (!tt.ptr<f32>) -> tensor<32x1x!tt.ptr<f32>>
    %5 = "tt.addptr"(%4, %3) : (tensor<32x1x!tt.ptr<f32>>, tensor<32x1xi32>) -> tensor<32x1x!tt.ptr<f32>>
    %6 = "tt.expand_dims"(%0) <{axis = 0 : i32}> : (tensor<32xi32>) -> tensor<1x32xi32>
    %7 = "arith.constant"() <{value = 2 : i32}> : () -> i32
    %8 = "tt.splat"(%7) : (i32) -> tensor<1x32xi32>
    %9 = "arith.muli"(%6, %8) : (tensor<1x32xi32>, tensor<1x32xi32>) -> tensor<1x32xi32>
    %10 = "arith.constant"() <{value = dense<0> : tensor<1x32xi32>}> : () -> tensor<1x32xi32>
    %11 = "arith.subi"(%10, %9) : (tensor<1x32xi32>, tensor<1x32xi32>) -> tensor<1x32xi32>
    %12 = "tt.broadcast"(%5) : (tensor<32x1x!tt.ptr<f32>>) -> tensor<32x32x!tt.ptr<f32>>
    %13 = "tt.broadcast"(%11) : (tensor<1x32xi32>) -> tensor<32x32xi32>
    %14 = "tt.addptr"(%12, %13) : (tensor<32x32x!tt.ptr<f32>>, tensor<32x32xi32>) -> tensor<32x32x!tt.ptr<f32>>
    %15 = "arith.constant"() <{value = 0 : i32}> : () -> i32
    %16 = "arith.constant"() <{value = 1 : i32}> : () -> i32
    %17 = "arith.constant"() <{value = 0 : i64}> : () -> i64
    %18 = "scf.for"(%15, %n, %16, %17) ({
    ^bb0(%19: i32, %20: i64):
      %21 = "tt.splat"(%20) : (i64) -> tensor<32x32xi64>
      %22 = "tt.addptr"(%14, %21) : (tensor<32x32x!tt.ptr<f32>>, tensor<32x32xi64>) -> tensor<32x32x!tt.ptr<f32>>
      %23 = "tt.trans"(%22) <{order = array<i32: 1, 0>}> : (tensor<32x32x!tt.ptr<f32>>) -> tensor<32x32x!tt.ptr<f32>>
      %24 = "arith.constant"() <{value = 1.000000e+00 : f32}> : () -> f32
      %25 = "tt.splat"(%24) : (f32) -> tensor<32x32xf32>
      "tt.store"(%23, %25) : (tensor<32x32x!tt.ptr<f32>>, tensor<32x32xf32>) -> ()
      %26 = "tt.splat"(%s) : (i32) -> tensor<32x32xi32>
      %27 = "tt.addptr"(%22, %26) : (tensor<32x32x!tt.ptr<f32>>, tensor<32x32xi32>) -> tensor<32x32x!tt.ptr<f32>>
      %28 = "arith.extsi"(%s) : (i32) -> i64
      %29 = "arith.addi"(%20, %28) : (i64, i64) -> i64
      "scf.yield"(%29) : (i64) -> ()
    }) : (i32, i32, i32, i64) -> i64
    %30 = "arith.constant"() <{value = 3 : i32}> : () -> i32
    %31 = "tt.splat"(%30) : (i32) -> tensor<32xi32>
    %32 = "arith.muli"(%0, %31) : (tensor<32xi32>, tensor<32xi32>) -> tensor<32xi32>
    %33 = "tt.reshape"(%32) : (tensor<32xi32>) -> tensor<4x8xi32>
    %34 = "tt.splat"(%x) : (!tt.ptr<f32>) -> tensor<4x8x!tt.ptr<f32>>
    %35 = "tt.addptr"(%34, %33) : (tensor<4x8x!tt.ptr<f32>>, tensor<4x8xi32>) -> tensor<4x8x!tt.ptr<f32>>
    %36 = "arith.constant"() <{value = 2.000000e+00 : f32}> : () -> f32
    %37 = "tt.splat"(%36) : (f32) -> tensor<4x8xf32>
    "tt.store"(%35, %37) : (tensor<4x8x!tt.ptr<f32>>, tensor<4x8xf32>) -> ()
    %38 = "tt.splat"(%15) : (i32) -> tensor<1x32xi32>
    %39 = "arith.muli"(%6, %38) : (tensor<1x32xi32>, tensor<1x32xi32>) -> tensor<1x32xi32>
    %40 = "tt.broadcast"(%1) : (tensor<32x1xi32>) -> tensor<32x32xi32>
    %41 = "tt.broadcast"(%39) : (tensor<1x32xi32>) -> tensor<32x32xi32>
    %42 = "arith.addi"(%40, %41) : (tensor<32x32xi32>, tensor<32x32xi32>) -> tensor<32x32xi32>
    %43 = "tt.reshape"(%42) : (tensor<32x32xi32>) -> tensor<1024xi32>
    %44 = "tt.splat"(%x) : (!tt.ptr<f32>) -> tensor<1024x!tt.ptr<f32>>
    %45 = "tt.addptr"(%44, %43) : (tensor<1024x!tt.ptr<f32>>, tensor<1024xi32>) -> tensor<1024x!tt.ptr<f32>>
    %46 = "arith.constant"() <{value = 3.000000e+00 : f32}> : () -> f32
    %47 = "tt.splat"(%46) : (f32) -> tensor<1024xf32>
    "tt.store"(%45, %47) : (tensor<1024x!tt.ptr<f32>>, tensor<1024xf32>) -> ()
    %48 = "tt.splat"(%n) : (i32) -> tensor<32x1xi32>
    %49 = "arith.muli"(%1, %48) : (tensor<32x1xi32>, tensor<32x1xi32>) -> tensor<32x1xi32>
    %50 = "arith.muli"(%49, %2) : (tensor<32x1xi32>, tensor<32x1xi32>) -> tensor<32x1xi32>
    %51 = "tt.addptr"(%4, %50) : (tensor<32x1x!tt.ptr<f32>>, tensor<32x1xi32>) -> tensor<32x1x!tt.ptr<f32>>
    %52 = "tt.splat"(%15) : (i32) -> tensor<32xi32>
    %53 = "arith.muli"(%0, %52) : (tensor<32xi32>, tensor<32xi32>) -> tensor<32xi32>
    %54 = "tt.expand_dims"(%53) <{axis = 0 : i32}> : (tensor<32xi32>) -> tensor<1x32xi32>
    %55 = "tt.broadcast"(%51) : (tensor<32x1x!tt.ptr<f32>>) -> tensor<32x32x!tt.ptr<f32>>
    %56 = "tt.broadcast"(%54) : (tensor<1x32xi32>) -> tensor<32x32xi32>
    %57 = "tt.addptr"(%55, %56) : (tensor<32x32x!tt.ptr<f32>>, tensor<32x32xi32>) -> tensor<32x32x!tt.ptr<f32>>
    %58 = "tt.load"(%57) <{operandSegmentSizes = array<i32: 1, 0, 0>}> : (tensor<32x32x!tt.ptr<f32>>) -> tensor<32x32xf32>
    "tt.return"() : () -> ()
  }) : () -> ()
}) : () -> ()
// -----
// A pointer that control flow chooses, a choice of indices, indices of few bits.
//
// CHECK: tw.access = "no nest: its pointers are not affine along dimension 0"
// CHECK: tw.access = "strides 1"
// CHECK: tw.access = "strides 1 (jumps)"
// CHECK: tw.access = "no nest: its pointers are not affine along dimension 0"
// CHECK: tw.access = "strides 1 (jumps)"

"builtin.module"() ({
  "tt.func"() <{sym_name = "chosen_nest", function_type = (!tt.ptr<f32>, !tt.ptr<f32>, i32) -> (), arg_attrs = [{tt.divisibility = 16 : i32}, {tt.divisibility = 16 : i32}, {}]}> ({
  ^bb0(%x: !tt.ptr<f32>, %y: !tt.ptr<f32>, %n: i32):
    %0 = "tt.make_range"() <{start = 0 : i32, end = 32 : i32}> : () -> tensor<32xi32>
    %1 = "tt.splat"(%x) : (!tt.ptr<f32>) -> tensor<32x!tt.ptr<f32>>
    %2 = "tt.addptr"(%1, %0) : (tensor<32x!tt.ptr<f32>>, tensor<32xi32>) -> tensor<32x!tt.ptr<f32>>
    %3 = "arith.constant"() <{value = 3 : i32}> : () -> i32
    %4 = "arith.cmpi"(%n, %3) <{predicate = 4 : i64}> : (i32, i32) -> i1
    %5 = "scf.if"(%4) ({
      %6 = "arith.constant"() <{value = 2 : i32}> : () -> i32
      %7 = "tt.splat"(%6) : (i32) -> tensor<32xi32>
      %8 = "arith.muli"(%0, %7) : (tensor<32xi32>, tensor<32xi32>) -> tensor<32xi32>
      %9 = "tt.splat"(%y) : (!tt.ptr<f32>) -> tensor<32x!tt.ptr<f32>>
      %10 = "tt.addptr"(%9, %8) : (tensor<32x!tt.ptr<f32>>, tensor<32xi32>) -> tensor<32x!tt.ptr<f32>>
      "scf.yield"(%10) : (tensor<32x!tt.ptr<f32>>) -> ()
    }, {
      "scf.yield"(%2) : (tensor<32x!tt.ptr<f32>>) -> ()
    }) : (i1) -> tensor<32x!tt.ptr<f32>>
    %11 = "arith.constant"() <{value = 1.000000e+00 : f32}> : () -> f32
    %12 = "tt.splat"(%11) : (f32) -> tensor<32xf32>
    "tt.store"(%5, %12) : (tensor<32x!tt.ptr<f32>>, tensor<32xf32>) -> ()
    %13 = "arith.select"(%4, %x, %y) : (i1, !tt.ptr<f32>, !tt.ptr<f32>) -> !tt.ptr<f32>
    %14 = "tt.splat"(%13) : (!tt.ptr<f32>) -> tensor<32x!tt.ptr<f32>>
    %15 = "tt.addptr"(%14, %0) : (tensor<32x!tt.ptr<f32>>, tensor<32xi32>) -> tensor<32x!tt.ptr<f32>>
    %16 = "arith.constant"() <{value = 2.000000e+00 : f32}> : () -> f32
    %17 = "tt.splat"(%16) : (f32) -> tensor<32xf32>
    "tt.store"(%15, %17) : (tensor<32x!tt.ptr<f32>>, tensor<32xf32>) -> ()
    %18 = "tt.splat"(%n) : (i32) -> tensor<32xi32>
    %19 = "arith.cmpi"(%0, %18) <{predicate = 2 : i64}> : (tensor<32xi32>, tensor<32xi32>) -> tensor<32xi1>
    %20 = "arith.constant"() <{value = 0 : i32}> : () -> i32
    %21 = "tt.splat"(%20) : (i32) -> tensor<32xi32>
    %22 = "arith.select"(%19, %0, %21) : (tensor<32xi1>, tensor<32xi32>, tensor<32xi32>) -> tensor<32xi32>
    %23 = "tt.addptr"(%1, %22) : (tensor<32x!tt.ptr<f32>>, tensor<32xi32>) -> tensor<32x!tt.ptr<f32>>
    %24 = "arith.constant"() <{value = 3.000000e+00 : f32}> : () -> f32
    %25 = "tt.splat"(%24) : (f32) -> tensor<32xf32>
    "tt.store"(%23, %25) : (tensor<32x!tt.ptr<f32>>, tensor<32xf32>) -> ()
    %26 = "arith.cmpi"(%0, %18) <{predicate = 0 : i64}> : (tensor<32xi32>, tensor<32xi32>) -> tensor<32xi1>
    %27 = "arith.select"(%26, %0, %21) : (tensor<32xi1>, tensor<32xi32>, tensor<32xi32>) -> tensor<32xi32>
    %28 = "tt.addptr"(%1, %27) : (tensor<32x!tt.ptr<f32>>, tensor<32xi32>) -> tensor<32x!tt.ptr<f32>>
    %29 = "arith.constant"() <{value = 4.000000e+00 : f32}> : () -> f32
    %30 = "tt.splat"(%29) : (f32) -> tensor<32xf32>
    "tt.store"(%28, %30) : (tensor<32x!tt.ptr<f32>>, tensor<32xf32>) -> ()
    %31 = "arith.addi"(%0, %18) : (tensor<32xi32>, tensor<32xi32>) -> tensor<32xi32>
    %32 = "arith.trunci"(%31) : (tensor<32xi32>) -> tensor<32xi8>
    %33 = "tt.addptr"(%1, %32) : (tensor<32x!tt.ptr<f32>>, tensor<32xi8>) -> tensor<32x!tt.ptr<f32>>
    %34 = "arith.constant"() <{value = 5.000000e+00 : f32}> : () -> f32
    %35 = "tt.splat"(%34) : (f32) -> tensor<32xf32>
    "tt.store"(%33, %35) : (tensor<32x!tt.ptr<f32>>, tensor<32xf32>) -> ()
    "tt.return"() : () -> ()
  }) : () -> ()
}) : () -> ()
