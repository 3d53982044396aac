// PASS: stage-tensor-maps
// A load does not start before a store of the program that stands in front of it, and is not
// left running across one behind it.
//
// CHECK: "tt.store"(%q, %v)
// CHECK-NEXT: "ttg.local_alloc"
// CHECK-NEXT: "ttng.tma_load"
// CHECK-NEXT: "ttng.tma_wait"
// CHECK-NEXT: %[[A:.*]] = "ttg.local_load"
// CHECK-NEXT: "tt.store"(%q, %v)
// CHECK-NEXT: "tt.store"(%q, %[[A]])

#w = #ttg.linear<"offset(0:1 0:2 0:4 0:8 0:16 0:32 1:8 2:16 4:32 8:0 16:0 32:0) atom(64x64)">
#t = #ttg.linear<"register(0:1 0:2 0:4 16:0 32:0) lane(0:8 0:16 0:32 1:0 2:0) warp(4:0 8:0) atom(64x64)">
!d = !tt.tensordesc<tensor<64x64xf16>>
!h = tensor<64x64xf16, #t>
!w = !ttg.memdesc<[64, 64], f16, #w, 1>
!q = tensor<64x64x!tt.ptr<f16>, #t>
"builtin.module"() ({
  "tt.func"() <{sym_name = "k", function_type = (!tt.ptr<f16>, i32, !q, !h) -> ()}> ({
  ^bb0(%x: !tt.ptr<f16>, %i: i32, %q: !q, %v: !h):
    %d = "ttng.tensor_map"(%x) <{recipe = "", index = 0 : i32}> : (!tt.ptr<f16>) -> !d
    "tt.store"(%q, %v) : (!q, !h) -> ()
    %a = "tt.descriptor_load"(%d, %i, %i) {ttng.box = #ttng.box<"64x64, swizzle 128">} : (!d, i32, i32) -> !h
    "tt.store"(%q, %v) : (!q, !h) -> ()
    "tt.store"(%q, %a) : (!q, !h) -> ()
    "tt.return"() : () -> ()
  }) : () -> ()
}) : () -> ()
