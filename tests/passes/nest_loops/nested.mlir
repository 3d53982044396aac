// PASS: nest-loops
// What the first step does stands in front of the inner loop, what the last one does behind it; a sum
// that begins anew in each tile is carried by the inner loop alone.
//
// CHECK: "scf.for"(%{{.*}}, %tiles, %{{.*}}, %start) ({
// CHECK-NEXT: ^{{.*}}(%{{.*}}: i32, %[[OLD:.*]]: i32):
// CHECK: %[[TILE:.*]] = "arith.addi"(%[[OLD]], %by)
// CHECK: %[[SUM:.*]] = "scf.for"(%{{.*}}, %depth, %{{.*}}, %zero) ({
// CHECK-NEXT: ^{{.*}}(%[[K:.*]]: i32, %[[ACC:.*]]: i32):
// CHECK: "arith.muli"(%[[TILE]], %[[K]])
// CHECK: "tt.print"(%[[TILE]], %[[SUM]])
// CHECK: "scf.yield"(%[[TILE]]) : (i32) -> ()
// CHECK: launch_guards

"builtin.module"() ({
  "tt.func"() <{sym_name = "k", function_type = (i32, i32, i32) -> ()}> ({
  ^bb0(%depth: i32, %tiles: i32, %by: i32):
    %zero = "arith.constant"() <{value = 0 : i32}> : () -> i32
    %one = "arith.constant"() <{value = 1 : i32}> : () -> i32
    %none = "arith.constant"() <{value = -1 : i32}> : () -> i32
    %start = "tt.get_program_id"() <{axis = 0 : i32}> : () -> i32
    %steps = "arith.muli"(%depth, %tiles) : (i32, i32) -> i32
    %a, %b, %c = "scf.for"(%zero, %steps, %one, %none, %start, %zero) ({
    ^bb1(%n: i32, %k: i32, %tile: i32, %acc: i32):
      %end = "arith.subi"(%depth, %one) : (i32, i32) -> i32
      %wraps = "arith.cmpi"(%k, %end) <{predicate = 0 : i64}> : (i32, i32) -> i1
      %next = "arith.addi"(%k, %one) : (i32, i32) -> i32
      %step = "arith.select"(%wraps, %zero, %next) : (i1, i32, i32) -> i32
      %is_first = "arith.cmpi"(%step, %zero) <{predicate = 0 : i64}> : (i32, i32) -> i1
      %now = "scf.if"(%is_first) ({
        %following = "arith.addi"(%tile, %by) : (i32, i32) -> i32
        "scf.yield"(%following) : (i32) -> ()
      }, {
        "scf.yield"(%tile) : (i32) -> ()
      }) : (i1) -> i32
      %part = "arith.muli"(%now, %step) : (i32, i32) -> i32
      %sum = "arith.addi"(%acc, %part) : (i32, i32) -> i32
      %is_last = "arith.cmpi"(%step, %end) <{predicate = 0 : i64}> : (i32, i32) -> i1
      %left = "scf.if"(%is_last) ({
        "tt.print"(%now, %sum) <{prefix = "t", hex = false, isSigned = array<i32: 1, 1>}> : (i32, i32) -> ()
        "scf.yield"(%zero) : (i32) -> ()
      }, {
        "scf.yield"(%sum) : (i32) -> ()
      }) : (i1) -> i32
      "scf.yield"(%step, %now, %left) : (i32, i32, i32) -> ()
    }) : (i32, i32, i32, i32, i32, i32) -> (i32, i32, i32)
    "tt.return"() : () -> ()
  }) : () -> ()
}) : () -> ()
