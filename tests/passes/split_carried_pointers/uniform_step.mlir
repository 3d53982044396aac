// PASS: split-carried-pointers
// A tile of pointers that a loop moves as a whole becomes its start plus a carried scalar.
//
// CHECK: %[[ZERO:.*]] = "arith.constant"() <{value = 0 : i64}>
// CHECK: "scf.for"(%zero, %n, %one, %[[ZERO]]) ({
// CHECK-NEXT: ^{{.*}}(%k: i32, %[[OFFSET:.*]]: i64):
// CHECK-NEXT: %[[SPLAT:.*]] = "tt.splat"(%[[OFFSET]])
// CHECK-NEXT: %[[AT:.*]] = "tt.addptr"(%p, %[[SPLAT]])
// CHECK-NEXT: "tt.load"(%[[AT]])
// CHECK: %[[STEP:.*]] = "arith.extsi"(%step) : (i32) -> i64
// CHECK-NEXT: %[[NEXT:.*]] = "arith.addi"(%[[OFFSET]], %[[STEP]])
// CHECK-NEXT: "scf.yield"(%[[NEXT]]) : (i64)

!t = tensor<64xf32>
!p = tensor<64x!tt.ptr<f32>>
!i = tensor<64xi32>
"builtin.module"() ({
  "tt.func"() <{sym_name = "k", function_type = (!p, i32, i32) -> ()}> ({
  ^bb0(%p: !p, %n: i32, %step: i32):
    %zero = "arith.constant"() <{value = 0 : i32}> : () -> i32
    %one = "arith.constant"() <{value = 1 : i32}> : () -> i32
    %r = "scf.for"(%zero, %n, %one, %p) ({
    ^bb0(%k: i32, %at: !p):
      %x = "tt.load"(%at) <{operandSegmentSizes = array<i32: 1, 0, 0>}> : (!p) -> !t
      "tt.store"(%at, %x) : (!p, !t) -> ()
      %steps = "tt.splat"(%step) : (i32) -> !i
      %next = "tt.addptr"(%at, %steps) : (!p, !i) -> !p
      "scf.yield"(%next) : (!p) -> ()
    }) : (i32, i32, i32, !p) -> !p
    "tt.return"() : () -> ()
  }) : () -> ()
}) : () -> ()
