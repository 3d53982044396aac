// PASS: require-rules{target=cpu}
// PASS(GPU): require-rules{target=nvidia}

// What has a rule passes as it is.
"builtin.module"() ({
  "tt.func"() <{function_type = (i32) -> (), sym_name = "k"}> ({
  ^bb0(%x: i32):
    %xs = "tt.splat"(%x) : (i32) -> tensor<16xi32>
    // CHECK: "tt.histogram"
    // GPU: "tt.histogram"
    %bins = "tt.histogram"(%xs) : (tensor<16xi32>) -> tensor<4xi32>
    "tt.return"() : () -> ()
  }) : () -> ()
}) : () -> ()
