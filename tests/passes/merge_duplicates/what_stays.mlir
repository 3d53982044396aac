// PASS: merge-duplicates
// Loads are not merged, since memory may change between them, nor are ops of one name with
// other properties.
//
// CHECK: %[[A:.*]] = "tt.load"
// CHECK: %[[B:.*]] = "tt.load"
// CHECK: "arith.addf"(%[[A]], %[[B]])
// CHECK: predicate = 2
// CHECK: predicate = 3

!t = tensor<64xf32>
!p = tensor<64x!tt.ptr<f32>>
!i = tensor<64xi32>
"builtin.module"() ({
  "tt.func"() <{sym_name = "k", function_type = (!p, !i, !i) -> ()}> ({
  ^bb0(%p: !p, %i: !i, %j: !i):
    %a = "tt.load"(%p) <{operandSegmentSizes = array<i32: 1, 0, 0>}> : (!p) -> !t
    %b = "tt.load"(%p) <{operandSegmentSizes = array<i32: 1, 0, 0>}> : (!p) -> !t
    %s = "arith.addf"(%a, %b) : (!t, !t) -> !t
    %lt = "arith.cmpi"(%i, %j) <{predicate = 2 : i64}> : (!i, !i) -> tensor<64xi1>
    %le = "arith.cmpi"(%i, %j) <{predicate = 3 : i64}> : (!i, !i) -> tensor<64xi1>
    %both = "arith.xori"(%lt, %le) : (tensor<64xi1>, tensor<64xi1>) -> tensor<64xi1>
    "tt.store"(%p, %s, %both) : (!p, !t, tensor<64xi1>) -> ()
    "tt.return"() : () -> ()
  }) : () -> ()
}) : () -> ()
