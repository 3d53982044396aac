// PASS: decide-access-forms
// ROUNDTRIP

// A box is a view; so are rows that wrap or are looked up, as long as another dimension is plain.
// What the author asked for stays.
"builtin.module"() ({
  "tt.func"() <{function_type = (!tt.ptr<f32>, !tt.ptr<i32>, i32) -> (), sym_name = "k"}> ({
  ^bb0(%x: !tt.ptr<f32>, %i: !tt.ptr<i32>, %n: i32):
    %at = "tt.make_range"() <{start = 0 : i32, end = 16 : i32}> : () -> tensor<16xi32>
    %ns = "tt.splat"(%n) : (i32) -> tensor<16xi32>
    %mask = "arith.cmpi"(%at, %ns) <{predicate = 2 : i64}> : (tensor<16xi32>, tensor<16xi32>) -> tensor<16xi1>
    %xs = "tt.splat"(%x) : (!tt.ptr<f32>) -> tensor<16x!tt.ptr<f32>>
    %p = "tt.addptr"(%xs, %at) : (tensor<16x!tt.ptr<f32>>, tensor<16xi32>) -> tensor<16x!tt.ptr<f32>>
    // CHECK: %box = "tt.load"{{.*}}{tw.access_form = "view"}
    %box = "tt.load"(%p, %mask) <{operandSegmentSizes = array<i32: 1, 1, 0>}> : (tensor<16x!tt.ptr<f32>>, tensor<16xi1>) -> tensor<16xf32>
    // CHECK: %asked = "tt.load"{{.*}}{tw.access_form = "elements: as I say"}
    %asked = "tt.load"(%p) <{operandSegmentSizes = array<i32: 1, 0, 0>}> {tw.access_form = "elements: as I say"} : (tensor<16x!tt.ptr<f32>>) -> tensor<16xf32>
    %rows = "arith.remsi"(%at, %ns) : (tensor<16xi32>, tensor<16xi32>) -> tensor<16xi32>
    %r = "tt.expand_dims"(%rows) <{axis = 1 : i32}> : (tensor<16xi32>) -> tensor<16x1xi32>
    %wide = "tt.splat"(%n) : (i32) -> tensor<16x1xi32>
    %scaled = "arith.muli"(%r, %wide) : (tensor<16x1xi32>, tensor<16x1xi32>) -> tensor<16x1xi32>
    %rb = "tt.broadcast"(%scaled) : (tensor<16x1xi32>) -> tensor<16x16xi32>
    %c = "tt.expand_dims"(%at) <{axis = 0 : i32}> : (tensor<16xi32>) -> tensor<1x16xi32>
    %cb = "tt.broadcast"(%c) : (tensor<1x16xi32>) -> tensor<16x16xi32>
    %both = "arith.addi"(%rb, %cb) : (tensor<16x16xi32>, tensor<16x16xi32>) -> tensor<16x16xi32>
    %xt = "tt.splat"(%x) : (!tt.ptr<f32>) -> tensor<16x16x!tt.ptr<f32>>
    %q = "tt.addptr"(%xt, %both) : (tensor<16x16x!tt.ptr<f32>>, tensor<16x16xi32>) -> tensor<16x16x!tt.ptr<f32>>
    // CHECK: %wrapped = "tt.load"{{.*}}{tw.access_form = "view"}
    %wrapped = "tt.load"(%q) <{operandSegmentSizes = array<i32: 1, 0, 0>}> : (tensor<16x16x!tt.ptr<f32>>) -> tensor<16x16xf32>
    // CHECK: "tt.store"(%p, %box, %mask) {tw.access_form = "view"}
    "tt.store"(%p, %box, %mask) : (tensor<16x!tt.ptr<f32>>, tensor<16xf32>, tensor<16xi1>) -> ()
    "tt.return"() : () -> ()
  }) : () -> ()
}) : () -> ()
