// PASS: select-tensor-maps
// An annotated box is obeyed; what has another box has another map.
//
// CHECK-DAG: "ttng.tensor_map"{{.*}} {ttng.box = #ttng.box<"32x64, swizzle 128">}
// CHECK-DAG: "ttng.tensor_map"{{.*}} {ttng.box = #ttng.box<"64x64, swizzle 128">}
// CHECK: %x = "tt.descriptor_load"{{.*}} {ttng.box = #ttng.box<"32x64, swizzle 128">}
// CHECK: %y = "tt.descriptor_load"{{.*}} {ttng.box = #ttng.box<"64x64, swizzle 128">}

!d = !tt.tensordesc<tensor<64x64xf16>>
!t = tensor<64x64xf16>
"builtin.module"() ({
  "tt.func"() <{sym_name = "k", function_type = (!tt.ptr<f16>, i32, i32, i64, i32) -> (), arg_attrs = [{tt.divisibility = 16 : i32}, {}, {}, {tt.divisibility = 16 : i32}, {tt.divisibility = 16 : i32}]}> ({
  ^bb0(%p: !tt.ptr<f16>, %m: i32, %n: i32, %w: i64, %i: i32):
    %one = "arith.constant"() <{value = 1 : i64}> : () -> i64
    %d = "tt.make_tensor_descriptor"(%p, %m, %n, %w, %one) <{padding = 1 : i32, operandSegmentSizes = array<i32: 1, 2, 2>}> : (!tt.ptr<f16>, i32, i32, i64, i64) -> !d
    %x = "tt.descriptor_load"(%d, %i, %i) {ttng.box = #ttng.box<"32x64, swizzle 128">} : (!d, i32, i32) -> !t
    "tt.print"(%x) <{prefix = "x", hex = false, isSigned = array<i32: 0>}> : (!t) -> ()
    %y = "tt.descriptor_load"(%d, %i, %i) : (!d, i32, i32) -> !t
    "tt.print"(%y) <{prefix = "y", hex = false, isSigned = array<i32: 0>}> : (!t) -> ()
    "tt.return"() : () -> ()
  }) : () -> ()
}) : () -> ()
