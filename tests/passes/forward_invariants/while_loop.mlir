// PASS: forward-invariants
// A loop with a test carries what it never changes through both of its regions.
//
// CHECK: %[[R:.*]] = "scf.while"(%zero) ({
// CHECK-NEXT: ^{{.*}}(%a: i64):
// CHECK: "scf.condition"(%more, %a)
// CHECK: ^{{.*}}(%b: i64):
// CHECK-NEXT: %next = "arith.addi"(%b, %stride)
// CHECK-NEXT: "scf.yield"(%next)
// CHECK: "arith.addi"(%{{.*}}, %stride)

"builtin.module"() ({
  "tt.func"() <{sym_name = "k", function_type = (i64, i64) -> ()}> ({
  ^bb0(%n: i64, %stride: i64):
    %zero = "arith.constant"() <{value = 0 : i64}> : () -> i64
    %at, %same = "scf.while"(%zero, %stride) ({
    ^bb0(%a: i64, %s: i64):
      %more = "arith.cmpi"(%a, %n) <{predicate = 2 : i64}> : (i64, i64) -> i1
      "scf.condition"(%more, %a, %s) : (i1, i64, i64) -> ()
    }, {
    ^bb1(%b: i64, %t: i64):
      %next = "arith.addi"(%b, %t) : (i64, i64) -> i64
      "scf.yield"(%next, %t) : (i64, i64) -> ()
    }) : (i64, i64) -> (i64, i64)
    %sum = "arith.addi"(%at, %same) : (i64, i64) -> i64
    "tt.print"(%sum) <{prefix = "s", hex = false, isSigned = array<i32: 1>}> : (i64) -> ()
    "tt.return"() : () -> ()
  }) : () -> ()
}) : () -> ()
