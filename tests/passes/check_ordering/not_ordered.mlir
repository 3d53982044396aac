// ERROR: check-ordering
// A read of what other warps wrote, without a barrier; a barrier without the fence that wgmma
// needs; a barrier of one path only.
//
// CHECK: error[InternalError]: no barrier between the write of ttg.local_alloc at not_ordered.mlir:23 and the read of ttg.local_load at not_ordered.mlir:24
// CHECK: error[InternalError]: no fence between the write of ttg.local_alloc at {{.*}} and the read of ttg.dot
// CHECK: error[InternalError]: no barrier between the write of ttg.local_alloc

#l = #ttg.linear<"register(1 2 4) lane(8 16 32 64 128) warp(256 512) atom(1024)">
#s = #ttg.linear<"offset(1 2 4 8 16 32 64 128 256 512) atom(1024)">
!p = tensor<1024x!tt.ptr<f16>, #l>
!v = tensor<1024xf16, #l>
!s = !ttg.memdesc<[1024], f16, #s, 1>
#w = #ttg.linear<"offset(0:1 0:2 0:4 0:8 0:16 0:32 1:8 2:16 4:32 8:0 16:0 32:0) atom(64x64)">
#acc = #ttg.linear<"register(0:1 8:0 0:8 0:16 0:32) lane(0:2 0:4 1:0 2:0 4:0) warp(16:0 32:0) atom(64x64)">
#t = #ttg.linear<"register(0:1 0:2 0:4 16:0 32:0) lane(0:8 0:16 0:32 1:0 2:0) warp(4:0 8:0) atom(64x64)">
!h = tensor<64x64xf16, #t>
!f = tensor<64x64xf32, #acc>
!w = !ttg.memdesc<[64, 64], f16, #w, 1>
"builtin.module"() ({
  "tt.func"() <{sym_name = "k", function_type = (!v, !p) -> ()}> ({
  ^bb0(%v: !v, %p: !p):
    %s = "ttg.local_alloc"(%v) <{offset_bytes = 0 : i32}> : (!v) -> !s
    %a = "ttg.local_load"(%s) : (!s) -> !v
    "tt.store"(%p, %a) {tw.access = #tw.access<"vector 1, order 0">} : (!p, !v) -> ()
    "tt.return"() : () -> ()
  }) : () -> ()
}) : () -> ()

// -----
#l = #ttg.linear<"register(1 2 4) lane(8 16 32 64 128) warp(256 512) atom(1024)">
#s = #ttg.linear<"offset(1 2 4 8 16 32 64 128 256 512) atom(1024)">
!p = tensor<1024x!tt.ptr<f16>, #l>
!v = tensor<1024xf16, #l>
!s = !ttg.memdesc<[1024], f16, #s, 1>
#w = #ttg.linear<"offset(0:1 0:2 0:4 0:8 0:16 0:32 1:8 2:16 4:32 8:0 16:0 32:0) atom(64x64)">
#acc = #ttg.linear<"register(0:1 8:0 0:8 0:16 0:32) lane(0:2 0:4 1:0 2:0 4:0) warp(16:0 32:0) atom(64x64)">
#t = #ttg.linear<"register(0:1 0:2 0:4 16:0 32:0) lane(0:8 0:16 0:32 1:0 2:0) warp(4:0 8:0) atom(64x64)">
!h = tensor<64x64xf16, #t>
!f = tensor<64x64xf32, #acc>
!w = !ttg.memdesc<[64, 64], f16, #w, 1>
"builtin.module"() ({
  "tt.func"() <{sym_name = "k", function_type = (!h, !f) -> ()}> ({
  ^bb0(%x: !h, %c: !f):
    %a = "ttg.local_alloc"(%x) <{offset_bytes = 0 : i32}> : (!h) -> !w
    %b = "ttg.local_alloc"(%x) <{offset_bytes = 8192 : i32}> : (!h) -> !w
    "ttg.barrier"() : () -> ()
    %d = "ttg.dot"(%a, %b, %c) <{product = #tw.product<"wgmma 64x64x16, warps 4x1, a shared, b shared">}> : (!w, !w, !f) -> !f
    "tt.return"() : () -> ()
  }) : () -> ()
}) : () -> ()

// -----
#l = #ttg.linear<"register(1 2 4) lane(8 16 32 64 128) warp(256 512) atom(1024)">
#s = #ttg.linear<"offset(1 2 4 8 16 32 64 128 256 512) atom(1024)">
!p = tensor<1024x!tt.ptr<f16>, #l>
!v = tensor<1024xf16, #l>
!s = !ttg.memdesc<[1024], f16, #s, 1>
#w = #ttg.linear<"offset(0:1 0:2 0:4 0:8 0:16 0:32 1:8 2:16 4:32 8:0 16:0 32:0) atom(64x64)">
#acc = #ttg.linear<"register(0:1 8:0 0:8 0:16 0:32) lane(0:2 0:4 1:0 2:0 4:0) warp(16:0 32:0) atom(64x64)">
#t = #ttg.linear<"register(0:1 0:2 0:4 16:0 32:0) lane(0:8 0:16 0:32 1:0 2:0) warp(4:0 8:0) atom(64x64)">
!h = tensor<64x64xf16, #t>
!f = tensor<64x64xf32, #acc>
!w = !ttg.memdesc<[64, 64], f16, #w, 1>
"builtin.module"() ({
  "tt.func"() <{sym_name = "k", function_type = (!v, !p, i1) -> ()}> ({
  ^bb0(%v: !v, %p: !p, %is: i1):
    %s = "ttg.local_alloc"(%v) <{offset_bytes = 0 : i32}> : (!v) -> !s
    "scf.if"(%is) ({
      "ttg.barrier"() : () -> ()
      "scf.yield"() : () -> ()
    }, {
    }) : (i1) -> ()
    %a = "ttg.local_load"(%s) : (!s) -> !v
    "tt.store"(%p, %a) {tw.access = #tw.access<"vector 1, order 0">} : (!p, !v) -> ()
    "tt.return"() : () -> ()
  }) : () -> ()
}) : () -> ()
