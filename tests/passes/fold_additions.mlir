// PASS: fold-additions
// PASS(LAST): fold-additions{adds_last=True}
// ROUNDTRIP

// A product starts from what is added to it; sums of floats must be allowed to change.
"builtin.module"() ({
  "tt.func"() <{function_type = (tensor<64x64xf16>, tensor<64x64xf8E5M2>, tensor<64x64xf32>, tensor<64x64xi8>, tensor<64x64xi32>) -> (), sym_name = "sums"}> ({
  ^bb0(%a: tensor<64x64xf16>, %n: tensor<64x64xf8E5M2>, %x: tensor<64x64xf32>, %i: tensor<64x64xi8>, %w: tensor<64x64xi32>):
    %zero = "arith.constant"() <{value = dense<0.0> : tensor<64x64xf32>}> : () -> tensor<64x64xf32>
    %none = "arith.constant"() <{value = dense<0> : tensor<64x64xi32>}> : () -> tensor<64x64xi32>
    %p = "tt.dot"(%a, %a, %zero) : (tensor<64x64xf16>, tensor<64x64xf16>, tensor<64x64xf32>) -> tensor<64x64xf32>
    // CHECK: %s = "tt.dot"(%a, %a, %x)
    // CHECK-NOT: "arith.addf"(%x
    // LAST: %s = "tt.dot"(%a, %a, %x)
    %s = "arith.addf"(%x, %p) <{fastmath = #arith.fastmath<contract>}> : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
    %q = "tt.dot"(%i, %i, %none) : (tensor<64x64xi8>, tensor<64x64xi8>, tensor<64x64xi32>) -> tensor<64x64xi32>
    // CHECK: %t = "tt.dot"(%i, %i, %w)
    // LAST: %t = "tt.dot"(%i, %i, %w)
    %t = "arith.addi"(%q, %w) : (tensor<64x64xi32>, tensor<64x64xi32>) -> tensor<64x64xi32>
    // Not where a sum must stay as it is written, or narrow products are summed outside.
    %r = "tt.dot"(%a, %a, %zero) : (tensor<64x64xf16>, tensor<64x64xf16>, tensor<64x64xf32>) -> tensor<64x64xf32>
    // CHECK: %u = "arith.addf"(%s, %r)
    // LAST: %u = "tt.dot"(%a, %a, %s)
    %u = "arith.addf"(%s, %r) : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
    %m = "tt.dot"(%n, %n, %zero) : (tensor<64x64xf8E5M2>, tensor<64x64xf8E5M2>, tensor<64x64xf32>) -> tensor<64x64xf32>
    // CHECK: %v = "arith.addf"(%u, %m)
    // LAST: %v = "tt.dot"(%n, %n, %u)
    %v = "arith.addf"(%u, %m) <{fastmath = #arith.fastmath<contract>}> : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
    // Nor where something else wants the product, or it has an addend.
    %o = "tt.dot"(%a, %a, %zero) : (tensor<64x64xf16>, tensor<64x64xf16>, tensor<64x64xf32>) -> tensor<64x64xf32>
    // CHECK: %y = "arith.addf"(%o, %o)
    // LAST: %y = "arith.addf"(%o, %o)
    %y = "arith.addf"(%o, %o) <{fastmath = #arith.fastmath<contract>}> : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
    %k = "tt.dot"(%a, %a, %y) : (tensor<64x64xf16>, tensor<64x64xf16>, tensor<64x64xf32>) -> tensor<64x64xf32>
    // CHECK: %z = "arith.addf"(%k, %v)
    // LAST: %z = "arith.addf"(%k, %v)
    %z = "arith.addf"(%k, %v) <{fastmath = #arith.fastmath<contract>}> : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
    "tt.return"() : () -> ()
  }) : () -> ()
}) : () -> ()
