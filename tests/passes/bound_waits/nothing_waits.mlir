// PASS: bound-waits
// Barriers of a program's warps are not waits for others.
//
// CHECK-NOT: tw.bounded_wait
// CHECK: "tt.return"

"builtin.module"() ({
  "tt.func"() <{sym_name = "k", sym_visibility = "public", function_type = (i32) -> ()}> ({
  ^bb0(%n: i32):
    "ttg.barrier"() : () -> ()
    "tt.return"() : () -> ()
  }) : () -> ()
}) : () -> ()
