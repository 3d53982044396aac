// PASS: split-amx-products
// Precision ieee keeps its product, as tf32 and bf16x6 do.
//
// CHECK: "tt.dot"(%a, %b, %c)
// CHECK-NOT: tt.dot
// CHECK-NOT: arith.truncf

!a = tensor<256x256xf32>
!b = tensor<256x256xf32>
"builtin.module"() ({
  "tt.func"() <{sym_name = "k", function_type = (!a, !b, !a) -> ()}> ({
  ^bb0(%a: !a, %b: !b, %c: !a):
    %d = "tt.dot"(%a, %b, %c) <{inputPrecision = 2 : i32, maxNumImpreciseAcc = 0 : i32}> : (!a, !b, !a) -> !a
    "tt.print"(%d) <{prefix = "d", hex = false, isSigned = array<i32: 0>}> : (!a) -> ()
    "tt.return"() : () -> ()
  }) : () -> ()
}) : () -> ()
