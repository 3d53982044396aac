// PASS: decide-copies copy-async
// A copy does not start before a store that stands in front of its load.
//
// CHECK: "tt.store"(%q, %x)
// CHECK-NEXT: "ttg.local_alloc"() :
// CHECK-NEXT: "ttg.async_copy_global_to_local"

#l = #ttg.linear<"register(1 2 4) lane(8 16 32 64 128) warp(256 512) atom(1024)">
#s = #ttg.linear<"offset(1 2 4 8 16 32 64 128 256 512) atom(1024)">
!p = tensor<1024x!tt.ptr<f16>, #l>
!v = tensor<1024xf16, #l>
!s = !ttg.memdesc<[1024], f16, #s, 1>
"builtin.module"() ({
  "tt.func"() <{sym_name = "k", function_type = (!p, !p, !v) -> ()}> ({
  ^bb0(%p: !p, %q: !p, %x: !v):
    "tt.store"(%q, %x) {tw.access = #tw.access<"vector 8, order 0">} : (!p, !v) -> ()
    %v = "tt.load"(%p) <{operandSegmentSizes = array<i32: 1, 0, 0>}> {tw.access = #tw.access<"vector 8, order 0">} : (!p) -> !v
    %s = "ttg.local_alloc"(%v) : (!v) -> !s
    %r = "ttg.local_load"(%s) : (!s) -> !v
    "tt.store"(%q, %r) {tw.access = #tw.access<"vector 8, order 0">} : (!p, !v) -> ()
    "tt.return"() : () -> ()
  }) : () -> ()
}) : () -> ()
