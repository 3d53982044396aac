// PASS: peel-first-products
// A loop that surely has a step needs no test.
//
// CHECK-NOT: scf.if
// CHECK: %[[D:.*]] = "tt.dot"(%a, %b, %zero)
// CHECK-NEXT: %[[NEXT:.*]] = "arith.constant"() <{value = 32 : i32}>
// CHECK-NEXT: "scf.for"(%[[NEXT]], %step, %step, %[[D]])

!a = tensor<16x32xbf16>
!b = tensor<32x16xbf16>
!c = tensor<16x16xf32>
"builtin.module"() ({
  "tt.func"() <{sym_name = "k", function_type = (!a, !b, !c, i32) -> ()}> ({
  ^bb0(%a: !a, %b: !b, %start: !c, %n: i32):
    %low = "arith.constant"() <{value = 16 : i32}> : () -> i32
    %step = "arith.constant"() <{value = 32 : i32}> : () -> i32
    %zero = "arith.constant"() <{value = dense<0.0> : !c}> : () -> !c
    %sum = "scf.for"(%low, %step, %step, %zero) ({
    ^bb0(%k: i32, %s: !c):
      %d = "tt.dot"(%a, %b, %s) <{inputPrecision = 2 : i32, maxNumImpreciseAcc = 0 : i32}> : (!a, !b, !c) -> !c
      "scf.yield"(%d) : (!c) -> ()
    }) : (i32, i32, i32, !c) -> !c
    "tt.print"(%sum) <{prefix = "v", hex = false, isSigned = array<i32: 0>}> : (!c) -> ()
    "tt.return"() : () -> ()
  }) : () -> ()
}) : () -> ()
