// ERROR: lower-descriptors
// A loop's first and later rounds may not give descriptors that read differently out of bounds.
//
// CHECK: error[MalformedText]: scf.for: a descriptor is padded in one way or another
// CHECK: help: give it one `padding` on every way

!d = !tt.tensordesc<tensor<16xf16>>
"builtin.module"() ({
  "tt.func"() <{sym_name = "k", function_type = (!tt.ptr<f16>, i32, i1) -> ()}> ({
  ^bb0(%p: !tt.ptr<f16>, %n: i32, %c: i1):
    %one = "arith.constant"() <{value = 1 : i64}> : () -> i64
    %0 = "arith.constant"() <{value = 0 : i32}> : () -> i32
    %1 = "arith.constant"() <{value = 1 : i32}> : () -> i32
    %a = "tt.make_tensor_descriptor"(%p, %n, %one) <{padding = 1 : i32, operandSegmentSizes = array<i32: 1, 1, 1>}> : (!tt.ptr<f16>, i32, i64) -> !d
    %d = "scf.for"(%0, %n, %1, %a) ({
    ^bb1(%i: i32, %e: !d):
      %b = "tt.make_tensor_descriptor"(%p, %n, %one) <{padding = 0 : i32, operandSegmentSizes = array<i32: 1, 1, 1>}> : (!tt.ptr<f16>, i32, i64) -> !d
      "scf.yield"(%b) : (!d) -> ()
    }) : (i32, i32, i32, !d) -> !d
    %x = "tt.descriptor_load"(%d, %0) : (!d, i32) -> tensor<16xf16>
    "tt.descriptor_store"(%d, %x, %0) : (!d, tensor<16xf16>, i32) -> ()
    "tt.return"() : () -> ()
  }) : () -> ()
}) : () -> ()
