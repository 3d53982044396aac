// ERROR: require-rules{target=nvidia}

// Accesses through descriptors are lowered before, block pointers too: what is left has no rule.
"builtin.module"() ({
  "tt.func"() <{function_type = (!tt.ptr<tensor<8x8xf32>>, i32) -> (), sym_name = "k"}> ({
  ^bb0(%p: !tt.ptr<tensor<8x8xf32>>, %i: i32):
    // CHECK: MissingRule: error[MissingRule]: tt.advance has no lowering rule for NVIDIA GPUs
    // CHECK: help: register one with `@DEFAULT_RULES.register(AdvanceOp)`
    %q = "tt.advance"(%p, %i, %i) : (!tt.ptr<tensor<8x8xf32>>, i32, i32) -> !tt.ptr<tensor<8x8xf32>>
    "tt.return"() : () -> ()
  }) : () -> ()
}) : () -> ()
