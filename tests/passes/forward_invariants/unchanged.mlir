// PASS: forward-invariants
// A carried value that every iteration hands on as it came is its initial value.
//
// CHECK: %[[R:.*]] = "scf.for"(%zero, %n, %one, %start) ({
// CHECK-NEXT: ^{{.*}}(%k: i32, %a: i64):
// CHECK-NEXT: %next = "arith.addi"(%a, %stride)
// CHECK-NEXT: "scf.yield"(%next)
// CHECK: "arith.addi"(%{{.*}}, %stride)

"builtin.module"() ({
  "tt.func"() <{sym_name = "k", function_type = (i32, i64) -> ()}> ({
  ^bb0(%n: i32, %stride: i64):
    %zero = "arith.constant"() <{value = 0 : i32}> : () -> i32
    %one = "arith.constant"() <{value = 1 : i32}> : () -> i32
    %start = "arith.constant"() <{value = 0 : i64}> : () -> i64
    %at, %same = "scf.for"(%zero, %n, %one, %start, %stride) ({
    ^bb0(%k: i32, %a: i64, %s: i64):
      %next = "arith.addi"(%a, %s) : (i64, i64) -> i64
      "scf.yield"(%next, %s) : (i64, i64) -> ()
    }) : (i32, i32, i32, i64, i64) -> (i64, i64)
    %sum = "arith.addi"(%at, %same) : (i64, i64) -> i64
    "tt.print"(%sum) <{prefix = "s", hex = false, isSigned = array<i32: 1>}> : (i64) -> ()
    "tt.return"() : () -> ()
  }) : () -> ()
}) : () -> ()
