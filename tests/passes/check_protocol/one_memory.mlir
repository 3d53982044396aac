// ERROR: check-protocol
// Rings with one memory: nobody waits between them; nor from one tile to the next; a slot of one
// is held while the other is waited for; slots that are released under a condition.
//
// CHECK: error[ProtocolBroken]: role load: rings p, q have one memory: nothing waits until ring p is drained
// CHECK: error[ProtocolBroken]: role load: rings p, q have one memory: nothing waits until ring q is drained
// CHECK: error[ProtocolBroken]: role math: rings p, q have one memory: slots of ring p are held here
// CHECK: error[ProtocolBroken]: role math: rings p, q have one memory: a slot is released under a condition

!tiles = !ttg.memdesc<[32], i32, #ttg.linear<"offset(1 2 4 8 16) atom(32)">, 2>
!slot = !ttg.memdesc<[32], i32, #ttg.linear<"offset(1 2 4 8 16) atom(32)">, 1>
"builtin.module"() ({
"tt.func"() <{sym_name = "k", sym_visibility = "public", function_type = (i32) -> ()}> ({
^bb0(%n: i32):
%zero = "arith.constant"() <{value = 0 : i32}> : () -> i32
%one = "arith.constant"() <{value = 1 : i32}> : () -> i32
%yes = "arith.constant"() <{value = true}> : () -> i1
%first = "ttg.local_alloc"() <{offset_bytes = 0 : i32}> : () -> !tiles
%second = "ttg.local_alloc"() <{offset_bytes = 0 : i32}> : () -> !tiles
%p = "ttg.ring"(%first) <{ring_name = "p", offset_bytes = 1024 : i32, producers = 1 : i32,
  consumers = 1 : i32}> : (!tiles) -> !ttg.ring
%q = "ttg.ring"(%second) <{ring_name = "q", offset_bytes = 2048 : i32, producers = 1 : i32,
  consumers = 1 : i32, shares = "p"}> : (!tiles) -> !ttg.ring
"tw.roles"() <{roles = ["load", "math"], warps = array<i32: 4, 4>,
  replicas = array<i32: 1, 1>, registers = array<i32: 40, 240>}> ({
^bb0(%r: i32):
%ap = "ttg.ring_acquire"(%p, %zero, %zero) : (!ttg.ring, i32, i32) -> !slot
"ttg.ring_commit"(%p, %zero) : (!ttg.ring, i32) -> ()
%aq = "ttg.ring_acquire"(%q, %zero, %zero) : (!ttg.ring, i32, i32) -> !slot
"ttg.ring_commit"(%q, %zero) : (!ttg.ring, i32) -> ()
"scf.yield"() : () -> ()
}, {
^bb0(%r: i32):
%wp = "ttg.ring_wait"(%p, %zero, %zero) : (!ttg.ring, i32, i32) -> !slot
"ttg.ring_release"(%p, %zero) <{operandSegmentSizes = array<i32: 1, 1, 0>}> : (!ttg.ring, i32) -> ()
%wq = "ttg.ring_wait"(%q, %zero, %zero) : (!ttg.ring, i32, i32) -> !slot
"ttg.ring_release"(%q, %zero) <{operandSegmentSizes = array<i32: 1, 1, 0>}> : (!ttg.ring, i32) -> ()
"scf.yield"() : () -> ()
}) : () -> ()
"tt.return"() : () -> ()
}) : () -> ()
}) : () -> ()

// -----

