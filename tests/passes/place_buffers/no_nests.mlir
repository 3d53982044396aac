// ERROR: place-buffers
// Tiles are no nests: the pass that places the buffers of nests does not take them.
//
// CHECK: error[MalformedText]: invalid C1: tt.make_range at no_nests.mlir:14 is no op of this level
// CHECK-NEXT: no_nests.mlir:14, col 10
// CHECK: help: the first pass takes C1; the passes that lead there go before it

!v = tensor<64xf32>
!p = tensor<64x!tt.ptr<f32>>
!i = tensor<64xi32>
"builtin.module"() ({
  "tt.func"() <{sym_name = "k", function_type = (!tt.ptr<f32>) -> ()}> ({
  ^bb0(%x: !tt.ptr<f32>):
    %i = "tt.make_range"() <{start = 0 : i32, end = 64 : i32}> : () -> !i
    %ps = "tt.splat"(%x) : (!tt.ptr<f32>) -> !p
    %p = "tt.addptr"(%ps, %i) : (!p, !i) -> !p
    %v = "tt.load"(%p) <{operandSegmentSizes = array<i32: 1, 0, 0>}> : (!p) -> !v
    "tt.store"(%p, %v) : (!p, !v) -> ()
    "tt.return"() : () -> ()
  }) : () -> ()
}) : () -> ()
