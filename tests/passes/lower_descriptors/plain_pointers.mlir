// PASS: lower-descriptors
// Accesses through plain pointers are none of its business.
//
// CHECK: ^
// CHECK-NEXT: %x = "tt.load"(%p)
// CHECK-NEXT: "tt.store"(%p, %x)
// CHECK-NEXT: "tt.return"

!v = tensor<64xf32>
!p = tensor<64x!tt.ptr<f32>>
"builtin.module"() ({
  "tt.func"() <{sym_name = "k", function_type = (!p) -> ()}> ({
  ^bb0(%p: !p):
    %x = "tt.load"(%p) <{operandSegmentSizes = array<i32: 1, 0, 0>}> : (!p) -> !v
    "tt.store"(%p, %x) : (!p, !v) -> ()
    "tt.return"() : () -> ()
  }) : () -> ()
}) : () -> ()
