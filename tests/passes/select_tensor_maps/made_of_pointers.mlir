// PASS: select-tensor-maps
// Where the copy engine cannot start, at an index that may be no multiple of 16 bytes, the access
// is made of pointers, and a remark on the kernel says why.
//
// CHECK-NOT: ttng.tensor_map
// CHECK: "tt.load"({{.*}}(tensor<64x64x!tt.ptr<f16>>, tensor<64x64xi1>, tensor<64x64xf16>)
// CHECK: {remarks = ["{{.*}}made_of_pointers.mlir:{{.*}} the load through a descriptor is made of pointers: the last index is not known to be a multiple of 16 bytes"]}

!d = !tt.tensordesc<tensor<64x64xf16>>
!t = tensor<64x64xf16>
"builtin.module"() ({
  "tt.func"() <{sym_name = "k", function_type = (!tt.ptr<f16>, i32, i32, i64, i32) -> ()}> ({
  ^bb0(%p: !tt.ptr<f16>, %m: i32, %n: i32, %w: i64, %i: i32):
    %one = "arith.constant"() <{value = 1 : i64}> : () -> i64
    %d = "tt.make_tensor_descriptor"(%p, %m, %n, %w, %one) <{padding = 1 : i32, operandSegmentSizes = array<i32: 1, 2, 2>}> : (!tt.ptr<f16>, i32, i32, i64, i64) -> !d
    %x = "tt.descriptor_load"(%d, %i, %i) : (!d, i32, i32) -> !t
    "tt.print"(%x) <{prefix = "x", hex = false, isSigned = array<i32: 0>}> : (!t) -> ()
    "tt.return"() : () -> ()
  }) : () -> ()
}) : () -> ()
