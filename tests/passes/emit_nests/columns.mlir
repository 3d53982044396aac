// PASS: emit-nests
// Sums down columns of an array 33 wide, of which a tile spans several: vectors lie along the
// columns. One test for a chunk tells of all rows whether a multiple of 33 lies between the lanes,
// and behind it the rows are loops of their own: of vectors, of two pieces, of any number.
//
// CHECK: "cpu.nest"() <{bounds = array<i64: 32, 16>
// CHECK: "arith.remsi"(%{{.*}}, %{{.*}}) : (i32, i32) -> i32
// CHECK: "scf.if"
// CHECK: "scf.for"
// CHECK-NOT: "scf.if"
// CHECK: "cpu.load"{{.*}} : (!tt.ptr<f32>) -> vector<16xf32>
// CHECK: "scf.if"
// CHECK: "scf.for"
// CHECK-COUNT-2: "cpu.load"{{.*}} : (!tt.ptr<f32>, vector<16xi1>, vector<16xf32>) -> vector<16xf32>
// CHECK: "scf.for"
// CHECK: "scf.while"
// CHECK: "cpu.yield"

!p = tensor<32x16x!tt.ptr<f32>>
!i = tensor<32xi32>
!c = tensor<32x1xi32>
!t = tensor<32x16xi32>
"builtin.module"() ({
  "tt.func"() <{sym_name = "sums", function_type = (!tt.ptr<f32>, !tt.ptr<f32>) -> ()}> ({
  ^bb0(%x: !tt.ptr<f32>, %y: !tt.ptr<f32>):
    %i = "tt.make_range"() <{start = 0 : i32, end = 32 : i32}> : () -> !i
    %r = "tt.make_range"() <{start = 0 : i32, end = 16 : i32}> : () -> tensor<16xi32>
    %ic = "tt.expand_dims"(%i) <{axis = 1 : i32}> : (!i) -> !c
    %rr = "tt.expand_dims"(%r) <{axis = 0 : i32}> : (tensor<16xi32>) -> tensor<1x16xi32>
    %d = "arith.constant"() <{value = dense<33> : !c}> : () -> !c
    %l = "arith.constant"() <{value = dense<500> : !c}> : () -> !c
    %w = "arith.constant"() <{value = dense<33> : tensor<1x16xi32>}> : () -> tensor<1x16xi32>
    %q = "arith.divsi"(%ic, %d) : (!c, !c) -> !c
    %m = "arith.remsi"(%ic, %d) : (!c, !c) -> !c
    %o = "arith.muli"(%q, %l) : (!c, !c) -> !c
    %s = "arith.addi"(%o, %m) : (!c, !c) -> !c
    %v = "arith.muli"(%rr, %w) : (tensor<1x16xi32>, tensor<1x16xi32>) -> tensor<1x16xi32>
    %sb = "tt.broadcast"(%s) : (!c) -> !t
    %vb = "tt.broadcast"(%v) : (tensor<1x16xi32>) -> !t
    %at = "arith.addi"(%sb, %vb) : (!t, !t) -> !t
    %xs = "tt.splat"(%x) : (!tt.ptr<f32>) -> !p
    %ps = "tt.addptr"(%xs, %at) : (!p, !t) -> !p
    %a = "tt.load"(%ps) <{operandSegmentSizes = array<i32: 1, 0, 0>}> : (!p) -> tensor<32x16xf32>
    %sum = "tt.reduce"(%a) <{axis = 1 : i32}> ({
    ^bb1(%left: f32, %right: f32):
      %both = "arith.addf"(%left, %right) : (f32, f32) -> f32
      "tt.reduce.return"(%both) : (f32) -> ()
    }) : (tensor<32x16xf32>) -> tensor<32xf32>
    %ys = "tt.splat"(%y) : (!tt.ptr<f32>) -> tensor<32x!tt.ptr<f32>>
    %to = "tt.addptr"(%ys, %i) : (tensor<32x!tt.ptr<f32>>, !i) -> tensor<32x!tt.ptr<f32>>
    "tt.store"(%to, %sum) : (tensor<32x!tt.ptr<f32>>, tensor<32xf32>) -> ()
    "tt.return"() : () -> ()
  }) : () -> ()
}) : () -> ()

// -----
// PASS: emit-nests
// Pieces that move on from row to row: each row has a test of its own.
//
// CHECK: "cpu.nest"
// CHECK: "scf.for"
// CHECK: "arith.remsi"(%{{.*}}, %{{.*}}) : (i32, i32) -> i32
// CHECK: "scf.if"
// CHECK-NOT: "scf.for"
// CHECK: "scf.while"
// CHECK: "cpu.yield"

!p = tensor<16x32x!tt.ptr<f32>>
!t = tensor<16x32xi32>
"builtin.module"() ({
  "tt.func"() <{sym_name = "moving", function_type = (!tt.ptr<f32>, !tt.ptr<f32>) -> ()}> ({
  ^bb0(%x: !tt.ptr<f32>, %y: !tt.ptr<f32>):
    %i = "tt.make_range"() <{start = 0 : i32, end = 32 : i32}> : () -> tensor<32xi32>
    %r = "tt.make_range"() <{start = 0 : i32, end = 16 : i32}> : () -> tensor<16xi32>
    %ic = "tt.expand_dims"(%i) <{axis = 0 : i32}> : (tensor<32xi32>) -> tensor<1x32xi32>
    %rr = "tt.expand_dims"(%r) <{axis = 1 : i32}> : (tensor<16xi32>) -> tensor<16x1xi32>
    %w = "arith.constant"() <{value = dense<32> : tensor<16x1xi32>}> : () -> tensor<16x1xi32>
    %d = "arith.constant"() <{value = dense<33> : !t}> : () -> !t
    %v = "arith.muli"(%rr, %w) : (tensor<16x1xi32>, tensor<16x1xi32>) -> tensor<16x1xi32>
    %sb = "tt.broadcast"(%ic) : (tensor<1x32xi32>) -> !t
    %vb = "tt.broadcast"(%v) : (tensor<16x1xi32>) -> !t
    %at = "arith.addi"(%sb, %vb) : (!t, !t) -> !t
    %m = "arith.remsi"(%at, %d) : (!t, !t) -> !t
    %xs = "tt.splat"(%x) : (!tt.ptr<f32>) -> !p
    %ps = "tt.addptr"(%xs, %m) : (!p, !t) -> !p
    %a = "tt.load"(%ps) <{operandSegmentSizes = array<i32: 1, 0, 0>}> : (!p) -> tensor<16x32xf32>
    %ys = "tt.splat"(%y) : (!tt.ptr<f32>) -> !p
    %to = "tt.addptr"(%ys, %at) : (!p, !t) -> !p
    "tt.store"(%to, %a) : (!p, tensor<16x32xf32>) -> ()
    "tt.return"() : () -> ()
  }) : () -> ()
}) : () -> ()
