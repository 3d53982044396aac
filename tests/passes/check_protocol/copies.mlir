// ERROR: check-protocol
// A commit that waits for copies where threads wrote by stores; copies that no commit waits for.
//
// CHECK: error[ProtocolBroken]: role load: ring ab: ttg.ring_commit waits for copies of nobody
// CHECK: error[ProtocolBroken]: role load: ring ab: ttg.ring_commit does not wait for what threads copy

!tiles = !ttg.memdesc<[32], i32, #ttg.linear<"offset(1 2 4 8 16) atom(32)">, 2>
!slot = !ttg.memdesc<[32], i32, #ttg.linear<"offset(1 2 4 8 16) atom(32)">, 1>
!tile = tensor<32xi32, #ttg.linear<"register() lane(1 2 4 8 16) warp() atom(32)">>
!places = tensor<32x!tt.ptr<i32>, #ttg.linear<"register() lane(1 2 4 8 16) warp() atom(32)">>
"builtin.module"() ({
"tt.func"() <{sym_name = "k", sym_visibility = "public",
  function_type = (!tt.ptr<i32>, !tt.ptr<i32>, i32) -> ()}> ({
^bb0(%x: !tt.ptr<i32>, %out: !tt.ptr<i32>, %n: i32):
  %zero = "arith.constant"() <{value = 0 : i32}> : () -> i32
  %one = "arith.constant"() <{value = 1 : i32}> : () -> i32
  %first = "arith.constant"() <{value = 0 : i32}> : () -> i32
  %step = "arith.constant"() <{value = 1 : i32}> : () -> i32
  %slots = "arith.constant"() <{value = 2 : i32}> : () -> i32
  %width = "arith.constant"() <{value = 32 : i32}> : () -> i32
  %tiles = "ttg.local_alloc"() <{offset_bytes = 0 : i32}> : () -> !tiles
  %ring = "ttg.ring"(%tiles) <{ring_name = "ab", offset_bytes = 1024 : i32, producers = 1 : i32,
    consumers = 2 : i32}> : (!tiles) -> !ttg.ring
  "tw.roles"() <{roles = ["load", "math"], warps = array<i32: 4, 4>,
    replicas = array<i32: 1, 2>, registers = array<i32: 40, 232>}> ({
  ^bb0(%r: i32):
    %range = "tt.make_range"() <{start = 0 : i32, end = 32 : i32}> : () -> !tile
    %q:2 = "scf.for"(%zero, %n, %one, %zero, %zero) ({
    ^bb0(%k: i32, %s: i32, %fill: i32):
      %slot = "ttg.ring_acquire"(%ring, %s, %fill) : (!ttg.ring, i32, i32) -> !slot
      %start = "arith.muli"(%k, %width) : (i32, i32) -> i32
      %origin = "tt.addptr"(%x, %start) : (!tt.ptr<i32>, i32) -> !tt.ptr<i32>
      %all = "tt.splat"(%origin) : (!tt.ptr<i32>) -> !places
      %places = "tt.addptr"(%all, %range) : (!places, !tile) -> !places
      %v = "tt.load"(%places) <{cache = 1 : i32, evict = 1 : i32, isVolatile = false,
        operandSegmentSizes = array<i32: 1, 0, 0>, boundaryCheck = array<i32>}> {tw.access = #tw.access<"vector 1, order 0">}
        : (!places) -> !tile
      "ttg.local_store"(%v, %slot) : (!tile, !slot) -> ()
      "ttg.ring_commit"(%ring, %s) <{by_copies}> : (!ttg.ring, i32) -> ()
      %s2, %fill2 = "ttg.ring_seek"(%ring, %one, %s, %fill) : (!ttg.ring, i32, i32, i32) -> (i32, i32)
      "scf.yield"(%s2, %fill2) : (i32, i32) -> ()
    }) : (i32, i32, i32, i32, i32) -> (i32, i32)
    "scf.yield"() : () -> ()
  }, {
  ^bb0(%r: i32):
    %range = "tt.make_range"() <{start = 0 : i32, end = 32 : i32}> : () -> !tile
    %base = "arith.muli"(%r, %n) : (i32, i32) -> i32
    %q:2 = "scf.for"(%zero, %n, %one, %zero, %zero) ({
    ^bb0(%k: i32, %s: i32, %fill: i32):
      %slot = "ttg.ring_wait"(%ring, %s, %fill) : (!ttg.ring, i32, i32) -> !slot
      %v = "ttg.local_load"(%slot) : (!slot) -> !tile
"ttg.ring_release"(%ring, %s) <{operandSegmentSizes = array<i32: 1, 1, 0>}> : (!ttg.ring, i32) -> ()
      %w = "arith.addi"(%v, %v) : (!tile, !tile) -> !tile
      %row = "arith.addi"(%base, %k) : (i32, i32) -> i32
      %start = "arith.muli"(%row, %width) : (i32, i32) -> i32
      %origin = "tt.addptr"(%out, %start) : (!tt.ptr<i32>, i32) -> !tt.ptr<i32>
      %all = "tt.splat"(%origin) : (!tt.ptr<i32>) -> !places
      %places = "tt.addptr"(%all, %range) : (!places, !tile) -> !places
      "tt.store"(%places, %w) <{cache = 1 : i32, evict = 1 : i32,
        boundaryCheck = array<i32>}> {tw.access = #tw.access<"vector 1, order 0">} : (!places, !tile) -> ()
      %s2, %fill2 = "ttg.ring_seek"(%ring, %one, %s, %fill) : (!ttg.ring, i32, i32, i32) -> (i32, i32)
      "scf.yield"(%s2, %fill2) : (i32, i32) -> ()
    }) : (i32, i32, i32, i32, i32) -> (i32, i32)
    "scf.yield"() : () -> ()
  }) : () -> ()
  "tt.return"() : () -> ()
}) : () -> ()
}) : () -> ()

// -----

!tiles = !ttg.memdesc<[32], i32, #ttg.linear<"offset(1 2 4 8 16) atom(32)">, 2>
!slot = !ttg.memdesc<[32], i32, #ttg.linear<"offset(1 2 4 8 16) atom(32)">, 1>
!tile = tensor<32xi32, #ttg.linear<"register() lane(1 2 4 8 16) warp() atom(32)">>
!places = tensor<32x!tt.ptr<i32>, #ttg.linear<"register() lane(1 2 4 8 16) warp() atom(32)">>
"builtin.module"() ({
"tt.func"() <{sym_name = "k", sym_visibility = "public",
  function_type = (!tt.ptr<i32>, !tt.ptr<i32>, i32) -> ()}> ({
^bb0(%x: !tt.ptr<i32>, %out: !tt.ptr<i32>, %n: i32):
  %zero = "arith.constant"() <{value = 0 : i32}> : () -> i32
  %one = "arith.constant"() <{value = 1 : i32}> : () -> i32
  %first = "arith.constant"() <{value = 0 : i32}> : () -> i32
  %step = "arith.constant"() <{value = 1 : i32}> : () -> i32
  %slots = "arith.constant"() <{value = 2 : i32}> : () -> i32
  %width = "arith.constant"() <{value = 32 : i32}> : () -> i32
  %tiles = "ttg.local_alloc"() <{offset_bytes = 0 : i32}> : () -> !tiles
  %ring = "ttg.ring"(%tiles) <{ring_name = "ab", offset_bytes = 1024 : i32, producers = 1 : i32,
    consumers = 2 : i32}> : (!tiles) -> !ttg.ring
  "tw.roles"() <{roles = ["load", "math"], warps = array<i32: 4, 4>,
    replicas = array<i32: 1, 2>, registers = array<i32: 40, 232>}> ({
  ^bb0(%r: i32):
    %range = "tt.make_range"() <{start = 0 : i32, end = 32 : i32}> : () -> !tile
    %q:2 = "scf.for"(%zero, %n, %one, %zero, %zero) ({
    ^bb0(%k: i32, %s: i32, %fill: i32):
      %slot = "ttg.ring_acquire"(%ring, %s, %fill) : (!ttg.ring, i32, i32) -> !slot
      %start = "arith.muli"(%k, %width) : (i32, i32) -> i32
      %origin = "tt.addptr"(%x, %start) : (!tt.ptr<i32>, i32) -> !tt.ptr<i32>
      %all = "tt.splat"(%origin) : (!tt.ptr<i32>) -> !places
      %places = "tt.addptr"(%all, %range) : (!places, !tile) -> !places
      %t = "ttg.async_copy_global_to_local"(%places, %slot) <{cache = 1 : i32, evict = 1 : i32,
        operandSegmentSizes = array<i32: 1, 1, 0, 0>}> {tw.access = #tw.access<"vector 1, order 0">}
        : (!places, !slot) -> !ttg.async.token
      "ttg.ring_commit"(%ring, %s) : (!ttg.ring, i32) -> ()
      %s2, %fill2 = "ttg.ring_seek"(%ring, %one, %s, %fill) : (!ttg.ring, i32, i32, i32) -> (i32, i32)
      "scf.yield"(%s2, %fill2) : (i32, i32) -> ()
    }) : (i32, i32, i32, i32, i32) -> (i32, i32)
    "scf.yield"() : () -> ()
  }, {
  ^bb0(%r: i32):
    %range = "tt.make_range"() <{start = 0 : i32, end = 32 : i32}> : () -> !tile
    %base = "arith.muli"(%r, %n) : (i32, i32) -> i32
    %q:2 = "scf.for"(%zero, %n, %one, %zero, %zero) ({
    ^bb0(%k: i32, %s: i32, %fill: i32):
      %slot = "ttg.ring_wait"(%ring, %s, %fill) : (!ttg.ring, i32, i32) -> !slot
      %v = "ttg.local_load"(%slot) : (!slot) -> !tile
"ttg.ring_release"(%ring, %s) <{operandSegmentSizes = array<i32: 1, 1, 0>}> : (!ttg.ring, i32) -> ()
      %w = "arith.addi"(%v, %v) : (!tile, !tile) -> !tile
      %row = "arith.addi"(%base, %k) : (i32, i32) -> i32
      %start = "arith.muli"(%row, %width) : (i32, i32) -> i32
      %origin = "tt.addptr"(%out, %start) : (!tt.ptr<i32>, i32) -> !tt.ptr<i32>
      %all = "tt.splat"(%origin) : (!tt.ptr<i32>) -> !places
      %places = "tt.addptr"(%all, %range) : (!places, !tile) -> !places
      "tt.store"(%places, %w) <{cache = 1 : i32, evict = 1 : i32,
        boundaryCheck = array<i32>}> {tw.access = #tw.access<"vector 1, order 0">} : (!places, !tile) -> ()
      %s2, %fill2 = "ttg.ring_seek"(%ring, %one, %s, %fill) : (!ttg.ring, i32, i32, i32) -> (i32, i32)
      "scf.yield"(%s2, %fill2) : (i32, i32) -> ()
    }) : (i32, i32, i32, i32, i32) -> (i32, i32)
    "scf.yield"() : () -> ()
  }) : () -> ()
  "tt.return"() : () -> ()
}) : () -> ()
}) : () -> ()
