// PASS: decide-products decide-schedule guard-overlap
// Rows are loaded ahead of stores through another argument: a launch says whether that shows.
//
// CHECK: tw.anchor = "load#0"
// CHECK: tt.num_stages = 3 : i32, tw.anchor = "for#0"
// CHECK: slots 3 cp_async{{.*}}ttng.launch_guards = "{{.*}}at_least{{.*}}do not overlap

!p = tensor<128x!tt.ptr<f32>>
!v = tensor<128xf32>
!i = tensor<128xi32>
"builtin.module"() ({
  "tt.func"() <{sym_name = "k", function_type = (!tt.ptr<f32>, !tt.ptr<f32>, i32, i32) -> ()}> ({
  ^bb0(%x: !tt.ptr<f32>, %out: !tt.ptr<f32>, %n: i32, %stride: i32):
    %low = "arith.constant"() <{value = 0 : i32}> : () -> i32
    %one = "arith.constant"() <{value = 1 : i32}> : () -> i32
    %range = "tt.make_range"() <{start = 0 : i32, end = 128 : i32}> : () -> !i
    "scf.for"(%low, %n, %one) ({
    ^bb1(%row: i32):
      %start = "arith.muli"(%row, %stride) : (i32, i32) -> i32
      %from = "tt.addptr"(%x, %start) : (!tt.ptr<f32>, i32) -> !tt.ptr<f32>
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
