// PASS: emit-nests
// A row that is unravelled is read by whole vectors where no multiple of 17 lies between the lanes,
// which one remainder tells, and else piece by piece, under masks.
//
// CHECK: "arith.remsi"(%{{.*}}, %{{.*}}) : (i32, i32) -> i32
// CHECK: "scf.if"
// CHECK: "cpu.load"{{.*}} : (!tt.ptr<f32>) -> vector<16xf32>
// CHECK: "scf.while"
// CHECK: "cpu.load"{{.*}} : (!tt.ptr<f32>, vector<16xi1>, vector<16xf32>) -> vector<16xf32>

!p = tensor<64x!tt.ptr<f32>>
!i = tensor<64xi32>
"builtin.module"() ({
  "tt.func"() <{sym_name = "unravelled", function_type = (!tt.ptr<f32>, !tt.ptr<f32>) -> ()}> ({
  ^bb0(%x: !tt.ptr<f32>, %y: !tt.ptr<f32>):
    %i = "tt.make_range"() <{start = 0 : i32, end = 64 : i32}> : () -> !i
    %d = "arith.constant"() <{value = dense<17> : !i}> : () -> !i
    %s = "arith.constant"() <{value = dense<20> : !i}> : () -> !i
    %q = "arith.divsi"(%i, %d) : (!i, !i) -> !i
    %r = "arith.remsi"(%i, %d) : (!i, !i) -> !i
    %m = "arith.muli"(%q, %s) : (!i, !i) -> !i
    %o = "arith.addi"(%m, %r) : (!i, !i) -> !i
    %xs = "tt.splat"(%x) : (!tt.ptr<f32>) -> !p
    %p = "tt.addptr"(%xs, %o) : (!p, !i) -> !p
    %v = "tt.load"(%p) <{operandSegmentSizes = array<i32: 1, 0, 0>}> : (!p) -> tensor<64xf32>
    %ys = "tt.splat"(%y) : (!tt.ptr<f32>) -> !p
    %t = "tt.addptr"(%ys, %i) : (!p, !i) -> !p
    "tt.store"(%t, %v) : (!p, tensor<64xf32>) -> ()
    "tt.return"() : () -> ()
  }) : () -> ()
}) : () -> ()

// -----
// PASS: emit-nests
// Cuts at multiples of 99 are among those at multiples of 33, which lie further apart than a vector's
// lanes: whole vectors or two pieces, and a loop for indices that overflow.
//
// CHECK: "cpu.nest"
// CHECK: "scf.if"
// CHECK: "cpu.load"{{.*}} : (!tt.ptr<f32>) -> vector<16xf32>
// CHECK: "scf.if"
// CHECK-COUNT-2: "cpu.load"{{.*}} : (!tt.ptr<f32>, vector<16xi1>, vector<16xf32>) -> vector<16xf32>
// CHECK: "scf.while"
// CHECK: "cpu.yield"

!p = tensor<64x!tt.ptr<f32>>
!i = tensor<64xi32>
"builtin.module"() ({
  "tt.func"() <{sym_name = "nested", function_type = (!tt.ptr<f32>, !tt.ptr<f32>) -> ()}> ({
  ^bb0(%x: !tt.ptr<f32>, %y: !tt.ptr<f32>):
    %i = "tt.make_range"() <{start = 0 : i32, end = 64 : i32}> : () -> !i
    %d = "arith.constant"() <{value = dense<33> : !i}> : () -> !i
    %e = "arith.constant"() <{value = dense<99> : !i}> : () -> !i
    %q = "arith.divsi"(%i, %e) : (!i, !i) -> !i
    %r = "arith.remsi"(%i, %d) : (!i, !i) -> !i
    %m = "arith.muli"(%q, %d) : (!i, !i) -> !i
    %o = "arith.addi"(%m, %r) : (!i, !i) -> !i
    %xs = "tt.splat"(%x) : (!tt.ptr<f32>) -> !p
    %p = "tt.addptr"(%xs, %o) : (!p, !i) -> !p
    %v = "tt.load"(%p) <{operandSegmentSizes = array<i32: 1, 0, 0>}> : (!p) -> tensor<64xf32>
    %ys = "tt.splat"(%y) : (!tt.ptr<f32>) -> !p
    %t = "tt.addptr"(%ys, %i) : (!p, !i) -> !p
    "tt.store"(%t, %v) : (!p, tensor<64xf32>) -> ()
    "tt.return"() : () -> ()
  }) : () -> ()
}) : () -> ()

