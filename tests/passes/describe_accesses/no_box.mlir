// PASS: describe-accesses{ask=box}
// PASS(OLD): describe-accesses{ask=box,machine=sm_80}
// Why the copy engine does not make an access.
//
// Forms of pointers.
//
// CHECK: tw.access = "no box: it is one element"
// CHECK: tw.access = "box of idx; 32 of stride 1 from 0"
// CHECK: tw.access = "no box: dimension 0 is looked up in load of line 31"
// CHECK: tw.access = "no box: the stride of dimension 0 is -64"
// CHECK: tw.access = "no box: no one dimension is contiguous"
// CHECK: tw.access = "no box: the stride of dimension 0 is not known to be a multiple of 16 bytes"
// CHECK: tw.access = "no box: it is one element"
// CHECK: tw.access = "no box: the stride of dimension 0, load of line 76, is not known at a launch"
// CHECK: tw.access = "no box: rows of 8 bytes are no multiple of 16"
// CHECK: tw.access = "no box: it is one element"
// CHECK: tw.access = "no box: where dimension 0 starts is not known to be a multiple of 16 bytes"
// CHECK: tw.access = "no box: it reads the same elements all along dimension 0"
// CHECK: tw.access = "no box: dimension 1 reaches into the next row"
// OLD: tw.access = "no box: sm_80 has no copy engine"

