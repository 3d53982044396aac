// PASS: decide-copies copy-async
// A load that goes to shared memory alone is copied there. The copy starts as early as its
// operands allow, before other work of the block; the wait stands where the tile was filled.
//
// CHECK: ^{{.*}}(%p:
// CHECK-NEXT: %[[S:.*]] = "ttg.local_alloc"() :
// CHECK-NEXT: %[[C:.*]] = "ttg.async_copy_global_to_local"(%p, %[[S]]) <{{.*}} {tw.access = #tw.access<"vector 8, order 0">}
// CHECK-NEXT: %[[T:.*]] = "ttg.async_commit_group"(%[[C]])
// CHECK-NEXT: "arith.addf"
// CHECK-NEXT: "ttg.async_wait"(%[[T]]) <{num = 0 : i32}>
// CHECK-NEXT: "ttg.local_load"(%[[S]])
// CHECK-NOT: tt.load

#l = #ttg.linear<"register(1 2 4) lane(8 16 32 64 128) warp(256 512) atom(1024)">
#s = #ttg.linear<"offset(1 2 4 8 16 32 64 128 256 512) atom(1024)">
!p = tensor<1024x!tt.ptr<f16>, #l>
!v = tensor<1024xf16, #l>
!s = !ttg.memdesc<[1024], f16, #s, 1>
"builtin.module"() ({
  "tt.func"() <{sym_name = "k", function_type = (!p, !p, !v) -> ()}> ({
  ^bb0(%p: !p, %q: !p, %x: !v):
    %y = "arith.addf"(%x, %x) : (!v, !v) -> !v
    %v = "tt.load"(%p) <{operandSegmentSizes = array<i32: 1, 0, 0>}> {tw.access = #tw.access<"vector 8, order 0">} : (!p) -> !v
    %s = "ttg.local_alloc"(%v) : (!v) -> !s
    %r = "ttg.local_load"(%s) : (!s) -> !v
    "tt.store"(%q, %r) {tw.access = #tw.access<"vector 8, order 0">} : (!p, !v) -> ()
    "tt.return"() : () -> ()
  }) : () -> ()
}) : () -> ()
