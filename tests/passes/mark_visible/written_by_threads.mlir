// PASS: mark-visible
// PASS(SHARED): mark-visible{may_overlap=true}
// A copy of what threads of the launch write through the same argument takes a fence; a copy
// through another argument does not.
//
// CHECK: %a = "ttng.tma_load"(%d, {{.*}}, is_fenced}>
// CHECK: %b = "ttng.tma_load"(%e
// CHECK-NOT: is_fenced
//
// It does where the arguments may be one array.
//
// SHARED: %b = "ttng.tma_load"(%e, {{.*}}, is_fenced}>

#w = #ttg.linear<"offset(0:1 0:2 0:4 0:8 0:16 0:32 1:8 2:16 4:32 8:0 16:0 32:0) atom(64x64)">
#t = #ttg.linear<"register(0:1 0:2 0:4 16:0 32:0) lane(0:8 0:16 0:32 1:0 2:0) warp(4:0 8:0) atom(64x64)">
!d = !tt.tensordesc<tensor<64x64xf16>>
!h = tensor<64x64xf16, #t>
!w = !ttg.memdesc<[64, 64], f16, #w, 1>
!q = tensor<64x64x!tt.ptr<f16>, #t>
"builtin.module"() ({
  "tt.func"() <{sym_name = "k", function_type = (!tt.ptr<f16>, !tt.ptr<f16>, i32, !h) -> ()}> ({
  ^bb0(%x: !tt.ptr<f16>, %y: !tt.ptr<f16>, %i: i32, %v: !h):
    "ttng.init_mbarriers"() <{count = 2 : i32}> : () -> ()
    %d = "ttng.tensor_map"(%x) <{recipe = "", index = 0 : i32}> : (!tt.ptr<f16>) -> !d
    %e = "ttng.tensor_map"(%y) <{recipe = "", index = 1 : i32}> : (!tt.ptr<f16>) -> !d
    %q = "tt.splat"(%x) : (!tt.ptr<f16>) -> !q
    "tt.store"(%q, %v) : (!q, !h) -> ()
    %s = "ttg.local_alloc"() : () -> !w
    %a = "ttng.tma_load"(%d, %s, %i, %i) <{barrier = 0 : i32, announced_bytes = 8192 : i32}> : (!d, !w, i32, i32) -> !ttg.async.token
    %t = "ttg.local_alloc"() : () -> !w
    %b = "ttng.tma_load"(%e, %t, %i, %i) <{barrier = 1 : i32, announced_bytes = 8192 : i32}> : (!d, !w, i32, i32) -> !ttg.async.token
    "ttng.tma_wait"(%a) <{barrier = 0 : i32, operandSegmentSizes = array<i32: 1, 0>}> : (!ttg.async.token) -> ()
    "ttng.tma_wait"(%b) <{barrier = 1 : i32, operandSegmentSizes = array<i32: 1, 0>}> : (!ttg.async.token) -> ()
    "tt.return"() : () -> ()
  }) : () -> ()
}) : () -> ()
