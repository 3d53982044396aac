// PASS: widen-products
// Accumulators that the microkernel sums in anyway stay.
//
// CHECK: ^
// CHECK-NEXT: %d = "tt.dot"(%a, %b, %c)
// CHECK-NEXT: tt.print

!h = tensor<16x16xf16>
!f = tensor<16x16xf32>
"builtin.module"() ({
  "tt.func"() <{sym_name = "k", function_type = (!h, !h, !f) -> ()}> ({
  ^bb0(%a: !h, %b: !h, %c: !f):
    %d = "tt.dot"(%a, %b, %c) <{inputPrecision = 2 : i32, maxNumImpreciseAcc = 0 : i32}> : (!h, !h, !f) -> !f
    "tt.print"(%d) <{prefix = "v", hex = false, isSigned = array<i32: 0>}> : (!f) -> ()
    "tt.return"() : () -> ()
  }) : () -> ()
}) : () -> ()
