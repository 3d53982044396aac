// PASS: inject-jitter
// One program without roles is left as it is.
//
// CHECK-NOT: ttng.pause
// CHECK: "tt.return"

"builtin.module"() ({
  "tt.func"() <{sym_name = "k", sym_visibility = "public", function_type = (i32) -> ()}> ({
  ^bb0(%n: i32):
    "ttg.barrier"() : () -> ()
    "tt.return"() : () -> ()
  }) : () -> ()
}) : () -> ()