"builtin.module"() ({
  "tt.func"() <{sym_name = "forms", function_type = (!tt.ptr<f32>, !tt.ptr<i32>, i32, i32) -> (), arg_attrs = [{tt.divisibility = 16 : i32}, {tt.divisibility = 16 : i32}, {}, {tt.divisibility = 16 : i32}]}> ({
  ^bb0(%x: !tt.ptr<f32>, %idx: !tt.ptr<i32>, %n: i32, %s: i32):
    %0 = "tt.make_range"() <{start = 0 : i32, end = 32 : i32}> : () -> tensor<32xi32>
    %1 = "tt.addptr"(%x, %n) : (!tt.ptr<f32>, i32) -> !tt.ptr<f32>
    %2 = "arith.constant"() <{value = 1.000000e+00 : f32}> : () -> f32
    "tt.store"(%1, %2) : (!tt.ptr<f32>, f32) -> ()
    %3 = "tt.splat"(%idx) : (!tt.ptr<i32>) -> tensor<32x!tt.ptr<i32>>
    %4 = "tt.addptr"(%3, %0) : (tensor<32x!tt.ptr<i32>>, tensor<32xi32>) -> tensor<32x!tt.ptr<i32>>
    %5 = "tt.load"(%4) <{operandSegmentSizes = array<i32: 1, 0, 0>}> : (tensor<32x!tt.ptr<i32>>) -> tensor<32xi32>
    %6 = "tt.expand_dims"(%5) <{axis = 1 : i32}> : (tensor<32xi32>) -> tensor<32x1xi32>
    %7 = "tt.splat"(%s) : (i32) -> tensor<32x1xi32>
    %8 = "arith.muli"(%6, %7) : (tensor<32x1xi32>, tensor<32x1xi32>) -> tensor<32x1xi32>
    %9 = "tt.splat"(%x) : (!tt.ptr<f32>) -> tensor<32x1x!tt.ptr<f32>>
    %10 = "tt.addptr"(%9, %8) : (tensor<32x1x!tt.ptr<f32>>, tensor<32x1xi32>) -> tensor<32x1x!tt.ptr<f32>>
    %11 = "tt.expand_dims"(%0) <{axis = 0 : i32}> : (tensor<32xi32>) -> tensor<1x32xi32>
    %12 = "tt.broadcast"(%10) : (tensor<32x1x!tt.ptr<f32>>) -> tensor<32x32x!tt.ptr<f32>>
    %13 = "tt.broadcast"(%11) : (tensor<1x32xi32>) -> tensor<32x32xi32>
    %14 = "tt.addptr"(%12, %13) : (tensor<32x32x!tt.ptr<f32>>, tensor<32x32xi32>) -> tensor<32x32x!tt.ptr<f32>>
    %15 = "arith.constant"() <{value = 2.000000e+00 : f32}> : () -> f32
    %16 = "tt.splat"(%15) : (f32) -> tensor<32x32xf32>
    "tt.store"(%14, %16) : (tensor<32x32x!tt.ptr<f32>>, tensor<32x32xf32>) -> ()
    %17 = "tt.expand_dims"(%0) <{axis = 1 : i32}> : (tensor<32xi32>) -> tensor<32x1xi32>
    %18 = "arith.constant"() <{value = 64 : i32}> : () -> i32
    %19 = "tt.splat"(%18) : (i32) -> tensor<32x1xi32>
    %20 = "arith.muli"(%17, %19) : (tensor<32x1xi32>, tensor<32x1xi32>) -> tensor<32x1xi32>
    %21 = "arith.constant"() <{value = dense<0> : tensor<32x1xi32>}> : () -> tensor<32x1xi32>
    %22 = "arith.subi"(%21, %20) : (tensor<32x1xi32>, tensor<32x1xi32>) -> tensor<32x1xi32>
    %23 = "tt.addptr"(%9, %22) : (tensor<32x1x!tt.ptr<f32>>, tensor<32x1xi32>) -> tensor<32x1x!tt.ptr<f32>>
    %24 = "tt.broadcast"(%23) : (tensor<32x1x!tt.ptr<f32>>) -> tensor<32x32x!tt.ptr<f32>>
    %25 = "tt.addptr"(%24, %13) : (tensor<32x32x!tt.ptr<f32>>, tensor<32x32xi32>) -> tensor<32x32x!tt.ptr<f32>>
    %26 = "arith.constant"() <{value = 3.000000e+00 : f32}> : () -> f32
    %27 = "tt.splat"(%26) : (f32) -> tensor<32x32xf32>
    "tt.store"(%25, %27) : (tensor<32x32x!tt.ptr<f32>>, tensor<32x32xf32>) -> ()
    %28 = "arith.muli"(%17, %7) : (tensor<32x1xi32>, tensor<32x1xi32>) -> tensor<32x1xi32>
    %29 = "tt.addptr"(%9, %28) : (tensor<32x1x!tt.ptr<f32>>, tensor<32x1xi32>) -> tensor<32x1x!tt.ptr<f32>>
    %30 = "arith.constant"() <{value = 2 : i32}> : () -> i32
    %31 = "tt.splat"(%30) : (i32) -> tensor<1x32xi32>
    %32 = "arith.muli"(%11, %31) : (tensor<1x32xi32>, tensor<1x32xi32>) -> tensor<1x32xi32>
    %33 = "tt.broadcast"(%29) : (tensor<32x1x!tt.ptr<f32>>) -> tensor<32x32x!tt.ptr<f32>>
    %34 = "tt.broadcast"(%32) : (tensor<1x32xi32>) -> tensor<32x32xi32>
    %35 = "tt.addptr"(%33, %34) : (tensor<32x32x!tt.ptr<f32>>, tensor<32x32xi32>) -> tensor<32x32x!tt.ptr<f32>>
    %36 = "arith.constant"() <{value = 4.000000e+00 : f32}> : () -> f32
    %37 = "tt.splat"(%36) : (f32) -> tensor<32x32xf32>
    "tt.store"(%35, %37) : (tensor<32x32x!tt.ptr<f32>>, tensor<32x32xf32>) -> ()
    %38 = "arith.constant"() <{value = 66 : i32}> : () -> i32
    %39 = "tt.splat"(%38) : (i32) -> tensor<32x1xi32>
    %40 = "arith.muli"(%17, %39) : (tensor<32x1xi32>, tensor<32x1xi32>) -> tensor<32x1xi32>
    %41 = "tt.addptr"(%9, %40) : (tensor<32x1x!tt.ptr<f32>>, tensor<32x1xi32>) -> tensor<32x1x!tt.ptr<f32>>
    %42 = "tt.broadcast"(%41) : (tensor<32x1x!tt.ptr<f32>>) -> tensor<32x32x!tt.ptr<f32>>
    %43 = "tt.addptr"(%42, %13) : (tensor<32x32x!tt.ptr<f32>>, tensor<32x32xi32>) -> tensor<32x32x!tt.ptr<f32>>
    %44 = "arith.constant"() <{value = 5.000000e+00 : f32}> : () -> f32
    %45 = "tt.splat"(%44) : (f32) -> tensor<32x32xf32>
    "tt.store"(%43, %45) : (tensor<32x32x!tt.ptr<f32>>, tensor<32x32xf32>) -> ()
    %46 = "tt.load"(%idx) <{operandSegmentSizes = array<i32: 1, 0, 0>}> : (!tt.ptr<i32>) -> i32
    %47 = "tt.splat"(%46) : (i32) -> tensor<32x1xi32>
    %48 = "arith.muli"(%17, %47) : (tensor<32x1xi32>, tensor<32x1xi32>) -> tensor<32x1xi32>
    %49 = "tt.addptr"(%9, %48) : (tensor<32x1x!tt.ptr<f32>>, tensor<32x1xi32>) -> tensor<32x1x!tt.ptr<f32>>
    %50 = "tt.broadcast"(%49) : (tensor<32x1x!tt.ptr<f32>>) -> tensor<32x32x!tt.ptr<f32>>
    %51 = "tt.addptr"(%50, %13) : (tensor<32x32x!tt.ptr<f32>>, tensor<32x32xi32>) -> tensor<32x32x!tt.ptr<f32>>
    %52 = "arith.constant"() <{value = 6.000000e+00 : f32}> : () -> f32
    %53 = "tt.splat"(%52) : (f32) -> tensor<32x32xf32>
    "tt.store"(%51, %53) : (tensor<32x32x!tt.ptr<f32>>, tensor<32x32xf32>) -> ()
    %54 = "tt.make_range"() <{start = 0 : i32, end = 2 : i32}> : () -> tensor<2xi32>
    %55 = "tt.expand_dims"(%54) <{axis = 0 : i32}> : (tensor<2xi32>) -> tensor<1x2xi32>
    %56 = "tt.broadcast"(%29) : (tensor<32x1x!tt.ptr<f32>>) -> tensor<32x2x!tt.ptr<f32>>
    %57 = "tt.broadcast"(%55) : (tensor<1x2xi32>) -> tensor<32x2xi32>
    %58 = "tt.addptr"(%56, %57) : (tensor<32x2x!tt.ptr<f32>>, tensor<32x2xi32>) -> tensor<32x2x!tt.ptr<f32>>
    %59 = "arith.constant"() <{value = 7.000000e+00 : f32}> : () -> f32
    %60 = "tt.splat"(%59) : (f32) -> tensor<32x2xf32>
    "tt.store"(%58, %60) : (tensor<32x2x!tt.ptr<f32>>, tensor<32x2xf32>) -> ()
    %61 = "tt.load"(%idx) <{operandSegmentSizes = array<i32: 1, 0, 0>}> : (!tt.ptr<i32>) -> i32
    %62 = "tt.addptr"(%x, %61) : (!tt.ptr<f32>, i32) -> !tt.ptr<f32>
    %63 = "tt.splat"(%62) : (!tt.ptr<f32>) -> tensor<32x!tt.ptr<f32>>
    %64 = "tt.addptr"(%63, %0) : (tensor<32x!tt.ptr<f32>>, tensor<32xi32>) -> tensor<32x!tt.ptr<f32>>
    %65 = "arith.constant"() <{value = 8.000000e+00 : f32}> : () -> f32
    %66 = "tt.splat"(%65) : (f32) -> tensor<32xf32>
    "tt.store"(%64, %66) : (tensor<32x!tt.ptr<f32>>, tensor<32xf32>) -> ()
    %67 = "arith.constant"() <{value = 0 : i32}> : () -> i32
    %68 = "tt.splat"(%67) : (i32) -> tensor<32x1xi32>
    %69 = "arith.muli"(%17, %68) : (tensor<32x1xi32>, tensor<32x1xi32>) -> tensor<32x1xi32>
    %70 = "tt.addptr"(%9, %69) : (tensor<32x1x!tt.ptr<f32>>, tensor<32x1xi32>) -> tensor<32x1x!tt.ptr<f32>>
    %71 = "tt.broadcast"(%70) : (tensor<32x1x!tt.ptr<f32>>) -> tensor<32x32x!tt.ptr<f32>>
    %72 = "tt.addptr"(%71, %13) : (tensor<32x32x!tt.ptr<f32>>, tensor<32x32xi32>) -> tensor<32x32x!tt.ptr<f32>>
    %73 = "tt.load"(%72) <{operandSegmentSizes = array<i32: 1, 0, 0>}> : (tensor<32x32x!tt.ptr<f32>>) -> tensor<32x32xf32>
    %74 = "arith.constant"() <{value = 16 : i32}> : () -> i32
    %75 = "tt.splat"(%74) : (i32) -> tensor<32x1xi32>
    %76 = "arith.muli"(%17, %75) : (tensor<32x1xi32>, tensor<32x1xi32>) -> tensor<32x1xi32>
    %77 = "tt.addptr"(%9, %76) : (tensor<32x1x!tt.ptr<f32>>, tensor<32x1xi32>) -> tensor<32x1x!tt.ptr<f32>>
    %78 = "tt.broadcast"(%77) : (tensor<32x1x!tt.ptr<f32>>) -> tensor<32x32x!tt.ptr<f32>>
    %79 = "tt.addptr"(%78, %13) : (tensor<32x32x!tt.ptr<f32>>, tensor<32x32xi32>) -> tensor<32x32x!tt.ptr<f32>>
    %80 = "arith.constant"() <{value = 9.000000e+00 : f32}> : () -> f32
    %81 = "tt.splat"(%80) : (f32) -> tensor<32x32xf32>
    "tt.store"(%79, %81) : (tensor<32x32x!tt.ptr<f32>>, tensor<32x32xf32>) -> ()
    "tt.return"() : () -> ()
  }) : () -> ()
}) : () -> ()
// -----
// Where a tile starts; what differs from program to program is a dimension of its own.
//
// CHECK: tw.access = "no box: where dimension 0 starts may be negative"
// CHECK: tw.access = "no box: where dimension 1 starts is not known to be a multiple of 16 bytes"
// CHECK: tw.access = "no box: dimension 0 may wrap inside of a tile"
// CHECK: tw.access = "no box: dimension 0 wraps at program_id(0), not known at a launch"
// CHECK: tw.access = "box of x; 1 of stride -s from program_id(0); 32 of stride 1 from 0; if -s is at least 1"
// CHECK: tw.access = "no box: it is one element"
// CHECK: tw.access = "no box: load of line 202 may be negative"
// CHECK: tw.access = "box of x; 1 of stride s from program_id(0); 32 of stride 64 from 0 to s; 32 of stride 1 from -3*s to 64; if s is at least 1, -3*s is at least 0; in every tile -3*s + 32 <= 64"
// OLD: tw.access = "no box: sm_80 has no copy engine"

