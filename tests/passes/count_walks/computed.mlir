// PASS: count-walks
// The tile is the counter; who reads the step reads how far the tile is, in steps.
//
// CHECK: %[[STEP:.*]] = "tt.get_num_programs"
// CHECK: "scf.for"(%[[FIRST:.*]], %tiles, %{{.*}}) ({
// CHECK-NEXT: ^{{.*}}(%s: i32):
// CHECK: %[[FAR:.*]] = "arith.subi"(%s, %{{.*}})
// CHECK: %[[S:.*]] = "arith.divsi"(%[[FAR]], %{{.*}})
// CHECK: "tt.print"(%s, %[[S]])
// CHECK: ttng.launch_guards

"builtin.module"() ({
  "tt.func"() <{sym_name = "k", function_type = (i32) -> ()}> ({
  ^bb0(%tiles: i32):
    %first = "tt.get_program_id"() <{axis = 0 : i32}> : () -> i32
    %by = "tt.get_num_programs"() <{axis = 0 : i32}> : () -> i32
    %zero = "arith.constant"() <{value = 0 : i32}> : () -> i32
    %one = "arith.constant"() <{value = 1 : i32}> : () -> i32
    %left = "arith.subi"(%tiles, %first) : (i32, i32) -> i32
    %less = "arith.subi"(%by, %one) : (i32, i32) -> i32
    %up = "arith.addi"(%left, %less) : (i32, i32) -> i32
    %steps = "arith.divsi"(%up, %by) : (i32, i32) -> i32
    "scf.for"(%zero, %steps, %one) ({
    ^bb1(%s: i32):
      %again = "tt.get_num_programs"() <{axis = 0 : i32}> : () -> i32
      %far = "arith.muli"(%again, %s) : (i32, i32) -> i32
      %tile = "arith.addi"(%far, %first) : (i32, i32) -> i32
      "tt.print"(%tile, %s) <{prefix = "t", hex = false, isSigned = array<i32: 1, 1>}> : (i32, i32) -> ()
      "scf.yield"() : () -> ()
    }) : (i32, i32, i32) -> ()
    "tt.return"() : () -> ()
  }) : () -> ()
}) : () -> ()
