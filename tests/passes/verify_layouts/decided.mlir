// PASS: decide-accesses decide-layouts verify-layouts
// PASS(AGAIN): decide-accesses decide-layouts decide-layouts verify-layouts
// What is decided is verified, and decided again it stays as it is: what a loop takes and hands on,
// the sum in it, the store behind it. The splat of pointers is open.
//
// CHECK-NOT: "tt.splat"{{.*}}tw.layout
// CHECK: %a = "tt.load"{{.*}}tw.layout = #tw.layout<"[[L:.*]] -> [[L]]">
// CHECK: "arith.addf"{{.*}}tw.layout = #tw.layout<"[[L]] | [[L]] -> [[L]]">
// CHECK: }) {tw.layout = #tw.layout<"_ | _ | _ | [[L]] -> [[L]]">} : (i32
// CHECK: "tt.store"{{.*}}tw.layout = #tw.layout<"[[L]] | [[L]] -> ">
// AGAIN: "arith.addf"{{.*}}tw.layout = #tw.layout<"[[L:.*]] | [[L]] -> [[L]]">
// AGAIN: }) {tw.layout = #tw.layout<"_ | _ | _ | [[L]] -> [[L]]">} : (i32

!p = tensor<64x!tt.ptr<f32>>
!c = tensor<64xf32>
"builtin.module"() ({
  "tt.func"() <{sym_name = "k", function_type = (!tt.ptr<f32>, i32) -> ()}> ({
  ^bb0(%x: !tt.ptr<f32>, %n: i32):
    %c = "arith.constant"() <{value = dense<0.0> : !c}> : () -> !c
    %zero = "arith.constant"() <{value = 0 : i32}> : () -> i32
    %one = "arith.constant"() <{value = 1 : i32}> : () -> i32
    %pa = "tt.splat"(%x) : (!tt.ptr<f32>) -> !p
    %r = "scf.for"(%zero, %n, %one, %c) ({
    ^bb0(%k: i32, %s: !c):
      %a = "tt.load"(%pa) <{operandSegmentSizes = array<i32: 1, 0, 0>}> : (!p) -> !c
      %d = "arith.addf"(%a, %s) <{fastmath = #arith.fastmath<none>}> : (!c, !c) -> !c
      "scf.yield"(%d) : (!c) -> ()
    }) : (i32, i32, i32, !c) -> !c
    "tt.store"(%pa, %r) : (!p, !c) -> ()
    "tt.return"() : () -> ()
  }) : () -> ()
}) : () -> ()
