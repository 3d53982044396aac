// PASS: emit-nests
// PASS(PLACED): emit-nests place-buffers
// A tile that two nests need lives in the arena; place-buffers gives it its place.
//
// CHECK: "cpu.alloc"() <{
// CHECK-NOT: offset_bytes
// CHECK: "cpu.nest"
// PLACED: "cpu.alloc"() <{{.*}}offset_bytes = 0

!v = tensor<64xf32>
!p = tensor<64x!tt.ptr<f32>>
!i = tensor<64xi32>
!b = tensor<64x64xf32>
"builtin.module"() ({
  "tt.func"() <{sym_name = "k", function_type = (!tt.ptr<f32>, !tt.ptr<f32>) -> ()}> ({
  ^bb0(%x: !tt.ptr<f32>, %y: !tt.ptr<f32>):
    %i = "tt.make_range"() <{start = 0 : i32, end = 64 : i32}> : () -> !i
    %ps = "tt.splat"(%x) : (!tt.ptr<f32>) -> !p
    %p = "tt.addptr"(%ps, %i) : (!p, !i) -> !p
    %v = "tt.load"(%p) <{operandSegmentSizes = array<i32: 1, 0, 0>}> : (!p) -> !v
    %s = "tt.reduce"(%v) <{axis = 0 : i32}> ({
    ^bb0(%l: f32, %r: f32):
      %m = "arith.maxnumf"(%l, %r) : (f32, f32) -> f32
      "tt.reduce.return"(%m) : (f32) -> ()
    }) : (!v) -> f32
    %e = "math.exp"(%v) : (!v) -> !v
    %t = "tt.reduce"(%e) <{axis = 0 : i32}> ({
    ^bb0(%l: f32, %r: f32):
      %m = "arith.addf"(%l, %r) : (f32, f32) -> f32
      "tt.reduce.return"(%m) : (f32) -> ()
    }) : (!v) -> f32
    %ss = "arith.addf"(%s, %t) : (f32, f32) -> f32
    %u = "tt.splat"(%ss) : (f32) -> !v
    %w = "arith.divf"(%e, %u) : (!v, !v) -> !v
    %qs = "tt.splat"(%y) : (!tt.ptr<f32>) -> !p
    %q = "tt.addptr"(%qs, %i) : (!p, !i) -> !p
    "tt.store"(%q, %w) : (!p, !v) -> ()
    "tt.return"() : () -> ()
  }) : () -> ()
}) : () -> ()
