// ERROR: verify-layouts
// Each layout is that of its tile.
!p = tensor<64x!tt.ptr<f32>>
!c = tensor<64xf32>
"builtin.module"() ({
  // CHECK: PlanRefused: error[PlanRefused]: addf: the layout that is given is refused: it is of shape 32, and the tiles are 64
  "tt.func"() <{sym_name = "k", function_type = (!tt.ptr<f32>, i32) -> ()}> ({
  ^bb0(%x: !tt.ptr<f32>, %n: i32):
    %c = "arith.constant"() <{value = dense<0.0> : !c}> : () -> !c
    %zero = "arith.constant"() <{value = 0 : i32}> : () -> i32
    %one = "arith.constant"() <{value = 1 : i32}> : () -> i32
    %pa = "tt.splat"(%x) : (!tt.ptr<f32>) -> !p
    %r = "scf.for"(%zero, %n, %one, %c) ({
    ^bb0(%k: i32, %s: !c):
      %a = "tt.load"(%pa) <{operandSegmentSizes = array<i32: 1, 0, 0>}> {tw.access = #tw.access<"vector 1, order 0">, tw.layout = #tw.layout<"register() lane(1 2 4 8 16) warp(32 0) atom(64) -> register() lane(1 2 4 8 16) warp(32 0) atom(64)">} : (!p) -> !c
      %d = "arith.addf"(%a, %s) <{fastmath = #arith.fastmath<none>}> {tw.layout = #tw.layout<"register() lane(1 2 4 8 16) warp(32 0) atom(64) | register() lane(1 2 4 8 16) warp(32 0) atom(64) -> register() lane(1 2 4 8 16) warp(0 0) atom(32)">} : (!c, !c) -> !c
      "scf.yield"(%d) : (!c) -> ()
    }) {tw.layout = #tw.layout<"_ | _ | _ | register() lane(1 2 4 8 16) warp(32 0) atom(64) -> register() lane(1 2 4 8 16) warp(32 0) atom(64)">} : (i32, i32, i32, !c) -> !c
    "tt.store"(%pa, %r) {tw.access = #tw.access<"vector 1, order 0">, tw.layout = #tw.layout<"register() lane(1 2 4 8 16) warp(32 0) atom(64) | register() lane(1 2 4 8 16) warp(32 0) atom(64) -> ">} : (!p, !c) -> ()
    "tt.return"() : () -> ()
  }) : () -> ()
}) : () -> ()

// -----

// Arithmetic stays in its threads.
!p = tensor<64x!tt.ptr<f32>>
!c = tensor<64xf32>
"builtin.module"() ({
  // CHECK: PlanRefused: error[PlanRefused]: addf: the layout that is given is refused: they do not go together; with its operands', it has `register() lane(1 2 4 8 16) warp(32 0) atom(64) | register() lane(1 2 4 8 16) warp(32 0) atom(64) -> register() lane(1 2 4 8 16) warp(32 0) atom(64)`
  "tt.func"() <{sym_name = "k", function_type = (!tt.ptr<f32>, i32) -> ()}> ({
  ^bb0(%x: !tt.ptr<f32>, %n: i32):
    %c = "arith.constant"() <{value = dense<0.0> : !c}> : () -> !c
    %zero = "arith.constant"() <{value = 0 : i32}> : () -> i32
    %one = "arith.constant"() <{value = 1 : i32}> : () -> i32
    %pa = "tt.splat"(%x) : (!tt.ptr<f32>) -> !p
    %r = "scf.for"(%zero, %n, %one, %c) ({
    ^bb0(%k: i32, %s: !c):
      %a = "tt.load"(%pa) <{operandSegmentSizes = array<i32: 1, 0, 0>}> {tw.access = #tw.access<"vector 1, order 0">, tw.layout = #tw.layout<"register() lane(1 2 4 8 16) warp(32 0) atom(64) -> register() lane(1 2 4 8 16) warp(32 0) atom(64)">} : (!p) -> !c
      %d = "arith.addf"(%a, %s) <{fastmath = #arith.fastmath<none>}> {tw.layout = #tw.layout<"register() lane(1 2 4 8 16) warp(32 0) atom(64) | register() lane(32 2 4 8 16) warp(1 0) atom(64) -> register() lane(1 2 4 8 16) warp(32 0) atom(64)">} : (!c, !c) -> !c
      "scf.yield"(%d) : (!c) -> ()
    }) {tw.layout = #tw.layout<"_ | _ | _ | register() lane(1 2 4 8 16) warp(32 0) atom(64) -> register() lane(1 2 4 8 16) warp(32 0) atom(64)">} : (i32, i32, i32, !c) -> !c
    "tt.store"(%pa, %r) {tw.access = #tw.access<"vector 1, order 0">, tw.layout = #tw.layout<"register() lane(1 2 4 8 16) warp(32 0) atom(64) | register() lane(1 2 4 8 16) warp(32 0) atom(64) -> ">} : (!p, !c) -> ()
    "tt.return"() : () -> ()
  }) : () -> ()
}) : () -> ()

// -----

// A loop hands on what it takes.
!p = tensor<64x!tt.ptr<f32>>
!c = tensor<64xf32>
"builtin.module"() ({
  // CHECK: PlanRefused: error[PlanRefused]: for: the layout that is given is refused: what it hands on has one layout in a region and another outside
  "tt.func"() <{sym_name = "k", function_type = (!tt.ptr<f32>, i32) -> ()}> ({
  ^bb0(%x: !tt.ptr<f32>, %n: i32):
    %c = "arith.constant"() <{value = dense<0.0> : !c}> : () -> !c
    %zero = "arith.constant"() <{value = 0 : i32}> : () -> i32
    %one = "arith.constant"() <{value = 1 : i32}> : () -> i32
    %pa = "tt.splat"(%x) : (!tt.ptr<f32>) -> !p
    %r = "scf.for"(%zero, %n, %one, %c) ({
    ^bb0(%k: i32, %s: !c):
      %a = "tt.load"(%pa) <{operandSegmentSizes = array<i32: 1, 0, 0>}> {tw.access = #tw.access<"vector 1, order 0">, tw.layout = #tw.layout<"register() lane(1 2 4 8 16) warp(32 0) atom(64) -> register() lane(1 2 4 8 16) warp(32 0) atom(64)">} : (!p) -> !c
      %d = "arith.addf"(%a, %s) <{fastmath = #arith.fastmath<none>}> {tw.layout = #tw.layout<"register() lane(1 2 4 8 16) warp(32 0) atom(64) | register() lane(1 2 4 8 16) warp(32 0) atom(64) -> register() lane(1 2 4 8 16) warp(32 0) atom(64)">} : (!c, !c) -> !c
      "scf.yield"(%d) : (!c) -> ()
    }) {tw.layout = #tw.layout<"_ | _ | _ | register() lane(1 2 4 8 16) warp(32 0) atom(64) -> register() lane(32 2 4 8 16) warp(1 0) atom(64)">} : (i32, i32, i32, !c) -> !c
    "tt.store"(%pa, %r) {tw.access = #tw.access<"vector 1, order 0">, tw.layout = #tw.layout<"register() lane(1 2 4 8 16) warp(32 0) atom(64) | register() lane(1 2 4 8 16) warp(32 0) atom(64) -> ">} : (!p, !c) -> ()
    "tt.return"() : () -> ()
  }) : () -> ()
}) : () -> ()

// -----

// Every tile that it hands on has one.
!p = tensor<64x!tt.ptr<f32>>
!c = tensor<64xf32>
"builtin.module"() ({
  // CHECK: PlanRefused: error[PlanRefused]: for: the layout that is given is refused: a tile that it hands on has a layout, and nothing else has
  "tt.func"() <{sym_name = "k", function_type = (!tt.ptr<f32>, i32) -> ()}> ({
  ^bb0(%x: !tt.ptr<f32>, %n: i32):
    %c = "arith.constant"() <{value = dense<0.0> : !c}> : () -> !c
    %zero = "arith.constant"() <{value = 0 : i32}> : () -> i32
    %one = "arith.constant"() <{value = 1 : i32}> : () -> i32
    %pa = "tt.splat"(%x) : (!tt.ptr<f32>) -> !p
    %r = "scf.for"(%zero, %n, %one, %c) ({
    ^bb0(%k: i32, %s: !c):
      %a = "tt.load"(%pa) <{operandSegmentSizes = array<i32: 1, 0, 0>}> {tw.access = #tw.access<"vector 1, order 0">, tw.layout = #tw.layout<"register() lane(1 2 4 8 16) warp(32 0) atom(64) -> register() lane(1 2 4 8 16) warp(32 0) atom(64)">} : (!p) -> !c
      %d = "arith.addf"(%a, %s) <{fastmath = #arith.fastmath<none>}> {tw.layout = #tw.layout<"register() lane(1 2 4 8 16) warp(32 0) atom(64) | register() lane(1 2 4 8 16) warp(32 0) atom(64) -> register() lane(1 2 4 8 16) warp(32 0) atom(64)">} : (!c, !c) -> !c
      "scf.yield"(%d) : (!c) -> ()
    }) {tw.layout = #tw.layout<"_ | _ | _ | _ -> _">} : (i32, i32, i32, !c) -> !c
    "tt.store"(%pa, %r) {tw.access = #tw.access<"vector 1, order 0">, tw.layout = #tw.layout<"register() lane(1 2 4 8 16) warp(32 0) atom(64) | register() lane(1 2 4 8 16) warp(32 0) atom(64) -> ">} : (!p, !c) -> ()
    "tt.return"() : () -> ()
  }) : () -> ()
}) : () -> ()

// -----

// As many as it has operands.
!p = tensor<64x!tt.ptr<f32>>
!c = tensor<64xf32>
"builtin.module"() ({
  // CHECK: PlanRefused: error[PlanRefused]: for: the layout that is given is refused: 1 layouts are not those of its operands
  "tt.func"() <{sym_name = "k", function_type = (!tt.ptr<f32>, i32) -> ()}> ({
  ^bb0(%x: !tt.ptr<f32>, %n: i32):
    %c = "arith.constant"() <{value = dense<0.0> : !c}> : () -> !c
    %zero = "arith.constant"() <{value = 0 : i32}> : () -> i32
    %one = "arith.constant"() <{value = 1 : i32}> : () -> i32
    %pa = "tt.splat"(%x) : (!tt.ptr<f32>) -> !p
    %r = "scf.for"(%zero, %n, %one, %c) ({
    ^bb0(%k: i32, %s: !c):
      %a = "tt.load"(%pa) <{operandSegmentSizes = array<i32: 1, 0, 0>}> {tw.access = #tw.access<"vector 1, order 0">, tw.layout = #tw.layout<"register() lane(1 2 4 8 16) warp(32 0) atom(64) -> register() lane(1 2 4 8 16) warp(32 0) atom(64)">} : (!p) -> !c
      %d = "arith.addf"(%a, %s) <{fastmath = #arith.fastmath<none>}> {tw.layout = #tw.layout<"register() lane(1 2 4 8 16) warp(32 0) atom(64) | register() lane(1 2 4 8 16) warp(32 0) atom(64) -> register() lane(1 2 4 8 16) warp(32 0) atom(64)">} : (!c, !c) -> !c
      "scf.yield"(%d) : (!c) -> ()
    }) {tw.layout = #tw.layout<"register() lane(1 2 4 8 16) warp(32 0) atom(64) -> register() lane(1 2 4 8 16) warp(32 0) atom(64)">} : (i32, i32, i32, !c) -> !c
    "tt.store"(%pa, %r) {tw.access = #tw.access<"vector 1, order 0">, tw.layout = #tw.layout<"register() lane(1 2 4 8 16) warp(32 0) atom(64) | register() lane(1 2 4 8 16) warp(32 0) atom(64) -> ">} : (!p, !c) -> ()
    "tt.return"() : () -> ()
  }) : () -> ()
}) : () -> ()

// -----

// An access cannot be computed in any layout: it has one.
!p = tensor<64x!tt.ptr<f32>>
!c = tensor<64xf32>
"builtin.module"() ({
  // CHECK: PlanMissing: error[PlanMissing]: tt.store is rewritten before it is planned: it has no `tw.layout`
  // CHECK: help: run `decide-layouts` first, or annotate it
  "tt.func"() <{sym_name = "k", function_type = (!tt.ptr<f32>, i32) -> ()}> ({
  ^bb0(%x: !tt.ptr<f32>, %n: i32):
    %c = "arith.constant"() <{value = dense<0.0> : !c}> : () -> !c
    %zero = "arith.constant"() <{value = 0 : i32}> : () -> i32
    %one = "arith.constant"() <{value = 1 : i32}> : () -> i32
    %pa = "tt.splat"(%x) : (!tt.ptr<f32>) -> !p
    %r = "scf.for"(%zero, %n, %one, %c) ({
    ^bb0(%k: i32, %s: !c):
      %a = "tt.load"(%pa) <{operandSegmentSizes = array<i32: 1, 0, 0>}> {tw.access = #tw.access<"vector 1, order 0">, tw.layout = #tw.layout<"register() lane(1 2 4 8 16) warp(32 0) atom(64) -> register() lane(1 2 4 8 16) warp(32 0) atom(64)">} : (!p) -> !c
      %d = "arith.addf"(%a, %s) <{fastmath = #arith.fastmath<none>}> {tw.layout = #tw.layout<"register() lane(1 2 4 8 16) warp(32 0) atom(64) | register() lane(1 2 4 8 16) warp(32 0) atom(64) -> register() lane(1 2 4 8 16) warp(32 0) atom(64)">} : (!c, !c) -> !c
      "scf.yield"(%d) : (!c) -> ()
    }) {tw.layout = #tw.layout<"_ | _ | _ | register() lane(1 2 4 8 16) warp(32 0) atom(64) -> register() lane(1 2 4 8 16) warp(32 0) atom(64)">} : (i32, i32, i32, !c) -> !c
    "tt.store"(%pa, %r) {tw.access = #tw.access<"vector 1, order 0">} : (!p, !c) -> ()
    "tt.return"() : () -> ()
  }) : () -> ()
}) : () -> ()

// -----

// No more elements move at once than lie in a row.
!p = tensor<64x!tt.ptr<f32>>
!c = tensor<64xf32>
"builtin.module"() ({
  // CHECK: PlanRefused: error[PlanRefused]: store: the layout that is given is refused: it has 1 elements in a row, and 2 move at once
  "tt.func"() <{sym_name = "k", function_type = (!tt.ptr<f32>, i32) -> ()}> ({
  ^bb0(%x: !tt.ptr<f32>, %n: i32):
    %c = "arith.constant"() <{value = dense<0.0> : !c}> : () -> !c
    %zero = "arith.constant"() <{value = 0 : i32}> : () -> i32
    %one = "arith.constant"() <{value = 1 : i32}> : () -> i32
    %pa = "tt.splat"(%x) : (!tt.ptr<f32>) -> !p
    %r = "scf.for"(%zero, %n, %one, %c) ({
    ^bb0(%k: i32, %s: !c):
      %a = "tt.load"(%pa) <{operandSegmentSizes = array<i32: 1, 0, 0>}> {tw.access = #tw.access<"vector 1, order 0">, tw.layout = #tw.layout<"register() lane(1 2 4 8 16) warp(32 0) atom(64) -> register() lane(1 2 4 8 16) warp(32 0) atom(64)">} : (!p) -> !c
      %d = "arith.addf"(%a, %s) <{fastmath = #arith.fastmath<none>}> {tw.layout = #tw.layout<"register() lane(1 2 4 8 16) warp(32 0) atom(64) | register() lane(1 2 4 8 16) warp(32 0) atom(64) -> register() lane(1 2 4 8 16) warp(32 0) atom(64)">} : (!c, !c) -> !c
      "scf.yield"(%d) : (!c) -> ()
    }) {tw.layout = #tw.layout<"_ | _ | _ | register() lane(1 2 4 8 16) warp(32 0) atom(64) -> register() lane(1 2 4 8 16) warp(32 0) atom(64)">} : (i32, i32, i32, !c) -> !c
    "tt.store"(%pa, %r) {tw.access = #tw.access<"vector 2, order 0">, tw.layout = #tw.layout<"register() lane(1 2 4 8 16) warp(32 0) atom(64) | register() lane(1 2 4 8 16) warp(32 0) atom(64) -> ">} : (!p, !c) -> ()
    "tt.return"() : () -> ()
  }) : () -> ()
}) : () -> ()
