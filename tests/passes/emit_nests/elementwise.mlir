// PASS: emit-nests
// PASS(WIDE): emit-nests{vector_bytes=64, features=avx512f}
// A load, arithmetic on it and its store are one nest, two of the machine's vectors at a time; no
// tile is left.
//
// CHECK: "cpu.nest"() <{bounds = array<i64: 64>, vector = 16 : i64
// CHECK-NOT: tensor<
// CHECK: "cpu.load"({{.*}} -> vector<16xf32>
// CHECK-NEXT: "arith.addf"
// CHECK: "cpu.store"
// CHECK-NOT: "cpu.nest"
// WIDE: "cpu.load"({{.*}} -> vector<32xf32>

!v = tensor<64xf32>
!p = tensor<64x!tt.ptr<f32>>
!i = tensor<64xi32>
"builtin.module"() ({
  "tt.func"() <{sym_name = "k", function_type = (!tt.ptr<f32>) -> ()}> ({
  ^bb0(%x: !tt.ptr<f32>):
    %i = "tt.make_range"() <{start = 0 : i32, end = 64 : i32}> : () -> !i
    %ps = "tt.splat"(%x) : (!tt.ptr<f32>) -> !p
    %p = "tt.addptr"(%ps, %i) : (!p, !i) -> !p
    %v = "tt.load"(%p) <{operandSegmentSizes = array<i32: 1, 0, 0>}> : (!p) -> !v
    %s = "arith.addf"(%v, %v) : (!v, !v) -> !v
    "tt.store"(%p, %s) : (!p, !v) -> ()
    "tt.return"() : () -> ()
  }) : () -> ()
}) : () -> ()
