// PASS: describe-accesses{ask=nest}
// The strides of loop nests.
//
// A row-major tile, one that wraps, one that is looked up.
//
// CHECK: tw.access = "strides s, 1"
// CHECK: tw.access = "strides s (jumps), 2 (jumps)"
// CHECK: tw.access = "strides 1"
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
    "tt.return"() : () -> ()
  }) : () -> ()
}) : () -> ()
