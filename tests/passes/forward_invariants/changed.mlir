// PASS: forward-invariants
// Values that trade places are changed, though each is handed on.
//
// CHECK: "scf.for"(%zero, %n, %one, %x, %y)
// CHECK: "scf.yield"(%q, %p)

"builtin.module"() ({
  "tt.func"() <{sym_name = "k", function_type = (i32, i64, i64) -> ()}> ({
  ^bb0(%n: i32, %x: i64, %y: i64):
    %zero = "arith.constant"() <{value = 0 : i32}> : () -> i32
    %one = "arith.constant"() <{value = 1 : i32}> : () -> i32
    %a, %b = "scf.for"(%zero, %n, %one, %x, %y) ({
    ^bb0(%k: i32, %p: i64, %q: i64):
      "scf.yield"(%q, %p) : (i64, i64) -> ()
    }) : (i32, i32, i32, i64, i64) -> (i64, i64)
    %sum = "arith.addi"(%a, %b) : (i64, i64) -> i64
    "tt.print"(%sum) <{prefix = "s", hex = false, isSigned = array<i32: 1>}> : (i64) -> ()
    "tt.return"() : () -> ()
  }) : () -> ()
}) : () -> ()
