// ERROR: check-protocol
// More registers than an SM has; a consumer that is not there; fills that are counted by hand; a
// slot that is not committed; a ring in its own tiles.
//
// CHECK: error[ProtocolBroken]: role math: its registers make 77824 of the program, and
// CHECK: error[ProtocolBroken]: role math: ring ab counts 2 of ttg.ring_release, and 1 do
// CHECK: error[ProtocolBroken]: role load: ring ab: slot and fill are not counted from fill to fill
// CHECK: error[ProtocolBroken]: role load: ring ab: slots are acquired 1 times more than committed on a path
// CHECK: error[ProtocolBroken]: ring ab lies in a tile of ring ab: bytes 0 to 256 and 128 to 160

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
    replicas = array<i32: 1, 2>, registers = array<i32: 128, 240>}> ({
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
    replicas = array<i32: 1, 1>, registers = array<i32: 24, 240>}> ({
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
    consumers = 1 : i32}> : (!tiles) -> !ttg.ring
  "tw.roles"() <{roles = ["load", "math"], warps = array<i32: 4, 4>,
    replicas = array<i32: 1, 1>, registers = array<i32: 24, 240>}> ({
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
      "ttg.ring_commit"(%ring, %s) : (!ttg.ring, i32) -> ()
      %s1 = "arith.addi"(%s, %one) : (i32, i32) -> i32
      %wraps = "arith.cmpi"(%s1, %slots) <{predicate = 0 : i64}> : (i32, i32) -> i1
      %s2 = "arith.select"(%wraps, %zero, %s1) : (i1, i32, i32) -> i32
      %more = "arith.addi"(%fill, %step) : (i32, i32) -> i32
      %fill2 = "arith.select"(%wraps, %more, %fill) : (i1, i32, i32) -> i32
      "scf.yield"(%s2, %fill2) : (i32, i32) -> ()
    }) : (i32, i32, i32, i32, i32) -> (i32, i32)
    "scf.yield"() : () -> ()
  }, {
  ^bb0(%r: i32):
    %range = "tt.make_range"() <{start = 0 : i32, end = 32 : i32}> : () -> !tile
    %base = "arith.muli"(%r, %n) : (i32, i32) -> i32
    %q:2 = "scf.for"(%zero, %n, %one, %zero, %first) ({
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
      %s1 = "arith.addi"(%s, %one) : (i32, i32) -> i32
      %wraps = "arith.cmpi"(%s1, %slots) <{predicate = 0 : i64}> : (i32, i32) -> i1
      %s2 = "arith.select"(%wraps, %zero, %s1) : (i1, i32, i32) -> i32
      %more = "arith.addi"(%fill, %step) : (i32, i32) -> i32
      %fill2 = "arith.select"(%wraps, %more, %fill) : (i1, i32, i32) -> i32
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
    consumers = 1 : i32}> : (!tiles) -> !ttg.ring
  "tw.roles"() <{roles = ["load", "math"], warps = array<i32: 4, 4>,
    replicas = array<i32: 1, 1>, registers = array<i32: 24, 240>}> ({
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
  %ring = "ttg.ring"(%tiles) <{ring_name = "ab", offset_bytes = 128 : i32, producers = 1 : i32,
    consumers = 1 : i32}> : (!tiles) -> !ttg.ring
  "tw.roles"() <{roles = ["load", "math"], warps = array<i32: 4, 4>,
    replicas = array<i32: 1, 1>, registers = array<i32: 24, 240>}> ({
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
