// PASS: count-walks
// Steps that no tile follows from, tiles that lie otherwise apart, and counts that round down stay.
//
// CHECK: "scf.for"(%zero, %steps, %one)
// CHECK: "scf.for"(%zero, %steps, %one)
// CHECK: "scf.for"(%zero, %down, %one)
// CHECK-NOT: launch_guards

"builtin.module"() ({
  "tt.func"() <{sym_name = "k", function_type = (i32, i32) -> ()}> ({
  ^bb0(%tiles: i32, %other: i32):
    %first = "tt.get_program_id"() <{axis = 0 : i32}> : () -> i32
    %by = "tt.get_num_programs"() <{axis = 0 : i32}> : () -> i32
    %zero = "arith.constant"() <{value = 0 : i32}> : () -> i32
    %one = "arith.constant"() <{value = 1 : i32}> : () -> i32
    %left = "arith.subi"(%tiles, %first) : (i32, i32) -> i32
    %less = "arith.subi"(%by, %one) : (i32, i32) -> i32
    %up = "arith.addi"(%left, %less) : (i32, i32) -> i32
    %steps = "arith.divsi"(%up, %by) : (i32, i32) -> i32
    %down = "arith.divsi"(%tiles, %by) : (i32, i32) -> i32
    "scf.for"(%zero, %steps, %one) ({
    ^bb1(%s: i32):
      "tt.print"(%s) <{prefix = "t", hex = false, isSigned = array<i32: 1>}> : (i32) -> ()
      "scf.yield"() : () -> ()
    }) : (i32, i32, i32) -> ()
    "scf.for"(%zero, %steps, %one) ({
    ^bb2(%s: i32):
      %far = "arith.muli"(%s, %other) : (i32, i32) -> i32
      %tile = "arith.addi"(%first, %far) : (i32, i32) -> i32
      "tt.print"(%tile) <{prefix = "t", hex = false, isSigned = array<i32: 1>}> : (i32) -> ()
      "scf.yield"() : () -> ()
    }) : (i32, i32, i32) -> ()
    "scf.for"(%zero, %down, %one) ({
    ^bb3(%s: i32):
      %far = "arith.muli"(%s, %by) : (i32, i32) -> i32
      %tile = "arith.addi"(%first, %far) : (i32, i32) -> i32
      "tt.print"(%tile) <{prefix = "t", hex = false, isSigned = array<i32: 1>}> : (i32) -> ()
      "scf.yield"() : () -> ()
    }) : (i32, i32, i32) -> ()
    "tt.return"() : () -> ()
  }) : () -> ()
}) : () -> ()
