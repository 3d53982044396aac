// PASS: merge-counters
// The next number is handed on as another one, too: that is the counter, one step ahead.
//
// CHECK: "scf.for"(%first, %n, %step, %first) ({
// CHECK-NEXT: ^{{.*}}(%tile: i32, %before: i32):
// CHECK-NEXT: %[[NEXT:.*]] = "arith.addi"(%tile, %step)
// CHECK-NEXT: "tt.print"(%tile, %before)
// CHECK-NEXT: "scf.yield"(%[[NEXT]])

"builtin.module"() ({
  "tt.func"() <{sym_name = "k", function_type = (i32, i32) -> ()}> ({
  ^bb0(%n: i32, %step: i32):
    %first = "tt.get_program_id"() <{axis = 0 : i32}> : () -> i32
    %a, %b = "scf.for"(%first, %n, %step, %first, %first) ({
    ^bb0(%tile: i32, %other: i32, %before: i32):
      %next = "arith.addi"(%other, %step) : (i32, i32) -> i32
      "tt.print"(%other, %before) <{prefix = "t", hex = false, isSigned = array<i32: 1, 1>}> : (i32, i32) -> ()
      "scf.yield"(%next, %next) : (i32, i32) -> ()
    }) : (i32, i32, i32, i32, i32) -> (i32, i32)
    "tt.return"() : () -> ()
  }) : () -> ()
}) : () -> ()
