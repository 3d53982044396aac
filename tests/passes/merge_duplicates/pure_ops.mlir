// PASS: merge-duplicates
// Two ops that compute one value become one, also across the start of a loop; what the loop
// made is not known behind it.
//
// CHECK: %[[A:.*]] = "arith.addf"(%x, %x)
// CHECK-NOT: "arith.addf"(%x, %x)
// CHECK: "arith.mulf"(%[[A]], %[[A]])
// CHECK: "scf.for"
// CHECK-NOT: "arith.addf"(%x, %x)
// CHECK: "arith.subf"(%[[A]], %x)
// CHECK: }) :
// CHECK: "arith.subf"(%[[A]], %x)

!t = tensor<64xf32>
"builtin.module"() ({
  "tt.func"() <{sym_name = "k", function_type = (!t, i32) -> ()}> ({
  ^bb0(%x: !t, %n: i32):
    %zero = "arith.constant"() <{value = 0 : i32}> : () -> i32
    %one = "arith.constant"() <{value = 1 : i32}> : () -> i32
    %a = "arith.addf"(%x, %x) : (!t, !t) -> !t
    %b = "arith.addf"(%x, %x) : (!t, !t) -> !t
    %c = "arith.mulf"(%a, %b) : (!t, !t) -> !t
    %r = "scf.for"(%zero, %n, %one, %c) ({
    ^bb0(%k: i32, %s: !t):
      %again = "arith.addf"(%x, %x) : (!t, !t) -> !t
      %inside = "arith.subf"(%again, %x) : (!t, !t) -> !t
      %next = "arith.addf"(%s, %inside) : (!t, !t) -> !t
      "scf.yield"(%next) : (!t) -> ()
    }) : (i32, i32, i32, !t) -> !t
    %behind = "arith.subf"(%a, %x) : (!t, !t) -> !t
    %d = "arith.addf"(%r, %behind) : (!t, !t) -> !t
    "tt.print"(%d) <{prefix = "d", hex = false, isSigned = array<i32: 0>}> : (!t) -> ()
    "tt.return"() : () -> ()
  }) : () -> ()
}) : () -> ()
