// PASS: split-carried-pointers
// Pointers whose elements move by steps of their own, or that are loaded, stay carried.
//
// CHECK: "scf.for"(%zero, %n, %one, %p) ({
// CHECK-NEXT: ^{{.*}}(%k: i32, %at: tensor<64x!tt.ptr<f32>>):
// CHECK: "scf.yield"(%next) : (tensor<64x!tt.ptr<f32>>)

!t = tensor<64xf32>
!p = tensor<64x!tt.ptr<f32>>
!i = tensor<64xi32>
"builtin.module"() ({
  "tt.func"() <{sym_name = "k", function_type = (!p, i32, !i) -> ()}> ({
  ^bb0(%p: !p, %n: i32, %steps: !i):
    %zero = "arith.constant"() <{value = 0 : i32}> : () -> i32
    %one = "arith.constant"() <{value = 1 : i32}> : () -> i32
    %r = "scf.for"(%zero, %n, %one, %p) ({
    ^bb0(%k: i32, %at: !p):
      %x = "tt.load"(%at) <{operandSegmentSizes = array<i32: 1, 0, 0>}> : (!p) -> !t
      "tt.store"(%at, %x) : (!p, !t) -> ()
      %next = "tt.addptr"(%at, %steps) : (!p, !i) -> !p
      "scf.yield"(%next) : (!p) -> ()
    }) : (i32, i32, i32, !p) -> !p
    "tt.return"() : () -> ()
  }) : () -> ()
}) : () -> ()
