// PASS: carry-phases
// The wait in a loop finds the phase of its mbarrier one further each time: the loop carries it.
//
// CHECK: %[[START:.*]] = "arith.constant"() <{value = 0 : i32}>
// CHECK: "scf.for"(%zero, %n, %one, %[[START]]) ({
// CHECK-NEXT: ^{{.*}}(%k: i32, %[[PHASE:.*]]: i32):
// CHECK: "ttng.tma_wait"(%a, %[[PHASE]]) <{barrier = 0 : i32, operandSegmentSizes = array<i32: 1, 1>}>
// CHECK-NEXT: %[[NEXT:.*]] = "arith.xori"(%[[PHASE]], %
// CHECK: "scf.yield"(%[[NEXT]])

#w = #ttg.linear<"offset(0:1 0:2 0:4 0:8 0:16 0:32 1:8 2:16 4:32 8:0 16:0 32:0) atom(64x64)">
#t = #ttg.linear<"register(0:1 0:2 0:4 16:0 32:0) lane(0:8 0:16 0:32 1:0 2:0) warp(4:0 8:0) atom(64x64)">
!d = !tt.tensordesc<tensor<64x64xf16>>
!h = tensor<64x64xf16, #t>
!w = !ttg.memdesc<[64, 64], f16, #w, 1>
!q = tensor<64x64x!tt.ptr<f16>, #t>
"builtin.module"() ({
  "tt.func"() <{sym_name = "k", function_type = (!tt.ptr<f16>, i32, !q, i32) -> ()}> ({
  ^bb0(%x: !tt.ptr<f16>, %i: i32, %q: !q, %n: i32):
    "ttng.init_mbarriers"() <{count = 1 : i32}> : () -> ()
    %d = "ttng.tensor_map"(%x) <{recipe = "", index = 0 : i32}> : (!tt.ptr<f16>) -> !d
    %zero = "arith.constant"() <{value = 0 : i32}> : () -> i32
    %one = "arith.constant"() <{value = 1 : i32}> : () -> i32
    "scf.for"(%zero, %n, %one) ({
    ^bb0(%k: i32):
      %s = "ttg.local_alloc"() <{offset_bytes = 0 : i32}> : () -> !w
      %a = "ttng.tma_load"(%d, %s, %k, %k) <{barrier = 0 : i32, announced_bytes = 8192 : i32}> : (!d, !w, i32, i32) -> !ttg.async.token
      "ttng.tma_wait"(%a) <{barrier = 0 : i32, operandSegmentSizes = array<i32: 1, 0>}> : (!ttg.async.token) -> ()
      %v = "ttg.local_load"(%s) : (!w) -> !h
      "tt.store"(%q, %v) {tw.access = #tw.access<"vector 1, order 1 0">} : (!q, !h) -> ()
      "scf.yield"() : () -> ()
    }) : (i32, i32, i32) -> ()
    "tt.return"() : () -> ()
  }) : () -> ()
}) : () -> ()
