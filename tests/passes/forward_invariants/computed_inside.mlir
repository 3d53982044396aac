// PASS: forward-invariants
// What a test computes, and what two starts differ in, is no value from outside.
//
// CHECK: "scf.while"(%n, %stride)
// CHECK: "scf.condition"(%more, %half)
// CHECK: "scf.yield"(%b, %n)

"builtin.module"() ({
  "tt.func"() <{sym_name = "k", function_type = (i64, i64) -> ()}> ({
  ^bb0(%n: i64, %stride: i64):
    %one = "arith.constant"() <{value = 1 : i64}> : () -> i64
    %same = "scf.while"(%n, %stride) ({
    ^bb0(%a: i64, %s: i64):
      %half = "arith.shrsi"(%a, %one) : (i64, i64) -> i64
      %more = "arith.cmpi"(%s, %half) <{predicate = 2 : i64}> : (i64, i64) -> i1
      "scf.condition"(%more, %half) : (i1, i64) -> ()
    }, {
    ^bb1(%b: i64):
      "scf.yield"(%b, %n) : (i64, i64) -> ()
    }) : (i64, i64) -> i64
    "tt.print"(%same) <{prefix = "s", hex = false, isSigned = array<i32: 1>}> : (i64) -> ()
    "tt.return"() : () -> ()
  }) : () -> ()
}) : () -> ()
