// PASS: carry-phases
// A branch that waits hands on the next phase, the other one the same.
//
// CHECK: %[[START:.*]] = "arith.constant"() <{value = 0 : i32}>
// CHECK: "scf.if"(%is) ({
// CHECK: "ttng.tma_wait"(%a, %[[START]])
// CHECK-NEXT: %[[NEXT:.*]] = "arith.xori"(%[[START]]
// CHECK-NEXT: "scf.yield"(%[[NEXT]])
// CHECK-NEXT: }, {
// CHECK-NEXT: "scf.yield"(%[[START]])
// CHECK-NEXT: }) : (i1) -> i32

#w = #ttg.linear<"offset(0:1 0:2 0:4 0:8 0:16 0:32 1:8 2:16 4:32 8:0 16:0 32:0) atom(64x64)">
#t = #ttg.linear<"register(0:1 0:2 0:4 16:0 32:0) lane(0:8 0:16 0:32 1:0 2:0) warp(4:0 8:0) atom(64x64)">
!d = !tt.tensordesc<tensor<64x64xf16>>
!h = tensor<64x64xf16, #t>
!w = !ttg.memdesc<[64, 64], f16, #w, 1>
"builtin.module"() ({
  "tt.func"() <{sym_name = "k", function_type = (!tt.ptr<f16>, i32, i1) -> ()}> ({
  ^bb0(%x: !tt.ptr<f16>, %i: i32, %is: i1):
    "ttng.init_mbarriers"() <{count = 1 : i32}> : () -> ()
    %d = "ttng.tensor_map"(%x) <{recipe = "", index = 0 : i32}> : (!tt.ptr<f16>) -> !d
    "scf.if"(%is) ({
      %s = "ttg.local_alloc"() <{offset_bytes = 0 : i32}> : () -> !w
      %a = "ttng.tma_load"(%d, %s, %i, %i) <{barrier = 0 : i32, announced_bytes = 8192 : i32}> : (!d, !w, i32, i32) -> !ttg.async.token
      "ttng.tma_wait"(%a) <{barrier = 0 : i32, operandSegmentSizes = array<i32: 1, 0>}> : (!ttg.async.token) -> ()
      "scf.yield"() : () -> ()
    }, {
    }) : (i1) -> ()
    "tt.return"() : () -> ()
  }) : () -> ()
}) : () -> ()
