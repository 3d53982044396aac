// PASS: round-early
// What no product takes, and what is made outside of the block, stays where it is.
//
// CHECK-LABEL: sym_name = "printed"
// CHECK: "math.exp2"
// CHECK-NEXT: "tt.print"(%w)
// CHECK-NEXT: "arith.truncf"(%w)

!s = tensor<16x16xf32>
!p = tensor<16x16xbf16>
"builtin.module"() ({
  "tt.func"() <{sym_name = "printed", function_type = (!s) -> ()}> ({
  ^bb0(%s: !s):
    %w = "math.exp2"(%s) : (!s) -> !s
    "tt.print"(%w) <{prefix = "w", hex = false, isSigned = array<i32: 0>}> : (!s) -> ()
    %p = "arith.truncf"(%w) : (!s) -> !p
    "tt.print"(%p) <{prefix = "p", hex = false, isSigned = array<i32: 0>}> : (!p) -> ()
    "tt.return"() : () -> ()
  }) : () -> ()
}) : () -> ()

// -----
// CHECK-LABEL: sym_name = "argument"
// CHECK: "tt.print"(%s)
// CHECK-NEXT: "arith.truncf"(%s)

!s = tensor<16x16xf32>
!p = tensor<16x16xbf16>
"builtin.module"() ({
  "tt.func"() <{sym_name = "argument", function_type = (!s, !p) -> ()}> ({
  ^bb0(%s: !s, %b: !p):
    "tt.print"(%s) <{prefix = "s", hex = false, isSigned = array<i32: 0>}> : (!s) -> ()
    %p = "arith.truncf"(%s) : (!s) -> !p
    %zero = "arith.constant"() <{value = dense<0.0> : !s}> : () -> !s
    %d = "tt.dot"(%p, %b, %zero) <{inputPrecision = 2 : i32, maxNumImpreciseAcc = 0 : i32}> : (!p, !p, !s) -> !s
    "tt.print"(%d) <{prefix = "d", hex = false, isSigned = array<i32: 0>}> : (!s) -> ()
    "tt.return"() : () -> ()
  }) : () -> ()
}) : () -> ()
