// PASS: require-rules
// PASS(NVIDIA): tiles{target=nvidia}
// Ops that the target has rules for go through.
//
// CHECK: %y = "arith.addf"(%x, %x)
// NVIDIA: %y = "arith.addf"(%x, %x)

!v = tensor<64xf32>
"builtin.module"() ({
  "tt.func"() <{sym_name = "k", function_type = (!v) -> ()}> ({
  ^bb0(%x: !v):
    %y = "arith.addf"(%x, %x) : (!v, !v) -> !v
    "tt.print"(%y) <{prefix = "y", hex = false, isSigned = array<i32: 0>}> : (!v) -> ()
    "tt.return"() : () -> ()
  }) : () -> ()
}) : () -> ()
