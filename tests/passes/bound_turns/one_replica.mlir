// PASS: bound-turns
// A role of one group always has its turn: nothing waits, and nobody is told.
//
// CHECK-NOT: ttng.
// CHECK: "ttg.turn_wait"() <{turns = "dots"}>
// CHECK-NEXT: "ttg.turn_pass"() <{turns = "dots"}>
// CHECK-NOT: ttng.
// CHECK: "tt.return"

"builtin.module"() ({
  "tt.func"() <{sym_name = "k", sym_visibility = "public", function_type = () -> ()}> ({
    "tw.roles"() <{roles = ["math"], warps = array<i32: 4>, replicas = array<i32: 1>,
      registers = array<i32: 0>}> ({
    ^bb0(%r: i32):
      "ttg.turn_wait"() <{turns = "dots"}> : () -> ()
      "ttg.turn_pass"() <{turns = "dots"}> : () -> ()
      "scf.yield"() : () -> ()
    }) : () -> ()
    "tt.return"() : () -> ()
  }) : () -> ()
}) : () -> ()
