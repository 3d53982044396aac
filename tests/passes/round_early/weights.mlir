// PASS: round-early
// PASS(NESTS): round-early emit-nests
// What is rounded for a product is rounded where it is made, and one nest folds and rounds it.
//
// CHECK: %w = "math.exp2"(%s)
// CHECK-NEXT: %p = "arith.truncf"(%w)
// CHECK: "tt.reduce"(%w)
// NESTS: summary = "materialize, tt.reduce"

!s = tensor<32x32xf32>
!p = tensor<32x32xbf16>
!t = tensor<32x32x!tt.ptr<bf16>>
!i = tensor<32x32xi32>
"builtin.module"() ({
  "tt.func"() <{sym_name = "k", function_type = (!tt.ptr<bf16>, f32, f32) -> ()}> ({
  ^bb0(%v_ptr: !tt.ptr<bf16>, %x: f32, %y: f32):
    %s = "tt.splat"(%x) : (f32) -> !s
    %w = "math.exp2"(%s) : (!s) -> !s
    %t = "tt.reduce"(%w) <{axis = 1 : i32}> ({
    ^bb1(%l: f32, %r: f32):
      %m = "arith.addf"(%l, %r) : (f32, f32) -> f32
      "tt.reduce.return"(%m) : (f32) -> ()
    }) : (!s) -> tensor<32xf32>
    %j = "tt.make_range"() <{start = 0 : i32, end = 32 : i32}> : () -> tensor<32xi32>
    %row = "tt.expand_dims"(%j) <{axis = 1 : i32}> : (tensor<32xi32>) -> tensor<32x1xi32>
    %column = "tt.expand_dims"(%j) <{axis = 0 : i32}> : (tensor<32xi32>) -> tensor<1x32xi32>
    %pitch = "arith.constant"() <{value = dense<32> : tensor<32x1xi32>}> : () -> tensor<32x1xi32>
    %down = "arith.muli"(%row, %pitch) : (tensor<32x1xi32>, tensor<32x1xi32>) -> tensor<32x1xi32>
    %rows = "tt.broadcast"(%down) : (tensor<32x1xi32>) -> !i
    %columns = "tt.broadcast"(%column) : (tensor<1x32xi32>) -> !i
    %at = "arith.addi"(%rows, %columns) : (!i, !i) -> !i
    %base = "tt.splat"(%v_ptr) : (!tt.ptr<bf16>) -> !t
    %place = "tt.addptr"(%base, %at) : (!t, !i) -> !t
    %v = "tt.load"(%place) <{operandSegmentSizes = array<i32: 1, 0, 0>}> : (!t) -> !p
    %p = "arith.truncf"(%w) : (!s) -> !p
    %zero = "arith.constant"() <{value = dense<0.0> : !s}> : () -> !s
    %d = "tt.dot"(%p, %v, %zero) <{inputPrecision = 2 : i32, maxNumImpreciseAcc = 0 : i32}> : (!p, !p, !s) -> !s
    "tt.print"(%d) <{prefix = "d", hex = false, isSigned = array<i32: 0>}> : (!s) -> ()
    "tt.print"(%t) <{prefix = "t", hex = false, isSigned = array<i32: 0>}> : (tensor<32xf32>) -> ()
    "tt.return"() : () -> ()
  }) : () -> ()
}) : () -> ()
