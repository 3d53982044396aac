// PASS: bulk-access{num_stages=2}
// What a pipelined product loads becomes a box of a tensor that the launch describes: the rows
// that wrap are cut off, as no store shows them, and the mask is the end of the columns.
// A load outside of the loop stays.
//
// CHECK: %[[MAP:.*]] = "ttng.tensor_map"(%a, %M, %K, %stride) <{
// CHECK-SAME: index = 0 : i32
// CHECK-COUNT-1: "tt.load"
// CHECK: "scf.for"
// CHECK: "tt.descriptor_load"(%[[MAP]]
// CHECK-SAME: (!tt.tensordesc<tensor<64x32xf16>>, i32, i32) -> tensor<64x32xf16>
// CHECK-NOT: "tt.load"
// CHECK: ttng.launch_guards = "
// CHECK-SAME: stride is at least 1
// CHECK-SAME: M*stride + K is at most 2147483647
// CHECK-SAME: the copy engine makes the load where

"builtin.module"() ({
  "tt.func"() <{sym_name = "k", function_type = (!tt.ptr<f16>, !tt.ptr<f16>, !tt.ptr<f32>, i32, i32, i32) -> (), arg_attrs = [{tt.name = "a", tt.divisibility = 16 : i32}, {tt.name = "b", tt.divisibility = 16 : i32}, {tt.name = "c", tt.divisibility = 16 : i32}, {tt.name = "M", tt.divisibility = 16 : i32}, {tt.name = "K", tt.divisibility = 16 : i32}, {tt.name = "stride", tt.divisibility = 16 : i32}]}> ({
  ^bb0(%a: !tt.ptr<f16>, %b: !tt.ptr<f16>, %c: !tt.ptr<f32>, %M: i32, %K: i32, %stride: i32):
    %0 = "tt.get_program_id"() <{axis = 0 : i32}> : () -> i32
    %1 = "arith.constant"() <{value = 64 : i32}> : () -> i32
    %2 = "arith.muli"(%0, %1) : (i32, i32) -> i32
    %3 = "tt.make_range"() <{start = 0 : i32, end = 64 : i32}> : () -> tensor<64xi32>
    %4 = "tt.splat"(%2) : (i32) -> tensor<64xi32>
    %5 = "arith.addi"(%4, %3) : (tensor<64xi32>, tensor<64xi32>) -> tensor<64xi32>
    %6 = "tt.splat"(%M) : (i32) -> tensor<64xi32>
    %7 = "arith.remsi"(%5, %6) : (tensor<64xi32>, tensor<64xi32>) -> tensor<64xi32>
    %8 = "tt.make_range"() <{start = 0 : i32, end = 32 : i32}> : () -> tensor<32xi32>
    %9 = "tt.expand_dims"(%7) <{axis = 1 : i32}> : (tensor<64xi32>) -> tensor<64x1xi32>
    %10 = "tt.splat"(%stride) : (i32) -> tensor<64x1xi32>
    %11 = "arith.muli"(%9, %10) : (tensor<64x1xi32>, tensor<64x1xi32>) -> tensor<64x1xi32>
    %12 = "tt.splat"(%a) : (!tt.ptr<f16>) -> tensor<64x1x!tt.ptr<f16>>
    %13 = "tt.addptr"(%12, %11) : (tensor<64x1x!tt.ptr<f16>>, tensor<64x1xi32>) -> tensor<64x1x!tt.ptr<f16>>
    %14 = "tt.expand_dims"(%8) <{axis = 0 : i32}> : (tensor<32xi32>) -> tensor<1x32xi32>
    %15 = "tt.broadcast"(%13) : (tensor<64x1x!tt.ptr<f16>>) -> tensor<64x32x!tt.ptr<f16>>
    %16 = "tt.broadcast"(%14) : (tensor<1x32xi32>) -> tensor<64x32xi32>
    %17 = "tt.addptr"(%15, %16) : (tensor<64x32x!tt.ptr<f16>>, tensor<64x32xi32>) -> tensor<64x32x!tt.ptr<f16>>
    %18 = "tt.expand_dims"(%8) <{axis = 1 : i32}> : (tensor<32xi32>) -> tensor<32x1xi32>
    %19 = "arith.constant"() <{value = 32 : i32}> : () -> i32
    %20 = "tt.splat"(%19) : (i32) -> tensor<32x1xi32>
    %21 = "arith.muli"(%18, %20) : (tensor<32x1xi32>, tensor<32x1xi32>) -> tensor<32x1xi32>
    %22 = "tt.splat"(%b) : (!tt.ptr<f16>) -> tensor<32x1x!tt.ptr<f16>>
    %23 = "tt.addptr"(%22, %21) : (tensor<32x1x!tt.ptr<f16>>, tensor<32x1xi32>) -> tensor<32x1x!tt.ptr<f16>>
    %24 = "tt.broadcast"(%23) : (tensor<32x1x!tt.ptr<f16>>) -> tensor<32x32x!tt.ptr<f16>>
    %25 = "tt.broadcast"(%14) : (tensor<1x32xi32>) -> tensor<32x32xi32>
    %26 = "tt.addptr"(%24, %25) : (tensor<32x32x!tt.ptr<f16>>, tensor<32x32xi32>) -> tensor<32x32x!tt.ptr<f16>>
    %27 = "tt.load"(%26) <{operandSegmentSizes = array<i32: 1, 0, 0>}> : (tensor<32x32x!tt.ptr<f16>>) -> tensor<32x32xf16>
    %28 = "arith.constant"() <{value = dense<0.000000e+00> : tensor<64x32xf32>}> : () -> tensor<64x32xf32>
    %29 = "arith.constant"() <{value = 0 : i32}> : () -> i32
    %30 = "arith.constant"() <{value = 0 : i64}> : () -> i64
    %31, %32 = "scf.for"(%29, %K, %19, %30, %28) ({
    ^bb0(%33: i32, %34: i64, %35: tensor<64x32xf32>):
      %36 = "tt.splat"(%34) : (i64) -> tensor<64x32xi64>
      %37 = "tt.addptr"(%17, %36) : (tensor<64x32x!tt.ptr<f16>>, tensor<64x32xi64>) -> tensor<64x32x!tt.ptr<f16>>
      %38 = "arith.subi"(%K, %33) : (i32, i32) -> i32
      %39 = "tt.splat"(%38) : (i32) -> tensor<1x32xi32>
      %40 = "arith.cmpi"(%14, %39) <{predicate = 2 : i64}> : (tensor<1x32xi32>, tensor<1x32xi32>) -> tensor<1x32xi1>
      %41 = "tt.broadcast"(%40) : (tensor<1x32xi1>) -> tensor<64x32xi1>
      %42 = "arith.constant"() <{value = 0.000000e+00 : f32}> : () -> f32
      %43 = "arith.truncf"(%42) : (f32) -> f16
      %44 = "tt.splat"(%43) : (f16) -> tensor<64x32xf16>
      %45 = "tt.load"(%37, %41, %44) <{operandSegmentSizes = array<i32: 1, 1, 1>}> : (tensor<64x32x!tt.ptr<f16>>, tensor<64x32xi1>, tensor<64x32xf16>) -> tensor<64x32xf16>
      %46 = "tt.dot"(%45, %27, %35) <{inputPrecision = 0 : i32, maxNumImpreciseAcc = 0 : i32}> : (tensor<64x32xf16>, tensor<32x32xf16>, tensor<64x32xf32>) -> tensor<64x32xf32>
      %47 = "tt.splat"(%19) : (i32) -> tensor<64x32xi32>
      %48 = "tt.addptr"(%37, %47) : (tensor<64x32x!tt.ptr<f16>>, tensor<64x32xi32>) -> tensor<64x32x!tt.ptr<f16>>
      %49 = "arith.extsi"(%19) : (i32) -> i64
      %50 = "arith.addi"(%34, %49) : (i64, i64) -> i64
      "scf.yield"(%50, %46) : (i64, tensor<64x32xf32>) -> ()
    }) : (i32, i32, i32, i64, tensor<64x32xf32>) -> (i64, tensor<64x32xf32>)
    %51 = "tt.expand_dims"(%5) <{axis = 1 : i32}> : (tensor<64xi32>) -> tensor<64x1xi32>
    %52 = "tt.splat"(%19) : (i32) -> tensor<64x1xi32>
    %53 = "arith.muli"(%51, %52) : (tensor<64x1xi32>, tensor<64x1xi32>) -> tensor<64x1xi32>
    %54 = "tt.splat"(%c) : (!tt.ptr<f32>) -> tensor<64x1x!tt.ptr<f32>>
    %55 = "tt.addptr"(%54, %53) : (tensor<64x1x!tt.ptr<f32>>, tensor<64x1xi32>) -> tensor<64x1x!tt.ptr<f32>>
    %56 = "tt.broadcast"(%55) : (tensor<64x1x!tt.ptr<f32>>) -> tensor<64x32x!tt.ptr<f32>>
    %57 = "tt.addptr"(%56, %16) : (tensor<64x32x!tt.ptr<f32>>, tensor<64x32xi32>) -> tensor<64x32x!tt.ptr<f32>>
    %58 = "tt.splat"(%M) : (i32) -> tensor<64x1xi32>
    %59 = "arith.cmpi"(%51, %58) <{predicate = 2 : i64}> : (tensor<64x1xi32>, tensor<64x1xi32>) -> tensor<64x1xi1>
    %60 = "tt.broadcast"(%59) : (tensor<64x1xi1>) -> tensor<64x32xi1>
    "tt.store"(%57, %32, %60) : (tensor<64x32x!tt.ptr<f32>>, tensor<64x32xf32>, tensor<64x32xi1>) -> ()
    "tt.return"() : () -> ()
  }) : () -> ()
}) : () -> ()
