// PASS: lower-descriptors
// Accesses through a descriptor become masked ones through pointers: nothing outside of the
// tensor is read or written.
//
// CHECK-NOT: tt.descriptor
// CHECK: "tt.load"({{.*}}) <{{.*}}: (tensor<16x16x!tt.ptr<f16>>, tensor<16x16xi1>, tensor<16x16xf16>)
// CHECK: "tt.store"({{.*}}(tensor<16x16x!tt.ptr<f16>>, tensor<16x16xf16>, tensor<16x16xi1>)
// CHECK-NOT: tt.make_tensor_descriptor

!d = !tt.tensordesc<tensor<16x16xf16>>
"builtin.module"() ({
  "tt.func"() <{sym_name = "k", function_type = (!tt.ptr<f16>, i32, i32, i64, i32) -> ()}> ({
  ^bb0(%p: !tt.ptr<f16>, %m: i32, %n: i32, %w: i64, %i: i32):
    %one = "arith.constant"() <{value = 1 : i64}> : () -> i64
    %d = "tt.make_tensor_descriptor"(%p, %m, %n, %w, %one) <{padding = 1 : i32, operandSegmentSizes = array<i32: 1, 2, 2>}> : (!tt.ptr<f16>, i32, i32, i64, i64) -> !d
    %x = "tt.descriptor_load"(%d, %i, %i) : (!d, i32, i32) -> tensor<16x16xf16>
    "tt.descriptor_store"(%d, %x, %i, %i) : (!d, tensor<16x16xf16>, i32, i32) -> ()
    "tt.return"() : () -> ()
  }) : () -> ()
}) : () -> ()
