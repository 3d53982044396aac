// ERROR: tiles{target=cpu}
// A GPU's assembly cannot run on a CPU: the target refuses the op in the user's words.
//
// CHECK: error[UnsupportedError]: inline_asm_elementwise(): the assembly is a GPU's and cannot run on a CPU
// CHECK-NEXT: inline_assembly.mlir:12, col 10
// CHECK: help: write the computation with functions of the language

!v = tensor<64xf32>
"builtin.module"() ({
  "tt.func"() <{sym_name = "k", function_type = (!v) -> ()}> ({
  ^bb0(%x: !v):
    %y = "tt.elementwise_inline_asm"(%x) <{asm_string = "mov.b32 $0, $1;", constraints = "=r,r", pure = true, packed_element = 1 : i32}> : (!v) -> !v
    "tt.return"() : () -> ()
  }) : () -> ()
}) : () -> ()