// -----
// PASS: emit-nests
// A dividend that runs backwards: no cut is looked for.
//
// CHECK: "cpu.nest"
// CHECK-NOT: "scf.if"
// CHECK: "cpu.gather"
// CHECK-NOT: "scf.if"
// CHECK: "cpu.yield"

!p = tensor<64x!tt.ptr<f32>>
!i = tensor<64xi32>
"builtin.module"() ({
  "tt.func"() <{sym_name = "backwards", function_type = (!tt.ptr<f32>, !tt.ptr<f32>) -> ()}> ({
  ^bb0(%x: !tt.ptr<f32>, %y: !tt.ptr<f32>):
    %i = "tt.make_range"() <{start = 0 : i32, end = 64 : i32}> : () -> !i
    %d = "arith.constant"() <{value = dense<17> : !i}> : () -> !i
    %last = "arith.constant"() <{value = dense<63> : !i}> : () -> !i
    %j = "arith.subi"(%last, %i) : (!i, !i) -> !i
    %r = "arith.remsi"(%j, %d) : (!i, !i) -> !i
    %xs = "tt.splat"(%x) : (!tt.ptr<f32>) -> !p
    %p = "tt.addptr"(%xs, %r) : (!p, !i) -> !p
    %v = "tt.load"(%p) <{operandSegmentSizes = array<i32: 1, 0, 0>}> : (!p) -> tensor<64xf32>
    %ys = "tt.splat"(%y) : (!tt.ptr<f32>) -> !p
    %t = "tt.addptr"(%ys, %i) : (!p, !i) -> !p
    "tt.store"(%t, %v) : (!p, tensor<64xf32>) -> ()
    "tt.return"() : () -> ()
  }) : () -> ()
}) : () -> ()

// -----
// PASS: emit-nests
// Two loads by the same pieces: one test for both, and code for either case.
//
// CHECK: "cpu.nest"
// CHECK: "arith.remsi"(%{{.*}}, %{{.*}}) : (i32, i32) -> i32
// CHECK: "scf.if"
// CHECK-COUNT-2: "cpu.load"{{.*}} : (!tt.ptr<f32>) -> vector<16xf32>
// CHECK: "cpu.store"
// CHECK-COUNT-2: "scf.while"
// CHECK: "cpu.store"
// CHECK-NOT: "scf.if"
// CHECK: "cpu.yield"

!p = tensor<64x!tt.ptr<f32>>
!i = tensor<64xi32>
!v = tensor<64xf32>
"builtin.module"() ({
  "tt.func"() <{sym_name = "two", function_type = (!tt.ptr<f32>, !tt.ptr<f32>) -> ()}> ({
  ^bb0(%x: !tt.ptr<f32>, %y: !tt.ptr<f32>):
    %i = "tt.make_range"() <{start = 0 : i32, end = 64 : i32}> : () -> !i
    %d = "arith.constant"() <{value = dense<17> : !i}> : () -> !i
    %r = "arith.remsi"(%i, %d) : (!i, !i) -> !i
    %xs = "tt.splat"(%x) : (!tt.ptr<f32>) -> !p
    %p = "tt.addptr"(%xs, %r) : (!p, !i) -> !p
    %q = "tt.addptr"(%p, %d) : (!p, !i) -> !p
    %v = "tt.load"(%p) <{operandSegmentSizes = array<i32: 1, 0, 0>}> : (!p) -> !v
    %w = "tt.load"(%q) <{operandSegmentSizes = array<i32: 1, 0, 0>}> : (!p) -> !v
    %s = "arith.addf"(%v, %w) : (!v, !v) -> !v
    %ys = "tt.splat"(%y) : (!tt.ptr<f32>) -> !p
    %t = "tt.addptr"(%ys, %i) : (!p, !i) -> !p
    "tt.store"(%t, %s) : (!p, !v) -> ()
    "tt.return"() : () -> ()
  }) : () -> ()
}) : () -> ()
