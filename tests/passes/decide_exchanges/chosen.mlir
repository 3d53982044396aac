// PASS: decide-exchanges verify-exchanges
// ROUNDTRIP
// The cheapest way that there is: nothing moves, lanes shuffle, warps go through shared memory.
//
// CHECK: %renamed = {{.*}}#tw.exchange<"registers">
// CHECK: %shuffled = {{.*}}#tw.exchange<"shuffle">
// CHECK: %moved = {{.*}}#tw.exchange<"memory, bytes 2048">
// CHECK: %total = {{.*}}"tt.reduce"
// CHECK: #tw.exchange<"any order, bytes 16">
// CHECK: %sums = {{.*}}"tt.scan"
// CHECK: #tw.exchange<"axis order, bytes {{[1-9][0-9]*}}">
// CHECK: "tt.histogram"{{.*}}#tw.exchange<"memory, bytes 64">

#l = #ttg.linear<"register(1 2 4) lane(8 16 32 64 128) warp(256 512) atom(1024)">
#r = #ttg.linear<"register(4 2 1) lane(8 16 32 64 128) warp(256 512) atom(1024)">
#m = #ttg.linear<"register(1 2 4) lane(8 16 32 64 512) warp(128 256) atom(1024)">
#n = #ttg.linear<"register(1 2 4) lane(16 8 32 64 128) warp(256 512) atom(1024)">
#bins = #ttg.linear<"register() lane(1 2 4 8 0) warp(0 0) atom(16)">
!v = tensor<1024xf16, #l>
!f = tensor<1024xf32, #l>
!i = tensor<1024xi32, #l>
"builtin.module"() ({
  "tt.func"() <{sym_name = "k", function_type = (!v, !f, !i) -> ()}> ({
  ^bb0(%v: !v, %f: !f, %i: !i):
    %renamed = "ttg.convert_layout"(%v) : (!v) -> tensor<1024xf16, #r>
    %shuffled = "ttg.convert_layout"(%v) : (!v) -> tensor<1024xf16, #n>
    %moved = "ttg.convert_layout"(%v) : (!v) -> tensor<1024xf16, #m>
    %total = "tt.reduce"(%f) <{axis = 0 : i32}> ({
    ^bb0(%a: f32, %b: f32):
      %s = "arith.addf"(%a, %b) : (f32, f32) -> f32
      "tt.reduce.return"(%s) : (f32) -> ()
    }) : (!f) -> f32
    %sums = "tt.scan"(%f) <{axis = 0 : i32, reverse = false}> ({
    ^bb0(%a: f32, %b: f32):
      %s = "arith.addf"(%a, %b) : (f32, f32) -> f32
      "tt.scan.return"(%s) : (f32) -> ()
    }) : (!f) -> !f
    %counts = "tt.histogram"(%i) : (!i) -> tensor<16xi32, #bins>
    "tt.return"() : () -> ()
  }) : () -> ()
}) : () -> ()
