// PASS: merge-counters
// A step that is no integer: a number one step behind, and one that starts with the counter.
//
// CHECK: "scf.for"(%first, %n, %step) ({
// CHECK-NEXT: ^{{.*}}(%tile: i32):
// CHECK-NEXT: %[[A:.*]] = "arith.addi"(%tile, %step)
// CHECK-NEXT: "tt.print"(%tile, %[[A]])
// CHECK-NEXT: "scf.yield"()

"builtin.module"() ({
  "tt.func"() <{sym_name = "k", function_type = (i32, i32) -> ()}> ({
  ^bb0(%n: i32, %step: i32):
    %first = "tt.get_program_id"() <{axis = 0 : i32}> : () -> i32
    %before = "arith.subi"(%first, %step) : (i32, i32) -> i32
    %last, %end = "scf.for"(%first, %n, %step, %before, %first) ({
    ^bb0(%tile: i32, %behind: i32, %beside: i32):
      %now = "arith.addi"(%step, %behind) : (i32, i32) -> i32
      %next = "arith.addi"(%beside, %step) : (i32, i32) -> i32
      "tt.print"(%now, %next) <{prefix = "t", hex = false, isSigned = array<i32: 1, 1>}> : (i32, i32) -> ()
      "scf.yield"(%now, %next) : (i32, i32) -> ()
    }) : (i32, i32, i32, i32, i32) -> (i32, i32)
    "tt.return"() : () -> ()
  }) : () -> ()
}) : () -> ()
