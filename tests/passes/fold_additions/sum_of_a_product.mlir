// PASS: fold-additions
// A product that starts from zero and is added to something starts from that.
//
// CHECK: %[[S:.*]] = "tt.dot"(%a, %b, %x)
// CHECK-NOT: arith.addf
// CHECK: "tt.print"(%[[S]])

!t = tensor<16x16xf32>
"builtin.module"() ({
  "tt.func"() <{sym_name = "k", function_type = (!t, !t, !t) -> ()}> ({
  ^bb0(%a: !t, %b: !t, %x: !t):
    %z = "arith.constant"() <{value = dense<0.0> : !t}> : () -> !t
    %d = "tt.dot"(%a, %b, %z) <{inputPrecision = 2 : i32, maxNumImpreciseAcc = 0 : i32}> : (!t, !t, !t) -> !t
    %s = "arith.addf"(%d, %x) : (!t, !t) -> !t
    "tt.print"(%s) <{prefix = "v", hex = false, isSigned = array<i32: 0>}> : (!t) -> ()
    "tt.return"() : () -> ()
  }) : () -> ()
}) : () -> ()
