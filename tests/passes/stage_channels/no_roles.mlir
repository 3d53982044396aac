// PASS: stage-channels
//
// CHECK: "tt.return"
// CHECK-NOT: ring

"builtin.module"() ({
  "tt.func"() <{sym_name = "k", sym_visibility = "public", function_type = () -> ()}> ({
  ^bb0():
    "tt.return"() : () -> ()
  }) : () -> ()
}) : () -> ()
