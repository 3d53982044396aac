// PASS: decide-products decide-accesses decide-layouts assign-layouts
// On Hopper 64 rows of halves and a whole warp group make a wgmma: both operands go to shared
// memory, swizzled over 128 bytes, and the result is in the instruction's registers.
//
// CHECK: %[[A:.*]] = "ttg.local_alloc"(%a) {{.*}} -> !ttg.memdesc<[64, 64], f16, #shared
// CHECK: %[[B:.*]] = "ttg.local_alloc"(%b) {{.*}} -> !ttg.memdesc<[64, 64], f16, #shared
// CHECK: "ttg.dot"(%[[A]], %[[B]], %{{.*}}) <{product = #tw.product<"wgmma 64x64x16, warps 4x1, a shared, b shared">

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
