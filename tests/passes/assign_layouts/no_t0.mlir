// ERROR: decide-layouts assign-layouts
// Tiles that have a layout already are no T0r.
//
// CHECK: error[MalformedText]: invalid T0r: tt.func at no_t0.mlir:13 has a value of type
// CHECK-SAME: a tile has no layout
// CHECK-NEXT: no_t0.mlir:13, col 3
// CHECK-NEXT: "tt.func"
// CHECK-NEXT: {{.*\^}}
// CHECK-NEXT: help: the first pass takes T0r

!t = tensor<64xf32, #ttg.linear<"register(1) lane(2 4 8 16 32) atom(64)">>
"builtin.module"() ({
  "tt.func"() <{sym_name = "k", function_type = (!t) -> ()}> ({
  ^bb0(%x: !t):
    %y = "arith.addf"(%x, %x) : (!t, !t) -> !t
    "tt.return"() : () -> ()
  }) : () -> ()
}) : () -> ()
