// PASS: select-tensor-maps form-roles decide-products decide-accesses verify-plan decide-layouts assign-layouts stage-channels stage-tensor-maps place-shared count-rings release-late meet-at-barriers
// Replicas that have each written their part wait for the others at a barrier, and for copies not.
//
// CHECK: %[[AB:.*]] = "ttg.ring"(%{{.*}}) <{ring_name = "ab"
// CHECK: %[[PARTS:.*]] = "ttg.ring"(%{{.*}}) <{ring_name = "parts0"
// CHECK: "ttg.ring_wait"(%[[AB]], %{{.*}}, %{{.*}}) :
// CHECK: "ttg.ring_commit"(%[[PARTS]], %[[S:[0-9]+]])
// CHECK: "ttg.ring_wait"(%[[PARTS]], %[[S]], %{{.*}}) <{meets}>

!a = tensor<128x64xf16>
!b = tensor<64x64xf16>
!w = tensor<128x128xf16>
!h = tensor<128x64xf16>
!c = tensor<128x64xf32>
"builtin.module"() ({
  "tt.func"() <{sym_name = "k", sym_visibility = "public", function_type = (!tt.ptr<f16>, !tt.ptr<f16>, !tt.ptr<f16>, !tt.ptr<f32>, !tt.ptr<f32>, i32, i32) -> ()}> ({
  ^bb0(%x: !tt.ptr<f16>, %y: !tt.ptr<f16>, %w: !tt.ptr<f16>, %z: !tt.ptr<f32>, %v: !tt.ptr<f32>, %n: i32, %m: i32):
    %zero = "arith.constant"() <{value = 0 : i32}> : () -> i32
    %step = "arith.constant"() <{value = 64 : i32}> : () -> i32
    %one = "arith.constant"() <{value = 1 : i64}> : () -> i64
    %wide = "arith.constant"() <{value = 1024 : i64}> : () -> i64
    %init = "arith.constant"() <{value = dense<0.0> : !c}> : () -> !c
    %dx = "tt.make_tensor_descriptor"(%x, %m, %n, %wide, %one) <{operandSegmentSizes = array<i32: 1, 2, 2>}> : (!tt.ptr<f16>, i32, i32, i64, i64) -> !tt.tensordesc<!a>
    %dy = "tt.make_tensor_descriptor"(%y, %n, %m, %wide, %one) <{operandSegmentSizes = array<i32: 1, 2, 2>}> : (!tt.ptr<f16>, i32, i32, i64, i64) -> !tt.tensordesc<!b>
    %dw = "tt.make_tensor_descriptor"(%w, %n, %m, %wide, %one) <{operandSegmentSizes = array<i32: 1, 2, 2>}> : (!tt.ptr<f16>, i32, i32, i64, i64) -> !tt.tensordesc<!w>
    %dz = "tt.make_tensor_descriptor"(%z, %m, %m, %wide, %one) <{operandSegmentSizes = array<i32: 1, 2, 2>}> : (!tt.ptr<f32>, i32, i32, i64, i64) -> !tt.tensordesc<!c>
    %dv = "tt.make_tensor_descriptor"(%v, %m, %m, %wide, %one) <{operandSegmentSizes = array<i32: 1, 2, 2>}> : (!tt.ptr<f32>, i32, i32, i64, i64) -> !tt.tensordesc<!c>
    %all = "tt.descriptor_load"(%dw, %zero, %zero) : (!tt.tensordesc<!w>, i32, i32) -> !w
    %sum = "scf.for"(%zero, %n, %step, %init) ({
    ^bb1(%k: i32, %acc: !c):
      %a = "tt.descriptor_load"(%dx, %zero, %k) : (!tt.tensordesc<!a>, i32, i32) -> !a
      %b = "tt.descriptor_load"(%dy, %k, %zero) : (!tt.tensordesc<!b>, i32, i32) -> !b
      %s = "tt.dot"(%a, %b, %init) <{inputPrecision = 0 : i32, maxNumImpreciseAcc = 0 : i32}> : (!a, !b, !c) -> !c
      %h = "arith.truncf"(%s) : (!c) -> !h
      %d = "tt.dot"(%all, %h, %acc) <{inputPrecision = 0 : i32, maxNumImpreciseAcc = 0 : i32}> : (!w, !h, !c) -> !c
      "scf.yield"(%d) : (!c) -> ()
    }) : (i32, i32, i32, !c) -> !c
    "tt.descriptor_store"(%dz, %sum, %zero, %zero) : (!tt.tensordesc<!c>, !c, i32, i32) -> ()
    "tt.return"() : () -> ()
  }) {tw.schedule = #tw.schedule<"roles load | math x2 split m; ring w tiles load#0 slots 1; ring ab tiles load#1 load#2 slots 2">} : () -> ()
}) : () -> ()
