// PASS: merge-counters
// A number that starts one step behind the counter is the counter once it has stepped.
//
// CHECK: "scf.for"(%first, %n, %step) ({
// CHECK-NEXT: ^{{.*}}(%tile: i32):
// CHECK-NEXT: %[[C:.*]] = "arith.constant"() <{value = -132 : i32}>
// CHECK-NEXT: %[[B:.*]] = "arith.addi"(%tile, %[[C]])
// CHECK-NEXT: "tt.print"(%tile, %[[B]])
// CHECK-NEXT: "scf.yield"()

"builtin.module"() ({
  "tt.func"() <{sym_name = "k", function_type = (i32) -> ()}> ({
  ^bb0(%n: i32):
    %first = "tt.get_program_id"() <{axis = 0 : i32}> : () -> i32
    %step = "arith.constant"() <{value = 132 : i32}> : () -> i32
    %before = "arith.subi"(%first, %step) : (i32, i32) -> i32
    %last = "scf.for"(%first, %n, %step, %before) ({
    ^bb0(%tile: i32, %other: i32):
      %next = "arith.addi"(%other, %step) : (i32, i32) -> i32
      "tt.print"(%next, %other) <{prefix = "t", hex = false, isSigned = array<i32: 1, 1>}> : (i32, i32) -> ()
      "scf.yield"(%next) : (i32) -> ()
    }) : (i32, i32, i32, i32) -> i32
    "tt.return"() : () -> ()
  }) : () -> ()
}) : () -> ()
