// ERROR: verify-plan
// ERROR(LATE): decide-layouts assign-layouts

// A plan that nobody can carry out is refused before anything is rewritten.
"builtin.module"() ({
  "tt.func"() <{function_type = (tensor<64x64xf16>, tensor<64x64xf32>) -> (), sym_name = "k"}> ({
  ^bb0(%a: tensor<64x64xf16>, %c: tensor<64x64xf32>):
    // CHECK: PlanRefused: error[PlanRefused]: dot(): the plan `wgmma 64x64x16, warps 8x1, a shared, b shared` is refused: 8x1 warps are not the 4 of the program
    // CHECK: help: take `wgmma 64x64x16, warps 4x1, a shared, b shared`, or no annotation
    %p = "tt.dot"(%a, %a, %c) {tw.product = #tw.product<"wgmma 64x64x16, warps 8x1, a shared, b shared">} : (tensor<64x64xf16>, tensor<64x64xf16>, tensor<64x64xf32>) -> tensor<64x64xf32>
    "tt.return"() : () -> ()
  }) : () -> ()
}) : () -> ()

// -----

// Nor is a layout assigned where nothing was planned.
"builtin.module"() ({
  "tt.func"() <{function_type = (tensor<64x64xf16>, tensor<64x64xf32>) -> (), sym_name = "k"}> ({
  ^bb0(%a: tensor<64x64xf16>, %c: tensor<64x64xf32>):
    // CHECK: PlanMissing: error[PlanMissing]: tt.dot is rewritten before it is planned: it has no `tw.product`
    // LATE: PlanMissing: error[PlanMissing]: tt.dot is rewritten before it is planned: it has no `tw.product`
    // LATE: help: run `decide-products` first, or annotate it
    %p = "tt.dot"(%a, %a, %c) : (tensor<64x64xf16>, tensor<64x64xf16>, tensor<64x64xf32>) -> tensor<64x64xf32>
    "tt.return"() : () -> ()
  }) : () -> ()
}) : () -> ()
