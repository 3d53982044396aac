// PASS: decide-products decide-accesses decide-schedule decide-layouts assign-layouts stage-operands
// Operands of 32 bits lie in slots, too: matrix loads read those along K, and of the others every
// word is a load of its own.
//
// CHECK: "scf.for"
// CHECK: %[[X:.*]] = "tt.load"
// CHECK-NEXT: %[[S:.*]] = "ttg.local_alloc"(%[[X]])
// CHECK-NEXT: %[[A:.*]] = "ttg.local_load"(%[[S]])
// CHECK: %[[Y:.*]] = "tt.load"
// CHECK-NEXT: %[[T:.*]] = "ttg.local_alloc"(%[[Y]])
// CHECK-NEXT: %[[B:.*]] = "ttg.local_load"(%[[T]])
// CHECK-NEXT: "ttg.dot"(%[[A]], %[[B]]
// CHECK: "scf.yield"

!p = tensor<32x32x!tt.ptr<f32>>
!v = tensor<32x32xf32>
!c = tensor<32x32xf32>
!m = tensor<32x32xi1>
"builtin.module"() ({
  "tt.func"() <{sym_name = "k", function_type = (!tt.ptr<f32>, i32) -> (), arg_attrs = [{tt.divisibility = 16 : i32}, {}]}> ({
  ^bb0(%base: !tt.ptr<f32>, %n: i32):
    %low = "arith.constant"() <{value = 0 : i32}> : () -> i32
    %one = "arith.constant"() <{value = 1 : i32}> : () -> i32
    %range = "tt.make_range"() <{start = 0 : i32, end = 32 : i32}> : () -> tensor<32xi32>
    %rows = "tt.expand_dims"(%range) <{axis = 1 : i32}> : (tensor<32xi32>) -> tensor<32x1xi32>
    %size = "arith.constant"() <{value = dense<32> : tensor<32x1xi32>}> : () -> tensor<32x1xi32>
    %starts = "arith.muli"(%rows, %size) : (tensor<32x1xi32>, tensor<32x1xi32>) -> tensor<32x1xi32>
    %columns = "tt.expand_dims"(%range) <{axis = 0 : i32}> : (tensor<32xi32>) -> tensor<1x32xi32>
    %down = "tt.broadcast"(%starts) : (tensor<32x1xi32>) -> tensor<32x32xi32>
    %across = "tt.broadcast"(%columns) : (tensor<1x32xi32>) -> tensor<32x32xi32>
    %at = "arith.addi"(%down, %across) : (tensor<32x32xi32>, tensor<32x32xi32>) -> tensor<32x32xi32>
    %all = "tt.splat"(%base) : (!tt.ptr<f32>) -> !p
    %p = "tt.addptr"(%all, %at) : (!p, tensor<32x32xi32>) -> !p
    %zero = "arith.constant"() <{value = dense<0.0> : !c}> : () -> !c
    %s = "scf.for"(%low, %n, %one, %zero) ({
    ^bb1(%i: i32, %acc: !c):
      %x = "tt.load"(%p) <{operandSegmentSizes = array<i32: 1, 0, 0>}> : (!p) -> !v
      %y = "tt.load"(%p) <{operandSegmentSizes = array<i32: 1, 0, 0>}> : (!p) -> !v
      %e = "tt.dot"(%x, %y, %acc) <{inputPrecision = 0 : i32}> : (!v, !v, !c) -> !c
      "scf.yield"(%e) : (!c) -> ()
    }) : (i32, i32, i32, !c) -> !c
    "tt.store"(%p, %s) : (!p, !v) -> ()
    "tt.return"() : () -> ()
  }) : () -> ()
}) : () -> ()
