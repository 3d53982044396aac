// PASS(APART): place-shared
// PASS(SHARED): place-shared{max_shared_bytes=3000}
// Two tiles that are never in use at once lie apart where shared memory is no matter, and in the
// same bytes where both would not fit.
//
// APART: "tt.func"({{.*}}
// APART: "ttg.local_alloc"(%v) <{offset_bytes = 0 : i32}>
// APART: "ttg.local_alloc"(%a) <{offset_bytes = 2048 : i32}>
// APART: {shared_bytes = 4096 : i32}
// SHARED: "ttg.local_alloc"(%v) <{offset_bytes = 0 : i32}>
// SHARED: "ttg.local_alloc"(%a) <{offset_bytes = 0 : i32}>
// SHARED: {shared_bytes = 2048 : i32}

#l = #ttg.linear<"register(1 2 4) lane(8 16 32 64 128) warp(256 512) atom(1024)">
#s = #ttg.linear<"offset(1 2 4 8 16 32 64 128 256 512) atom(1024)">
!p = tensor<1024x!tt.ptr<f16>, #l>
!v = tensor<1024xf16, #l>
!s = !ttg.memdesc<[1024], f16, #s, 1>
"builtin.module"() ({
  "tt.func"() <{sym_name = "k", function_type = (!v, !p) -> ()}> ({
  ^bb0(%v: !v, %p: !p):
    %s = "ttg.local_alloc"(%v) : (!v) -> !s
    %a = "ttg.local_load"(%s) : (!s) -> !v
    %t = "ttg.local_alloc"(%a) : (!v) -> !s
    %b = "ttg.local_load"(%t) : (!s) -> !v
    "tt.store"(%p, %b) {tw.access = #tw.access<"vector 1, order 0">} : (!p, !v) -> ()
    "tt.return"() : () -> ()
  }) : () -> ()
}) : () -> ()
