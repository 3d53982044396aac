// PASS: emit-nests
// A remainder lies between 0 and its divisor: where what it indexes may be hit by the store, the
// launch's addresses tell, and the buffer is for those that are not apart.
//
// CHECK: %[[BUFFER:.*]] = "cpu.alloc"
// CHECK: %[[IS_APART:.*]] = "cpu.nest"
// CHECK: "arith.select"(%[[APART:.*]], %{{.*}}, %{{.*}}) : (i1, !tt.ptr<f32>, !tt.ptr<f32>)
// CHECK: "cpu.yield"(%[[APART]])
// CHECK: "scf.if"(%[[IS_APART]])
// CHECK: summary = "copy of redirected store"

!v = tensor<64xf32>
!p = tensor<64x!tt.ptr<f32>>
!i = tensor<64xi32>
"builtin.module"() ({
  "tt.func"() <{sym_name = "k", function_type = (!tt.ptr<f32>, !tt.ptr<f32>) -> ()}> ({
  ^bb0(%x: !tt.ptr<f32>, %y: !tt.ptr<f32>):
    %i = "tt.make_range"() <{start = 0 : i32, end = 64 : i32}> : () -> !i
    %d = "arith.constant"() <{value = dense<19> : !i}> : () -> !i
    %j = "arith.remsi"(%i, %d) : (!i, !i) -> !i
    %ps = "tt.splat"(%x) : (!tt.ptr<f32>) -> !p
    %p = "tt.addptr"(%ps, %j) : (!p, !i) -> !p
    %v = "tt.load"(%p) <{operandSegmentSizes = array<i32: 1, 0, 0>}> : (!p) -> !v
    %s = "arith.addf"(%v, %v) : (!v, !v) -> !v
    %qs = "tt.splat"(%y) : (!tt.ptr<f32>) -> !p
    %q = "tt.addptr"(%qs, %i) : (!p, !i) -> !p
    "tt.store"(%q, %s) : (!p, !v) -> ()
    "tt.return"() : () -> ()
  }) : () -> ()
}) : () -> ()
