// PASS: widen-k-loops
// Masks that end with the loop: its last deep step takes the rest, and no loop stands behind it.
//
// CHECK: %[[SUM:.*]] = "scf.for"({{.*}}) ({
// CHECK-NEXT: ^bb0(%{{.*}}: i64, %{{.*}}: tensor<16x16xf32>):
// CHECK: "tt.dot"({{.*}}) <{{.*}}(tensor<16x128xf32>, tensor<128x16xf32>, tensor<16x16xf32>)
// CHECK-NOT: "scf.for"
// CHECK: "tt.store"(%p, %[[SUM]])

!pa = tensor<16x16x!tt.ptr<f32>>
!t = tensor<16x16xf32>
!i = tensor<16x16xi32>
!m = tensor<16x16xi1>
"builtin.module"() ({
  "tt.func"() <{sym_name = "k", function_type = (!tt.ptr<f32>, !tt.ptr<f32>, i32, i32) -> ()}> ({
  ^bb0(%x: !tt.ptr<f32>, %y: !tt.ptr<f32>, %n: i32, %w: i32):
    %zero = "arith.constant"() <{value = 0 : i32}> : () -> i32
    %step = "arith.constant"() <{value = 16 : i32}> : () -> i32
    %acc = "arith.constant"() <{value = dense<0.0> : !t}> : () -> !t
    %r = "tt.make_range"() <{start = 0 : i32, end = 16 : i32}> : () -> tensor<16xi32>
    %r0 = "tt.expand_dims"(%r) <{axis = 1 : i32}> : (tensor<16xi32>) -> tensor<16x1xi32>
    %rows = "tt.broadcast"(%r0) : (tensor<16x1xi32>) -> !i
    %r1 = "tt.expand_dims"(%r) <{axis = 0 : i32}> : (tensor<16xi32>) -> tensor<1x16xi32>
    %columns = "tt.broadcast"(%r1) : (tensor<1x16xi32>) -> !i
    %ws = "tt.splat"(%w) : (i32) -> !i
    %down = "arith.muli"(%rows, %ws) : (!i, !i) -> !i
    %at = "arith.addi"(%down, %columns) : (!i, !i) -> !i
    %xs = "tt.splat"(%x) : (!tt.ptr<f32>) -> !pa
    %p = "tt.addptr"(%xs, %at) : (!pa, !i) -> !pa
    %ys = "tt.splat"(%y) : (!tt.ptr<f32>) -> !pa
    %q = "tt.addptr"(%ys, %at) : (!pa, !i) -> !pa
    %sum = "scf.for"(%zero, %n, %step, %acc) ({
    ^bb0(%k: i32, %s: !t):
      %left = "arith.subi"(%n, %k) : (i32, i32) -> i32
      %lefts = "tt.splat"(%left) : (i32) -> !i
      %in = "arith.cmpi"(%columns, %lefts) <{predicate = 2 : i64}> : (!i, !i) -> !m
      %in2 = "arith.cmpi"(%rows, %lefts) <{predicate = 2 : i64}> : (!i, !i) -> !m
      %ks = "tt.splat"(%k) : (i32) -> !i
      %pk = "tt.addptr"(%p, %ks) : (!pa, !i) -> !pa
      %a = "tt.load"(%pk, %in, %acc) <{operandSegmentSizes = array<i32: 1, 1, 1>}> : (!pa, !m, !t) -> !t
      %kw = "arith.muli"(%k, %w) : (i32, i32) -> i32
      %kws = "tt.splat"(%kw) : (i32) -> !i
      %qk = "tt.addptr"(%q, %kws) : (!pa, !i) -> !pa
      %b = "tt.load"(%qk, %in2, %acc) <{operandSegmentSizes = array<i32: 1, 1, 1>}> : (!pa, !m, !t) -> !t
      %d = "tt.dot"(%a, %b, %s) <{inputPrecision = 2 : i32, maxNumImpreciseAcc = 0 : i32}> : (!t, !t, !t) -> !t
      "scf.yield"(%d) : (!t) -> ()
    }) : (i32, i32, i32, !t) -> !t
    "tt.store"(%p, %sum) : (!pa, !t) -> ()
    "tt.return"() : () -> ()
  }) : () -> ()
}) : () -> ()
