// PASS: stage-tensor-maps
// A load through a tensor map starts early, into a shared tile in the layout in which the engine
// writes it; the wait and the read stand in front of the first use.
//
// CHECK: "ttng.init_mbarriers"() <{count = 1 : i32}>
// CHECK: %[[S:.*]] = "ttg.local_alloc"() : () -> !ttg.memdesc<[64, 64], f16, #shared
// CHECK-NEXT: %[[T:.*]] = "ttng.tma_load"(%d, %[[S]], %i, %i) <{barrier = 0 : i32, announced_bytes = 8192 : i32}>
// CHECK-NEXT: "tt.load"
// CHECK-NEXT: "arith.addf"
// CHECK-NEXT: "ttng.tma_wait"(%[[T]]) <{{.*}}barrier = 0 : i32
// CHECK-NEXT: %[[V:.*]] = "ttg.local_load"(%[[S]])
// CHECK-NEXT: "arith.addf"(%z, %[[V]])

#w = #ttg.linear<"offset(0:1 0:2 0:4 0:8 0:16 0:32 1:8 2:16 4:32 8:0 16:0 32:0) atom(64x64)">
#t = #ttg.linear<"register(0:1 0:2 0:4 16:0 32:0) lane(0:8 0:16 0:32 1:0 2:0) warp(4:0 8:0) atom(64x64)">
!d = !tt.tensordesc<tensor<64x64xf16>>
!h = tensor<64x64xf16, #t>
!w = !ttg.memdesc<[64, 64], f16, #w, 1>
!q = tensor<64x64x!tt.ptr<f16>, #t>
"builtin.module"() ({
  "tt.func"() <{sym_name = "k", function_type = (!tt.ptr<f16>, i32, !q) -> ()}> ({
  ^bb0(%x: !tt.ptr<f16>, %i: i32, %q: !q):
    %d = "ttng.tensor_map"(%x) <{recipe = "", index = 0 : i32}> : (!tt.ptr<f16>) -> !d
    %y = "tt.load"(%q) <{operandSegmentSizes = array<i32: 1, 0, 0>}> : (!q) -> !h
    %v = "tt.descriptor_load"(%d, %i, %i) {ttng.box = #ttng.box<"64x64, swizzle 128">} : (!d, i32, i32) -> !h
    %z = "arith.addf"(%y, %y) : (!h, !h) -> !h
    %s = "arith.addf"(%z, %v) : (!h, !h) -> !h
    "tt.store"(%q, %s) : (!q, !h) -> ()
    "tt.return"() : () -> ()
  }) : () -> ()
}) : () -> ()
