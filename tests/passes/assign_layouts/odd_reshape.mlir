// ERROR: decide-accesses decide-layouts verify-layouts assign-layouts
// Three columns are an odd part of a row: no layout of the tile is one of its flat order.
// CHECK: error[UnsupportedLayout]: (64, 3) as (192,) is no layout without moving elements
// CHECK: odd_reshape.mlir:11, col 10
// CHECK: help: convert to a layout whose repeats are along the first dim, then reshape
!p = tensor<64x3x!tt.ptr<i32>>
"builtin.module"() ({
  "tt.func"() <{sym_name = "k", function_type = (!tt.ptr<i32>) -> ()}> ({
  ^bb0(%base: !tt.ptr<i32>):
    %r = "tt.make_range"() <{start = 0 : i32, end = 192 : i32}> : () -> tensor<192xi32>
    %v = "tt.reshape"(%r) : (tensor<192xi32>) -> tensor<64x3xi32>
    %p = "tt.splat"(%base) : (!tt.ptr<i32>) -> !p
    "tt.store"(%p, %v) : (!p, tensor<64x3xi32>) -> ()
    "tt.return"() : () -> ()
  }) : () -> ()
}) : () -> ()
