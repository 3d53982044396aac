// PASS: bound-turns
// A branch that takes a turn hands on one more, the other one the same; two turns have two counts.
//
// CHECK: "ttng.turn_barriers"() <{offset_bytes = 0 : i32, arrivals = array<i32: 4, 4, 4, 4>}>
// CHECK: %[[ZERO:.*]] = "arith.constant"() <{value = 0 : i32}>
// CHECK: %[[DOTS:.*]] = "scf.if"(%is) ({
// CHECK: "ttng.await_turn"(%[[ZERO]]) <{turns = "dots", start_bytes = 0 : i32}>
// CHECK: %[[MORE:.*]] = "arith.addi"(%[[ZERO]]
// CHECK: "scf.yield"(%[[MORE]])
// CHECK-NEXT: }, {
// CHECK-NEXT: "scf.yield"(%[[ZERO]])
// CHECK: "ttng.await_turn"(%[[DOTS]]) <{turns = "dots", start_bytes = 0 : i32}>
// CHECK: "ttng.await_turn"(%[[ZERO]]) <{turns = "tiles", start_bytes = 16 : i32}>

"builtin.module"() ({
  "tt.func"() <{sym_name = "k", sym_visibility = "public", function_type = (i1) -> ()}> ({
  ^bb0(%is: i1):
    "tw.roles"() <{roles = ["math"], warps = array<i32: 4>, replicas = array<i32: 2>,
      registers = array<i32: 0>}> ({
    ^bb0(%r: i32):
      "scf.if"(%is) ({
        "ttg.turn_wait"() <{turns = "dots"}> : () -> ()
        "ttg.turn_pass"() <{turns = "dots"}> : () -> ()
        "scf.yield"() : () -> ()
      }, {
      }) : (i1) -> ()
      "ttg.turn_wait"() <{turns = "dots"}> : () -> ()
      "ttg.turn_pass"() <{turns = "dots"}> : () -> ()
      "ttg.turn_wait"() <{turns = "tiles"}> : () -> ()
      "ttg.turn_pass"() <{turns = "tiles"}> : () -> ()
      "scf.yield"() : () -> ()
    }) : () -> ()
    "tt.return"() : () -> ()
  }) {shared_bytes = 0 : i32} : () -> ()
}) : () -> ()
