// PASS: emit-nests
// Where the store may hit what is still to be loaded, through another argument, it goes to a buffer
// unless the launch's addresses are apart, and is copied behind the nest.
//
// CHECK: %[[BUFFER:.*]] = "cpu.alloc"
// CHECK: %[[IS_APART:.*]] = "cpu.nest"
// CHECK: %[[TO:.*]] = "arith.select"(%[[APART:.*]], %{{.*}}, %{{.*}})
// CHECK-NEXT: "cpu.store"(%[[TO]]
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
    %ps = "tt.splat"(%x) : (!tt.ptr<f32>) -> !p
    %p = "tt.addptr"(%ps, %i) : (!p, !i) -> !p
    %v = "tt.load"(%p) <{operandSegmentSizes = array<i32: 1, 0, 0>}> : (!p) -> !v
    %s = "arith.addf"(%v, %v) : (!v, !v) -> !v
    %qs = "tt.splat"(%y) : (!tt.ptr<f32>) -> !p
    %q = "tt.addptr"(%qs, %i) : (!p, !i) -> !p
    "tt.store"(%q, %s) : (!p, !v) -> ()
    "tt.return"() : () -> ()
  }) : () -> ()
}) : () -> ()
