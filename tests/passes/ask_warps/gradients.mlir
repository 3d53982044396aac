// PASS: select-tensor-maps ask-warps
// PASS(SAID): select-tensor-maps ask-warps{num_warps=8}
// Three products, of which the loop adds up one of 128 rows and 64 columns: two groups share it.
//
// CHECK: tt.num_warps = 8 : i32
// CHECK: 8 warps, as these products are faster so; num_consumer_groups=0 keeps 4
// SAID-NOT: tt.num_warps

!a = tensor<128x64xf16>
!b = tensor<32x64xf16>
!t = tensor<64x32xf16>
!s = tensor<128x32xf32>
!p = tensor<128x32xf16>
!o = tensor<128x64xf32>
"builtin.module"() ({
  "tt.func"() <{sym_name = "k", sym_visibility = "public", function_type = (!tt.ptr<f16>, !tt.ptr<f16>, !tt.ptr<f16>, !tt.ptr<f32>, i32, i32) -> ()}> ({
  ^bb0(%x: !tt.ptr<f16>, %y: !tt.ptr<f16>, %w: !tt.ptr<f16>, %z: !tt.ptr<f32>, %n: i32, %m: i32):
    %zero = "arith.constant"() <{value = 0 : i32}> : () -> i32
    %step = "arith.constant"() <{value = 32 : i32}> : () -> i32
    %one = "arith.constant"() <{value = 1 : i64}> : () -> i64
    %wide = "arith.constant"() <{value = 1024 : i64}> : () -> i64
    %none = "arith.constant"() <{value = dense<0.0> : !s}> : () -> !s
    %init = "arith.constant"() <{value = dense<0.0> : !o}> : () -> !o
    %dx = "tt.make_tensor_descriptor"(%x, %n, %m, %wide, %one) <{operandSegmentSizes = array<i32: 1, 2, 2>}> : (!tt.ptr<f16>, i32, i32, i64, i64) -> !tt.tensordesc<!a>
    %dy = "tt.make_tensor_descriptor"(%y, %n, %m, %wide, %one) <{operandSegmentSizes = array<i32: 1, 2, 2>}> : (!tt.ptr<f16>, i32, i32, i64, i64) -> !tt.tensordesc<!b>
    %dw = "tt.make_tensor_descriptor"(%w, %n, %m, %wide, %one) <{operandSegmentSizes = array<i32: 1, 2, 2>}> : (!tt.ptr<f16>, i32, i32, i64, i64) -> !tt.tensordesc<!b>
    %dz = "tt.make_tensor_descriptor"(%z, %n, %m, %wide, %one) <{operandSegmentSizes = array<i32: 1, 2, 2>}> : (!tt.ptr<f32>, i32, i32, i64, i64) -> !tt.tensordesc<!o>
    %q = "tt.descriptor_load"(%dx, %zero, %zero) : (!tt.tensordesc<!a>, i32, i32) -> !a
    %sum = "scf.for"(%zero, %n, %step, %init) ({
    ^bb1(%at: i32, %acc: !o):
      %k = "tt.descriptor_load"(%dy, %at, %zero) : (!tt.tensordesc<!b>, i32, i32) -> !b
      %kt = "tt.trans"(%k) <{order = array<i32: 1, 0>}> : (!b) -> !t
      %d = "tt.dot"(%q, %kt, %none) <{inputPrecision = 0 : i32, maxNumImpreciseAcc = 0 : i32}> : (!a, !t, !s) -> !s
      %e = "math.exp2"(%d) : (!s) -> !s
      %v = "tt.descriptor_load"(%dw, %at, %zero) : (!tt.tensordesc<!b>, i32, i32) -> !b
      %vt = "tt.trans"(%v) <{order = array<i32: 1, 0>}> : (!b) -> !t
      %f = "tt.dot"(%q, %vt, %none) <{inputPrecision = 0 : i32, maxNumImpreciseAcc = 0 : i32}> : (!a, !t, !s) -> !s
      %g = "arith.mulf"(%e, %f) <{fastmath = #arith.fastmath<none>}> : (!s, !s) -> !s
      %p = "arith.truncf"(%g) : (!s) -> !p
      %h = "tt.dot"(%p, %k, %acc) <{inputPrecision = 0 : i32, maxNumImpreciseAcc = 0 : i32}> : (!p, !b, !o) -> !o
      "scf.yield"(%h) : (!o) -> ()
    }) : (i32, i32, i32, !o) -> !o
    "tt.descriptor_store"(%dz, %sum, %zero, %zero) : (!tt.tensordesc<!o>, !o, i32, i32) -> ()
    "tt.return"() : () -> ()
  }) : () -> ()
}) : () -> ()