!tiles = !ttg.memdesc<[32], i32, #ttg.linear<"offset(1 2 4 8 16) atom(32)">, 2>
!slot = !ttg.memdesc<[32], i32, #ttg.linear<"offset(1 2 4 8 16) atom(32)">, 1>
"builtin.module"() ({
"tt.func"() <{sym_name = "k", sym_visibility = "public", function_type = (i32) -> ()}> ({
^bb0(%n: i32):
%zero = "arith.constant"() <{value = 0 : i32}> : () -> i32
%one = "arith.constant"() <{value = 1 : i32}> : () -> i32
%yes = "arith.constant"() <{value = true}> : () -> i1
%first = "ttg.local_alloc"() <{offset_bytes = 0 : i32}> : () -> !tiles
%second = "ttg.local_alloc"() <{offset_bytes = 0 : i32}> : () -> !tiles
%p = "ttg.ring"(%first) <{ring_name = "p", offset_bytes = 1024 : i32, producers = 1 : i32,
  consumers = 1 : i32}> : (!tiles) -> !ttg.ring
%q = "ttg.ring"(%second) <{ring_name = "q", offset_bytes = 2048 : i32, producers = 1 : i32,
  consumers = 1 : i32, shares = "p"}> : (!tiles) -> !ttg.ring
"tw.roles"() <{roles = ["load", "math"], warps = array<i32: 4, 4>,
  replicas = array<i32: 1, 1>, registers = array<i32: 40, 240>}> ({
^bb0(%r: i32):
%o:2 = "scf.for"(%zero, %n, %one, %zero, %zero) ({
^bb0(%k: i32, %s: i32, %f: i32):
%ap = "ttg.ring_acquire"(%p, %s, %f) : (!ttg.ring, i32, i32) -> !slot
"ttg.ring_commit"(%p, %s) : (!ttg.ring, i32) -> ()
%s1, %f1 = "ttg.ring_seek"(%p, %one, %s, %f) : (!ttg.ring, i32, i32, i32) -> (i32, i32)
"ttg.ring_drained"(%p, %s1, %f1) : (!ttg.ring, i32, i32) -> ()
%aq = "ttg.ring_acquire"(%q, %s, %f) : (!ttg.ring, i32, i32) -> !slot
"ttg.ring_commit"(%q, %s) : (!ttg.ring, i32) -> ()
%s2, %f2 = "ttg.ring_seek"(%p, %one, %s, %f) : (!ttg.ring, i32, i32, i32) -> (i32, i32)
"scf.yield"(%s2, %f2) : (i32, i32) -> ()
}) : (i32, i32, i32, i32, i32) -> (i32, i32)
"scf.yield"() : () -> ()
}, {
^bb0(%r: i32):
%o:2 = "scf.for"(%zero, %n, %one, %zero, %zero) ({
^bb0(%k: i32, %s: i32, %f: i32):
%wp = "ttg.ring_wait"(%p, %s, %f) : (!ttg.ring, i32, i32) -> !slot
"ttg.ring_release"(%p, %s) <{operandSegmentSizes = array<i32: 1, 1, 0>}> : (!ttg.ring, i32) -> ()
%wq = "ttg.ring_wait"(%q, %s, %f) : (!ttg.ring, i32, i32) -> !slot
"ttg.ring_release"(%q, %s) <{operandSegmentSizes = array<i32: 1, 1, 0>}> : (!ttg.ring, i32) -> ()
%s2, %f2 = "ttg.ring_seek"(%p, %one, %s, %f) : (!ttg.ring, i32, i32, i32) -> (i32, i32)
"scf.yield"(%s2, %f2) : (i32, i32) -> ()
}) : (i32, i32, i32, i32, i32) -> (i32, i32)
"scf.yield"() : () -> ()
}) : () -> ()
"tt.return"() : () -> ()
}) : () -> ()
}) : () -> ()

// -----

!tiles = !ttg.memdesc<[32], i32, #ttg.linear<"offset(1 2 4 8 16) atom(32)">, 2>
!slot = !ttg.memdesc<[32], i32, #ttg.linear<"offset(1 2 4 8 16) atom(32)">, 1>
"builtin.module"() ({
"tt.func"() <{sym_name = "k", sym_visibility = "public", function_type = (i32) -> ()}> ({
^bb0(%n: i32):
%zero = "arith.constant"() <{value = 0 : i32}> : () -> i32
%one = "arith.constant"() <{value = 1 : i32}> : () -> i32
%yes = "arith.constant"() <{value = true}> : () -> i1
%first = "ttg.local_alloc"() <{offset_bytes = 0 : i32}> : () -> !tiles
%second = "ttg.local_alloc"() <{offset_bytes = 0 : i32}> : () -> !tiles
%p = "ttg.ring"(%first) <{ring_name = "p", offset_bytes = 1024 : i32, producers = 1 : i32,
  consumers = 1 : i32}> : (!tiles) -> !ttg.ring
%q = "ttg.ring"(%second) <{ring_name = "q", offset_bytes = 2048 : i32, producers = 1 : i32,
  consumers = 1 : i32, shares = "p"}> : (!tiles) -> !ttg.ring
"tw.roles"() <{roles = ["load", "math"], warps = array<i32: 4, 4>,
  replicas = array<i32: 1, 1>, registers = array<i32: 40, 240>}> ({
^bb0(%r: i32):
%ap = "ttg.ring_acquire"(%p, %zero, %zero) : (!ttg.ring, i32, i32) -> !slot
"ttg.ring_commit"(%p, %zero) : (!ttg.ring, i32) -> ()
%s1, %f1 = "ttg.ring_seek"(%p, %one, %zero, %zero) : (!ttg.ring, i32, i32, i32) -> (i32, i32)
"ttg.ring_drained"(%p, %s1, %f1) : (!ttg.ring, i32, i32) -> ()
%aq = "ttg.ring_acquire"(%q, %zero, %zero) : (!ttg.ring, i32, i32) -> !slot
"ttg.ring_commit"(%q, %zero) : (!ttg.ring, i32) -> ()
"scf.yield"() : () -> ()
}, {
^bb0(%r: i32):
%wp = "ttg.ring_wait"(%p, %zero, %zero) : (!ttg.ring, i32, i32) -> !slot
%wq = "ttg.ring_wait"(%q, %zero, %zero) : (!ttg.ring, i32, i32) -> !slot
"ttg.ring_release"(%p, %zero) <{operandSegmentSizes = array<i32: 1, 1, 0>}> : (!ttg.ring, i32) -> ()
"ttg.ring_release"(%q, %zero) <{operandSegmentSizes = array<i32: 1, 1, 0>}> : (!ttg.ring, i32) -> ()
"scf.yield"() : () -> ()
}) : () -> ()
"tt.return"() : () -> ()
}) : () -> ()
}) : () -> ()

