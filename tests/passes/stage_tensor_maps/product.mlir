// PASS: stage-tensor-maps
// What a product takes from shared memory in the layout of the copy it takes from where the copy
// lands, also seen transposed: no register tile is made.
//
// CHECK: %[[S:.*]] = "ttg.local_alloc"() :
// CHECK: "ttng.tma_wait"
// CHECK-NEXT: %[[SEEN:.*]] = "ttg.memdesc_trans"(%[[S]]) <{order = array<i32: 1, 0>}>
// CHECK-NEXT: "ttg.dot"(%[[S]], %[[SEEN]], %c)
// CHECK-NOT: ttg.local_load
// CHECK-NOT: tt.trans

#w = #ttg.linear<"offset(0:1 0:2 0:4 0:8 0:16 0:32 1:8 2:16 4:32 8:0 16:0 32:0) atom(64x64)">
#wt = #ttg.linear<"offset(1:0 2:0 4:0 8:0 16:0 32:0 8:1 16:2 32:4 0:8 0:16 0:32) atom(64x64)">
#t = #ttg.linear<"register(0:1 0:2 0:4 16:0 32:0) lane(0:8 0:16 0:32 1:0 2:0) warp(4:0 8:0) atom(64x64)">
#tt = #ttg.linear<"register(1:0 2:0 4:0 0:16 0:32) lane(8:0 16:0 32:0 0:1 0:2) warp(0:4 0:8) atom(64x64)">
#acc = #ttg.linear<"register(0:1 8:0 0:8 0:16 0:32) lane(0:2 0:4 1:0 2:0 4:0) warp(16:0 32:0) atom(64x64)">
!d = !tt.tensordesc<tensor<64x64xf16>>
!h = tensor<64x64xf16, #t>
!w = !ttg.memdesc<[64, 64], f16, #w, 1>
!wt = !ttg.memdesc<[64, 64], f16, #wt, 1>
!ht = tensor<64x64xf16, #tt>
!f = tensor<64x64xf32, #acc>
"builtin.module"() ({
  "tt.func"() <{sym_name = "k", function_type = (!tt.ptr<f16>, i32, !f) -> ()}> ({
  ^bb0(%x: !tt.ptr<f16>, %i: i32, %c: !f):
    %d = "ttng.tensor_map"(%x) <{recipe = "", index = 0 : i32}> : (!tt.ptr<f16>) -> !d
    %v = "tt.descriptor_load"(%d, %i, %i) {ttng.box = #ttng.box<"64x64, swizzle 128">} : (!d, i32, i32) -> !h
    %a = "ttg.local_alloc"(%v) : (!h) -> !w
    %u = "tt.trans"(%v) <{order = array<i32: 1, 0>}> : (!h) -> !ht
    %b = "ttg.local_alloc"(%u) : (!ht) -> !wt
    %e = "ttg.dot"(%a, %b, %c) <{product = #tw.product<"wgmma 64x64x16, warps 4x1, a shared, b shared">}> : (!w, !wt, !f) -> !f
    "tt.print"(%e) <{prefix = "e", hex = false, isSigned = array<i32: 0>}> : (!f) -> ()
    "tt.return"() : () -> ()
  }) : () -> ()
}) : () -> ()
