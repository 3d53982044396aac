// PASS: turn-copies{groups=2}
// The elements of a row are adjacent: they are copied as they lie.
//
// CHECK-NOT: "tt.trans"
// CHECK: "tt.load"
// CHECK-SAME: -> tensor<64x128xf16>
// CHECK-NOT: "tt.trans"

!p = tensor<64x128x!tt.ptr<f16>>
!i = tensor<64x128xi32>
!m = tensor<64x128xi1>
!x = tensor<64x64xf16>
!t = tensor<64x128xf16>
!c = tensor<64x128xf32>
"builtin.module"() ({
  "tt.func"() <{sym_name = "k", function_type = (!tt.ptr<f16>, !x, !c, i32, i32) -> (), arg_attrs = [{tt.divisibility = 16 : i32}, {}, {}, {tt.divisibility = 16 : i32}, {tt.divisibility = 16 : i32}]}> ({
  ^bb0(%b: !tt.ptr<f16>, %x: !x, %sum: !c, %s: i32, %k: i32):
    %rows = "tt.make_range"() <{start = 0 : i32, end = 64 : i32}> : () -> tensor<64xi32>
    %columns = "tt.make_range"() <{start = 0 : i32, end = 128 : i32}> : () -> tensor<128xi32>
    %down = "tt.expand_dims"(%rows) <{axis = 1 : i32}> : (tensor<64xi32>) -> tensor<64x1xi32>
    %along = "tt.expand_dims"(%columns) <{axis = 0 : i32}> : (tensor<128xi32>) -> tensor<1x128xi32>
    %step = "tt.splat"(%s) : (i32) -> tensor<64x1xi32>
    %end = "tt.splat"(%k) : (i32) -> tensor<64x1xi32>
    %inside = "arith.cmpi"(%down, %end) <{predicate = 2 : i64}> : (tensor<64x1xi32>, tensor<64x1xi32>) -> tensor<64x1xi1>
    %mask = "tt.broadcast"(%inside) : (tensor<64x1xi1>) -> !m
    %far = "arith.muli"(%down, %step) : (tensor<64x1xi32>, tensor<64x1xi32>) -> tensor<64x1xi32>
    %fars = "tt.broadcast"(%far) : (tensor<64x1xi32>) -> !i
    %near = "tt.broadcast"(%along) : (tensor<1x128xi32>) -> !i
    %offset = "arith.addi"(%fars, %near) : (!i, !i) -> !i
    %from = "tt.splat"(%b) : (!tt.ptr<f16>) -> !p
    %at = "tt.addptr"(%from, %offset) : (!p, !i) -> !p
    %zero = "arith.constant"() <{value = dense<0.0> : !t}> : () -> !t
    %y = "tt.load"(%at, %mask, %zero) <{operandSegmentSizes = array<i32: 1, 1, 1>}> : (!p, !m, !t) -> !t
    %product = "tt.dot"(%x, %y, %sum) <{inputPrecision = 0 : i32, maxNumImpreciseAcc = 0 : i32}> : (!x, !t, !c) -> !c
    "tt.return"() : () -> ()
  }) : () -> ()
}) : () -> ()
