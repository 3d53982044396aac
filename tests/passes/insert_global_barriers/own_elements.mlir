// PASS: insert-global-barriers
// PASS(SHARED): insert-global-barriers{may_overlap=true}
// No barrier where each thread loads just what it stores, or where the arguments differ.
//
// CHECK-NOT: ttg.barrier
// CHECK: "tt.return"
//
// Where the arguments may be one array the second store waits for the load.
//
// SHARED: "tt.load"
// SHARED-NEXT: "ttg.barrier"
// SHARED-NEXT: "tt.store"

#l = #ttg.linear<"register(1 2 4) lane(8 16 32 64 128) warp(256 512) atom(1024)">
!p = tensor<1024x!tt.ptr<f16>, #l>
!v = tensor<1024xf16, #l>
"builtin.module"() ({
  "tt.func"() <{sym_name = "k", function_type = (!tt.ptr<f16>, !tt.ptr<f16>, !v) -> ()}> ({
  ^bb0(%x: !tt.ptr<f16>, %y: !tt.ptr<f16>, %v: !v):
    %i = "tt.make_range"() <{start = 0 : i32, end = 1024 : i32}> : () -> tensor<1024xi32, #l>
    %xs = "tt.splat"(%x) : (!tt.ptr<f16>) -> !p
    %p = "tt.addptr"(%xs, %i) : (!p, tensor<1024xi32, #l>) -> !p
    %ys = "tt.splat"(%y) : (!tt.ptr<f16>) -> !p
    %q = "tt.addptr"(%ys, %i) : (!p, tensor<1024xi32, #l>) -> !p
    "tt.store"(%p, %v) : (!p, !v) -> ()
    %w = "tt.load"(%p) <{operandSegmentSizes = array<i32: 1, 0, 0>}> : (!p) -> !v
    "tt.store"(%q, %w) : (!p, !v) -> ()
    "tt.return"() : () -> ()
  }) : () -> ()
}) : () -> ()
