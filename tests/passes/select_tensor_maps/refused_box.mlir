// ERROR: select-tensor-maps
// A box is refused where the engine cannot make the access at all, with the reason for that.
//
// CHECK: PlanRefused: error[PlanRefused]: descriptor_load: the box `64x64, swizzle 128` is refused: the last index is not known to be a multiple of 16 bytes
// CHECK: help: remove the annotation, and the compiler decides

!d = !tt.tensordesc<tensor<64x64xf16>>
!t = tensor<64x64xf16>
"builtin.module"() ({
  "tt.func"() <{sym_name = "k", function_type = (!tt.ptr<f16>, i32, i32, i64, i32) -> ()}> ({
  ^bb0(%p: !tt.ptr<f16>, %m: i32, %n: i32, %w: i64, %i: i32):
    %one = "arith.constant"() <{value = 1 : i64}> : () -> i64
    %d = "tt.make_tensor_descriptor"(%p, %m, %n, %w, %one) <{padding = 1 : i32, operandSegmentSizes = array<i32: 1, 2, 2>}> : (!tt.ptr<f16>, i32, i32, i64, i64) -> !d
    %x = "tt.descriptor_load"(%d, %i, %i) {ttng.box = #ttng.box<"64x64, swizzle 128">} : (!d, i32, i32) -> !t
    "tt.print"(%x) <{prefix = "x", hex = false, isSigned = array<i32: 0>}> : (!t) -> ()
    "tt.return"() : () -> ()
  }) : () -> ()
}) : () -> ()
