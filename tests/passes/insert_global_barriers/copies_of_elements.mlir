// PASS: insert-global-barriers
// 32 elements, and 128 threads: the copies of an element are loaded before it is stored through
// another argument, at the same elements. Elsewhere arguments do not overlap.
//
// CHECK: "tt.load"
// CHECK-NEXT: "ttg.barrier"
// CHECK-NEXT: "tt.store"
// CHECK-NEXT: "tt.store"
// CHECK-NOT: ttg.barrier

#l = #ttg.linear<"register() lane(1 2 4 8 16) warp(0 0) atom(32)">
!p = tensor<32x!tt.ptr<f16>, #l>
!v = tensor<32xf16, #l>
"builtin.module"() ({
  "tt.func"() <{sym_name = "k", function_type = (!tt.ptr<f16>, !tt.ptr<f16>, !tt.ptr<f16>, i32) -> ()}> ({
  ^bb0(%x: !tt.ptr<f16>, %y: !tt.ptr<f16>, %z: !tt.ptr<f16>, %n: i32):
    %i = "tt.make_range"() <{start = 0 : i32, end = 32 : i32}> : () -> tensor<32xi32, #l>
    %xs = "tt.splat"(%x) : (!tt.ptr<f16>) -> !p
    %p = "tt.addptr"(%xs, %i) : (!p, tensor<32xi32, #l>) -> !p
    %ys = "tt.splat"(%y) : (!tt.ptr<f16>) -> !p
    %q = "tt.addptr"(%ys, %i) : (!p, tensor<32xi32, #l>) -> !p
    %far = "tt.addptr"(%z, %n) : (!tt.ptr<f16>, i32) -> !tt.ptr<f16>
    %fars = "tt.splat"(%far) : (!tt.ptr<f16>) -> !p
    %r = "tt.addptr"(%fars, %i) : (!p, tensor<32xi32, #l>) -> !p
    %w = "tt.load"(%p) <{operandSegmentSizes = array<i32: 1, 0, 0>}> : (!p) -> !v
    "tt.store"(%q, %w) : (!p, !v) -> ()
    "tt.store"(%r, %w) : (!p, !v) -> ()
    "tt.return"() : () -> ()
  }) : () -> ()
}) : () -> ()
