// PASS: insert-global-barriers
// A store, then a load of the same argument through other pointers: another thread may have
// written the element, so all warps wait in between.
//
// CHECK: "tt.store"(%p, %v)
// CHECK-NEXT: "ttg.barrier"
// CHECK-NEXT: "tt.load"(%q)
// CHECK-NOT: ttg.barrier

#l = #ttg.linear<"register(1 2 4) lane(8 16 32 64 128) warp(256 512) atom(1024)">
!p = tensor<1024x!tt.ptr<f16>, #l>
!v = tensor<1024xf16, #l>
"builtin.module"() ({
  "tt.func"() <{sym_name = "k", function_type = (!tt.ptr<f16>, tensor<1024xi32, #l>, tensor<1024xi32, #l>, !v, !tt.ptr<f16>) -> ()}> ({
  ^bb0(%x: !tt.ptr<f16>, %i: tensor<1024xi32, #l>, %j: tensor<1024xi32, #l>, %v: !v, %y: !tt.ptr<f16>):
    %xs = "tt.splat"(%x) : (!tt.ptr<f16>) -> !p
    %p = "tt.addptr"(%xs, %i) : (!p, tensor<1024xi32, #l>) -> !p
    %q = "tt.addptr"(%xs, %j) : (!p, tensor<1024xi32, #l>) -> !p
    "tt.store"(%p, %v) : (!p, !v) -> ()
    %w = "tt.load"(%q) <{operandSegmentSizes = array<i32: 1, 0, 0>}> : (!p) -> !v
    %ys = "tt.splat"(%y) : (!tt.ptr<f16>) -> !p
    "tt.store"(%ys, %w) : (!p, !v) -> ()
    "tt.return"() : () -> ()
  }) : () -> ()
}) : () -> ()