// -----

!tiles = !ttg.memdesc<[32], i32, #ttg.linear<"offset(1 2 4 8 16) atom(32)">, 2>
!slot = !ttg.memdesc<[32], i32, #ttg.linear<"offset(1 2 4 8 16) atom(32)">, 1>
"builtin.module"() ({
"tt.func"() <{sym_name = "k", sym_visibility = "public", function_type = (i32) -> ()}> ({
^bb0(%n: i32):
%zero = "arith.constant"() <{value = 0 : i32}> : () -> i32
%one = "arith.constant"() <{value = 1 : i32}> : () -> i32
%yes = "arith.constant"() <{value = true}> : () -> i1
%first = "ttg.local_alloc"() <{offset_bytes = 0 : i32}> : () -> !tiles
%second = "ttg.local_alloc"() <{offset_bytes = 0 : i32}> : () -> !tiles
%p = "ttg.ring"(%first) <{ring_name = "p", offset_bytes = 1024 : i32, producers = 1 : i32,
  consumers = 1 : i32}> : (!tiles) -> !ttg.ring
%q = "ttg.ring"(%second) <{ring_name = "q", offset_bytes = 2048 : i32, producers = 1 : i32,
  consumers = 1 : i32, shares = "p"}> : (!tiles) -> !ttg.ring
"tw.roles"() <{roles = ["load", "math"], warps = array<i32: 4, 4>,
  replicas = array<i32: 1, 1>, registers = array<i32: 40, 240>}> ({
^bb0(%r: i32):
%ap = "ttg.ring_acquire"(%p, %zero, %zero) : (!ttg.ring, i32, i32) -> !slot
"ttg.ring_commit"(%p, %zero) : (!ttg.ring, i32) -> ()
%s1, %f1 = "ttg.ring_seek"(%p, %one, %zero, %zero) : (!ttg.ring, i32, i32, i32) -> (i32, i32)
"ttg.ring_drained"(%p, %s1, %f1) : (!ttg.ring, i32, i32) -> ()
%aq = "ttg.ring_acquire"(%q, %zero, %zero) : (!ttg.ring, i32, i32) -> !slot
"ttg.ring_commit"(%q, %zero) : (!ttg.ring, i32) -> ()
"scf.yield"() : () -> ()
}, {
^bb0(%r: i32):
%wp = "ttg.ring_wait"(%p, %zero, %zero) : (!ttg.ring, i32, i32) -> !slot
"ttg.ring_release"(%p, %zero, %yes) <{operandSegmentSizes = array<i32: 1, 1, 1>}> : (!ttg.ring, i32, i1) -> ()
%wq = "ttg.ring_wait"(%q, %zero, %zero) : (!ttg.ring, i32, i32) -> !slot
"ttg.ring_release"(%q, %zero) <{operandSegmentSizes = array<i32: 1, 1, 0>}> : (!ttg.ring, i32) -> ()
"scf.yield"() : () -> ()
}) : () -> ()
"tt.return"() : () -> ()
}) : () -> ()
}) : () -> ()
