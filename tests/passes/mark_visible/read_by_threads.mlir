// PASS: mark-visible
// A store that threads may read again is waited for until it has been written; one that nobody
// reads only until its tile is free.
//
// CHECK: "ttng.tma_store_wait"(%a) <{is_complete}>
// CHECK: "ttng.tma_store_wait"(%a) : (

#w = #ttg.linear<"offset(0:1 0:2 0:4 0:8 0:16 0:32 1:8 2:16 4:32 8:0 16:0 32:0) atom(64x64)">
#t = #ttg.linear<"register(0:1 0:2 0:4 16:0 32:0) lane(0:8 0:16 0:32 1:0 2:0) warp(4:0 8:0) atom(64x64)">
!d = !tt.tensordesc<tensor<64x64xf16>>
!h = tensor<64x64xf16, #t>
!w = !ttg.memdesc<[64, 64], f16, #w, 1>
!q = tensor<64x64x!tt.ptr<f16>, #t>
"builtin.module"() ({
  "tt.func"() <{sym_name = "k", function_type = (!tt.ptr<f16>, i32, !h, !q) -> ()}> ({
  ^bb0(%x: !tt.ptr<f16>, %i: i32, %v: !h, %q: !q):
    %d = "ttng.tensor_map"(%x) <{recipe = "", index = 0 : i32}> : (!tt.ptr<f16>) -> !d
    %s = "ttg.local_alloc"(%v) : (!h) -> !w
    %a = "ttng.tma_store"(%d, %s, %i, %i) : (!d, !w, i32, i32) -> !ttg.async.token
    "ttng.tma_store_wait"(%a) : (!ttg.async.token) -> ()
    %p = "tt.splat"(%x) : (!tt.ptr<f16>) -> !q
    %u = "tt.load"(%p) <{operandSegmentSizes = array<i32: 1, 0, 0>}> : (!q) -> !h
    "tt.store"(%q, %u) : (!q, !h) -> ()
    "tt.return"() : () -> ()
  }) : () -> ()
}) : () -> ()

// -----
#w = #ttg.linear<"offset(0:1 0:2 0:4 0:8 0:16 0:32 1:8 2:16 4:32 8:0 16:0 32:0) atom(64x64)">
#t = #ttg.linear<"register(0:1 0:2 0:4 16:0 32:0) lane(0:8 0:16 0:32 1:0 2:0) warp(4:0 8:0) atom(64x64)">
!d = !tt.tensordesc<tensor<64x64xf16>>
!h = tensor<64x64xf16, #t>
!w = !ttg.memdesc<[64, 64], f16, #w, 1>
!q = tensor<64x64x!tt.ptr<f16>, #t>
"builtin.module"() ({
  "tt.func"() <{sym_name = "k", function_type = (!tt.ptr<f16>, i32, !h) -> ()}> ({
  ^bb0(%x: !tt.ptr<f16>, %i: i32, %v: !h):
    %d = "ttng.tensor_map"(%x) <{recipe = "", index = 0 : i32}> : (!tt.ptr<f16>) -> !d
    %s = "ttg.local_alloc"(%v) : (!h) -> !w
    %a = "ttng.tma_store"(%d, %s, %i, %i) : (!d, !w, i32, i32) -> !ttg.async.token
    "ttng.tma_store_wait"(%a) : (!ttg.async.token) -> ()
    "tt.return"() : () -> ()
  }) : () -> ()
}) : () -> ()
