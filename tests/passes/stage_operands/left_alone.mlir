// PASS: decide-products decide-accesses decide-schedule decide-layouts assign-layouts stage-operands
// A loop of one stage has no ring, and a tile that something else than a product takes, too, is in
// registers anyway: both are converted as before.
//
// CHECK: "scf.for"
// CHECK: "tt.load"
// CHECK-NOT: "ttg.local_alloc"
// CHECK: "ttg.convert_layout"
// CHECK: "ttg.dot"
// CHECK: "scf.for"
// CHECK-NOT: "ttg.local_alloc"
// CHECK: "ttg.dot"
// CHECK-NOT: "ttg.local_alloc"
// CHECK: "tt.store"

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
    %s = "scf.for"(%low, %n, %one, %zero) ({
    ^bb1(%i: i32, %acc: !c):
      %x = "tt.load"(%p) <{operandSegmentSizes = array<i32: 1, 0, 0>}> : (!p) -> !v
      %y = "tt.load"(%p, %mask, %other) <{operandSegmentSizes = array<i32: 1, 1, 1>}> : (!p, !m, !v) -> !v
      %z = "arith.addf"(%y, %y) : (!v, !v) -> !v
      %e = "tt.dot"(%x, %z, %acc) : (!v, !v, !c) -> !c
      "scf.yield"(%e) : (!c) -> ()
    }) {tt.num_stages = 1 : i32} : (i32, i32, i32, !c) -> !c
    %t = "scf.for"(%low, %n, %one, %s) ({
    ^bb1(%i: i32, %acc: !c):
      %x = "tt.load"(%p) <{operandSegmentSizes = array<i32: 1, 0, 0>}> : (!p) -> !v
      %w = "arith.addf"(%x, %x) : (!v, !v) -> !v
      %e = "tt.dot"(%x, %w, %acc) : (!v, !v, !c) -> !c
      "scf.yield"(%e) : (!c) -> ()
    }) : (i32, i32, i32, !c) -> !c
    %o = "arith.truncf"(%t) : (!c) -> !v
    "tt.store"(%p, %o) : (!p, !v) -> ()
    "tt.return"() : () -> ()
  }) : () -> ()
}) : () -> ()
