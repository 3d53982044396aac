// PASS: narrow-repeats
// A mask that ends within eight rows tells them apart, a volatile load is made as often as it is
// written, and what products take as it is, or what no product takes, stays.
//
// CHECK-NOT: tensor<4
// CHECK: "tt.return"

!w = tensor<32x32xi32>
!v = tensor<32x32xf16>
!c = tensor<32x32xf32>
"builtin.module"() ({
  "tt.func"() <{sym_name = "k", function_type = (!tt.ptr<i32>, !tt.ptr<f16>, i32) -> (), arg_attrs = [{tt.divisibility = 16 : i32}, {tt.divisibility = 16 : i32}, {}]}> ({
  ^bb0(%base: !tt.ptr<i32>, %left: !tt.ptr<f16>, %n: i32):
    %low = "arith.constant"() <{value = 0 : i32}> : () -> i32
    %one = "arith.constant"() <{value = 1 : i32}> : () -> i32
    %eight = "arith.constant"() <{value = 8 : i32}> : () -> i32
    %range = "tt.make_range"() <{start = 0 : i32, end = 32 : i32}> : () -> tensor<32xi32>
    %eights = "tt.splat"(%eight) : (i32) -> tensor<32xi32>
    %of_word = "arith.divsi"(%range, %eights) : (tensor<32xi32>, tensor<32xi32>) -> tensor<32xi32>
    %rows = "tt.expand_dims"(%of_word) <{axis = 1 : i32}> : (tensor<32xi32>) -> tensor<32x1xi32>
    %size = "tt.splat"(%n) : (i32) -> tensor<32x1xi32>
    %starts = "arith.muli"(%rows, %size) : (tensor<32x1xi32>, tensor<32x1xi32>) -> tensor<32x1xi32>
    %columns = "tt.expand_dims"(%range) <{axis = 0 : i32}> : (tensor<32xi32>) -> tensor<1x32xi32>
    %down = "tt.broadcast"(%starts) : (tensor<32x1xi32>) -> !w
    %across = "tt.broadcast"(%columns) : (tensor<1x32xi32>) -> !w
    %at = "arith.addi"(%down, %across) : (!w, !w) -> !w
    %all = "tt.splat"(%base) : (!tt.ptr<i32>) -> tensor<32x32x!tt.ptr<i32>>
    %p = "tt.addptr"(%all, %at) : (tensor<32x32x!tt.ptr<i32>>, !w) -> tensor<32x32x!tt.ptr<i32>>
    %ends = "tt.splat"(%n) : (i32) -> tensor<32x1xi32>
    %long = "tt.expand_dims"(%range) <{axis = 1 : i32}> : (tensor<32xi32>) -> tensor<32x1xi32>
    %inside = "arith.cmpi"(%long, %ends) <{predicate = 2 : i64}> : (tensor<32x1xi32>, tensor<32x1xi32>) -> tensor<32x1xi1>
    %mask = "tt.broadcast"(%inside) : (tensor<32x1xi1>) -> tensor<32x32xi1>
    %other = "arith.constant"() <{value = dense<0> : !w}> : () -> !w
    %words = "tt.splat"(%base) : (!tt.ptr<i32>) -> tensor<32x!tt.ptr<i32>>
    %q = "tt.addptr"(%words, %of_word) : (tensor<32x!tt.ptr<i32>>, tensor<32xi32>) -> tensor<32x!tt.ptr<i32>>
    %lefts = "tt.splat"(%left) : (!tt.ptr<f16>) -> tensor<32x32x!tt.ptr<f16>>
    %l = "tt.addptr"(%lefts, %at) : (tensor<32x32x!tt.ptr<f16>>, !w) -> tensor<32x32x!tt.ptr<f16>>
    %zero = "arith.constant"() <{value = dense<0.0> : !c}> : () -> !c
    %s = "scf.for"(%low, %n, %one, %zero) ({
    ^bb1(%i: i32, %acc: !c):
      %x = "tt.load"(%l) <{operandSegmentSizes = array<i32: 1, 0, 0>}> : (tensor<32x32x!tt.ptr<f16>>) -> !v
      %y = "tt.load"(%p, %mask, %other) <{operandSegmentSizes = array<i32: 1, 1, 1>}> : (tensor<32x32x!tt.ptr<i32>>, tensor<32x32xi1>, !w) -> !w
      %z = "tt.load"(%q) <{isVolatile = true, operandSegmentSizes = array<i32: 1, 0, 0>}> : (tensor<32x!tt.ptr<i32>>) -> tensor<32xi32>
      %row = "tt.expand_dims"(%z) <{axis = 0 : i32}> : (tensor<32xi32>) -> tensor<1x32xi32>
      %zeros = "tt.broadcast"(%row) : (tensor<1x32xi32>) -> !w
      %less = "arith.subi"(%y, %zeros) : (!w, !w) -> !w
      %h = "arith.sitofp"(%less) : (!w) -> !v
      %e = "tt.dot"(%x, %h, %acc) : (!v, !v, !c) -> !c
      "scf.yield"(%e) : (!c) -> ()
    }) : (i32, i32, i32, !c) -> !c
    %o = "arith.truncf"(%s) : (!c) -> !v
    "tt.store"(%l, %o) : (tensor<32x32x!tt.ptr<f16>>, !v) -> ()
    "tt.return"() : () -> ()
  }) : () -> ()
}) : () -> ()
