// PASS: pipeline-loops
// A store may change what the addresses of a load come from, though what it loads is another
// argument's: the loop stays as it is, and says why.
//
// CHECK-NOT: "ttg.async_copy_global_to_local"
// CHECK: not pipelined: tt.store at {{.*}} writes through the argument of a load

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
      %rows = "tt.load"(%in) <{operandSegmentSizes = array<i32: 1, 0, 0>}> {tw.access = #tw.access<"vector 1, order 0">} : (!q) -> !n
      %at = "tt.addptr"(%p, %rows) : (!p, !n) -> !p
      %x = "tt.load"(%at) <{operandSegmentSizes = array<i32: 1, 0, 0>}> {tw.anchor = "load#1", tw.access = #tw.access<"vector 1, order 0">} : (!p) -> !v
      %next = "arith.addf"(%acc, %x) : (!v, !v) -> !v
      "tt.store"(%in, %steps) {tw.access = #tw.access<"vector 1, order 0">} : (!q, !n) -> ()
      "scf.yield"(%next) : (!v) -> ()
    }) {tw.anchor = "for#0"} : (i32, i32, i32, !v) -> !v
    "tt.store"(%o, %sum) {tw.access = #tw.access<"vector 1, order 0">} : (!p, !v) -> ()
    "tt.return"() : () -> ()
  }) {tw.schedule = #tw.schedule<"ring a tiles load#1 slots 3 cp_async; loop for#0 load#1 @0.0 rest @2.1">} : () -> ()
}) : () -> ()
