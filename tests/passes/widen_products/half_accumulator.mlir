// PASS: widen-products
// The microkernel sums halves in float32: an accumulator of halves is widened around it.
//
// CHECK: %[[WIDE:.*]] = "arith.extf"(%c) : (tensor<16x16xf16>) -> tensor<16x16xf32>
// CHECK-NEXT: %[[SUM:.*]] = "tt.dot"(%a, %b, %[[WIDE]])
// CHECK-SAME: -> tensor<16x16xf32>
// CHECK-NEXT: "arith.truncf"(%[[SUM]])
// CHECK: "tt.dot"(%a, %b, %w)
// CHECK-NOT: arith.truncf

!h = tensor<16x16xf16>
!f = tensor<16x16xf32>
"builtin.module"() ({
  "tt.func"() <{sym_name = "k", function_type = (!h, !h, !h, !f) -> ()}> ({
  ^bb0(%a: !h, %b: !h, %c: !h, %w: !f):
    %d = "tt.dot"(%a, %b, %c) <{inputPrecision = 2 : i32, maxNumImpreciseAcc = 0 : i32}> : (!h, !h, !h) -> !h
    "tt.print"(%d) <{prefix = "v", hex = false, isSigned = array<i32: 0>}> : (!h) -> ()
    %e = "tt.dot"(%a, %b, %w) <{inputPrecision = 2 : i32, maxNumImpreciseAcc = 0 : i32}> : (!h, !h, !f) -> !f
    "tt.print"(%e) <{prefix = "v", hex = false, isSigned = array<i32: 0>}> : (!f) -> ()
    "tt.return"() : () -> ()
  }) : () -> ()
}) : () -> ()
