// ERROR: place-shared{max_shared_bytes=3000}
// Two tiles in use at once do not fit: the error names the pieces, largest first, with their lines.
//
// CHECK: error[SharedMemoryExceeded]: the kernel needs 4096 bytes of shared memory, sm_90a has 3000
// CHECK-NEXT: too_much.mlir:18, col 10
// CHECK: 1. [1024] f16 at too_much.mlir:18: 2048 bytes
// CHECK-SAME: 2. [1024] f16 at too_much.mlir:19: 2048 bytes
// CHECK-NEXT: help: blocks of half the size fit, such as 512 for 1024

#l = #ttg.linear<"register(1 2 4) lane(8 16 32 64 128) warp(256 512) atom(1024)">
#s = #ttg.linear<"offset(1 2 4 8 16 32 64 128 256 512) atom(1024)">
!p = tensor<1024x!tt.ptr<f16>, #l>
!v = tensor<1024xf16, #l>
!s = !ttg.memdesc<[1024], f16, #s, 1>
"builtin.module"() ({
  "tt.func"() <{sym_name = "k", function_type = (!v, !p) -> ()}> ({
  ^bb0(%v: !v, %p: !p):
    %s = "ttg.local_alloc"(%v) : (!v) -> !s
    %t = "ttg.local_alloc"(%v) : (!v) -> !s
    %a = "ttg.local_load"(%s) : (!s) -> !v
    %b = "ttg.local_load"(%t) : (!s) -> !v
    "tt.store"(%p, %a) : (!p, !v) -> ()
    "tt.store"(%p, %b) : (!p, !v) -> ()
    "tt.return"() : () -> ()
  }) : () -> ()
}) : () -> ()
