// PASS: insert-checks
// Each access is asserted to lie within its argument, whose bounds are two new parameters, and
// is masked off where it does not.
//
// CHECK: function_type = (!tt.ptr<f32>, i64, i64) -> ()
// CHECK: "tt.assert"({{.*}}kind = "overflow"
// CHECK: "tt.assert"({{.*}}kind = "bounds"
// CHECK: "tt.load"(%p, %[[OK:.*]]) <{{.*}}array<i32: 1, 1, 0>
// CHECK: "tt.assert"({{.*}}message = "store to
// CHECK: "tt.store"(%p, %v, %{{.*}})

!t = tensor<64xf32>
!p = tensor<64x!tt.ptr<f32>>
!i = tensor<64xi32>
"builtin.module"() ({
  "tt.func"() <{sym_name = "k", function_type = (!tt.ptr<f32>) -> ()}> ({
  ^bb0(%x: !tt.ptr<f32>):
    %i = "tt.make_range"() <{start = 0 : i32, end = 64 : i32}> : () -> !i
    %s = "tt.splat"(%x) : (!tt.ptr<f32>) -> !p
    %p = "tt.addptr"(%s, %i) : (!p, !i) -> !p
    %v = "tt.load"(%p) <{operandSegmentSizes = array<i32: 1, 0, 0>}> : (!p) -> !t
    "tt.store"(%p, %v) : (!p, !t) -> ()
    "tt.return"() : () -> ()
  }) : () -> ()
}) : () -> ()
