// PASS: peel-first-products
// Products of vectors meet the zeros in the caches: their loops stay.
//
// CHECK-NOT: scf.if
// CHECK: "scf.for"(%low, %n, %step, %zero)
// CHECK: "tt.dot"
// CHECK-NOT: "tt.dot"

!a = tensor<16x32xf32>
!b = tensor<32x16xf32>
!c = tensor<16x16xf32>
"builtin.module"() ({
  "tt.func"() <{sym_name = "k", function_type = (!a, !b, !c, i32) -> ()}> ({
  ^bb0(%a: !a, %b: !b, %start: !c, %n: i32):
    %low = "arith.constant"() <{value = 0 : i32}> : () -> i32
    %step = "arith.constant"() <{value = 32 : i32}> : () -> i32
    %zero = "arith.constant"() <{value = dense<0.0> : !c}> : () -> !c
    %sum = "scf.for"(%low, %n, %step, %zero) ({
    ^bb0(%k: i32, %s: !c):
      %d = "tt.dot"(%a, %b, %s) <{inputPrecision = 2 : i32, maxNumImpreciseAcc = 0 : i32}> : (!a, !b, !c) -> !c
      "scf.yield"(%d) : (!c) -> ()
    }) : (i32, i32, i32, !c) -> !c
    "tt.print"(%sum) <{prefix = "v", hex = false, isSigned = array<i32: 0>}> : (!c) -> ()
    "tt.return"() : () -> ()
  }) : () -> ()
}) : () -> ()
