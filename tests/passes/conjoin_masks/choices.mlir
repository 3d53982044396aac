// PASS: conjoin-masks
// ROUNDTRIP
// A choice one side of which is true or false is a conjunction or disjunction, and a comparison
// of one of two numbers is the condition that chose.
//
// CHECK: %[[AND:.*]] = "arith.andi"(%a, %b)
// CHECK: "tt.store"(%p, %x, %[[AND]])
// CHECK: %[[OR:.*]] = "arith.ori"(%a, %b)
// CHECK: "tt.store"(%p, %x, %[[OR]])
// CHECK: "tt.store"(%p, %x, %a)
// CHECK: "tt.store"(%p, %x, %b)

!t = tensor<64xf32>
!p = tensor<64x!tt.ptr<f32>>
!i = tensor<64xi32>
!m = tensor<64xi1>
"builtin.module"() ({
  "tt.func"() <{sym_name = "k", function_type = (!p, !t, !m, !m) -> ()}> ({
  ^bb0(%p: !p, %x: !t, %a: !m, %b: !m):
    %true = "arith.constant"() <{value = dense<true> : !m}> : () -> !m
    %false = "arith.constant"() <{value = dense<false> : !m}> : () -> !m
    %both = "arith.select"(%a, %b, %false) : (!m, !m, !m) -> !m
    "tt.store"(%p, %x, %both) : (!p, !t, !m) -> ()
    %either = "arith.select"(%a, %true, %b) : (!m, !m, !m) -> !m
    "tt.store"(%p, %x, %either) : (!p, !t, !m) -> ()
    %three = "arith.constant"() <{value = dense<3> : !i}> : () -> !i
    %eight = "arith.constant"() <{value = dense<8> : !i}> : () -> !i
    %five = "arith.constant"() <{value = dense<5> : !i}> : () -> !i
    %number = "arith.select"(%a, %three, %eight) : (!m, !i, !i) -> !i
    %less = "arith.cmpi"(%number, %five) <{predicate = 2 : i64}> : (!i, !i) -> !m
    "tt.store"(%p, %x, %less) : (!p, !t, !m) -> ()
    %is = "arith.cmpi"(%b, %true) <{predicate = 0 : i64}> : (!m, !m) -> !m
    "tt.store"(%p, %x, %is) : (!p, !t, !m) -> ()
    "tt.return"() : () -> ()
  }) : () -> ()
}) : () -> ()
