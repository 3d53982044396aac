// PASS: lower-block-pointers
// PASS(OFFSETS): lower-block-pointers forward-invariants
// A loop that advances a block pointer carries its scalars instead (`expand_structures.py`): base,
// shape, strides, offsets. Those that stay as they were, forward-invariants takes out again.
//
// CHECK: "scf.for"(%first, %off, %step, %p, %m, %n, %n, %one, %off, %off) ({
// CHECK-NOT: !tt.ptr<tensor
// CHECK: "tt.load"({{.*}}tensor<16x8x!tt.ptr<f32>>
// CHECK-NOT: tt.advance
// CHECK: "scf.yield"
// OFFSETS: "scf.for"(%first, %off, %step, %off, %off) ({
// OFFSETS-NEXT: ^{{.*}}(%k: i32, %[[ROW:.*]]: i32, %[[COLUMN:.*]]: i32):
// OFFSETS: %[[NEXT:.*]] = "arith.addi"(%[[COLUMN]], %step)
// OFFSETS: "scf.yield"(%{{.*}}, %[[NEXT]])

!b = !tt.ptr<tensor<16x8xf32>>
"builtin.module"() ({
  "tt.func"() <{sym_name = "k", function_type = (!tt.ptr<f32>, i64, i64, i32) -> ()}> ({
  ^bb0(%p: !tt.ptr<f32>, %m: i64, %n: i64, %off: i32):
    %one = "arith.constant"() <{value = 1 : i64}> : () -> i64
    %first = "arith.constant"() <{value = 0 : i32}> : () -> i32
    %step = "arith.constant"() <{value = 8 : i32}> : () -> i32
    %b = "tt.make_tensor_ptr"(%p, %m, %n, %n, %one, %off, %off) <{order = array<i32: 1, 0>, operandSegmentSizes = array<i32: 1, 2, 2, 2>}> : (!tt.ptr<f32>, i64, i64, i64, i64, i32, i32) -> !b
    %r = "scf.for"(%first, %off, %step, %b) ({
    ^bb0(%k: i32, %at: !b):
      %x = "tt.load"(%at) <{operandSegmentSizes = array<i32: 1, 0, 0>}> : (!b) -> tensor<16x8xf32>
      "tt.store"(%at, %x) : (!b, tensor<16x8xf32>) -> ()
      %next = "tt.advance"(%at, %first, %step) : (!b, i32, i32) -> !b
      "scf.yield"(%next) : (!b) -> ()
    }) : (i32, i32, i32, !b) -> !b
    "tt.return"() : () -> ()
  }) : () -> ()
}) : () -> ()
