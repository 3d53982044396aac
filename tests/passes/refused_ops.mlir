// ERROR: refuse-ops{target=cpu}

"builtin.module"() ({
  "tt.func"() <{function_type = (i32) -> (), sym_name = "k"}> ({
  ^bb0(%x: i32):
    // CHECK: UnsupportedError: error[UnsupportedError]: inline_asm_elementwise(): the assembly is a GPU's and cannot run on a CPU
    // CHECK: k.py:8, col 2
    %y = "tt.elementwise_inline_asm"(%x) <{asm_string = "abs.s32 $0, $1;", constraints = "=r,r", pure = true, packed_element = 1 : i32}> : (i32) -> i32 loc("k.py":8:2)
    "tt.return"() : () -> ()
  }) : () -> ()
}) : () -> ()

// -----

"builtin.module"() ({
  "tt.func"() <{function_type = () -> (), sym_name = "k"}> ({
    // CHECK: a call of another function cannot be lowered for the CPU
    "tt.call"() <{callee = @other}> : () -> ()
    "tt.return"() : () -> ()
  }) : () -> ()
}) : () -> ()
