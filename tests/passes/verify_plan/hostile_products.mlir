// ERROR: verify-plan
// Each part of a plan of a product is held against the instruction, the product and the program.
//
// CHECK: PlanRefused: error[PlanRefused]: dot(): the plan `wgmma 64x48x16, warps 4x1, a shared, b shared` is refused: 64 columns of the product are no multiple of 48
"builtin.module"() ({
  "tt.func"() <{function_type = (tensor<64x64xf16>, tensor<64x64xf32>) -> (), sym_name = "k"}> ({
  ^bb0(%a: tensor<64x64xf16>, %c: tensor<64x64xf32>):
    %p = "tt.dot"(%a, %a, %c) {tw.product = #tw.product<"wgmma 64x48x16, warps 4x1, a shared, b shared">} : (tensor<64x64xf16>, tensor<64x64xf16>, tensor<64x64xf32>) -> tensor<64x64xf32>
    "tt.return"() : () -> ()
  }) : () -> ()
}) : () -> ()

// -----

// CHECK: PlanRefused: error[PlanRefused]: dot(): the plan `wgmma 64x64x8, warps 4x1, a shared, b shared` is refused: wgmma has depth 16 for f16 x f16 (ieee), not 8
"builtin.module"() ({
  "tt.func"() <{function_type = (tensor<64x64xf16>, tensor<64x64xf32>) -> (), sym_name = "k"}> ({
  ^bb0(%a: tensor<64x64xf16>, %c: tensor<64x64xf32>):
    %p = "tt.dot"(%a, %a, %c) {tw.product = #tw.product<"wgmma 64x64x8, warps 4x1, a shared, b shared">} : (tensor<64x64xf16>, tensor<64x64xf16>, tensor<64x64xf32>) -> tensor<64x64xf32>
    "tt.return"() : () -> ()
  }) : () -> ()
}) : () -> ()

// -----

// CHECK: PlanRefused: error[PlanRefused]: dot(): the plan `wgmma 128x64x16, warps 4x1, a shared, b shared` is refused: wgmma has 64 rows, not 128
"builtin.module"() ({
  "tt.func"() <{function_type = (tensor<64x64xf16>, tensor<64x64xf32>) -> (), sym_name = "k"}> ({
  ^bb0(%a: tensor<64x64xf16>, %c: tensor<64x64xf32>):
    %p = "tt.dot"(%a, %a, %c) {tw.product = #tw.product<"wgmma 128x64x16, warps 4x1, a shared, b shared">} : (tensor<64x64xf16>, tensor<64x64xf16>, tensor<64x64xf32>) -> tensor<64x64xf32>
    "tt.return"() : () -> ()
  }) : () -> ()
}) : () -> ()

// -----

// CHECK: PlanRefused: error[PlanRefused]: dot(): the plan `wgmma 64x64x16, warps 1x4, a shared, b shared` is refused: 1 warps along the rows are no whole warp groups of 4
"builtin.module"() ({
  "tt.func"() <{function_type = (tensor<64x64xf16>, tensor<64x64xf32>) -> (), sym_name = "k"}> ({
  ^bb0(%a: tensor<64x64xf16>, %c: tensor<64x64xf32>):
    %p = "tt.dot"(%a, %a, %c) {tw.product = #tw.product<"wgmma 64x64x16, warps 1x4, a shared, b shared">} : (tensor<64x64xf16>, tensor<64x64xf16>, tensor<64x64xf32>) -> tensor<64x64xf32>
    "tt.return"() : () -> ()
  }) : () -> ()
}) : () -> ()

// -----

// CHECK: PlanRefused: error[PlanRefused]: dot(): the plan `wgmma 64x64x16, warps 4x1, a shared, b registers` is refused: wgmma reads B from shared memory
"builtin.module"() ({
  "tt.func"() <{function_type = (tensor<64x64xf16>, tensor<64x64xf32>) -> (), sym_name = "k"}> ({
  ^bb0(%a: tensor<64x64xf16>, %c: tensor<64x64xf32>):
    %p = "tt.dot"(%a, %a, %c) {tw.product = #tw.product<"wgmma 64x64x16, warps 4x1, a shared, b registers">} : (tensor<64x64xf16>, tensor<64x64xf16>, tensor<64x64xf32>) -> tensor<64x64xf32>
    "tt.return"() : () -> ()
  }) : () -> ()
}) : () -> ()

// -----

// CHECK: PlanRefused: error[PlanRefused]: dot(): the plan `wgmma 64x512x16, warps 4x1, a shared, b shared` is refused: wgmma has at most 256 columns
"builtin.module"() ({
  "tt.func"() <{function_type = (tensor<64x64xf16>, tensor<64x64xf32>) -> (), sym_name = "k"}> ({
  ^bb0(%a: tensor<64x64xf16>, %c: tensor<64x64xf32>):
    %p = "tt.dot"(%a, %a, %c) {tw.product = #tw.product<"wgmma 64x512x16, warps 4x1, a shared, b shared">} : (tensor<64x64xf16>, tensor<64x64xf16>, tensor<64x64xf32>) -> tensor<64x64xf32>
    "tt.return"() : () -> ()
  }) : () -> ()
}) : () -> ()

// -----

// CHECK: PlanRefused: error[PlanRefused]: dot(): the plan `mma 16x8x16, warps 4x1, a shared, b shared` is refused: mma.sync reads both operands from registers
"builtin.module"() ({
  "tt.func"() <{function_type = (tensor<64x64xf16>, tensor<64x64xf32>) -> (), sym_name = "k"}> ({
  ^bb0(%a: tensor<64x64xf16>, %c: tensor<64x64xf32>):
    %p = "tt.dot"(%a, %a, %c) {tw.product = #tw.product<"mma 16x8x16, warps 4x1, a shared, b shared">} : (tensor<64x64xf16>, tensor<64x64xf16>, tensor<64x64xf32>) -> tensor<64x64xf32>
    "tt.return"() : () -> ()
  }) : () -> ()
}) : () -> ()

// -----

// CHECK: PlanRefused: error[PlanRefused]: dot(): the plan `dot 1x1x1, warps 4x1, a shared, b shared` is refused: there is no instruction `dot`, but wgmma, mma, fma
"builtin.module"() ({
  "tt.func"() <{function_type = (tensor<64x64xf16>, tensor<64x64xf32>) -> (), sym_name = "k"}> ({
  ^bb0(%a: tensor<64x64xf16>, %c: tensor<64x64xf32>):
    %p = "tt.dot"(%a, %a, %c) {tw.product = #tw.product<"dot 1x1x1, warps 4x1, a shared, b shared">} : (tensor<64x64xf16>, tensor<64x64xf16>, tensor<64x64xf32>) -> tensor<64x64xf32>
    "tt.return"() : () -> ()
  }) : () -> ()
}) : () -> ()

// -----

// CHECK: PlanRefused: error[PlanRefused]: dot(): the plan `fma 0x1x1, warps 4x1, a shared, b shared` is refused: fma is 1x1x1, and all its warps stand along the rows
"builtin.module"() ({
  "tt.func"() <{function_type = (tensor<64x64xf16>, tensor<64x64xf32>) -> (), sym_name = "k"}> ({
  ^bb0(%a: tensor<64x64xf16>, %c: tensor<64x64xf32>):
    %p = "tt.dot"(%a, %a, %c) {tw.product = #tw.product<"fma 0x1x1, warps 4x1, a shared, b shared">} : (tensor<64x64xf16>, tensor<64x64xf16>, tensor<64x64xf32>) -> tensor<64x64xf32>
    "tt.return"() : () -> ()
  }) : () -> ()
}) : () -> ()

// -----

// CHECK: PlanRefused: error[PlanRefused]: dot(): the plan `fma 1x1x1, warps 4x4, a shared, b shared` is refused: 4x4 warps are not the 4 of the program
"builtin.module"() ({
  "tt.func"() <{function_type = (tensor<64x64xf16>, tensor<64x64xf32>) -> (), sym_name = "k"}> ({
  ^bb0(%a: tensor<64x64xf16>, %c: tensor<64x64xf32>):
    %p = "tt.dot"(%a, %a, %c) {tw.product = #tw.product<"fma 1x1x1, warps 4x4, a shared, b shared">} : (tensor<64x64xf16>, tensor<64x64xf16>, tensor<64x64xf32>) -> tensor<64x64xf32>
    "tt.return"() : () -> ()
  }) : () -> ()
}) : () -> ()

// -----

// CHECK: PlanRefused: error[PlanRefused]: dot(): the plan `wgmma 64x136x16, warps 4x1, a shared, b shared` is refused: 136 columns end inside of a panel of 16
"builtin.module"() ({
  "tt.func"() <{function_type = (tensor<64x64xf16>, tensor<64x272xf16>, tensor<64x272xf32>) -> (), sym_name = "k"}> ({
  ^bb0(%a: tensor<64x64xf16>, %b: tensor<64x272xf16>, %c: tensor<64x272xf32>):
    %p = "tt.dot"(%a, %b, %c) {tw.product = #tw.product<"wgmma 64x136x16, warps 4x1, a shared, b shared">} : (tensor<64x64xf16>, tensor<64x272xf16>, tensor<64x272xf32>) -> tensor<64x272xf32>
    "tt.return"() : () -> ()
  }) : () -> ()
}) : () -> ()
