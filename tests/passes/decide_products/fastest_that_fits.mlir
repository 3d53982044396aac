// PASS: decide-products
// PASS(EIGHT): decide-products{num_warps=8}
// PASS(NO_WGMMA): decide-products{machine=sm_120a}
// ROUNDTRIP

// The fastest instruction that fits; what is annotated already stays.
"builtin.module"() ({
  "tt.func"() <{function_type = (tensor<128x64xf16>, tensor<64x256xf16>, tensor<128x256xf32>, tensor<256x64xf16>, tensor<128x64xf32>) -> (), sym_name = "chain"}> ({
  ^bb0(%a: tensor<128x64xf16>, %b: tensor<64x256xf16>, %c: tensor<128x256xf32>, %d: tensor<256x64xf16>, %e: tensor<128x64xf32>):
    // CHECK: %p = "tt.dot"
    // CHECK-SAME: {tw.product = #tw.product<"wgmma 64x256x16, warps 4x1, a shared, b shared">}
    // EIGHT: %p = "tt.dot"
    // EIGHT-SAME: #tw.product<"wgmma 64x256x16, warps 8x1, a shared, b shared">
    // NO_WGMMA: %p = "tt.dot"
    // NO_WGMMA-SAME: #tw.product<"mma 16x8x16, warps 4x1, a registers, b registers", "the machine has no wgmma">
    %p = "tt.dot"(%a, %b, %c) : (tensor<128x64xf16>, tensor<64x256xf16>, tensor<128x256xf32>) -> tensor<128x256xf32>
    %h = "arith.truncf"(%p) : (tensor<128x256xf32>) -> tensor<128x256xf16>
    // A was computed by a product, so it stays where that left it.
    // CHECK: %q = "tt.dot"
    // CHECK-SAME: #tw.product<"wgmma 64x64x16, warps 4x1, a registers, b shared">
    // NO_WGMMA: %q = "tt.dot"
    // NO_WGMMA-SAME: #tw.product<"mma 16x8x16, warps 4x1, a registers, b registers", "the machine has no wgmma">
    %q = "tt.dot"(%h, %d, %e) : (tensor<128x256xf16>, tensor<256x64xf16>, tensor<128x64xf32>) -> tensor<128x64xf32>
    // CHECK: %r = "tt.dot"
    // CHECK-SAME: {tw.product = #tw.product<"wgmma 64x8x16, warps 4x1, a shared, b shared">}
    %r = "tt.dot"(%h, %d, %q) {tw.product = #tw.product<"wgmma 64x8x16, warps 4x1, a shared, b shared">} : (tensor<128x256xf16>, tensor<256x64xf16>, tensor<128x64xf32>) -> tensor<128x64xf32>
    "tt.return"() : () -> ()
  }) : () -> ()
}) : () -> ()

// -----

// What a loop or a branch hands on is computed by a product if one of its sources is.
"builtin.module"() ({
  "tt.func"() <{function_type = (tensor<64x64xf16>, tensor<64x64xf16>, tensor<64x64xf16>, i32, i1) -> (), sym_name = "carried"}> ({
  ^bb0(%a: tensor<64x64xf16>, %b: tensor<64x64xf16>, %c: tensor<64x64xf16>, %n: i32, %flag: i1):
    %0 = "arith.constant"() <{value = 0 : i32}> : () -> i32
    %1 = "arith.constant"() <{value = 1 : i32}> : () -> i32
    // CHECK: %x = "tt.dot"
    // CHECK-SAME: a registers, b shared
    %loop = "scf.for"(%0, %n, %1, %a) ({
    ^bb1(%i: i32, %h: tensor<64x64xf16>):
      %x = "tt.dot"(%h, %b, %c) : (tensor<64x64xf16>, tensor<64x64xf16>, tensor<64x64xf16>) -> tensor<64x64xf16>
      "scf.yield"(%x) : (tensor<64x64xf16>) -> ()
    }) : (i32, i32, i32, tensor<64x64xf16>) -> tensor<64x64xf16>
    %either = "scf.if"(%flag) ({
      "scf.yield"(%loop) : (tensor<64x64xf16>) -> ()
    }, {
      "scf.yield"(%a) : (tensor<64x64xf16>) -> ()
    }) : (i1) -> tensor<64x64xf16>
    // CHECK: %y = "tt.dot"
    // CHECK-SAME: a registers, b shared
    %y = "tt.dot"(%either, %b, %c) : (tensor<64x64xf16>, tensor<64x64xf16>, tensor<64x64xf16>) -> tensor<64x64xf16>
    // CHECK: %z = "tt.dot"
    // CHECK-SAME: a shared, b shared
    %z = "tt.dot"(%a, %y, %c) : (tensor<64x64xf16>, tensor<64x64xf16>, tensor<64x64xf16>) -> tensor<64x64xf16>
    "tt.return"() : () -> ()
  }) : () -> ()
}) : () -> ()

// -----

// Odd sizes: 24 columns are one instruction of 24; 40 rows are for the FMA units.
"builtin.module"() ({
  "tt.func"() <{function_type = (tensor<192x48xbf16>, tensor<48x24xbf16>, tensor<192x24xf32>, tensor<40x48xbf16>, tensor<40x24xf32>) -> (), sym_name = "odd"}> ({
  ^bb0(%a: tensor<192x48xbf16>, %b: tensor<48x24xbf16>, %c: tensor<192x24xf32>, %d: tensor<40x48xbf16>, %e: tensor<40x24xf32>):
    // CHECK: %p = "tt.dot"
    // CHECK-SAME: #tw.product<"wgmma 64x24x16, warps 4x1, a shared, b shared">
    // EIGHT: sym_name = "odd"
    // EIGHT: %p = "tt.dot"
    // EIGHT-SAME: #tw.product<"mma 16x8x16, warps 4x2, a registers, b registers", "2 warp groups do not share 192x24 evenly">
    %p = "tt.dot"(%a, %b, %c) : (tensor<192x48xbf16>, tensor<48x24xbf16>, tensor<192x24xf32>) -> tensor<192x24xf32>
    // CHECK: %q = "tt.dot"
    // CHECK-SAME: #tw.product<"fma 1x1x1, warps 4x1, a shared, b shared", "40x24x48 is no multiple of 16x8x16">
    %q = "tt.dot"(%d, %b, %e) : (tensor<40x48xbf16>, tensor<48x24xbf16>, tensor<40x24xf32>) -> tensor<40x24xf32>
    "tt.return"() : () -> ()
  }) : () -> ()
}) : () -> ()
