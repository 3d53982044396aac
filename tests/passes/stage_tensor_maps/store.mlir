// PASS: stage-tensor-maps
// A store through a tensor map leaves from a shared tile; small ones run together, and are
// waited for before the block ends.
//
// CHECK-NOT: ttng.init_mbarriers
// CHECK: %[[S:.*]] = "ttg.local_alloc"(%v)
// CHECK-NEXT: %[[FIRST:.*]] = "ttng.tma_store"(%d, %[[S]], %i, %i)
// CHECK: %[[SECOND:.*]] = "ttng.tma_store"(%d, %{{.*}}, %j, %j)
// CHECK-NEXT: "ttng.tma_store_wait"(%[[FIRST]], %[[SECOND]])
// CHECK-NEXT: "tt.return"

#w = #ttg.linear<"offset(0:1 0:2 0:4 0:8 0:16 0:32 1:8 2:16 4:32 8:0 16:0 32:0) atom(64x64)">
#t = #ttg.linear<"register(0:1 0:2 0:4 16:0 32:0) lane(0:8 0:16 0:32 1:0 2:0) warp(4:0 8:0) atom(64x64)">
!d = !tt.tensordesc<tensor<64x64xf16>>
!h = tensor<64x64xf16, #t>
!w = !ttg.memdesc<[64, 64], f16, #w, 1>
"builtin.module"() ({
  "tt.func"() <{sym_name = "k", function_type = (!tt.ptr<f16>, i32, i32, !h) -> ()}> ({
  ^bb0(%x: !tt.ptr<f16>, %i: i32, %j: i32, %v: !h):
    %d = "ttng.tensor_map"(%x) <{recipe = "", index = 0 : i32}> : (!tt.ptr<f16>) -> !d
    "tt.descriptor_store"(%d, %v, %i, %i) {ttng.box = #ttng.box<"64x64, swizzle 128">} : (!d, !h, i32, i32) -> ()
    "tt.descriptor_store"(%d, %v, %j, %j) {ttng.box = #ttng.box<"64x64, swizzle 128">} : (!d, !h, i32, i32) -> ()
    "tt.return"() : () -> ()
  }) : () -> ()
}) : () -> ()
