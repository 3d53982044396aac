// PASS: split-products
// Products that one instruction computes, of halves or of tf32, stay one.
//
// CHECK: %d = "tt.dot"(%a, %b, %c)
// CHECK-NEXT: %e = "tt.dot"(%c, %c, %d)
// CHECK-NEXT: tt.print

!a = tensor<16x16xf16>
!c = tensor<16x16xf32>
"builtin.module"() ({
  "tt.func"() <{sym_name = "k", function_type = (!a, !a, !c) -> ()}> ({
  ^bb0(%a: !a, %b: !a, %c: !c):
    %d = "tt.dot"(%a, %b, %c) <{inputPrecision = 1 : i32, maxNumImpreciseAcc = 0 : i32}> : (!a, !a, !c) -> !c
    %e = "tt.dot"(%c, %c, %d) <{inputPrecision = 0 : i32, maxNumImpreciseAcc = 0 : i32}> : (!c, !c, !c) -> !c
    "tt.print"(%e) <{prefix = "e", hex = false, isSigned = array<i32: 0>}> : (!c) -> ()
    "tt.return"() : () -> ()
  }) : () -> ()
}) : () -> ()
