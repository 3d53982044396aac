// PASS: check-ordering
// A kernel whose accesses are ordered passes as it is.
//
// CHECK: "ttg.local_alloc"
// CHECK-NEXT: "ttg.barrier"
// CHECK-NEXT: "ttg.local_load"

#l = #ttg.linear<"register(1 2 4) lane(8 16 32 64 128) warp(256 512) atom(1024)">
#s = #ttg.linear<"offset(1 2 4 8 16 32 64 128 256 512) atom(1024)">
!p = tensor<1024x!tt.ptr<f16>, #l>
!v = tensor<1024xf16, #l>
!s = !ttg.memdesc<[1024], f16, #s, 1>
"builtin.module"() ({
  "tt.func"() <{sym_name = "k", function_type = (!v, !p) -> ()}> ({
  ^bb0(%v: !v, %p: !p):
    %s = "ttg.local_alloc"(%v) <{offset_bytes = 0 : i32}> : (!v) -> !s
    "ttg.barrier"() : () -> ()
    %a = "ttg.local_load"(%s) : (!s) -> !v
    "tt.store"(%p, %a) {tw.access = #tw.access<"vector 1, order 0">} : (!p, !v) -> ()
    "tt.return"() : () -> ()
  }) : () -> ()
}) : () -> ()
