// PASS: select-tensor-maps form-roles
// Two rings of one loop are in use at once: no memory is shared, and the kernel stays one program.
//
// CHECK: rings `a` and `b` cannot have one memory: `b` is filled while slots of `a` are in use
// CHECK-NOT: tw.roles

!a = tensor<128x64xf16>
!b = tensor<64x64xf16>
!c = tensor<128x64xf32>
"builtin.module"() ({
  "tt.func"() <{sym_name = "k", sym_visibility = "public", function_type = (!tt.ptr<f16>, !tt.ptr<f16>, !tt.ptr<f32>, i32, i32) -> ()}> ({
  ^bb0(%x: !tt.ptr<f16>, %y: !tt.ptr<f16>, %z: !tt.ptr<f32>, %n: i32, %m: i32):
    %zero = "arith.constant"() <{value = 0 : i32}> : () -> i32
    %step = "arith.constant"() <{value = 64 : i32}> : () -> i32
    %one = "arith.constant"() <{value = 1 : i64}> : () -> i64
    %wide = "arith.constant"() <{value = 1024 : i64}> : () -> i64
    %init = "arith.constant"() <{value = dense<0.0> : !c}> : () -> !c
    %dx = "tt.make_tensor_descriptor"(%x, %m, %n, %wide, %one) <{operandSegmentSizes = array<i32: 1, 2, 2>}> : (!tt.ptr<f16>, i32, i32, i64, i64) -> !tt.tensordesc<!a>
    %dy = "tt.make_tensor_descriptor"(%y, %n, %m, %wide, %one) <{operandSegmentSizes = array<i32: 1, 2, 2>}> : (!tt.ptr<f16>, i32, i32, i64, i64) -> !tt.tensordesc<!b>
    %dz = "tt.make_tensor_descriptor"(%z, %m, %m, %wide, %one) <{operandSegmentSizes = array<i32: 1, 2, 2>}> : (!tt.ptr<f32>, i32, i32, i64, i64) -> !tt.tensordesc<!c>
    %sum = "scf.for"(%zero, %n, %step, %init) ({
    ^bb1(%k: i32, %acc: !c):
      %a = "tt.descriptor_load"(%dx, %zero, %k) : (!tt.tensordesc<!a>, i32, i32) -> !a
      %b = "tt.descriptor_load"(%dy, %k, %zero) : (!tt.tensordesc<!b>, i32, i32) -> !b
      %d = "tt.dot"(%a, %b, %acc) <{inputPrecision = 0 : i32, maxNumImpreciseAcc = 0 : i32}> : (!a, !b, !c) -> !c
      "scf.yield"(%d) : (!c) -> ()
    }) : (i32, i32, i32, !c) -> !c
    %total = "scf.for"(%zero, %n, %step, %sum) ({
    ^bb2(%k2: i32, %acc2: !c):
      %a2 = "tt.descriptor_load"(%dx, %zero, %k2) : (!tt.tensordesc<!a>, i32, i32) -> !a
      %b2 = "tt.descriptor_load"(%dy, %k2, %zero) : (!tt.tensordesc<!b>, i32, i32) -> !b
      %d2 = "tt.dot"(%a2, %b2, %acc2) <{inputPrecision = 0 : i32, maxNumImpreciseAcc = 0 : i32}> : (!a, !b, !c) -> !c
      "scf.yield"(%d2) : (!c) -> ()
    }) : (i32, i32, i32, !c) -> !c
    "tt.descriptor_store"(%dz, %total, %zero, %zero) : (!tt.tensordesc<!c>, !c, i32, i32) -> ()
    "tt.return"() : () -> ()
  }) {tw.schedule = #tw.schedule<"roles load | math; ring a tiles load#0 slots 2; ring b tiles load#1 slots 2 shares a; ring cd tiles load#2 load#3 slots 2">} : () -> ()
}) : () -> ()
