// PASS: decide-accesses decide-layouts assign-layouts
// Rows are read along one dim and written along the other: the value changes its layout once,
// between the two, and each access is as wide as memory allows. What is made of ranges and constants
// alone is made again in each layout that asks for it, and never converted.
//
// CHECK: "tt.make_range"
// CHECK: "tt.make_range"
// CHECK-NOT: ttg.convert_layout
// CHECK: %v = "tt.load"{{.*}}#tw.access<"vector 8, order 1 0">} : ({{.*}}) -> tensor<64x64xf16, #[[ROWS:.*]]>
// CHECK-NEXT: %[[MOVED:.*]] = "ttg.convert_layout"(%v) : (tensor<64x64xf16, #[[ROWS]]>) -> tensor<64x64xf16, #[[COLUMNS:.*]]>
// CHECK-NOT: ttg.convert_layout
// CHECK: "tt.store"(%{{.*}}, %[[MOVED]]) {tw.access = #tw.access<"vector 8, order 0 1">}

!p = tensor<64x64x!tt.ptr<f16>>
!i = tensor<64x64xi32>
!v = tensor<64x64xf16>
"builtin.module"() ({
  "tt.func"() <{sym_name = "k", function_type = (!tt.ptr<f16>, !tt.ptr<f16>) -> (), arg_attrs = [{tt.divisibility = 16 : i32}, {tt.divisibility = 16 : i32}]}> ({
  ^bb0(%x: !tt.ptr<f16>, %y: !tt.ptr<f16>):
    %c64 = "arith.constant"() <{value = dense<64> : !i}> : () -> !i
    %r = "tt.make_range"() <{start = 0 : i32, end = 64 : i32}> : () -> tensor<64xi32>
    %r0 = "tt.expand_dims"(%r) <{axis = 1 : i32}> : (tensor<64xi32>) -> tensor<64x1xi32>
    %rows = "tt.broadcast"(%r0) : (tensor<64x1xi32>) -> !i
    %r1 = "tt.expand_dims"(%r) <{axis = 0 : i32}> : (tensor<64xi32>) -> tensor<1x64xi32>
    %columns = "tt.broadcast"(%r1) : (tensor<1x64xi32>) -> !i
    %down = "arith.muli"(%rows, %c64) : (!i, !i) -> !i
    %at = "arith.addi"(%down, %columns) : (!i, !i) -> !i
    %along = "arith.muli"(%columns, %c64) : (!i, !i) -> !i
    %to = "arith.addi"(%along, %rows) : (!i, !i) -> !i
    %xs = "tt.splat"(%x) : (!tt.ptr<f16>) -> !p
    %p = "tt.addptr"(%xs, %at) : (!p, !i) -> !p
    %v = "tt.load"(%p) <{operandSegmentSizes = array<i32: 1, 0, 0>}> : (!p) -> !v
    %ys = "tt.splat"(%y) : (!tt.ptr<f16>) -> !p
    %q = "tt.addptr"(%ys, %to) : (!p, !i) -> !p
    "tt.store"(%q, %v) : (!p, !v) -> ()
    "tt.return"() : () -> ()
  }) : () -> ()
}) : () -> ()
