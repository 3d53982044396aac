// PASS: decide-products decide-accesses decide-layouts assign-layouts
// No matrix instruction takes doubles: each thread multiplies, reading both operands from plain
// shared memory.
//
// CHECK: "ttg.local_alloc"
// CHECK: "ttg.local_alloc"
// CHECK: "ttg.dot"({{.*}}) <{product = #tw.product<"fma 1x1x1, warps 4x1, a shared, b shared", "no matrix instruction takes f64 x f64 (ieee)">

!p = tensor<16x16x!tt.ptr<f64>>
!a = tensor<16x16xf64>
!q = tensor<16x16x!tt.ptr<f64>>
!c = tensor<16x16xf64>
"builtin.module"() ({
  "tt.func"() <{sym_name = "k", function_type = (!tt.ptr<f64>, !tt.ptr<f64>, !tt.ptr<f64>) -> ()}> ({
  ^bb0(%x: !tt.ptr<f64>, %y: !tt.ptr<f64>, %z: !tt.ptr<f64>):
    %pa = "tt.splat"(%x) : (!tt.ptr<f64>) -> !p
    %pb = "tt.splat"(%y) : (!tt.ptr<f64>) -> !p
    %a = "tt.load"(%pa) <{operandSegmentSizes = array<i32: 1, 0, 0>}> : (!p) -> !a
    %b = "tt.load"(%pb) <{operandSegmentSizes = array<i32: 1, 0, 0>}> : (!p) -> !a
    %c = "arith.constant"() <{value = dense<0.0> : !c}> : () -> !c
    %d = "tt.dot"(%a, %b, %c) <{inputPrecision = 2 : i32, maxNumImpreciseAcc = 0 : i32}> : (!a, !a, !c) -> !c
    %pc = "tt.splat"(%z) : (!tt.ptr<f64>) -> !q
    "tt.store"(%pc, %d) : (!q, !c) -> ()
    "tt.return"() : () -> ()
  }) : () -> ()
}) : () -> ()
