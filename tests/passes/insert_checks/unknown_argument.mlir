// PASS: insert-checks
// Pointers made of integers belong to no argument: there are no bounds to check.
//
// CHECK-NOT: tt.assert
// CHECK: "tt.load"(%p) <{{.*}}array<i32: 1, 0, 0>

!t = tensor<64xf32>
!p = tensor<64x!tt.ptr<f32>>
"builtin.module"() ({
  "tt.func"() <{sym_name = "k", function_type = (tensor<64xi64>) -> ()}> ({
  ^bb0(%a: tensor<64xi64>):
    %p = "tt.int_to_ptr"(%a) : (tensor<64xi64>) -> !p
    %v = "tt.load"(%p) <{operandSegmentSizes = array<i32: 1, 0, 0>}> : (!p) -> !t
    "tt.store"(%p, %v) : (!p, !t) -> ()
    "tt.return"() : () -> ()
  }) : () -> ()
}) : () -> ()
