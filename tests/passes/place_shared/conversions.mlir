// PASS: decide-exchanges place-shared
// A change of layout between warps goes through shared memory and gets a place for it; one
// between the lanes of a warp does not.
//
// CHECK: %w = "ttg.convert_layout"(%v) {tw.exchange = #tw.exchange<"memory, bytes 2048">, scratch_offset = 0 : i32}
// CHECK: %x = "ttg.convert_layout"(%v) {tw.exchange = #tw.exchange<"shuffle">} : (
// CHECK: {shared_bytes = {{[1-9][0-9]*}} : i32}

#l = #ttg.linear<"register(1 2 4) lane(8 16 32 64 128) warp(256 512) atom(1024)">
#m = #ttg.linear<"register(1 2 4) lane(8 16 32 64 512) warp(128 256) atom(1024)">
#n = #ttg.linear<"register(1 2 4) lane(16 8 32 64 128) warp(256 512) atom(1024)">
!v = tensor<1024xf16, #l>
"builtin.module"() ({
  "tt.func"() <{sym_name = "k", function_type = (!v) -> ()}> ({
  ^bb0(%v: !v):
    %w = "ttg.convert_layout"(%v) : (!v) -> tensor<1024xf16, #m>
    %x = "ttg.convert_layout"(%v) {tw.exchange = #tw.exchange<"shuffle">} : (!v) -> tensor<1024xf16, #n>
    "tt.return"() : () -> ()
  }) : () -> ()
}) : () -> ()
