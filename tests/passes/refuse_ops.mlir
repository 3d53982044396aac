// PASS: refuse-ops{target=nvidia}

// What one target refuses, another runs.
"builtin.module"() ({
  "tt.func"() <{function_type = (i32) -> (), sym_name = "k"}> ({
  ^bb0(%x: i32):
    // CHECK: "tt.elementwise_inline_asm"
    %y = "tt.elementwise_inline_asm"(%x) <{asm_string = "abs.s32 $0, $1;", constraints = "=r,r", pure = true, packed_element = 1 : i32}> : (i32) -> i32
    "tt.return"() : () -> ()
  }) : () -> ()
}) : () -> ()
