// PASS: insert-shared-barriers
// wgmma reads shared memory by a way of its own: what threads wrote is shown to it by a fence in
// front of the barrier.
//
// CHECK: %b = "ttg.local_alloc"
// CHECK-NEXT: "ttng.fence_async_shared"
// CHECK-NEXT: "ttg.barrier"
// CHECK-NEXT: %d = "ttg.dot"
// CHECK-NOT: ttg.barrier

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
    %d = "ttg.dot"(%a, %b, %c) <{product = #tw.product<"wgmma 64x64x16, warps 4x1, a shared, b shared">}> : (!w, !w, !f) -> !f
    "tt.return"() : () -> ()
  }) : () -> ()
}) : () -> ()
