// PASS: decide-products decide-schedule
// Products of 32 rows are those of single warps. Their tiles are copied ahead where nobody asks:
// three of them at 4 KiB an iteration, two at 20 KiB. What is transposed on its way stays
// as it is.
//
// CHECK: #tw.schedule<"ring ring0 tiles load#0 load#1 slots 3 cp_async release wait; ring ring1 tiles load#2 load#3 slots 2 cp_async release wait; ring ring2 tiles load#5 slots 3 cp_async release wait; loop for#0 load#0 @0.0 load#1 @0.0 dot#0 @2.1; loop for#1 load#2 @0.0 load#3 @0.0 dot#1 @1.1; loop for#2 load#5 @0.0 dot#2 @2.1">

!p = tensor<32x32x!tt.ptr<f16>>
!v = tensor<32x32xf16>
!c = tensor<32x32xf32>
!ap = tensor<32x64x!tt.ptr<f16>>
!a = tensor<32x64xf16>
!bp = tensor<64x128x!tt.ptr<f16>>
!b = tensor<64x128xf16>
!d = tensor<32x128xf32>
"builtin.module"() ({
  "tt.func"() <{sym_name = "k", function_type = (!p, !p, !ap, !bp, i32, !c, !d) -> ()}> ({
  ^bb0(%p: !p, %q: !p, %ap: !ap, %bp: !bp, %n: i32, %zero: !c, %wide: !d):
    %low = "arith.constant"() <{value = 0 : i32}> : () -> i32
    %one = "arith.constant"() <{value = 1 : i32}> : () -> i32
    %s = "scf.for"(%low, %n, %one, %zero) ({
    ^bb1(%i: i32, %acc: !c):
      %x = "tt.load"(%p) <{operandSegmentSizes = array<i32: 1, 0, 0>}> : (!p) -> !v
      %y = "tt.load"(%q) <{operandSegmentSizes = array<i32: 1, 0, 0>}> : (!p) -> !v
      %e = "tt.dot"(%x, %y, %acc) : (!v, !v, !c) -> !c
      "scf.yield"(%e) : (!c) -> ()
    }) : (i32, i32, i32, !c) -> !c
    %t = "scf.for"(%low, %n, %one, %wide) ({
    ^bb1(%i: i32, %acc: !d):
      %x = "tt.load"(%ap) <{operandSegmentSizes = array<i32: 1, 0, 0>}> : (!ap) -> !a
      %y = "tt.load"(%bp) <{operandSegmentSizes = array<i32: 1, 0, 0>}> : (!bp) -> !b
      %e = "tt.dot"(%x, %y, %acc) : (!a, !b, !d) -> !d
      "scf.yield"(%e) : (!d) -> ()
    }) : (i32, i32, i32, !d) -> !d
    %u = "scf.for"(%low, %n, %one, %zero) ({
    ^bb1(%i: i32, %acc: !c):
      %x = "tt.load"(%p) <{operandSegmentSizes = array<i32: 1, 0, 0>}> : (!p) -> !v
      %y = "tt.load"(%q) <{operandSegmentSizes = array<i32: 1, 0, 0>}> : (!p) -> !v
      %z = "tt.trans"(%x) <{order = array<i32: 1, 0>}> : (!v) -> !v
      %e = "tt.dot"(%z, %y, %acc) : (!v, !v, !c) -> !c
      "scf.yield"(%e) : (!c) -> ()
    }) : (i32, i32, i32, !c) -> !c
    "tt.return"() : () -> ()
  }) : () -> ()
}) : () -> ()
