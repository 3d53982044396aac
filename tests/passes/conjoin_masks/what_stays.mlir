// PASS: conjoin-masks
// Flags out of memory and comparisons of floats have no simpler negation; a choice by one scalar
// picks whole tiles; two numbers on one side of a third say nothing.
//
// CHECK: "arith.xori"(%flags, %{{.*}})
// CHECK: "arith.cmpf"
// CHECK: "arith.xori"
// CHECK: "arith.select"(%s, %flags, %{{.*}})
// CHECK: "arith.select"
// CHECK: "arith.cmpi"

!t = tensor<64xf32>
!p = tensor<64x!tt.ptr<f32>>
!i = tensor<64xi32>
!m = tensor<64xi1>
"builtin.module"() ({
  "tt.func"() <{sym_name = "k", function_type = (!p, !t, !m, i1) -> ()}> ({
  ^bb0(%p: !p, %x: !t, %flags: !m, %s: i1):
    %true = "arith.constant"() <{value = dense<true> : !m}> : () -> !m
    %false = "arith.constant"() <{value = dense<false> : !m}> : () -> !m
    %no = "arith.xori"(%flags, %true) : (!m, !m) -> !m
    "tt.store"(%p, %x, %no) : (!p, !t, !m) -> ()
    %less = "arith.cmpf"(%x, %x) <{predicate = 4 : i64}> : (!t, !t) -> !m
    %not = "arith.xori"(%less, %true) : (!m, !m) -> !m
    "tt.store"(%p, %x, %not) : (!p, !t, !m) -> ()
    %whole = "arith.select"(%s, %flags, %false) : (i1, !m, !m) -> !m
    "tt.store"(%p, %x, %whole) : (!p, !t, !m) -> ()
    %three = "arith.constant"() <{value = dense<3> : !i}> : () -> !i
    %eight = "arith.constant"() <{value = dense<8> : !i}> : () -> !i
    %number = "arith.select"(%flags, %three, %eight) : (!m, !i, !i) -> !i
    %some = "arith.cmpi"(%number, %eight) <{predicate = 3 : i64}> : (!i, !i) -> !m
    "tt.store"(%p, %x, %some) : (!p, !t, !m) -> ()
    "tt.return"() : () -> ()
  }) : () -> ()
}) : () -> ()
