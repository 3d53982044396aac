// PASS: split-amx-products
// An f32 product of precision bf16x3 is three products of bf16, the smallest first; infinities
// are in the last alone.
//
// CHECK-DAG: %[[A:.*]] = "arith.truncf"(%a)
// CHECK-DAG: %[[B:.*]] = "arith.truncf"(%b)
// CHECK-DAG: %[[FINITE_A:.*]] = "arith.select"(%{{.*}}, %[[A]], %{{.*}})
// CHECK-DAG: %[[FINITE_B:.*]] = "arith.select"(%{{.*}}, %[[B]], %{{.*}})
// CHECK: %[[FIRST:.*]] = "tt.dot"(%{{.*}}, %[[FINITE_B]], %c)
// CHECK: %[[SECOND:.*]] = "tt.dot"(%[[FINITE_A]], %{{.*}}, %[[FIRST]])
// CHECK: "tt.dot"(%[[A]], %[[B]], %[[SECOND]])
// CHECK-NOT: tt.dot

!a = tensor<256x256xf32>
"builtin.module"() ({
  "tt.func"() <{sym_name = "k", function_type = (!a, !a, !a) -> ()}> ({
  ^bb0(%a: !a, %b: !a, %c: !a):
    %d = "tt.dot"(%a, %b, %c) <{inputPrecision = 3 : i32, maxNumImpreciseAcc = 0 : i32}> : (!a, !a, !a) -> !a
    "tt.print"(%d) <{prefix = "d", hex = false, isSigned = array<i32: 0>}> : (!a) -> ()
    "tt.return"() : () -> ()
  }) : () -> ()
}) : () -> ()
