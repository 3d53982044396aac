// PASS: select-tensor-maps decide-products decide-accesses decide-schedule{num_stages=3} verify-plan decide-layouts assign-layouts stage-tensor-maps join-waits mark-visible stage-operands decide-copies fit-stages
// Three slots of 68 KiB do not fit beside a conversion of 64 KiB; two do.
//
// CHECK: tw.schedule = #tw.schedule<"ring ring0 tiles load#1 load#2 slots 2 tma release wait
// CHECK-SAME: 2 slots, not 3: shared memory has no room for more

!x = tensor<32x128xf16>
!y = tensor<256x128xf16>
!t = tensor<128x256xf16>
!p = tensor<32x256xf32>
!q = tensor<32x256xf16>
!u = tensor<256x32xf16>
!w = tensor<32x64xf16>
!o = tensor<256x64xf32>
"builtin.module"() ({
  "tt.func"() <{sym_name = "k", sym_visibility = "public", function_type = (!tt.ptr<f16>, !tt.ptr<f16>, !tt.ptr<f16>, !tt.ptr<f32>, i32) -> ()}> ({
  ^bb0(%a: !tt.ptr<f16>, %b: !tt.ptr<f16>, %v: !tt.ptr<f16>, %out: !tt.ptr<f32>, %n: i32):
    %zero = "arith.constant"() <{value = 0 : i32}> : () -> i32
    %one = "arith.constant"() <{value = 1 : i32}> : () -> i32
    %many = "arith.constant"() <{value = 65536 : i32}> : () -> i32
    %wide = "arith.constant"() <{value = 1024 : i64}> : () -> i64
    %next = "arith.constant"() <{value = 1 : i64}> : () -> i64
    %none = "arith.constant"() <{value = dense<0.0> : !p}> : () -> !p
    %init = "arith.constant"() <{value = dense<0.0> : !o}> : () -> !o
    %da = "tt.make_tensor_descriptor"(%a, %many, %many, %wide, %next) <{operandSegmentSizes = array<i32: 1, 2, 2>}> : (!tt.ptr<f16>, i32, i32, i64, i64) -> !tt.tensordesc<!x>
    %db = "tt.make_tensor_descriptor"(%b, %many, %many, %wide, %next) <{operandSegmentSizes = array<i32: 1, 2, 2>}> : (!tt.ptr<f16>, i32, i32, i64, i64) -> !tt.tensordesc<!y>
    %dv = "tt.make_tensor_descriptor"(%v, %many, %many, %wide, %next) <{operandSegmentSizes = array<i32: 1, 2, 2>}> : (!tt.ptr<f16>, i32, i32, i64, i64) -> !tt.tensordesc<!w>
    %do = "tt.make_tensor_descriptor"(%out, %many, %many, %wide, %next) <{operandSegmentSizes = array<i32: 1, 2, 2>}> : (!tt.ptr<f32>, i32, i32, i64, i64) -> !tt.tensordesc<!o>
    %x = "tt.descriptor_load"(%da, %zero, %zero) : (!tt.tensordesc<!x>, i32, i32) -> !x
    %sum = "scf.for"(%zero, %n, %one, %init) ({
    ^bb1(%k: i32, %acc: !o):
      %y = "tt.descriptor_load"(%db, %k, %zero) : (!tt.tensordesc<!y>, i32, i32) -> !y
      %t = "tt.trans"(%y) <{order = array<i32: 1, 0>}> : (!y) -> !t
      %s = "tt.dot"(%x, %t, %none) <{inputPrecision = 0 : i32, maxNumImpreciseAcc = 0 : i32}> : (!x, !t, !p) -> !p
      %q = "arith.truncf"(%s) : (!p) -> !q
      %u = "tt.trans"(%q) <{order = array<i32: 1, 0>}> : (!q) -> !u
      %w = "tt.descriptor_load"(%dv, %k, %zero) : (!tt.tensordesc<!w>, i32, i32) -> !w
      %d = "tt.dot"(%u, %w, %acc) <{inputPrecision = 0 : i32, maxNumImpreciseAcc = 0 : i32}> : (!u, !w, !o) -> !o
      "scf.yield"(%d) : (!o) -> ()
    }) : (i32, i32, i32, !o) -> !o
    "tt.descriptor_store"(%do, %sum, %zero, %zero) : (!tt.tensordesc<!o>, !o, i32, i32) -> ()
    "tt.return"() : () -> ()
  }) : () -> ()
}) : () -> ()
