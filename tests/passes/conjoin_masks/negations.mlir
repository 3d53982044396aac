// PASS: conjoin-masks
// ROUNDTRIP
// A negation of what was compared is another comparison, one of a disjunction a conjunction, and
// one of a mask by rows that of the rows. What nobody needs any more goes.
//
// CHECK-NOT: "arith.ori"
// CHECK-NOT: "arith.xori"
// CHECK-NOT: "arith.extui"
// CHECK: %[[A:.*]] = "arith.cmpi"(%i, %n) <{predicate = 2 : i64}>
// CHECK: %[[B:.*]] = "arith.cmpi"(%i, %m) <{predicate = 2 : i64}>
// CHECK: %[[BOTH:.*]] = "arith.andi"(%[[A]], %[[B]])
// CHECK: "tt.store"(%p, %x, %[[BOTH]])
// CHECK: %[[C:.*]] = "arith.cmpi"(%i, %n) <{predicate = 2 : i64}>
// CHECK: %[[D:.*]] = "arith.cmpi"(%i, %m) <{predicate = 2 : i64}>
// CHECK: %[[OTHER:.*]] = "arith.andi"(%[[C]], %[[D]])
// CHECK: "tt.store"(%p, %x, %[[OTHER]])
// CHECK: %[[E:.*]] = "arith.cmpi"(%i, %n) <{predicate = 8 : i64}>
// CHECK: %[[ROWS:.*]] = "tt.expand_dims"(%[[E]])
// CHECK: "tt.store"(%q, %y, %[[ROWS]])

!t = tensor<64xf32>
!p = tensor<64x!tt.ptr<f32>>
!i = tensor<64xi32>
!m = tensor<64xi1>
"builtin.module"() ({
  "tt.func"() <{sym_name = "k", function_type = (!p, !t, !i, !i, !i, tensor<64x1x!tt.ptr<f32>>, tensor<64x1xf32>) -> ()}> ({
  ^bb0(%p: !p, %x: !t, %i: !i, %n: !i, %m: !i, %q: tensor<64x1x!tt.ptr<f32>>, %y: tensor<64x1xf32>):
    %true = "arith.constant"() <{value = dense<true> : !m}> : () -> !m
    %zero = "arith.constant"() <{value = dense<0> : !i}> : () -> !i
    %a = "arith.cmpi"(%i, %n) <{predicate = 5 : i64}> : (!i, !i) -> !m
    %b = "arith.cmpi"(%i, %m) <{predicate = 5 : i64}> : (!i, !i) -> !m
    %either = "arith.ori"(%a, %b) : (!m, !m) -> !m
    %neither = "arith.xori"(%either, %true) : (!m, !m) -> !m
    "tt.store"(%p, %x, %neither) : (!p, !t, !m) -> ()
    %wide = "arith.extui"(%either) : (!m) -> !i
    %none = "arith.cmpi"(%wide, %zero) <{predicate = 0 : i64}> : (!i, !i) -> !m
    "tt.store"(%p, %x, %none) : (!p, !t, !m) -> ()
    %below = "arith.cmpi"(%i, %n) <{predicate = 7 : i64}> : (!i, !i) -> !m
    %rows = "tt.expand_dims"(%below) <{axis = 1 : i32}> : (!m) -> tensor<64x1xi1>
    %all = "arith.constant"() <{value = dense<true> : tensor<64x1xi1>}> : () -> tensor<64x1xi1>
    %others = "arith.xori"(%rows, %all) : (tensor<64x1xi1>, tensor<64x1xi1>) -> tensor<64x1xi1>
    "tt.store"(%q, %y, %others) : (tensor<64x1x!tt.ptr<f32>>, tensor<64x1xf32>, tensor<64x1xi1>) -> ()
    "tt.return"() : () -> ()
  }) : () -> ()
}) : () -> ()
