// PASS: split-products
// A float32 product of precision tf32x3 is three of tf32, the smallest first. What meets a second
// part has zeros for infinities and NaNs.
//
// CHECK: "arith.select"
// CHECK: "arith.select"
// CHECK: %[[A:[0-9]+]] = "arith.select"(%{{[0-9]+}}, %[[HIGH_A:[0-9]+]], %{{[0-9]+}})
// CHECK: %[[B:[0-9]+]] = "arith.select"(%{{[0-9]+}}, %[[HIGH_B:[0-9]+]], %{{[0-9]+}})
// CHECK: %[[FIRST:.*]] = "tt.dot"(%{{.*}}, %[[B]], %c) <{inputPrecision = 0 : i32
// CHECK: %[[SECOND:.*]] = "tt.dot"(%[[A]], %{{.*}}, %[[FIRST]]) <{inputPrecision = 0 : i32
// CHECK: "tt.dot"(%[[HIGH_A]], %[[HIGH_B]], %[[SECOND]]) <{inputPrecision = 0 : i32
// CHECK-NOT: tt.dot

!a = tensor<16x16xf32>
"builtin.module"() ({
  "tt.func"() <{sym_name = "k", function_type = (!a, !a, !a) -> ()}> ({
  ^bb0(%a: !a, %b: !a, %c: !a):
    %d = "tt.dot"(%a, %b, %c) <{inputPrecision = 1 : i32, maxNumImpreciseAcc = 0 : i32}> : (!a, !a, !a) -> !a
    "tt.print"(%d) <{prefix = "d", hex = false, isSigned = array<i32: 0>}> : (!a) -> ()
    "tt.return"() : () -> ()
  }) : () -> ()
}) : () -> ()
