// PASS: decide-products decide-accesses decide-schedule decide-layouts assign-layouts stage-operands
// A row of scales that is copied ahead is read from its slot as the tile that it scales is held.
//
// CHECK: "scf.for"
// CHECK: %[[Z:.*]] = "tt.load"{{.*}}tensor<32xf16
// CHECK-NEXT: %[[S:.*]] = "ttg.local_alloc"(%[[Z]])
// CHECK-NEXT: %[[L:.*]] = "ttg.local_load"(%[[S]])
// CHECK: "tt.expand_dims"(%[[L]])
// CHECK: "scf.yield"

!p = tensor<32x32x!tt.ptr<f16>>
!v = tensor<32x32xf16>
!c = tensor<32x32xf32>
!m = tensor<32x32xi1>
"builtin.module"() ({
  "tt.func"() <{sym_name = "k", function_type = (!tt.ptr<f16>, i32) -> (), arg_attrs = [{tt.divisibility = 16 : i32}, {}]}> ({
  ^bb0(%base: !tt.ptr<f16>, %n: i32):
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
    %all = "tt.splat"(%base) : (!tt.ptr<f16>) -> !p
    %p = "tt.addptr"(%all, %at) : (!p, tensor<32x32xi32>) -> !p
    %zero = "arith.constant"() <{value = dense<0.0> : !c}> : () -> !c
    %other = "arith.constant"() <{value = dense<1.0> : !v}> : () -> !v
    %ends = "tt.splat"(%n) : (i32) -> tensor<32x32xi32>
    %mask = "arith.cmpi"(%at, %ends) <{predicate = 2 : i64}> : (tensor<32x32xi32>, tensor<32x32xi32>) -> !m
    %scales = "tt.splat"(%base) : (!tt.ptr<f16>) -> tensor<32x!tt.ptr<f16>>
    %q = "tt.addptr"(%scales, %range) : (tensor<32x!tt.ptr<f16>>, tensor<32xi32>) -> tensor<32x!tt.ptr<f16>>
    %s = "scf.for"(%low, %n, %one, %zero) ({
    ^bb1(%i: i32, %acc: !c):
      %x = "tt.load"(%p) <{operandSegmentSizes = array<i32: 1, 0, 0>}> : (!p) -> !v
      %w = "tt.load"(%p) <{operandSegmentSizes = array<i32: 1, 0, 0>}> : (!p) -> !v
      %z = "tt.load"(%q) <{operandSegmentSizes = array<i32: 1, 0, 0>}> : (tensor<32x!tt.ptr<f16>>) -> tensor<32xf16>
      %l = "tt.expand_dims"(%z) <{axis = 0 : i32}> : (tensor<32xf16>) -> tensor<1x32xf16>
      %all_l = "tt.broadcast"(%l) : (tensor<1x32xf16>) -> !v
      %y = "arith.mulf"(%w, %all_l) : (!v, !v) -> !v
      %e = "tt.dot"(%x, %y, %acc) : (!v, !v, !c) -> !c
      "scf.yield"(%e) : (!c) -> ()
    }) : (i32, i32, i32, !c) -> !c
    %o = "arith.truncf"(%s) : (!c) -> !v
    "tt.store"(%p, %o) : (!p, !v) -> ()
    "tt.return"() : () -> ()
  }) : () -> ()
}) : () -> ()
