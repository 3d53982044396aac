// PASS: forward-invariants
// What the loop computes in the same way of a value that it changes is another one.
//
// CHECK: "scf.for"(%zero, %n, %one, %start, %twice) ({
// CHECK-NEXT: ^{{.*}}(%k: i32, %a: i64, %b: i64):
// CHECK: "scf.yield"(%next, %again)

"builtin.module"() ({
  "tt.func"() <{sym_name = "k", function_type = (i32, i64) -> ()}> ({
  ^bb0(%n: i32, %start: i64):
    %zero = "arith.constant"() <{value = 0 : i32}> : () -> i32
    %one = "arith.constant"() <{value = 1 : i32}> : () -> i32
    %twice = "arith.addi"(%start, %start) : (i64, i64) -> i64
    %at, %same = "scf.for"(%zero, %n, %one, %start, %twice) ({
    ^bb0(%k: i32, %a: i64, %b: i64):
      %next = "arith.addi"(%a, %b) : (i64, i64) -> i64
      %again = "arith.addi"(%a, %a) : (i64, i64) -> i64
      "scf.yield"(%next, %again) : (i64, i64) -> ()
    }) : (i32, i32, i32, i64, i64) -> (i64, i64)
    %sum = "arith.addi"(%at, %same) : (i64, i64) -> i64
    "tt.print"(%sum) <{prefix = "s", hex = false, isSigned = array<i32: 1>}> : (i64) -> ()
    "tt.return"() : () -> ()
  }) : () -> ()
}) : () -> ()