"builtin.module"() ({
  "tt.func"() <{sym_name = "starts", function_type = (!tt.ptr<f32>, i32, i32) -> (), arg_attrs = [{tt.divisibility = 16 : i32}, {}, {tt.divisibility = 16 : i32}]}> ({
  ^bb0(%x: !tt.ptr<f32>, %o: i32, %s: i32):
    %0 = "tt.make_range"() <{start = 0 : i32, end = 32 : i32}> : () -> tensor<32xi32>
    %1 = "tt.get_program_id"() <{axis = 0 : i32}> : () -> i32
    %2 = "arith.constant"() <{value = 1 : i32}> : () -> i32
    %3 = "arith.subi"(%1, %2) : (i32, i32) -> i32
    %4 = "arith.constant"() <{value = 32 : i32}> : () -> i32
    %5 = "arith.muli"(%3, %4) : (i32, i32) -> i32
    %6 = "tt.splat"(%5) : (i32) -> tensor<32xi32>
    %7 = "arith.addi"(%6, %0) : (tensor<32xi32>, tensor<32xi32>) -> tensor<32xi32>
    %8 = "tt.expand_dims"(%7) <{axis = 1 : i32}> : (tensor<32xi32>) -> tensor<32x1xi32>
    %9 = "tt.splat"(%s) : (i32) -> tensor<32x1xi32>
    %10 = "arith.muli"(%8, %9) : (tensor<32x1xi32>, tensor<32x1xi32>) -> tensor<32x1xi32>
    %11 = "tt.splat"(%x) : (!tt.ptr<f32>) -> tensor<32x1x!tt.ptr<f32>>
    %12 = "tt.addptr"(%11, %10) : (tensor<32x1x!tt.ptr<f32>>, tensor<32x1xi32>) -> tensor<32x1x!tt.ptr<f32>>
    %13 = "tt.expand_dims"(%0) <{axis = 0 : i32}> : (tensor<32xi32>) -> tensor<1x32xi32>
    %14 = "tt.broadcast"(%12) : (tensor<32x1x!tt.ptr<f32>>) -> tensor<32x32x!tt.ptr<f32>>
    %15 = "tt.broadcast"(%13) : (tensor<1x32xi32>) -> tensor<32x32xi32>
    %16 = "tt.addptr"(%14, %15) : (tensor<32x32x!tt.ptr<f32>>, tensor<32x32xi32>) -> tensor<32x32x!tt.ptr<f32>>
    %17 = "arith.constant"() <{value = 1.000000e+00 : f32}> : () -> f32
    %18 = "tt.splat"(%17) : (f32) -> tensor<32x32xf32>
    "tt.store"(%16, %18) : (tensor<32x32x!tt.ptr<f32>>, tensor<32x32xf32>) -> ()
    %19 = "tt.expand_dims"(%0) <{axis = 1 : i32}> : (tensor<32xi32>) -> tensor<32x1xi32>
    %20 = "arith.muli"(%19, %9) : (tensor<32x1xi32>, tensor<32x1xi32>) -> tensor<32x1xi32>
    %21 = "tt.addptr"(%11, %20) : (tensor<32x1x!tt.ptr<f32>>, tensor<32x1xi32>) -> tensor<32x1x!tt.ptr<f32>>
    %22 = "arith.constant"() <{value = 3 : i32}> : () -> i32
    %23 = "arith.muli"(%1, %22) : (i32, i32) -> i32
    %24 = "tt.splat"(%23) : (i32) -> tensor<32xi32>
    %25 = "arith.addi"(%24, %0) : (tensor<32xi32>, tensor<32xi32>) -> tensor<32xi32>
    %26 = "tt.expand_dims"(%25) <{axis = 0 : i32}> : (tensor<32xi32>) -> tensor<1x32xi32>
    %27 = "tt.broadcast"(%21) : (tensor<32x1x!tt.ptr<f32>>) -> tensor<32x32x!tt.ptr<f32>>
    %28 = "tt.broadcast"(%26) : (tensor<1x32xi32>) -> tensor<32x32xi32>
    %29 = "tt.addptr"(%27, %28) : (tensor<32x32x!tt.ptr<f32>>, tensor<32x32xi32>) -> tensor<32x32x!tt.ptr<f32>>
    %30 = "arith.constant"() <{value = 2.000000e+00 : f32}> : () -> f32
    %31 = "tt.splat"(%30) : (f32) -> tensor<32x32xf32>
    "tt.store"(%29, %31) : (tensor<32x32x!tt.ptr<f32>>, tensor<32x32xf32>) -> ()
    %32 = "tt.splat"(%o) : (i32) -> tensor<32xi32>
    %33 = "arith.remsi"(%25, %32) : (tensor<32xi32>, tensor<32xi32>) -> tensor<32xi32>
    %34 = "tt.expand_dims"(%33) <{axis = 1 : i32}> : (tensor<32xi32>) -> tensor<32x1xi32>
    %35 = "arith.muli"(%34, %9) : (tensor<32x1xi32>, tensor<32x1xi32>) -> tensor<32x1xi32>
    %36 = "tt.addptr"(%11, %35) : (tensor<32x1x!tt.ptr<f32>>, tensor<32x1xi32>) -> tensor<32x1x!tt.ptr<f32>>
    %37 = "tt.broadcast"(%36) : (tensor<32x1x!tt.ptr<f32>>) -> tensor<32x32x!tt.ptr<f32>>
    %38 = "tt.addptr"(%37, %15) : (tensor<32x32x!tt.ptr<f32>>, tensor<32x32xi32>) -> tensor<32x32x!tt.ptr<f32>>
    %39 = "arith.constant"() <{value = 3.000000e+00 : f32}> : () -> f32
    %40 = "tt.splat"(%39) : (f32) -> tensor<32x32xf32>
    "tt.store"(%38, %40) : (tensor<32x32x!tt.ptr<f32>>, tensor<32x32xf32>) -> ()
    %41 = "arith.muli"(%1, %4) : (i32, i32) -> i32
    %42 = "tt.splat"(%41) : (i32) -> tensor<32xi32>
    %43 = "arith.addi"(%42, %0) : (tensor<32xi32>, tensor<32xi32>) -> tensor<32xi32>
    %44 = "tt.splat"(%1) : (i32) -> tensor<32xi32>
    %45 = "arith.remsi"(%43, %44) : (tensor<32xi32>, tensor<32xi32>) -> tensor<32xi32>
    %46 = "tt.expand_dims"(%45) <{axis = 1 : i32}> : (tensor<32xi32>) -> tensor<32x1xi32>
    %47 = "arith.muli"(%46, %9) : (tensor<32x1xi32>, tensor<32x1xi32>) -> tensor<32x1xi32>
    %48 = "tt.addptr"(%11, %47) : (tensor<32x1x!tt.ptr<f32>>, tensor<32x1xi32>) -> tensor<32x1x!tt.ptr<f32>>
    %49 = "tt.broadcast"(%48) : (tensor<32x1x!tt.ptr<f32>>) -> tensor<32x32x!tt.ptr<f32>>
    %50 = "tt.addptr"(%49, %15) : (tensor<32x32x!tt.ptr<f32>>, tensor<32x32xi32>) -> tensor<32x32x!tt.ptr<f32>>
    %51 = "arith.constant"() <{value = 4.000000e+00 : f32}> : () -> f32
    %52 = "tt.splat"(%51) : (f32) -> tensor<32x32xf32>
    "tt.store"(%50, %52) : (tensor<32x32x!tt.ptr<f32>>, tensor<32x32xf32>) -> ()
    %53 = "arith.muli"(%1, %s) : (i32, i32) -> i32
    %54 = "arith.constant"() <{value = 0 : i32}> : () -> i32
    %55 = "arith.subi"(%54, %53) : (i32, i32) -> i32
    %56 = "tt.addptr"(%x, %55) : (!tt.ptr<f32>, i32) -> !tt.ptr<f32>
    %57 = "tt.splat"(%56) : (!tt.ptr<f32>) -> tensor<32x!tt.ptr<f32>>
    %58 = "tt.addptr"(%57, %0) : (tensor<32x!tt.ptr<f32>>, tensor<32xi32>) -> tensor<32x!tt.ptr<f32>>
    %59 = "arith.constant"() <{value = 5.000000e+00 : f32}> : () -> f32
    %60 = "tt.splat"(%59) : (f32) -> tensor<32xf32>
    "tt.store"(%58, %60) : (tensor<32x!tt.ptr<f32>>, tensor<32xf32>) -> ()
    %61 = "tt.bitcast"(%x) : (!tt.ptr<f32>) -> !tt.ptr<i32>
    %62 = "tt.load"(%61) <{operandSegmentSizes = array<i32: 1, 0, 0>}> : (!tt.ptr<i32>) -> i32
    %63 = "arith.muli"(%62, %s) : (i32, i32) -> i32
    %64 = "tt.addptr"(%x, %63) : (!tt.ptr<f32>, i32) -> !tt.ptr<f32>
    %65 = "tt.splat"(%64) : (!tt.ptr<f32>) -> tensor<32x!tt.ptr<f32>>
    %66 = "tt.addptr"(%65, %0) : (tensor<32x!tt.ptr<f32>>, tensor<32xi32>) -> tensor<32x!tt.ptr<f32>>
    %67 = "arith.constant"() <{value = 6.000000e+00 : f32}> : () -> f32
    %68 = "tt.splat"(%67) : (f32) -> tensor<32xf32>
    "tt.store"(%66, %68) : (tensor<32x!tt.ptr<f32>>, tensor<32xf32>) -> ()
    %69 = "arith.subi"(%1, %22) : (i32, i32) -> i32
    %70 = "arith.muli"(%69, %s) : (i32, i32) -> i32
    %71 = "tt.addptr"(%x, %70) : (!tt.ptr<f32>, i32) -> !tt.ptr<f32>
    %72 = "arith.constant"() <{value = 64 : i32}> : () -> i32
    %73 = "tt.splat"(%72) : (i32) -> tensor<32x1xi32>
    %74 = "arith.muli"(%19, %73) : (tensor<32x1xi32>, tensor<32x1xi32>) -> tensor<32x1xi32>
    %75 = "tt.splat"(%71) : (!tt.ptr<f32>) -> tensor<32x1x!tt.ptr<f32>>
    %76 = "tt.addptr"(%75, %74) : (tensor<32x1x!tt.ptr<f32>>, tensor<32x1xi32>) -> tensor<32x1x!tt.ptr<f32>>
    %77 = "tt.broadcast"(%76) : (tensor<32x1x!tt.ptr<f32>>) -> tensor<32x32x!tt.ptr<f32>>
    %78 = "tt.addptr"(%77, %15) : (tensor<32x32x!tt.ptr<f32>>, tensor<32x32xi32>) -> tensor<32x32x!tt.ptr<f32>>
    %79 = "arith.cmpi"(%19, %9) <{predicate = 2 : i64}> : (tensor<32x1xi32>, tensor<32x1xi32>) -> tensor<32x1xi1>
    %80 = "arith.constant"() <{value = 7.000000e+00 : f32}> : () -> f32
    %81 = "tt.splat"(%80) : (f32) -> tensor<32x32xf32>
    %82 = "tt.broadcast"(%79) : (tensor<32x1xi1>) -> tensor<32x32xi1>
    "tt.store"(%78, %81, %82) : (tensor<32x32x!tt.ptr<f32>>, tensor<32x32xf32>, tensor<32x32xi1>) -> ()
    "tt.return"() : () -> ()
  }) : () -> ()
}) : () -> ()
// -----
// Masks.
//
// CHECK: tw.access = "no box: its mask is no bound along a dimension"
// CHECK: tw.access = "no box: its mask has a condition of the whole tile"
// CHECK: tw.access = "box of x; 1 of stride 32*s from program_id(0); 32 of stride s from 0 to n; 32 of stride 1 from 0 to s; if s is at least 1, n is at least 1; in every tile 32 <= s"
// CHECK: tw.access = "no box: it is one element"
// CHECK: tw.access = "no box: dimension 1 ends at load of line 285, not known at a launch"
// CHECK: tw.access = "no box: dimension 1 begins at 4, not at 0"
// CHECK: tw.access = "no box: what is masked out does not read as 0"
// CHECK: tw.access = "box of x; 32 of stride s from 32*program_id(0); 32 of stride 1 from 0 to s; if s is at least 1; in every tile 32 <= s"
// CHECK: tw.access = "no box: what is masked out does not read as 0"
// CHECK: tw.access = "box of x; 32 of stride s from 32*program_id(0); 32 of stride 1 from 0 to s; if s is at least 1; in every tile 32 <= s"
// CHECK: tw.access = "no box: it is volatile"
// CHECK: tw.access = "no box: it is one element"
// OLD: tw.access = "no box: sm_80 has no copy engine"

