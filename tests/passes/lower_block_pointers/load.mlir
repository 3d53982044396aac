// PASS: lower-block-pointers
// A load through a block pointer becomes one through a tile of pointers, masked where its
// dimension is checked, and padded as asked.
//
// CHECK-NOT: tt.make_tensor_ptr
// CHECK: "tt.load"({{.*}}) <{{.*}}array<i32: 1, 1, 1>
// CHECK-SAME: (tensor<16x8x!tt.ptr<f32>>, tensor<16x8xi1>, tensor<16x8xf32>) -> tensor<16x8xf32>
// CHECK: "tt.store"(%{{[^,]*}}, %x)
// CHECK-SAME: (tensor<16x8x!tt.ptr<f32>>, tensor<16x8xf32>) -> ()

!b = !tt.ptr<tensor<16x8xf32>>
"builtin.module"() ({
  "tt.func"() <{sym_name = "k", function_type = (!tt.ptr<f32>, i64, i64, i32) -> ()}> ({
  ^bb0(%p: !tt.ptr<f32>, %m: i64, %n: i64, %off: i32):
    %one = "arith.constant"() <{value = 1 : i64}> : () -> i64
    %b = "tt.make_tensor_ptr"(%p, %m, %n, %n, %one, %off, %off) <{order = array<i32: 1, 0>, operandSegmentSizes = array<i32: 1, 2, 2, 2>}> : (!tt.ptr<f32>, i64, i64, i64, i64, i32, i32) -> !b
    %x = "tt.load"(%b) <{boundaryCheck = array<i32: 0>, padding = 1 : i32, operandSegmentSizes = array<i32: 1, 0, 0>}> : (!b) -> tensor<16x8xf32>
    "tt.store"(%b, %x) <{boundaryCheck = array<i32>}> : (!b, tensor<16x8xf32>) -> ()
    "tt.return"() : () -> ()
  }) : () -> ()
}) : () -> ()
