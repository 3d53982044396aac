// PASS: fold-additions
// A product that someone else reads, or that starts from something already, stays as it is.
//
// CHECK: %[[D:.*]] = "tt.dot"(%a, %b, %z)
// CHECK: "arith.addf"(%[[D]], %x)
// CHECK: %[[E:.*]] = "tt.dot"(%a, %b, %x)
// CHECK: "arith.addf"(%[[E]], %x)

!t = tensor<16x16xf32>
"builtin.module"() ({
  "tt.func"() <{sym_name = "k", function_type = (!t, !t, !t) -> ()}> ({
  ^bb0(%a: !t, %b: !t, %x: !t):
    %z = "arith.constant"() <{value = dense<0.0> : !t}> : () -> !t
    %d = "tt.dot"(%a, %b, %z) <{inputPrecision = 2 : i32, maxNumImpreciseAcc = 0 : i32}> : (!t, !t, !t) -> !t
    %s = "arith.addf"(%d, %x) : (!t, !t) -> !t
    "tt.print"(%s) <{prefix = "v", hex = false, isSigned = array<i32: 0>}> : (!t) -> ()
    "tt.print"(%d) <{prefix = "v", hex = false, isSigned = array<i32: 0>}> : (!t) -> ()
    %e = "tt.dot"(%a, %b, %x) <{inputPrecision = 2 : i32, maxNumImpreciseAcc = 0 : i32}> : (!t, !t, !t) -> !t
    %u = "arith.addf"(%e, %x) : (!t, !t) -> !t
    "tt.print"(%u) <{prefix = "v", hex = false, isSigned = array<i32: 0>}> : (!t) -> ()
    "tt.return"() : () -> ()
  }) : () -> ()
}) : () -> ()