"builtin.module"() ({
  "tt.func"() <{sym_name = "masks_no_box", function_type = (!tt.ptr<f32>, !tt.ptr<i32>, i32, i32) -> (), arg_attrs = [{tt.divisibility = 16 : i32}, {tt.divisibility = 16 : i32}, {}, {tt.divisibility = 16 : i32}]}> ({
  ^bb0(%x: !tt.ptr<f32>, %m: !tt.ptr<i32>, %n: i32, %s: i32):
    %0 = "tt.make_range"() <{start = 0 : i32, end = 32 : i32}> : () -> tensor<32xi32>
    %1 = "tt.get_program_id"() <{axis = 0 : i32}> : () -> i32
    %2 = "arith.constant"() <{value = 32 : i32}> : () -> i32
    %3 = "arith.muli"(%1, %2) : (i32, i32) -> i32
    %4 = "tt.splat"(%3) : (i32) -> tensor<32xi32>
    %5 = "arith.addi"(%4, %0) : (tensor<32xi32>, tensor<32xi32>) -> tensor<32xi32>
    %6 = "tt.expand_dims"(%5) <{axis = 1 : i32}> : (tensor<32xi32>) -> tensor<32x1xi32>
    %7 = "tt.splat"(%s) : (i32) -> tensor<32x1xi32>
    %8 = "arith.muli"(%6, %7) : (tensor<32x1xi32>, tensor<32x1xi32>) -> tensor<32x1xi32>
    %9 = "tt.splat"(%x) : (!tt.ptr<f32>) -> tensor<32x1x!tt.ptr<f32>>
    %10 = "tt.addptr"(%9, %8) : (tensor<32x1x!tt.ptr<f32>>, tensor<32x1xi32>) -> tensor<32x1x!tt.ptr<f32>>
    %11 = "tt.expand_dims"(%0) <{axis = 0 : i32}> : (tensor<32xi32>) -> tensor<1x32xi32>
    %12 = "tt.broadcast"(%10) : (tensor<32x1x!tt.ptr<f32>>) -> tensor<32x32x!tt.ptr<f32>>
    %13 = "tt.broadcast"(%11) : (tensor<1x32xi32>) -> tensor<32x32xi32>
    %14 = "tt.addptr"(%12, %13) : (tensor<32x32x!tt.ptr<f32>>, tensor<32x32xi32>) -> tensor<32x32x!tt.ptr<f32>>
    %15 = "tt.expand_dims"(%0) <{axis = 1 : i32}> : (tensor<32xi32>) -> tensor<32x1xi32>
    %16 = "tt.splat"(%n) : (i32) -> tensor<32x1xi32>
    %17 = "arith.cmpi"(%15, %16) <{predicate = 2 : i64}> : (tensor<32x1xi32>, tensor<32x1xi32>) -> tensor<32x1xi1>
    %18 = "tt.splat"(%n) : (i32) -> tensor<1x32xi32>
    %19 = "arith.cmpi"(%11, %18) <{predicate = 2 : i64}> : (tensor<1x32xi32>, tensor<1x32xi32>) -> tensor<1x32xi1>
    %20 = "tt.broadcast"(%17) : (tensor<32x1xi1>) -> tensor<32x32xi1>
    %21 = "tt.broadcast"(%19) : (tensor<1x32xi1>) -> tensor<32x32xi1>
    %22 = "arith.ori"(%20, %21) : (tensor<32x32xi1>, tensor<32x32xi1>) -> tensor<32x32xi1>
    %23 = "arith.constant"() <{value = 1.000000e+00 : f32}> : () -> f32
    %24 = "tt.splat"(%23) : (f32) -> tensor<32x32xf32>
    "tt.store"(%14, %24, %22) : (tensor<32x32x!tt.ptr<f32>>, tensor<32x32xf32>, tensor<32x32xi1>) -> ()
    %25 = "arith.constant"() <{value = 3 : i32}> : () -> i32
    %26 = "arith.cmpi"(%n, %25) <{predicate = 4 : i64}> : (i32, i32) -> i1
    %27 = "tt.splat"(%26) : (i1) -> tensor<1x32xi1>
    %28 = "arith.andi"(%27, %19) : (tensor<1x32xi1>, tensor<1x32xi1>) -> tensor<1x32xi1>
    %29 = "arith.constant"() <{value = 2.000000e+00 : f32}> : () -> f32
    %30 = "tt.splat"(%29) : (f32) -> tensor<32x32xf32>
    %31 = "tt.broadcast"(%28) : (tensor<1x32xi1>) -> tensor<32x32xi1>
    "tt.store"(%14, %30, %31) : (tensor<32x32x!tt.ptr<f32>>, tensor<32x32xf32>, tensor<32x32xi1>) -> ()
    %32 = "arith.constant"() <{value = 3.000000e+00 : f32}> : () -> f32
    %33 = "tt.splat"(%32) : (f32) -> tensor<32x32xf32>
    "tt.store"(%14, %33, %20) : (tensor<32x32x!tt.ptr<f32>>, tensor<32x32xf32>, tensor<32x32xi1>) -> ()
    %34 = "tt.load"(%m) <{operandSegmentSizes = array<i32: 1, 0, 0>}> : (!tt.ptr<i32>) -> i32
    %35 = "tt.splat"(%34) : (i32) -> tensor<1x32xi32>
    %36 = "arith.cmpi"(%11, %35) <{predicate = 2 : i64}> : (tensor<1x32xi32>, tensor<1x32xi32>) -> tensor<1x32xi1>
    %37 = "arith.constant"() <{value = 4.000000e+00 : f32}> : () -> f32
    %38 = "tt.splat"(%37) : (f32) -> tensor<32x32xf32>
    %39 = "tt.broadcast"(%36) : (tensor<1x32xi1>) -> tensor<32x32xi1>
    "tt.store"(%14, %38, %39) : (tensor<32x32x!tt.ptr<f32>>, tensor<32x32xf32>, tensor<32x32xi1>) -> ()
    %40 = "arith.constant"() <{value = 4 : i32}> : () -> i32
    %41 = "tt.splat"(%40) : (i32) -> tensor<1x32xi32>
    %42 = "arith.cmpi"(%11, %41) <{predicate = 5 : i64}> : (tensor<1x32xi32>, tensor<1x32xi32>) -> tensor<1x32xi1>
    %43 = "arith.constant"() <{value = 5.000000e+00 : f32}> : () -> f32
    %44 = "tt.splat"(%43) : (f32) -> tensor<32x32xf32>
    %45 = "tt.broadcast"(%42) : (tensor<1x32xi1>) -> tensor<32x32xi1>
    "tt.store"(%14, %44, %45) : (tensor<32x32x!tt.ptr<f32>>, tensor<32x32xf32>, tensor<32x32xi1>) -> ()
    %46 = "arith.constant"() <{value = -1.000000e+00 : f32}> : () -> f32
    %47 = "tt.splat"(%46) : (f32) -> tensor<32x32xf32>
    %48 = "tt.load"(%14, %21, %47) <{operandSegmentSizes = array<i32: 1, 1, 1>}> : (tensor<32x32x!tt.ptr<f32>>, tensor<32x32xi1>, tensor<32x32xf32>) -> tensor<32x32xf32>
    "tt.store"(%14, %48) : (tensor<32x32x!tt.ptr<f32>>, tensor<32x32xf32>) -> ()
    %49 = "arith.constant"() <{value = -0.000000e+00 : f32}> : () -> f32
    %50 = "tt.splat"(%49) : (f32) -> tensor<32x32xf32>
    %51 = "tt.load"(%14, %21, %50) <{operandSegmentSizes = array<i32: 1, 1, 1>}> : (tensor<32x32x!tt.ptr<f32>>, tensor<32x32xi1>, tensor<32x32xf32>) -> tensor<32x32xf32>
    "tt.store"(%14, %51) : (tensor<32x32x!tt.ptr<f32>>, tensor<32x32xf32>) -> ()
    %52 = "tt.load"(%14) <{isVolatile = true, operandSegmentSizes = array<i32: 1, 0, 0>}> : (tensor<32x32x!tt.ptr<f32>>) -> tensor<32x32xf32>
    %53 = "tt.reshape"(%52) : (tensor<32x32xf32>) -> tensor<1024xf32>
    %54 = "tt.reduce"(%53) <{axis = 0 : i32}> ({
    ^bb0(%55: f32, %56: f32):
      %57 = "arith.addf"(%55, %56) <{fastmath = #arith.fastmath<contract>}> : (f32, f32) -> f32
      "tt.reduce.return"(%57) : (f32) -> ()
    }) : (tensor<1024xf32>) -> f32
    "tt.store"(%x, %54) : (!tt.ptr<f32>, f32) -> ()
    "tt.return"() : () -> ()
  }) : () -> ()
}) : () -> ()
// -----
// Pointers that are no argument plus offsets.
//
// CHECK: tw.access = "no box: its pointer if of line 330 is no argument"
// OLD: tw.access = "no box: sm_80 has no copy engine"

"builtin.module"() ({
  "tt.func"() <{sym_name = "chosen", function_type = (!tt.ptr<f32>, !tt.ptr<f32>, i32) -> (), arg_attrs = [{tt.divisibility = 16 : i32}, {tt.divisibility = 16 : i32}, {}]}> ({
  ^bb0(%x: !tt.ptr<f32>, %y: !tt.ptr<f32>, %n: i32):
    %0 = "tt.make_range"() <{start = 0 : i32, end = 32 : i32}> : () -> tensor<32xi32>
    %1 = "arith.constant"() <{value = 3 : i32}> : () -> i32
    %2 = "arith.cmpi"(%n, %1) <{predicate = 4 : i64}> : (i32, i32) -> i1
    %3 = "scf.if"(%2) ({
      "scf.yield"(%y) : (!tt.ptr<f32>) -> ()
    }, {
      "scf.yield"(%x) : (!tt.ptr<f32>) -> ()
    }) : (i1) -> !tt.ptr<f32>
    %4 = "tt.splat"(%3) : (!tt.ptr<f32>) -> tensor<32x!tt.ptr<f32>>
    %5 = "tt.addptr"(%4, %0) : (tensor<32x!tt.ptr<f32>>, tensor<32xi32>) -> tensor<32x!tt.ptr<f32>>
    %6 = "arith.constant"() <{value = 1.000000e+00 : f32}> : () -> f32
    %7 = "tt.splat"(%6) : (f32) -> tensor<32xf32>
    "tt.store"(%5, %7) : (tensor<32x!tt.ptr<f32>>, tensor<32xf32>) -> ()
    "tt.return"() : () -> ()
  }) : () -> ()
}) : () -> ()
