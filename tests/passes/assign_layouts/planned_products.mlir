// PASS: decide-accesses decide-layouts assign-layouts
// PASS(DECIDED): decide-products decide-accesses verify-plan decide-layouts assign-layouts

// The rewriting obeys the plan: A in registers or in shared memory, whatever it was computed from.
"builtin.module"() ({
  "tt.func"() <{function_type = (!tt.ptr<f16, 1>) -> (), sym_name = "k"}> ({
  ^bb0(%p: !tt.ptr<f16, 1>):
    %at = "tt.splat"(%p) : (!tt.ptr<f16, 1>) -> tensor<64x64x!tt.ptr<f16, 1>>
    %x = "tt.load"(%at) <{operandSegmentSizes = array<i32: 1, 0, 0>}> : (tensor<64x64x!tt.ptr<f16, 1>>) -> tensor<64x64xf16>
    %zero = "arith.constant"() <{value = dense<0.0> : tensor<64x64xf16>}> : () -> tensor<64x64xf16>
    // CHECK: "ttg.convert_layout"
    // CHECK: %[[B:.*]] = "ttg.local_alloc"
    // CHECK: "ttg.dot"(%{{.*}}, %[[B]], %{{.*}}) <{product = #tw.product<"wgmma 64x32x16, warps 4x1, a registers, b shared">}> : (tensor<
    // DECIDED: "ttg.dot"(%{{.*}}, %{{.*}}, %{{.*}}) <{product = #tw.product<"wgmma 64x32x16, warps 4x1, a registers, b shared">}> : (tensor<
    %y = "tt.dot"(%x, %x, %zero) {tw.product = #tw.product<"wgmma 64x32x16, warps 4x1, a registers, b shared">} : (tensor<64x64xf16>, tensor<64x64xf16>, tensor<64x64xf16>) -> tensor<64x64xf16>
    // CHECK: %[[A:.*]] = "ttg.local_alloc"
    // CHECK: "ttg.dot"(%[[A]], %{{.*}}, %{{.*}}) <{product = #tw.product<"wgmma 64x64x16, warps 4x1, a shared, b shared">}> : (!ttg.memdesc<
    %z = "tt.dot"(%y, %x, %zero) {tw.product = #tw.product<"wgmma 64x64x16, warps 4x1, a shared, b shared">} : (tensor<64x64xf16>, tensor<64x64xf16>, tensor<64x64xf16>) -> tensor<64x64xf16>
    // CHECK-NOT: "ttg.local_alloc"
    // CHECK: "ttg.dot"(%{{.*}}, %{{.*}}, %{{.*}}) <{product = #tw.product<"mma 16x8x16, warps 2x2, a registers, b registers">}> : (tensor<
    %w = "tt.dot"(%x, %x, %z) {tw.product = #tw.product<"mma 16x8x16, warps 2x2, a registers, b registers">} : (tensor<64x64xf16>, tensor<64x64xf16>, tensor<64x64xf16>) -> tensor<64x64xf16>
    "tt.store"(%at, %w) : (tensor<64x64x!tt.ptr<f16, 1>>, tensor<64x64xf16>) -> ()
    "tt.return"() : () -> ()
  }) : () -> ()
}) : () -> ()
