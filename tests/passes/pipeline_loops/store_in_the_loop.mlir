// PASS: pipeline-loops
// A store in the loop may change what its load finds: the loop stays as it is, and says why.
//
// CHECK-NOT: "ttg.async_copy_global_to_local"
// CHECK: "tt.load"
// CHECK: not pipelined: tt.store at {{.*}} writes through the argument of a load

#l = #ttg.linear<"register(1 2 4) lane(8 16 32 64 128) warp(256 512) atom(1024)">
!p = tensor<1024x!tt.ptr<f16>, #l>
!v = tensor<1024xf16, #l>
"builtin.module"() ({
  "tt.func"() <{sym_name = "k", function_type = (!p, i32, !v, !tt.ptr<f16>) -> ()}> ({
  ^bb0(%p: !p, %n: i32, %zero: !v, %out: !tt.ptr<f16>):
    %q = "tt.splat"(%out) : (!tt.ptr<f16>) -> !p
    %low = "arith.constant"() <{value = 0 : i32}> : () -> i32
    %one = "arith.constant"() <{value = 1 : i32}> : () -> i32
    %sum = "scf.for"(%low, %n, %one, %zero) ({
    ^bb1(%i: i32, %acc: !v):
      %steps = "tt.splat"(%i) : (i32) -> tensor<1024xi32, #l>
      %at = "tt.addptr"(%p, %steps) : (!p, tensor<1024xi32, #l>) -> !p
      %x = "tt.load"(%at) <{operandSegmentSizes = array<i32: 1, 0, 0>}> {tw.anchor = "load#0", tw.access = #tw.access<"vector 8, order 0">} : (!p) -> !v
      %next = "arith.addf"(%acc, %x) : (!v, !v) -> !v
      "tt.store"(%at, %next) {tw.access = #tw.access<"vector 8, order 0">} : (!p, !v) -> ()
      "scf.yield"(%next) : (!v) -> ()
    }) {tw.anchor = "for#0"} : (i32, i32, i32, !v) -> !v
    "tt.store"(%q, %sum) {tw.access = #tw.access<"vector 8, order 0">} : (!p, !v) -> ()
    "tt.return"() : () -> ()
  }) {tw.schedule = #tw.schedule<"ring a tiles load#0 slots 3 cp_async; loop for#0 load#0 @0.0 rest @2.1">} : () -> ()
}) : () -> ()
