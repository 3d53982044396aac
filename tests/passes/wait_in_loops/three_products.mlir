// PASS: wait-in-loops
// Both products of kept tiles start before anything waits, and each is waited for where its values
// are taken: the second one and the sum run beside what is computed of the first.
//
// CHECK: "scf.for"
// CHECK: %[[S:.*]] = "ttg.dot"(%{{.*}}is_async
// CHECK-NOT: dot_wait
// CHECK: %[[T:.*]] = "ttg.dot"(%{{.*}}is_async
// CHECK-NEXT: %[[U:.*]] = "ttg.dot_wait"(%[[S]]) <{pending = 1 : i32}>
// CHECK-NEXT: "math.exp2"(%[[U]])
// CHECK-NEXT: %[[V:.*]] = "ttg.dot_wait"(%[[T]]) <{pending = 0 : i32}>
// CHECK: %[[D:.*]] = "ttg.dot"(%{{.*}}is_async
// CHECK-NEXT: %[[E:.*]] = "ttg.dot_wait"(%[[D]]) <{pending = 0 : i32}>
// CHECK-NEXT: "scf.yield"(%[[E]])
// CHECK: products run until something needs what they make

#own = #ttg.linear<"offset(0:1 0:2 0:4 0:8 0:16 0:32 1:8 2:16 4:32 8:0 16:0 32:0 64:0) atom(128x64)">
#score = #ttg.linear<"register(0:1 8:0 0:8 0:16 64:0) lane(0:2 0:4 1:0 2:0 4:0) warp(16:0 32:0) atom(128x32)">
#sum = #ttg.linear<"register(0:1 8:0 0:8 0:16 0:32 64:0) lane(0:2 0:4 1:0 2:0 4:0) warp(16:0 32:0) atom(128x64)">
#slot = #ttg.linear<"offset(0:1 0:2 0:4 0:8 0:16 0:32 1:8 2:16 4:32 8:0 16:0) atom(32x64)">
#turned = #ttg.linear<"offset(1:0 2:0 4:0 8:0 16:0 32:0 8:1 16:2 32:4 0:8 0:16) atom(64x32)">
#fill = #ttg.linear<"register(0:1 0:2 0:4 8:0) lane(0:8 0:16 0:32 1:0 2:0) warp(4:0 16:0) atom(32x64)">
!new = tensor<32x64xf16, #fill>
!m = !ttg.memdesc<[128, 64], f16, #own, 1>
!ks = !ttg.memdesc<[32, 64], f16, #slot, 2>
!k = !ttg.memdesc<[32, 64], f16, #slot, 1>
!t = !ttg.memdesc<[64, 32], f16, #turned, 1>
!s = tensor<128x32xf32, #score>
!h = tensor<128x32xf16, #score>
!o = tensor<128x64xf32, #sum>
!p = tensor<128x64x!tt.ptr<f32>, #sum>
"builtin.module"() ({
  "tt.func"() <{sym_name = "k", function_type = (tensor<128x64xf16, #sum>, !p, !s, !o, !new, i32) -> ()}> ({
  ^bb0(%q: tensor<128x64xf16, #sum>, %out: !p, %none: !s, %init: !o, %new: !new, %n: i32):
    %zero = "arith.constant"() <{value = 0 : i32}> : () -> i32
    %step = "arith.constant"() <{value = 32 : i32}> : () -> i32
    %own = "ttg.local_alloc"(%q) : (tensor<128x64xf16, #sum>) -> !m
    %keys = "ttg.local_alloc"() : () -> !ks
    %one = "ttg.local_alloc"() : () -> !k
    %sum = "scf.for"(%zero, %n, %step, %init) ({
    ^bb1(%at: i32, %acc: !o):
      %key = "ttg.memdesc_index"(%keys, %zero) : (!ks, i32) -> !k
      %kt = "ttg.memdesc_trans"(%key) <{order = array<i32: 1, 0>}> : (!k) -> !t
      %d = "ttg.dot"(%own, %kt, %none) <{product = #tw.product<"wgmma 64x32x16, warps 4x1, a shared, b shared">, inputPrecision = 0 : i32, maxNumImpreciseAcc = 0 : i32}> : (!m, !t, !s) -> !s
      %e = "math.exp2"(%d) : (!s) -> !s
      %vt = "ttg.memdesc_trans"(%one) <{order = array<i32: 1, 0>}> : (!k) -> !t
      %f = "ttg.dot"(%own, %vt, %none) <{product = #tw.product<"wgmma 64x32x16, warps 4x1, a shared, b shared">, inputPrecision = 0 : i32, maxNumImpreciseAcc = 0 : i32}> : (!m, !t, !s) -> !s
      %g = "arith.mulf"(%e, %f) <{fastmath = #arith.fastmath<none>}> : (!s, !s) -> !s
      %p = "arith.truncf"(%g) : (!s) -> !h
      %h = "ttg.dot"(%p, %key, %acc) <{product = #tw.product<"wgmma 64x64x16, warps 4x1, a registers, b shared">, inputPrecision = 0 : i32, maxNumImpreciseAcc = 0 : i32}> : (!h, !k, !o) -> !o
      "scf.yield"(%h) : (!o) -> ()
    }) : (i32, i32, i32, !o) -> !o
    "tt.store"(%out, %sum) <{cache = 1 : i32, evict = 1 : i32}> : (!p, !o) -> ()
    "tt.return"() : () -> ()
  }) : () -> ()
}) : () -> ()
