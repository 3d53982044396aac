// PASS: decide-copies copy-async
// Two copies keep their order: the wait for the first leaves the second running.
//
// CHECK: %[[FIRST:.*]] = "ttg.async_commit_group"
// CHECK: %[[SECOND:.*]] = "ttg.async_commit_group"
// CHECK: "ttg.async_wait"(%[[FIRST]]) <{num = 1 : i32}>
// CHECK: "ttg.async_wait"(%[[SECOND]]) <{num = 0 : i32}>

#l = #ttg.linear<"register(1 2 4) lane(8 16 32 64 128) warp(256 512) atom(1024)">
#s = #ttg.linear<"offset(1 2 4 8 16 32 64 128 256 512) atom(1024)">
!p = tensor<1024x!tt.ptr<f16>, #l>
!v = tensor<1024xf16, #l>
!s = !ttg.memdesc<[1024], f16, #s, 1>
"builtin.module"() ({
  "tt.func"() <{sym_name = "k", function_type = (!p, !p) -> ()}> ({
  ^bb0(%p: !p, %q: !p):
    %v = "tt.load"(%p) <{operandSegmentSizes = array<i32: 1, 0, 0>}> {tw.access = #tw.access<"vector 8, order 0">} : (!p) -> !v
    %s = "ttg.local_alloc"(%v) : (!v) -> !s
    %w = "tt.load"(%q) <{operandSegmentSizes = array<i32: 1, 0, 0>}> {tw.access = #tw.access<"vector 8, order 0">} : (!p) -> !v
    %t = "ttg.local_alloc"(%w) : (!v) -> !s
    %a = "ttg.local_load"(%s) : (!s) -> !v
    %b = "ttg.local_load"(%t) : (!s) -> !v
    %c = "arith.addf"(%a, %b) : (!v, !v) -> !v
    "tt.store"(%q, %c) {tw.access = #tw.access<"vector 8, order 0">} : (!p, !v) -> ()
    "tt.return"() : () -> ()
  }) : () -> ()
}) : () -> ()
