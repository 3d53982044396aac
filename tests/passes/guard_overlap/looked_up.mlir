// PASS: decide-products decide-schedule guard-overlap
// A table says where a row is loaded: no launch can tell where that is, so nothing runs ahead.
//
// CHECK-NOT: ttng.launch_guards
// CHECK-NOT: slots 3
// CHECK: loads do not run ahead of stores: a launch cannot tell whether

!p = tensor<128x!tt.ptr<f32>>
!v = tensor<128xf32>
!i = tensor<128xi32>
"builtin.module"() ({
  "tt.func"() <{sym_name = "k", function_type = (!tt.ptr<f32>, !tt.ptr<f32>, !tt.ptr<i32>, i32, i32) -> ()}> ({
  ^bb0(%x: !tt.ptr<f32>, %out: !tt.ptr<f32>, %table: !tt.ptr<i32>, %n: i32, %stride: i32):
    %low = "arith.constant"() <{value = 0 : i32}> : () -> i32
    %one = "arith.constant"() <{value = 1 : i32}> : () -> i32
    %range = "tt.make_range"() <{start = 0 : i32, end = 128 : i32}> : () -> !i
    "scf.for"(%low, %n, %one) ({
    ^bb1(%row: i32):
      %start = "arith.muli"(%row, %stride) : (i32, i32) -> i32
      %where = "tt.addptr"(%table, %row) : (!tt.ptr<i32>, i32) -> !tt.ptr<i32>
      %place = "tt.load"(%where) <{operandSegmentSizes = array<i32: 1, 0, 0>}> : (!tt.ptr<i32>) -> i32
      %from = "tt.addptr"(%x, %place) : (!tt.ptr<f32>, i32) -> !tt.ptr<f32>
      %froms = "tt.splat"(%from) : (!tt.ptr<f32>) -> !p
      %p = "tt.addptr"(%froms, %range) : (!p, !i) -> !p
      %v = "tt.load"(%p) <{operandSegmentSizes = array<i32: 1, 0, 0>}> : (!p) -> !v
      %to = "tt.addptr"(%out, %start) : (!tt.ptr<f32>, i32) -> !tt.ptr<f32>
      %tos = "tt.splat"(%to) : (!tt.ptr<f32>) -> !p
      %q = "tt.addptr"(%tos, %range) : (!p, !i) -> !p
      "tt.store"(%q, %v) : (!p, !v) -> ()
      "scf.yield"() : () -> ()
    }) {tt.num_stages = 3 : i32} : (i32, i32, i32) -> ()
    "tt.return"() : () -> ()
  }) : () -> ()
}) : () -> ()
