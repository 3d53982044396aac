// PASS: bulk-access{is_eager=true}
// Rows and columns without a mask end nowhere: a tile goes on in the next row, as pointers do.
//
// CHECK: "ttng.tensor_map"(%x, %s)
// CHECK-SAME: constant\22, 2147483648]
// CHECK-SAME: constant\22, 2147483648]
// CHECK: "tt.descriptor_load"
// CHECK-NOT: "tt.load"
// CHECK: s is at least 1
// CHECK-NOT: <=

!p = tensor<32x64x!tt.ptr<f16>>
!i = tensor<32x64xi32>
!t = tensor<32x64xf16>
"builtin.module"() ({
  "tt.func"() <{sym_name = "k", function_type = (!tt.ptr<f16>, !tt.ptr<f16>, i32, i32) -> (), arg_attrs = [{tt.divisibility = 16 : i32}, {tt.divisibility = 16 : i32}, {tt.divisibility = 16 : i32}, {}]}> ({
  ^bb0(%x: !tt.ptr<f16>, %y: !tt.ptr<f16>, %s: i32, %n: i32):
    %pid = "tt.get_program_id"() <{axis = 0 : i32}> : () -> i32
    %many = "arith.constant"() <{value = 32 : i32}> : () -> i32
    %start = "arith.muli"(%pid, %many) : (i32, i32) -> i32
    %rows = "tt.make_range"() <{start = 0 : i32, end = 32 : i32}> : () -> tensor<32xi32>
    %starts = "tt.splat"(%start) : (i32) -> tensor<32xi32>
    %row = "arith.addi"(%starts, %rows) : (tensor<32xi32>, tensor<32xi32>) -> tensor<32xi32>
    %columns = "tt.make_range"() <{start = 0 : i32, end = 64 : i32}> : () -> tensor<64xi32>
    %down = "tt.expand_dims"(%row) <{axis = 1 : i32}> : (tensor<32xi32>) -> tensor<32x1xi32>
    %along = "tt.expand_dims"(%columns) <{axis = 0 : i32}> : (tensor<64xi32>) -> tensor<1x64xi32>
    %step = "tt.splat"(%s) : (i32) -> tensor<32x1xi32>
    %far = "arith.muli"(%down, %step) : (tensor<32x1xi32>, tensor<32x1xi32>) -> tensor<32x1xi32>
    %fars = "tt.broadcast"(%far) : (tensor<32x1xi32>) -> !i
    %near = "tt.broadcast"(%along) : (tensor<1x64xi32>) -> !i
    %offset = "arith.addi"(%fars, %near) : (!i, !i) -> !i
    %from = "tt.splat"(%x) : (!tt.ptr<f16>) -> !p
    %to = "tt.splat"(%y) : (!tt.ptr<f16>) -> !p
    %at = "tt.addptr"(%from, %offset) : (!p, !i) -> !p
    %there = "tt.addptr"(%to, %offset) : (!p, !i) -> !p
    %v = "tt.load"(%at) <{operandSegmentSizes = array<i32: 1, 0, 0>}> : (!p) -> !t
    "tt.store"(%there, %v) : (!p, !t) -> ()
    "tt.return"() : () -> ()
  }) : () -> ()
}) : () -> ()
