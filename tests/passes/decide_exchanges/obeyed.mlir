// PASS: decide-exchanges verify-exchanges
// What is annotated is obeyed, and its numbers are filled in.
//
// CHECK: %a = {{.*}}#tw.exchange<"memory, bytes 2048", "to compare">
// CHECK: %b = {{.*}}#tw.exchange<"memory, passes 2, bytes 1024">
// CHECK: %c = {{.*}}#tw.exchange<"memory, passes 4, bytes 512">
// CHECK: %total = {{.*}}"tt.reduce"
// CHECK: #tw.exchange<"axis order, bytes 16">
// CHECK: %last, %at = "tw.sort"{{.*}}#tw.exchange<"loop, bytes 4096">

#l = #ttg.linear<"register(1 2 4) lane(8 16 32 64 128) warp(256 512) atom(1024)">
#m = #ttg.linear<"register(1 2 4) lane(8 16 32 64 512) warp(128 256) atom(1024)">
#n = #ttg.linear<"register(1 2 4) lane(16 8 32 64 128) warp(256 512) atom(1024)">
!v = tensor<1024xf16, #l>
!f = tensor<1024xf32, #l>
"builtin.module"() ({
  "tt.func"() <{sym_name = "k", function_type = (!v, !f) -> ()}> ({
  ^bb0(%v: !v, %f: !f):
    %a = "ttg.convert_layout"(%v) {tw.exchange = #tw.exchange<"memory", "to compare">} : (!v) -> tensor<1024xf16, #n>
    %b = "ttg.convert_layout"(%v) {tw.exchange = #tw.exchange<"memory, passes 2">} : (!v) -> tensor<1024xf16, #m>
    %c = "ttg.convert_layout"(%v) {tw.exchange = #tw.exchange<"memory, bytes 512">} : (!v) -> tensor<1024xf16, #m>
    %total = "tt.reduce"(%f) <{axis = 0 : i32}> ({
    ^bb0(%x: f32, %y: f32):
      %s = "arith.addf"(%x, %y) : (f32, f32) -> f32
      "tt.reduce.return"(%s) : (f32) -> ()
    }) {tw.exchange = #tw.exchange<"axis order">} : (!f) -> f32
    %last, %at = "tw.sort"(%f) {tw.exchange = #tw.exchange<"loop">} : (!f) -> (!f, tensor<1024xi32, #l>)
    "tt.return"() : () -> ()
  }) : () -> ()
}) : () -> ()
