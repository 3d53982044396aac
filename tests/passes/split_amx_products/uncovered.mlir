// PASS: split-amx-products
// What AMX's tiles do not cover keeps its product.
//
// CHECK: "tt.dot"(%a, %b, %c)
// CHECK-NOT: tt.dot
// CHECK-NOT: arith.truncf

!a = tensor<510x510xf32>
!b = tensor<510x510xf32>
"builtin.module"() ({
  "tt.func"() <{sym_name = "k", function_type = (!a, !b, !a) -> ()}> ({
  ^bb0(%a: !a, %b: !b, %c: !a):
    %d = "tt.dot"(%a, %b, %c) <{inputPrecision = 3 : i32, maxNumImpreciseAcc = 0 : i32}> : (!a, !b, !a) -> !a
    "tt.print"(%d) <{prefix = "d", hex = false, isSigned = array<i32: 0>}> : (!a) -> ()
    "tt.return"() : () -> ()
  }) : () -> ()
}) : () -> ()
