// ERROR: decide-exchanges

// What cannot be is refused with what stands against it, and with what would do.
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
    // CHECK: help: take `shuffle` or `memory, bytes 2048`
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
    // CHECK: PlanRefused: error[PlanRefused]: convert_layout: the plan `shuffle` is refused: a warp wants elements that no lane of it holds
    // CHECK: help: take `memory, bytes 2048`
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
    // CHECK: PlanRefused: error[PlanRefused]: convert_layout: the plan `memory, bytes 100` is refused: 100 bytes do not hold the 2048 that go through them
    %w = "ttg.convert_layout"(%v) {tw.exchange = #tw.exchange<"memory, bytes 100">} : (!v) -> tensor<1024xf16, #m>
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
    // CHECK: PlanRefused: error[PlanRefused]: convert_layout: the plan `memory, bytes 4096` is refused: its numbers are not those of a plan
    %w = "ttg.convert_layout"(%v) {tw.exchange = #tw.exchange<"memory, bytes 4096">} : (!v) -> tensor<1024xf16, #m>
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
    // CHECK: PlanRefused: error[PlanRefused]: convert_layout: the plan `pigeons` is refused: there is no `pigeons`, but registers, shuffle and memory
    %w = "ttg.convert_layout"(%v) {tw.exchange = #tw.exchange<"pigeons">} : (!v) -> tensor<1024xf16, #m>
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
    // CHECK: PlanRefused: error[PlanRefused]: reduce: the plan `any order` is refused: the function is not known to commute, and registers, lanes and warps do not follow each other along the axis
    // CHECK: help: take `axis order, bytes 
    %w = "tt.reduce"(%d) <{axis = 0 : i32}> ({
    ^bb0(%x: f32, %y: f32):
      %s = "arith.subf"(%x, %y) : (f32, f32) -> f32
      "tt.reduce.return"(%s) : (f32) -> ()
    }) {tw.exchange = #tw.exchange<"any order">} : (!d) -> f32
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
    // CHECK: PlanRefused: error[PlanRefused]: scan: the plan `any order` is refused: a scan has axis order alone
    %w = "tt.scan"(%f) <{axis = 0 : i32, reverse = false}> ({
    ^bb0(%x: f32, %y: f32):
      %s = "arith.addf"(%x, %y) : (f32, f32) -> f32
      "tt.scan.return"(%s) : (f32) -> ()
    }) {tw.exchange = #tw.exchange<"any order">} : (!f) -> !f
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
    // CHECK: PlanRefused: error[PlanRefused]: sort: the plan `loop, positions 16` is refused: its numbers are not those of a plan
    %w, %at = "tw.sort"(%f) {tw.exchange = #tw.exchange<"loop, positions 16">} : (!f) -> (!f, !i)
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
    // CHECK: PlanRefused: error[PlanRefused]: histogram: the plan `shuffle` is refused: it goes through memory alone
    %w = "tt.histogram"(%i) {tw.exchange = #tw.exchange<"shuffle">} : (!i) -> tensor<16xi32, #ttg.linear<"register() lane(1 2 4 8 0) warp(0 0) atom(16)">>
    "tt.return"() : () -> ()
  }) : () -> ()
}) : () -> ()
