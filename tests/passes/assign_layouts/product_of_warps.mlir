// PASS: decide-products{num_warps=2} decide-accesses{num_warps=2} decide-layouts{num_warps=2} assign-layouts{num_warps=2}
// PASS(AMPERE): decide-products{machine=sm_80} decide-accesses{machine=sm_80} decide-layouts{machine=sm_80} assign-layouts{machine=sm_80}
// Two warps are no warp group, and Ampere has no wgmma: mma.sync, whose operands are in
// registers, with the reason on the product.
//
// CHECK-NOT: ttg.local_alloc
// CHECK: "ttg.dot"({{.*}}) <{product = #tw.product<"mma 16x8x16, warps 2x1, a registers, b registers", "2 warps are no whole warp groups">
// AMPERE: "ttg.dot"({{.*}}) <{product = #tw.product<"mma 16x8x16, warps 4x1, a registers, b registers", "the machine has no wgmma">

!p = tensor<64x64x!tt.ptr<f16>>
!a = tensor<64x64xf16>
!q = tensor<64x64x!tt.ptr<f32>>
!c = tensor<64x64xf32>
"builtin.module"() ({
  "tt.func"() <{sym_name = "k", function_type = (!tt.ptr<f16>, !tt.ptr<f16>, !tt.ptr<f32>) -> ()}> ({
  ^bb0(%x: !tt.ptr<f16>, %y: !tt.ptr<f16>, %z: !tt.ptr<f32>):
    %pa = "tt.splat"(%x) : (!tt.ptr<f16>) -> !p
    %pb = "tt.splat"(%y) : (!tt.ptr<f16>) -> !p
    %a = "tt.load"(%pa) <{operandSegmentSizes = array<i32: 1, 0, 0>}> : (!p) -> !a
    %b = "tt.load"(%pb) <{operandSegmentSizes = array<i32: 1, 0, 0>}> : (!p) -> !a
    %c = "arith.constant"() <{value = dense<0.0> : !c}> : () -> !c
    %d = "tt.dot"(%a, %b, %c) <{inputPrecision = 2 : i32, maxNumImpreciseAcc = 0 : i32}> : (!a, !a, !c) -> !c
    %pc = "tt.splat"(%z) : (!tt.ptr<f32>) -> !q
    "tt.store"(%pc, %d) : (!q, !c) -> ()
    "tt.return"() : () -> ()
  }) : () -> ()
}) : () -> ()
