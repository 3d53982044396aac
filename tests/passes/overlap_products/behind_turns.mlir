// PASS: overlap-products
// A wait comes right behind the pass of a turn, also before a branch that shares nothing.
//
// CHECK: "ttg.turn_pass"()
// CHECK-NEXT: "ttg.ring_wait"
// CHECK-NEXT: %{{.*}} = "scf.if"

!slot = !ttg.memdesc<[64, 32], f32, #ttg.linear<"offset(0:1 0:2 0:4 0:8 0:16 1:0 2:0 4:0 8:0 16:0 32:0) atom(64x32)">, 1>
"builtin.module"() ({
  "tt.func"() <{sym_name = "k", sym_visibility = "public", function_type = (i1, i32) -> ()}> ({
  ^bb0(%c: i1, %n: i32):
    %t = "ttg.local_alloc"() : () -> !slot
    %v = "ttg.ring"(%t) <{ring_name = "v", producers = 1 : i32, consumers = 2 : i32}> : (!slot) -> !ttg.ring
    "tw.roles"() <{roles = ["math"], warps = array<i32: 4>, replicas = array<i32: 2>,
      registers = array<i32: 0>}> ({
    ^bb0(%r: i32):
      "ttg.turn_wait"() <{turns = "dots"}> : () -> ()
      "ttg.turn_pass"() <{turns = "dots"}> : () -> ()
      %m = "scf.if"(%c) ({
        "scf.yield"(%r) : (i32) -> ()
      }, {
        "scf.yield"(%n) : (i32) -> ()
      }) : (i1) -> i32
      %s = "ttg.ring_wait"(%v) : (!ttg.ring) -> !slot
      "ttg.ring_release"(%v) <{operandSegmentSizes = array<i32: 1, 0, 0>}> : (!ttg.ring) -> ()
      "scf.yield"() : () -> ()
    }) : () -> ()
    "tt.return"() : () -> ()
  }) : () -> ()
}) : () -> ()

// -----
// It does not pass a loop that goes through rings: the role that loads fills in this order.
//
// CHECK: "ttg.turn_pass"()
// CHECK-NEXT: "scf.for"
// CHECK: "ttg.ring_wait"(%[[V:.*]]) :
// CHECK: "scf.yield"
// CHECK: "ttg.ring_wait"

!slot = !ttg.memdesc<[64, 32], f32, #ttg.linear<"offset(0:1 0:2 0:4 0:8 0:16 1:0 2:0 4:0 8:0 16:0 32:0) atom(64x32)">, 1>
"builtin.module"() ({
  "tt.func"() <{sym_name = "k", sym_visibility = "public", function_type = (i32) -> ()}> ({
  ^bb0(%n: i32):
    %t = "ttg.local_alloc"() : () -> !slot
    %v = "ttg.ring"(%t) <{ring_name = "v", producers = 1 : i32, consumers = 2 : i32}> : (!slot) -> !ttg.ring
    %zero = "arith.constant"() <{value = 0 : i32}> : () -> i32
    %one = "arith.constant"() <{value = 1 : i32}> : () -> i32
    "tw.roles"() <{roles = ["math"], warps = array<i32: 4>, replicas = array<i32: 2>,
      registers = array<i32: 0>}> ({
    ^bb0(%r: i32):
      "ttg.turn_wait"() <{turns = "dots"}> : () -> ()
      "ttg.turn_pass"() <{turns = "dots"}> : () -> ()
      "scf.for"(%zero, %n, %one) ({
      ^bb1(%k: i32):
        %a = "ttg.ring_wait"(%v) : (!ttg.ring) -> !slot
        "ttg.ring_release"(%v) <{operandSegmentSizes = array<i32: 1, 0, 0>}> : (!ttg.ring) -> ()
        "scf.yield"() : () -> ()
      }) : (i32, i32, i32) -> ()
      %s = "ttg.ring_wait"(%v) : (!ttg.ring) -> !slot
      "ttg.ring_release"(%v) <{operandSegmentSizes = array<i32: 1, 0, 0>}> : (!ttg.ring) -> ()
      "scf.yield"() : () -> ()
    }) : () -> ()
    "tt.return"() : () -> ()
  }) : () -> ()
}) : () -> ()

// -----
// Nor does it pass what gives a slot back.
//
// CHECK: "ttg.turn_pass"()
// CHECK-NEXT: "ttg.ring_release"
// CHECK-NEXT: "ttg.ring_wait"

!slot = !ttg.memdesc<[64, 32], f32, #ttg.linear<"offset(0:1 0:2 0:4 0:8 0:16 1:0 2:0 4:0 8:0 16:0 32:0) atom(64x32)">, 1>
"builtin.module"() ({
  "tt.func"() <{sym_name = "k", sym_visibility = "public", function_type = () -> ()}> ({
    %t = "ttg.local_alloc"() : () -> !slot
    %v = "ttg.ring"(%t) <{ring_name = "v", producers = 1 : i32, consumers = 2 : i32}> : (!slot) -> !ttg.ring
    "tw.roles"() <{roles = ["math"], warps = array<i32: 4>, replicas = array<i32: 2>,
      registers = array<i32: 0>}> ({
    ^bb0(%r: i32):
      %a = "ttg.ring_wait"(%v) : (!ttg.ring) -> !slot
      "ttg.turn_wait"() <{turns = "dots"}> : () -> ()
      "ttg.turn_pass"() <{turns = "dots"}> : () -> ()
      "ttg.ring_release"(%v) <{operandSegmentSizes = array<i32: 1, 0, 0>}> : (!ttg.ring) -> ()
      %s = "ttg.ring_wait"(%v) : (!ttg.ring) -> !slot
      "ttg.ring_release"(%v) <{operandSegmentSizes = array<i32: 1, 0, 0>}> : (!ttg.ring) -> ()
      "scf.yield"() : () -> ()
    }) : () -> ()
    "tt.return"() : () -> ()
  }) : () -> ()
}) : () -> ()
