// PASS: merge-counters
// What is read behind the loop stays carried; what the body reads is the counter all the same.
//
// CHECK: %last = "scf.for"(%zero, %n, %two, %one) ({
// CHECK-NEXT: ^{{.*}}(%i: i32, %j: i32):
// CHECK-NEXT: %[[C:.*]] = "arith.constant"() <{value = 1 : i32}>
// CHECK-NEXT: %[[S:.*]] = "arith.addi"(%i, %[[C]])
// CHECK: %next = "arith.addi"(%j, %by)
// CHECK-NEXT: "tt.print"(%[[S]])
// CHECK-NEXT: "scf.yield"(%next)
// CHECK: "tt.print"(%last)

"builtin.module"() ({
  "tt.func"() <{sym_name = "k", function_type = (i32) -> ()}> ({
  ^bb0(%n: i32):
    %zero = "arith.constant"() <{value = 0 : i32}> : () -> i32
    %one = "arith.constant"() <{value = 1 : i32}> : () -> i32
    %two = "arith.constant"() <{value = 2 : i32}> : () -> i32
    %last = "scf.for"(%zero, %n, %two, %one) ({
    ^bb0(%i: i32, %j: i32):
      %by = "arith.constant"() <{value = 2 : i32}> : () -> i32
      %next = "arith.addi"(%j, %by) : (i32, i32) -> i32
      "tt.print"(%j) <{prefix = "j", hex = false, isSigned = array<i32: 1>}> : (i32) -> ()
      "scf.yield"(%next) : (i32) -> ()
    }) : (i32, i32, i32, i32) -> i32
    "tt.print"(%last) <{prefix = "l", hex = false, isSigned = array<i32: 1>}> : (i32) -> ()
    "tt.return"() : () -> ()
  }) : () -> ()
}) : () -> ()
