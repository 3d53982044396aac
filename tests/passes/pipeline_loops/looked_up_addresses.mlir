// PASS: pipeline-loops
// A tile that the addresses of another load come from is loaded at once, not copied to a slot:
// what has only been started has nothing to read. Two iterations ahead it is not carried.
//
// CHECK: "ttg.local_alloc"() :
// CHECK-SAME: f32, #shared{{[0-9]+}}, 3>
// CHECK-NOT: "ttg.local_alloc"
// CHECK: "tt.load"
// CHECK-NOT: "ttg.async_copy_global_to_local"
// CHECK: "tt.addptr"
// CHECK: "ttg.async_copy_global_to_local"
// CHECK: "ttg.async_commit_group"
// CHECK: "tt.load"
// CHECK: "ttg.async_copy_global_to_local"
// CHECK: "ttg.async_commit_group"
// CHECK: "scf.for"
// CHECK: "tt.load"
// CHECK: "ttg.async_copy_global_to_local"
// CHECK: "ttg.local_load"
// CHECK-NOT: "tt.load"
// CHECK: loads run 2 iterations ahead, to 3 slots of 2048 bytes

#l = #ttg.linear<"register(1 2) lane(4 8 16 32 64) warp(128 256) atom(512)">
!p = tensor<512x!tt.ptr<f32>, #l>
!q = tensor<512x!tt.ptr<i32>, #l>
!n = tensor<512xi32, #l>
!v = tensor<512xf32, #l>
"builtin.module"() ({
  "tt.func"() <{sym_name = "k", function_type = (!p, !q, i32, !v, !tt.ptr<f32>) -> ()}> ({
  ^bb0(%p: !p, %table: !q, %n: i32, %zero: !v, %out: !tt.ptr<f32>):
    %o = "tt.splat"(%out) : (!tt.ptr<f32>) -> !p
    %low = "arith.constant"() <{value = 0 : i32}> : () -> i32
    %one = "arith.constant"() <{value = 1 : i32}> : () -> i32
    %sum = "scf.for"(%low, %n, %one, %zero) ({
    ^bb1(%i: i32, %acc: !v):
      %steps = "tt.splat"(%i) : (i32) -> !n
      %in = "tt.addptr"(%table, %steps) : (!q, !n) -> !q
      %rows = "tt.load"(%in) <{operandSegmentSizes = array<i32: 1, 0, 0>}> {tw.anchor = "load#0", tw.access = #tw.access<"vector 1, order 0">} : (!q) -> !n
      %at = "tt.addptr"(%p, %rows) : (!p, !n) -> !p
      %x = "tt.load"(%at) <{operandSegmentSizes = array<i32: 1, 0, 0>}> {tw.anchor = "load#1", tw.access = #tw.access<"vector 1, order 0">} : (!p) -> !v
      %next = "arith.addf"(%acc, %x) : (!v, !v) -> !v
      "scf.yield"(%next) : (!v) -> ()
    }) {tw.anchor = "for#0"} : (i32, i32, i32, !v) -> !v
    "tt.store"(%o, %sum) {tw.access = #tw.access<"vector 1, order 0">} : (!p, !v) -> ()
    "tt.return"() : () -> ()
  }) {tw.schedule = #tw.schedule<"ring a tiles load#0 load#1 slots 3 cp_async; loop for#0 load#0 @0.0 load#1 @0.0 rest @2.1">} : () -> ()
}) : () -> ()
