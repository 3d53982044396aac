// ERROR: verify-exchanges

// A plan that is wrong, whoever wrote it, is caught before anything is rewritten by it.
#l = #ttg.linear<"register(1 2 4) lane(8 16 32 64 128) warp(256 512) atom(1024)">
#m = #ttg.linear<"register(1 2 4) lane(8 16 32 64 512) warp(128 256) atom(1024)">
#n = #ttg.linear<"register(1 2 4) lane(16 8 32 64 128) warp(256 512) atom(1024)">
#far = #ttg.linear<"register(512 1 2) lane(4 8 16 32 64) warp(128 256) atom(1024)">
!v = tensor<1024xf16, #l>
!f = tensor<1024xf32, #l>
!d = tensor<1024xf32, #far>
!i = tensor<1024xi32, #l>
"builtin.module"() ({
  "tt.func"() <{sym_name = "k", function_type = (!v, !f, !d, !i) -> ()}> ({
  ^bb0(%v: !v, %f: !f, %d: !d, %i: !i):
    // CHECK: PlanRefused: error[PlanRefused]: convert_layout: the plan `registers` is refused: a thread wants elements that it does not hold
    %w = "ttg.convert_layout"(%v) {tw.exchange = #tw.exchange<"registers">} : (!v) -> tensor<1024xf16, #n>
    "tt.return"() : () -> ()
  }) : () -> ()
}) : () -> ()

// -----

#l = #ttg.linear<"register(1 2 4) lane(8 16 32 64 128) warp(256 512) atom(1024)">
#m = #ttg.linear<"register(1 2 4) lane(8 16 32 64 512) warp(128 256) atom(1024)">
#n = #ttg.linear<"register(1 2 4) lane(16 8 32 64 128) warp(256 512) atom(1024)">
#far = #ttg.linear<"register(512 1 2) lane(4 8 16 32 64) warp(128 256) atom(1024)">
!v = tensor<1024xf16, #l>
!f = tensor<1024xf32, #l>
!d = tensor<1024xf32, #far>
!i = tensor<1024xi32, #l>
"builtin.module"() ({
  "tt.func"() <{sym_name = "k", function_type = (!v, !f, !d, !i) -> ()}> ({
  ^bb0(%v: !v, %f: !f, %d: !d, %i: !i):
    // CHECK: PlanRefused: error[PlanRefused]: convert_layout: the plan `shuffle` is refused: a warp wants elements
    %w = "ttg.convert_layout"(%v) {tw.exchange = #tw.exchange<"shuffle">} : (!v) -> tensor<1024xf16, #m>
    "tt.return"() : () -> ()
  }) : () -> ()
}) : () -> ()

// -----

#l = #ttg.linear<"register(1 2 4) lane(8 16 32 64 128) warp(256 512) atom(1024)">
#m = #ttg.linear<"register(1 2 4) lane(8 16 32 64 512) warp(128 256) atom(1024)">
#n = #ttg.linear<"register(1 2 4) lane(16 8 32 64 128) warp(256 512) atom(1024)">
#far = #ttg.linear<"register(512 1 2) lane(4 8 16 32 64) warp(128 256) atom(1024)">
!v = tensor<1024xf16, #l>
!f = tensor<1024xf32, #l>
!d = tensor<1024xf32, #far>
!i = tensor<1024xi32, #l>
"builtin.module"() ({
  "tt.func"() <{sym_name = "k", function_type = (!v, !f, !d, !i) -> ()}> ({
  ^bb0(%v: !v, %f: !f, %d: !d, %i: !i):
    // CHECK: PlanRefused: error[PlanRefused]: convert_layout: the plan `memory` is refused: 0 bytes do not hold the 2048 that go through them
    %w = "ttg.convert_layout"(%v) {tw.exchange = #tw.exchange<"memory">} : (!v) -> tensor<1024xf16, #m>
    "tt.return"() : () -> ()
  }) : () -> ()
}) : () -> ()

// -----

#l = #ttg.linear<"register(1 2 4) lane(8 16 32 64 128) warp(256 512) atom(1024)">
#m = #ttg.linear<"register(1 2 4) lane(8 16 32 64 512) warp(128 256) atom(1024)">
#n = #ttg.linear<"register(1 2 4) lane(16 8 32 64 128) warp(256 512) atom(1024)">
#far = #ttg.linear<"register(512 1 2) lane(4 8 16 32 64) warp(128 256) atom(1024)">
!v = tensor<1024xf16, #l>
!f = tensor<1024xf32, #l>
!d = tensor<1024xf32, #far>
!i = tensor<1024xi32, #l>
"builtin.module"() ({
  "tt.func"() <{sym_name = "k", function_type = (!v, !f, !d, !i) -> ()}> ({
  ^bb0(%v: !v, %f: !f, %d: !d, %i: !i):
    // CHECK: PlanRefused: error[PlanRefused]: convert_layout: the plan `memory, passes 2, bytes 512` is refused: 1024 bytes do not hold the 2048
    %w = "ttg.convert_layout"(%v) {tw.exchange = #tw.exchange<"memory, passes 2, bytes 512">} : (!v) -> tensor<1024xf16, #m>
    "tt.return"() : () -> ()
  }) : () -> ()
}) : () -> ()

// -----

#l = #ttg.linear<"register(1 2 4) lane(8 16 32 64 128) warp(256 512) atom(1024)">
#m = #ttg.linear<"register(1 2 4) lane(8 16 32 64 512) warp(128 256) atom(1024)">
#n = #ttg.linear<"register(1 2 4) lane(16 8 32 64 128) warp(256 512) atom(1024)">
#far = #ttg.linear<"register(512 1 2) lane(4 8 16 32 64) warp(128 256) atom(1024)">
!v = tensor<1024xf16, #l>
!f = tensor<1024xf32, #l>
!d = tensor<1024xf32, #far>
!i = tensor<1024xi32, #l>
"builtin.module"() ({
  "tt.func"() <{sym_name = "k", function_type = (!v, !f, !d, !i) -> ()}> ({
  ^bb0(%v: !v, %f: !f, %d: !d, %i: !i):
    // CHECK: PlanRefused: error[PlanRefused]: reduce: the plan `any order, bytes 16` is refused: the function is not known to commute
    %w = "tt.reduce"(%d) <{axis = 0 : i32}> ({
    ^bb0(%x: f32, %y: f32):
      %s = "arith.subf"(%x, %y) : (f32, f32) -> f32
      "tt.reduce.return"(%s) : (f32) -> ()
    }) {tw.exchange = #tw.exchange<"any order, bytes 16">} : (!d) -> f32
    "tt.return"() : () -> ()
  }) : () -> ()
}) : () -> ()

// -----

#l = #ttg.linear<"register(1 2 4) lane(8 16 32 64 128) warp(256 512) atom(1024)">
#m = #ttg.linear<"register(1 2 4) lane(8 16 32 64 512) warp(128 256) atom(1024)">
#n = #ttg.linear<"register(1 2 4) lane(16 8 32 64 128) warp(256 512) atom(1024)">
#far = #ttg.linear<"register(512 1 2) lane(4 8 16 32 64) warp(128 256) atom(1024)">
!v = tensor<1024xf16, #l>
!f = tensor<1024xf32, #l>
!d = tensor<1024xf32, #far>
!i = tensor<1024xi32, #l>
"builtin.module"() ({
  "tt.func"() <{sym_name = "k", function_type = (!v, !f, !d, !i) -> ()}> ({
  ^bb0(%v: !v, %f: !f, %d: !d, %i: !i):
    // CHECK: PlanRefused: error[PlanRefused]: reduce: the plan `any order, bytes 8` is refused: 8 bytes do not hold the 16 that go through them
    %w = "tt.reduce"(%f) <{axis = 0 : i32}> ({
    ^bb0(%x: f32, %y: f32):
      %s = "arith.addf"(%x, %y) : (f32, f32) -> f32
      "tt.reduce.return"(%s) : (f32) -> ()
    }) {tw.exchange = #tw.exchange<"any order, bytes 8">} : (!f) -> f32
    "tt.return"() : () -> ()
  }) : () -> ()
}) : () -> ()

// -----

#l = #ttg.linear<"register(1 2 4) lane(8 16 32 64 128) warp(256 512) atom(1024)">
#m = #ttg.linear<"register(1 2 4) lane(8 16 32 64 512) warp(128 256) atom(1024)">
#n = #ttg.linear<"register(1 2 4) lane(16 8 32 64 128) warp(256 512) atom(1024)">
#far = #ttg.linear<"register(512 1 2) lane(4 8 16 32 64) warp(128 256) atom(1024)">
!v = tensor<1024xf16, #l>
!f = tensor<1024xf32, #l>
!d = tensor<1024xf32, #far>
!i = tensor<1024xi32, #l>
"builtin.module"() ({
  "tt.func"() <{sym_name = "k", function_type = (!v, !f, !d, !i) -> ()}> ({
  ^bb0(%v: !v, %f: !f, %d: !d, %i: !i):
    // CHECK: PlanRefused: error[PlanRefused]: scan: the plan `axis order` is refused: 0 bytes do not hold the 8
    %w = "tt.scan"(%f) <{axis = 0 : i32, reverse = false}> ({
    ^bb0(%x: f32, %y: f32):
      %s = "arith.addf"(%x, %y) : (f32, f32) -> f32
      "tt.scan.return"(%s) : (f32) -> ()
    }) {tw.exchange = #tw.exchange<"axis order">} : (!f) -> !f
    "tt.return"() : () -> ()
  }) : () -> ()
}) : () -> ()

// -----

#l = #ttg.linear<"register(1 2 4) lane(8 16 32 64 128) warp(256 512) atom(1024)">
#m = #ttg.linear<"register(1 2 4) lane(8 16 32 64 512) warp(128 256) atom(1024)">
#n = #ttg.linear<"register(1 2 4) lane(16 8 32 64 128) warp(256 512) atom(1024)">
#far = #ttg.linear<"register(512 1 2) lane(4 8 16 32 64) warp(128 256) atom(1024)">
!v = tensor<1024xf16, #l>
!f = tensor<1024xf32, #l>
!d = tensor<1024xf32, #far>
!i = tensor<1024xi32, #l>
"builtin.module"() ({
  "tt.func"() <{sym_name = "k", function_type = (!v, !f, !d, !i) -> ()}> ({
  ^bb0(%v: !v, %f: !f, %d: !d, %i: !i):
    // CHECK: PlanRefused: error[PlanRefused]: sort: the plan `loop, bytes 4096` is refused: the indices are asked for, and travel in 16 or 32 bits, not 0
    %w, %at = "tw.sort"(%f) {tw.exchange = #tw.exchange<"loop, bytes 4096">} : (!f) -> (!f, !i)
    %h = "tw.hint"(%at) : (!i) -> !i
    "tt.return"() : () -> ()
  }) : () -> ()
}) : () -> ()

// -----

#l = #ttg.linear<"register(1 2 4) lane(8 16 32 64 128) warp(256 512) atom(1024)">
#m = #ttg.linear<"register(1 2 4) lane(8 16 32 64 512) warp(128 256) atom(1024)">
#n = #ttg.linear<"register(1 2 4) lane(16 8 32 64 128) warp(256 512) atom(1024)">
#far = #ttg.linear<"register(512 1 2) lane(4 8 16 32 64) warp(128 256) atom(1024)">
!v = tensor<1024xf16, #l>
!f = tensor<1024xf32, #l>
!d = tensor<1024xf32, #far>
!i = tensor<1024xi32, #l>
"builtin.module"() ({
  "tt.func"() <{sym_name = "k", function_type = (!v, !f, !d, !i) -> ()}> ({
  ^bb0(%v: !v, %f: !f, %d: !d, %i: !i):
    // CHECK: PlanRefused: error[PlanRefused]: sort: the plan `unrolled, positions 32, bytes 4096` is refused: 4096 bytes do not hold the 8192
    %w, %at = "tw.sort"(%f) {tw.exchange = #tw.exchange<"unrolled, positions 32, bytes 4096">} : (!f) -> (!f, !i)
    %h = "tw.hint"(%at) : (!i) -> !i
    "tt.return"() : () -> ()
  }) : () -> ()
}) : () -> ()

// -----

#l = #ttg.linear<"register(1 2 4) lane(8 16 32 64 128) warp(256 512) atom(1024)">
#m = #ttg.linear<"register(1 2 4) lane(8 16 32 64 512) warp(128 256) atom(1024)">
#n = #ttg.linear<"register(1 2 4) lane(16 8 32 64 128) warp(256 512) atom(1024)">
#far = #ttg.linear<"register(512 1 2) lane(4 8 16 32 64) warp(128 256) atom(1024)">
!v = tensor<1024xf16, #l>
!f = tensor<1024xf32, #l>
!d = tensor<1024xf32, #far>
!i = tensor<1024xi32, #l>
"builtin.module"() ({
  "tt.func"() <{sym_name = "k", function_type = (!v, !f, !d, !i) -> ()}> ({
  ^bb0(%v: !v, %f: !f, %d: !d, %i: !i):
    // CHECK: PlanRefused: error[PlanRefused]: histogram: the plan `memory, bytes 32` is refused: 32 bytes do not hold the 64
    %w = "tt.histogram"(%i) {tw.exchange = #tw.exchange<"memory, bytes 32">} : (!i) -> tensor<16xi32, #ttg.linear<"register() lane(1 2 4 8 0) warp(0 0) atom(16)">>
    "tt.return"() : () -> ()
  }) : () -> ()
}) : () -> ()

// -----

#l = #ttg.linear<"register(1 2 4) lane(8 16 32 64 128) warp(256 512) atom(1024)">
#m = #ttg.linear<"register(1 2 4) lane(8 16 32 64 512) warp(128 256) atom(1024)">
#n = #ttg.linear<"register(1 2 4) lane(16 8 32 64 128) warp(256 512) atom(1024)">
#far = #ttg.linear<"register(512 1 2) lane(4 8 16 32 64) warp(128 256) atom(1024)">
!v = tensor<1024xf16, #l>
!f = tensor<1024xf32, #l>
!d = tensor<1024xf32, #far>
!i = tensor<1024xi32, #l>
"builtin.module"() ({
  "tt.func"() <{sym_name = "k", function_type = (!v, !f, !d, !i) -> ()}> ({
  ^bb0(%v: !v, %f: !f, %d: !d, %i: !i):
    // CHECK: PlanMissing: error[PlanMissing]: ttg.convert_layout is rewritten before it is planned: it has no `tw.exchange`
    // CHECK: help: run `decide-exchanges` first, or annotate it
    %w = "ttg.convert_layout"(%v) : (!v) -> tensor<1024xf16, #m>
    "tt.return"() : () -> ()
  }) : () -> ()
}) : () -> ()
