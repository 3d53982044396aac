// PASS: decide-products decide-schedule guard-overlap
// A store under a condition is one of its loop's stores: a launch says whether it meets the loads.
//
// CHECK: slots 3 cp_async{{.*}}ttng.launch_guards = "{{.*}}at_least{{.*}}do not overlap

!p = tensor<128x!tt.ptr<f32>>
!v = tensor<128xf32>
!i = tensor<128xi32>
"builtin.module"() ({
  "tt.func"() <{sym_name = "k", function_type = (!tt.ptr<f32>, !tt.ptr<f32>, i32, i32, i1) -> ()}> ({
  ^bb0(%x: !tt.ptr<f32>, %out: !tt.ptr<f32>, %n: i32, %stride: i32, %is_stored: i1):
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
      "scf.if"(%is_stored) ({
        "tt.store"(%q, %v) : (!p, !v) -> ()
        "scf.yield"() : () -> ()
      }, {
      }) : (i1) -> ()
      "scf.yield"() : () -> ()
    }) {tt.num_stages = 3 : i32} : (i32, i32, i32) -> ()
    "tt.return"() : () -> ()
  }) : () -> ()
}) : () -> ()
