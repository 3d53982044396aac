// PASS: bound-turns
// The loop counts the turns that a replica has had; each of its warps tells the next replica.
//
// CHECK: "ttng.turn_barriers"() <{offset_bytes = 104 : i32, arrivals = array<i32: 4, 4, 4>}>
// CHECK-NEXT: "tw.roles"
// CHECK: %[[ZERO:.*]] = "arith.constant"() <{value = 0 : i32}>
// CHECK: %[[ONE:.*]] = "arith.constant"() <{value = 1 : i32}>
// CHECK: "scf.for"(%zero, %n, %one, %[[ZERO]]) ({
// CHECK-NEXT: ^{{.*}}(%k: i32, %[[COUNT:.*]]: i32):
// CHECK: "ttng.await_turn"(%[[COUNT]]) <{turns = "dots", start_bytes = 104 : i32}>
// CHECK-NEXT: "ttg.turn_wait"() <{turns = "dots"}>
// CHECK-NEXT: %[[MORE:.*]] = "arith.addi"(%[[COUNT]], %[[ONE]])
// CHECK-NEXT: "ttg.turn_pass"() <{turns = "dots"}>
// CHECK-NEXT: "ttng.tell_turn"() <{turns = "dots", start_bytes = 104 : i32}>
// CHECK-NEXT: "scf.yield"(%[[MORE]])

"builtin.module"() ({
  "tt.func"() <{sym_name = "k", sym_visibility = "public", function_type = (i32) -> ()}> ({
  ^bb0(%n: i32):
    %zero = "arith.constant"() <{value = 0 : i32}> : () -> i32
    %one = "arith.constant"() <{value = 1 : i32}> : () -> i32
    "tw.roles"() <{roles = ["math"], warps = array<i32: 4>, replicas = array<i32: 3>,
      registers = array<i32: 0>}> ({
    ^bb0(%r: i32):
      "scf.for"(%zero, %n, %one) ({
      ^bb0(%k: i32):
        "ttg.turn_wait"() <{turns = "dots"}> : () -> ()
        "ttg.turn_pass"() <{turns = "dots"}> : () -> ()
        "scf.yield"() : () -> ()
      }) : (i32, i32, i32) -> ()
      "scf.yield"() : () -> ()
    }) : () -> ()
    "tt.return"() : () -> ()
  }) {shared_bytes = 100 : i32} : () -> ()
}) : () -> ()
