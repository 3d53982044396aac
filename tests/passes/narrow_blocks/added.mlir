// PASS: select-tensor-maps narrow-blocks
// What is added to a head's rows is added as the tile that it was.
//
// CHECK: %[[T:.*]] = "tt.descriptor_load"(%{{.*}}, %b, %j, %i, %zero) {{.*}} -> tensor<64x32xf16>
// CHECK: "tt.descriptor_reduce"(%{{.*}}, %{{.*}}, %b, %j, %i, %zero) <{kind = 5 : i32}>
// CHECK-NOT: tt.reshape

!w = tensor<1x64x1x32xf16>
!t = tensor<64x32xf16>
"builtin.module"() ({
  "tt.func"() <{sym_name = "k", sym_visibility = "public", function_type = (!tt.ptr<f16>, !tt.ptr<f16>, i32, i32) -> ()}> ({
  ^bb0(%x: !tt.ptr<f16>, %y: !tt.ptr<f16>, %n: i32, %h: i32):
    %zero = "arith.constant"() <{value = 0 : i32}> : () -> i32
    %one = "arith.constant"() <{value = 1 : i64}> : () -> i64
    %row = "arith.constant"() <{value = 256 : i64}> : () -> i64
    %head = "arith.constant"() <{value = 32 : i64}> : () -> i64
    %far = "arith.constant"() <{value = 65536 : i64}> : () -> i64
    %b = "tt.get_program_id"() <{axis = 0 : i32}> : () -> i32
    %i = "tt.get_program_id"() <{axis = 1 : i32}> : () -> i32
    %j = "tt.get_program_id"() <{axis = 2 : i32}> : () -> i32
    %dx = "tt.make_tensor_descriptor"(%x, %n, %n, %h, %h, %far, %row, %head, %one) <{operandSegmentSizes = array<i32: 1, 4, 4>}> : (!tt.ptr<f16>, i32, i32, i32, i32, i64, i64, i64, i64) -> !tt.tensordesc<!w>
    %dy = "tt.make_tensor_descriptor"(%y, %n, %n, %h, %h, %far, %row, %head, %one) <{operandSegmentSizes = array<i32: 1, 4, 4>}> : (!tt.ptr<f16>, i32, i32, i32, i32, i64, i64, i64, i64) -> !tt.tensordesc<!w>
    %v = "tt.descriptor_load"(%dx, %b, %i, %j, %zero) : (!tt.tensordesc<!w>, i32, i32, i32, i32) -> !w
    %t = "tt.reshape"(%v) : (!w) -> !t
    %u = "arith.addf"(%t, %t) <{fastmath = #arith.fastmath<none>}> : (!t, !t) -> !t
    %s = "tt.reshape"(%u) : (!t) -> !w
    "tt.descriptor_reduce"(%dy, %s, %b, %i, %j, %zero) <{kind = 5 : i32}> : (!tt.tensordesc<!w>, !w, i32, i32, i32, i32) -> ()
    "tt.return"() : () -> ()
  }) : () -> ()
}) : () -> ()
