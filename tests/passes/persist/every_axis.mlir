// PASS: persist{programs=4}
// Tiles run in the order of the grid, the first axis fastest; the kernel asks for its author's grid.
//
// CHECK: %[[X:.*]] = "tw.get_grid_extent"() <{axis = 0 : i32}>
// CHECK: %rows = "tw.get_grid_extent"() <{axis = 1 : i32}>
// CHECK: %[[Z:.*]] = "tw.get_grid_extent"() <{axis = 2 : i32}>
// CHECK: %[[XY:.*]] = "arith.muli"(%[[X]], %rows)
// CHECK: %[[ALL:.*]] = "arith.muli"(%[[XY]], %[[Z]])
// CHECK: %[[PID:.*]] = "tt.get_program_id"() <{axis = 0 : i32}>
// CHECK: %[[NUM:.*]] = "tt.get_num_programs"() <{axis = 0 : i32}>
// CHECK: "scf.for"(%[[PID]], %[[ALL]], %[[NUM]]) ({
// CHECK: ^bb{{[0-9]+}}(%[[T:.*]]: i32):
// CHECK: %x = "arith.remui"(%[[T]], %[[X]]) {tw.coordinate = 0 : i32}
// CHECK: %[[REST:.*]] = "arith.divui"(%[[T]], %[[X]])
// CHECK: %z = "arith.divui"(%[[REST]], %rows) {tw.coordinate = 2 : i32}
// CHECK: %twice = "arith.addi"(%n, %rows)
// CHECK: %sum = "arith.addi"(%x, %z)
// CHECK: %at = "arith.muli"(%sum, %twice)
// CHECK-NOT: tt.get_program_id
// CHECK: tw.tiles
// CHECK: tw.persistent = 4 : i32

"builtin.module"() ({
  "tt.func"() <{sym_name = "k", sym_visibility = "public", function_type = (!tt.ptr<i32>, i32) -> ()}> ({
  ^bb0(%p: !tt.ptr<i32>, %n: i32):
    %x = "tt.get_program_id"() <{axis = 0 : i32}> : () -> i32
    %z = "tt.get_program_id"() <{axis = 2 : i32}> : () -> i32
    %rows = "tt.get_num_programs"() <{axis = 1 : i32}> : () -> i32
    %twice = "arith.addi"(%n, %rows) : (i32, i32) -> i32
    %sum = "arith.addi"(%x, %z) : (i32, i32) -> i32
    %at = "arith.muli"(%sum, %twice) : (i32, i32) -> i32
    %to = "tt.addptr"(%p, %at) : (!tt.ptr<i32>, i32) -> !tt.ptr<i32>
    "tt.store"(%to, %x) : (!tt.ptr<i32>, i32) -> ()
    "tt.return"() : () -> ()
  }) : () -> ()
}) : () -> ()
