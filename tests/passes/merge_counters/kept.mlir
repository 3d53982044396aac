// PASS: merge-counters
// Another step, a start that is not counted from the loop's, a wider number, and one that is stepped in a
// branch only, stay as they are.
//
// CHECK: "scf.for"(%zero, %n, %two, %zero, %start, %wide, %zero)
// CHECK-NEXT: ^{{.*}}(%i: i32, %a: i32, %b: i32, %c: i64, %d: i32):
// CHECK: "scf.yield"(%slow, %far, %long, %some)

"builtin.module"() ({
  "tt.func"() <{sym_name = "k", function_type = (i32, i32, i1) -> ()}> ({
  ^bb0(%n: i32, %start: i32, %is: i1):
    %zero = "arith.constant"() <{value = 0 : i32}> : () -> i32
    %wide = "arith.constant"() <{value = 0 : i64}> : () -> i64
    %one = "arith.constant"() <{value = 1 : i32}> : () -> i32
    %two = "arith.constant"() <{value = 2 : i32}> : () -> i32
    %by = "arith.constant"() <{value = 2 : i64}> : () -> i64
    %p, %q, %r, %s = "scf.for"(%zero, %n, %two, %zero, %start, %wide, %zero) ({
    ^bb0(%i: i32, %a: i32, %b: i32, %c: i64, %d: i32):
      %slow = "arith.addi"(%a, %one) : (i32, i32) -> i32
      %far = "arith.addi"(%b, %two) : (i32, i32) -> i32
      %long = "arith.addi"(%c, %by) : (i64, i64) -> i64
      %some = "scf.if"(%is) ({
        %more = "arith.addi"(%d, %two) : (i32, i32) -> i32
        "scf.yield"(%more) : (i32) -> ()
      }, {
        "scf.yield"(%d) : (i32) -> ()
      }) : (i1) -> i32
      "tt.print"(%a, %b, %c, %d) <{prefix = "x", hex = false, isSigned = array<i32: 1, 1, 1, 1>}> : (i32, i32, i64, i32) -> ()
      "scf.yield"(%slow, %far, %long, %some) : (i32, i32, i64, i32) -> ()
    }) : (i32, i32, i32, i32, i32, i64, i32) -> (i32, i32, i64, i32)
    "tt.return"() : () -> ()
  }) : () -> ()
}) : () -> ()
