// PASS: select-tensor-maps form-roles decide-products decide-accesses verify-plan decide-layouts assign-layouts stage-channels overlap-products wait-late compute-late
// A sum of a loaded tile stays: behind the loop registers would hold the tile through it. A tile of one
// number follows its user.
//
// CHECK: "tw.roles"
// CHECK: "tt.load"
// CHECK: "tt.reduce"
// CHECK-NOT: : (f32) -> tensor
// CHECK: "ttg.dot"
// CHECK: "scf.yield"
// CHECK: %[[ONES:.*]] = "tt.splat"(%{{.*}}) : (f32) -> tensor<64xf32
// CHECK: "arith.addf"(%{{.*}}, %[[ONES]])
// CHECK: "tt.descriptor_store"

!a = tensor<128x64xf16>
!b = tensor<64x64xf16>
!c = tensor<128x64xf32>
"builtin.module"() ({
  "tt.func"() <{sym_name = "k", sym_visibility = "public", function_type = (!tt.ptr<f16>, !tt.ptr<f16>, !tt.ptr<f32>, i32, i32, !tt.ptr<f32>) -> ()}> ({
  ^bb0(%x: !tt.ptr<f16>, %y: !tt.ptr<f16>, %z: !tt.ptr<f32>, %n: i32, %m: i32, %w: !tt.ptr<f32>):
    %zero = "arith.constant"() <{value = 0 : i32}> : () -> i32
    %step = "arith.constant"() <{value = 64 : i32}> : () -> i32
    %one = "arith.constant"() <{value = 1 : i64}> : () -> i64
    %wide = "arith.constant"() <{value = 1024 : i64}> : () -> i64
    %init = "arith.constant"() <{value = dense<0.0> : !c}> : () -> !c
    %dx = "tt.make_tensor_descriptor"(%x, %m, %n, %wide, %one) <{operandSegmentSizes = array<i32: 1, 2, 2>}> : (!tt.ptr<f16>, i32, i32, i64, i64) -> !tt.tensordesc<!a>
    %dy = "tt.make_tensor_descriptor"(%y, %n, %m, %wide, %one) <{operandSegmentSizes = array<i32: 1, 2, 2>}> : (!tt.ptr<f16>, i32, i32, i64, i64) -> !tt.tensordesc<!b>
    %dz = "tt.make_tensor_descriptor"(%z, %m, %m, %wide, %one) <{operandSegmentSizes = array<i32: 1, 2, 2>}> : (!tt.ptr<f32>, i32, i32, i64, i64) -> !tt.tensordesc<!c>
    %ptrs = "tt.splat"(%w) : (!tt.ptr<f32>) -> tensor<128x64x!tt.ptr<f32>>
    %tile = "tt.load"(%ptrs) <{operandSegmentSizes = array<i32: 1, 0, 0>}> : (tensor<128x64x!tt.ptr<f32>>) -> !c
    %sums = "tt.reduce"(%tile) <{axis = 1 : i32}> ({
    ^bb2(%l: f32, %r: f32):
      %t = "arith.addf"(%l, %r) <{fastmath = #arith.fastmath<none>}> : (f32, f32) -> f32
      "tt.reduce.return"(%t) : (f32) -> ()
    }) : (!c) -> tensor<128xf32>
    %factor = "arith.sitofp"(%m) : (i32) -> f32
    %ones = "tt.splat"(%factor) : (f32) -> tensor<128xf32>
    %sum = "scf.for"(%zero, %n, %step, %init) ({
    ^bb1(%k: i32, %acc: !c):
      %a = "tt.descriptor_load"(%dx, %zero, %k) : (!tt.tensordesc<!a>, i32, i32) -> !a
      %b = "tt.descriptor_load"(%dy, %k, %zero) : (!tt.tensordesc<!b>, i32, i32) -> !b
      %d = "tt.dot"(%a, %b, %acc) <{inputPrecision = 0 : i32, maxNumImpreciseAcc = 0 : i32}> : (!a, !b, !c) -> !c
      "scf.yield"(%d) : (!c) -> ()
    }) : (i32, i32, i32, !c) -> !c
    %both = "arith.addf"(%sums, %ones) <{fastmath = #arith.fastmath<none>}> : (tensor<128xf32>, tensor<128xf32>) -> tensor<128xf32>
    %wider = "tt.expand_dims"(%both) <{axis = 1 : i32}> : (tensor<128xf32>) -> tensor<128x1xf32>
    %factors = "tt.broadcast"(%wider) : (tensor<128x1xf32>) -> !c
    %scaled = "arith.mulf"(%sum, %factors) <{fastmath = #arith.fastmath<none>}> : (!c, !c) -> !c
    "tt.descriptor_store"(%dz, %scaled, %zero, %zero) : (!tt.tensordesc<!c>, !c, i32, i32) -> ()
    "tt.return"() : () -> ()
  }) {tw.schedule = #tw.schedule<"roles load | math x2 split m; ring ab tiles load#1 load#2 slots 2">} : () -> ()
}) : () -> ()
