// PASS: count-whiles
// The last number is read; the end changes; the step changes; numbers are unsigned; the test has
// an end that a load gives; the loop goes on for another reason, too.
//
// CHECK-NOT: "scf.for"
// CHECK-NOT: launch_guards

"builtin.module"() ({
  "tt.func"() <{sym_name = "k", function_type = (i32, i32, !tt.ptr<i32>) -> ()}> ({
  ^bb0(%n: i32, %by: i32, %p: !tt.ptr<i32>):
    %zero = "arith.constant"() <{value = 0 : i32}> : () -> i32
    %last = "scf.while"(%zero) ({
    ^bb1(%i: i32):
      %goes = "arith.cmpi"(%i, %n) <{predicate = 2 : i64}> : (i32, i32) -> i1
      "scf.condition"(%goes, %i) : (i1, i32) -> ()
    }, {
    ^bb2(%j: i32):
      %next = "arith.addi"(%j, %by) : (i32, i32) -> i32
      "scf.yield"(%next) : (i32) -> ()
    }) : (i32) -> i32
    "tt.print"(%last) <{prefix = "t", hex = false, isSigned = array<i32: 1>}> : (i32) -> ()
    %r, %s = "scf.while"(%zero, %n) ({
    ^bb3(%i: i32, %end: i32):
      %goes = "arith.cmpi"(%i, %end) <{predicate = 2 : i64}> : (i32, i32) -> i1
      "scf.condition"(%goes, %i, %end) : (i1, i32, i32) -> ()
    }, {
    ^bb4(%j: i32, %old: i32):
      %next = "arith.addi"(%j, %by) : (i32, i32) -> i32
      %less = "arith.subi"(%old, %by) : (i32, i32) -> i32
      "scf.yield"(%next, %less) : (i32, i32) -> ()
    }) : (i32, i32) -> (i32, i32)
    %t, %u = "scf.while"(%zero, %by) ({
    ^bb5(%i: i32, %now: i32):
      %goes = "arith.cmpi"(%i, %n) <{predicate = 2 : i64}> : (i32, i32) -> i1
      "scf.condition"(%goes, %i, %now) : (i1, i32, i32) -> ()
    }, {
    ^bb6(%j: i32, %now: i32):
      %next = "arith.addi"(%j, %now) : (i32, i32) -> i32
      "scf.yield"(%next, %next) : (i32, i32) -> ()
    }) : (i32, i32) -> (i32, i32)
    %v = "scf.while"(%zero) ({
    ^bb7(%i: i32):
      %goes = "arith.cmpi"(%i, %n) <{predicate = 6 : i64}> : (i32, i32) -> i1
      "scf.condition"(%goes, %i) : (i1, i32) -> ()
    }, {
    ^bb8(%j: i32):
      %next = "arith.addi"(%j, %by) : (i32, i32) -> i32
      "scf.yield"(%next) : (i32) -> ()
    }) : (i32) -> i32
    %w = "scf.while"(%zero) ({
    ^bb9(%i: i32):
      %end = "tt.load"(%p) <{cache = 1 : i32, evict = 1 : i32, isVolatile = false, operandSegmentSizes = array<i32: 1, 0, 0>}> : (!tt.ptr<i32>) -> i32
      %goes = "arith.cmpi"(%i, %end) <{predicate = 2 : i64}> : (i32, i32) -> i1
      "scf.condition"(%goes, %i) : (i1, i32) -> ()
    }, {
    ^bb10(%j: i32):
      %next = "arith.addi"(%j, %by) : (i32, i32) -> i32
      "scf.yield"(%next) : (i32) -> ()
    }) : (i32) -> i32
    %x, %y = "scf.while"(%zero, %zero) ({
    ^bb11(%i: i32, %c: i32):
      %below = "arith.cmpi"(%i, %n) <{predicate = 2 : i64}> : (i32, i32) -> i1
      %few = "arith.cmpi"(%c, %by) <{predicate = 2 : i64}> : (i32, i32) -> i1
      %goes = "arith.andi"(%below, %few) : (i1, i1) -> i1
      "scf.condition"(%goes, %i, %c) : (i1, i32, i32) -> ()
    }, {
    ^bb12(%j: i32, %c: i32):
      %next = "arith.addi"(%j, %by) : (i32, i32) -> i32
      "scf.yield"(%next, %next) : (i32, i32) -> ()
    }) : (i32, i32) -> (i32, i32)
    "tt.return"() : () -> ()
  }) : () -> ()
}) : () -> ()
