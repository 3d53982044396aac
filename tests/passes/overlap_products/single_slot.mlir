// PASS: select-tensor-maps form-roles decide-products decide-accesses verify-plan decide-layouts assign-layouts stage-channels overlap-products
// A role that waits for the next keys while it reads the only slot of the values would wait for
// ever, where the values are filled first.
//
// CHECK: tw.pipelined = "not overlapped: ring v has a single slot"
// CHECK-NOT: dot_wait

!q = tensor<64x64xf16>
!s = tensor<64x64xf32>
"builtin.module"() ({
  "tt.func"() <{sym_name = "k", sym_visibility = "public", function_type = (!tt.ptr<f16>, !tt.ptr<f16>, !tt.ptr<f16>, !tt.ptr<f32>, i32, i32) -> ()}> ({
  ^bb0(%x: !tt.ptr<f16>, %y: !tt.ptr<f16>, %w: !tt.ptr<f16>, %z: !tt.ptr<f32>, %n: i32, %m: i32):
    %zero = "arith.constant"() <{value = 0 : i32}> : () -> i32
    %step = "arith.constant"() <{value = 64 : i32}> : () -> i32
    %one = "arith.constant"() <{value = 1 : i64}> : () -> i64
    %wide = "arith.constant"() <{value = 1024 : i64}> : () -> i64
    %init = "arith.constant"() <{value = dense<0.0> : !s}> : () -> !s
    %dx = "tt.make_tensor_descriptor"(%x, %m, %n, %wide, %one) <{operandSegmentSizes = array<i32: 1, 2, 2>}> : (!tt.ptr<f16>, i32, i32, i64, i64) -> !tt.tensordesc<!q>
    %dy = "tt.make_tensor_descriptor"(%y, %m, %n, %wide, %one) <{operandSegmentSizes = array<i32: 1, 2, 2>}> : (!tt.ptr<f16>, i32, i32, i64, i64) -> !tt.tensordesc<!q>
    %dw = "tt.make_tensor_descriptor"(%w, %m, %n, %wide, %one) <{operandSegmentSizes = array<i32: 1, 2, 2>}> : (!tt.ptr<f16>, i32, i32, i64, i64) -> !tt.tensordesc<!q>
    %dz = "tt.make_tensor_descriptor"(%z, %m, %m, %wide, %one) <{operandSegmentSizes = array<i32: 1, 2, 2>}> : (!tt.ptr<f32>, i32, i32, i64, i64) -> !tt.tensordesc<!s>
    %a = "tt.descriptor_load"(%dx, %zero, %zero) : (!tt.tensordesc<!q>, i32, i32) -> !q
    %sum = "scf.for"(%zero, %n, %step, %init) ({
    ^bb1(%k: i32, %acc: !s):
      %b = "tt.descriptor_load"(%dy, %k, %zero) : (!tt.tensordesc<!q>, i32, i32) -> !q
      %d = "tt.dot"(%a, %b, %init) <{inputPrecision = 0 : i32, maxNumImpreciseAcc = 0 : i32}> : (!q, !q, !s) -> !s
      %e = "math.exp2"(%d) : (!s) -> !s
      %p = "arith.truncf"(%e) : (!s) -> !q
      %c = "tt.descriptor_load"(%dw, %k, %zero) : (!tt.tensordesc<!q>, i32, i32) -> !q
      %f = "tt.dot"(%p, %c, %acc) <{inputPrecision = 0 : i32, maxNumImpreciseAcc = 0 : i32}> : (!q, !q, !s) -> !s
      "scf.yield"(%f) : (!s) -> ()
    }) : (i32, i32, i32, !s) -> !s
    "tt.descriptor_store"(%dz, %sum, %zero, %zero) : (!tt.tensordesc<!s>, !s, i32, i32) -> ()
    "tt.return"() : () -> ()
  }) {tw.schedule = #tw.schedule<"roles load | math; ring q tiles load#0 slots 1; ring k tiles load#1 slots 2; ring v tiles load#2 slots 1; loop for#0 dot#0 @0.0 dot#1 @1.1 rest @0.2">} : () -> ()
}) : () -> ()
