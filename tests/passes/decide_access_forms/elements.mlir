// PASS: decide-access-forms
// ROUNDTRIP

// What is no box of one argument goes element by element, with the reason; scalars have no form.
"builtin.module"() ({
  "tt.func"() <{function_type = (!tt.ptr<f32>, !tt.ptr<f32>, !tt.ptr<i1>, i1) -> (), sym_name = "k"}> ({
  ^bb0(%x: !tt.ptr<f32>, %y: !tt.ptr<f32>, %b: !tt.ptr<i1>, %which: i1):
    // CHECK: %one = "tt.load"(%x) <{operandSegmentSizes = array<i32: 1, 0, 0>}> :
    %one = "tt.load"(%x) <{operandSegmentSizes = array<i32: 1, 0, 0>}> : (!tt.ptr<f32>) -> f32
    %at = "tt.make_range"() <{start = 0 : i32, end = 16 : i32}> : () -> tensor<16xi32>
    %square = "arith.muli"(%at, %at) : (tensor<16xi32>, tensor<16xi32>) -> tensor<16xi32>
    %xs = "tt.splat"(%x) : (!tt.ptr<f32>) -> tensor<16x!tt.ptr<f32>>
    %p = "tt.addptr"(%xs, %square) : (tensor<16x!tt.ptr<f32>>, tensor<16xi32>) -> tensor<16x!tt.ptr<f32>>
    // CHECK: %squares = "tt.load"{{.*}}{tw.access_form = "elements: {{.*}}dimension 0
    %squares = "tt.load"(%p) <{operandSegmentSizes = array<i32: 1, 0, 0>}> : (tensor<16x!tt.ptr<f32>>) -> tensor<16xf32>
    %chosen = "arith.select"(%which, %x, %y) : (i1, !tt.ptr<f32>, !tt.ptr<f32>) -> !tt.ptr<f32>
    %cs = "tt.splat"(%chosen) : (!tt.ptr<f32>) -> tensor<16x!tt.ptr<f32>>
    %q = "tt.addptr"(%cs, %at) : (tensor<16x!tt.ptr<f32>>, tensor<16xi32>) -> tensor<16x!tt.ptr<f32>>
    // CHECK: %either = "tt.load"{{.*}}{tw.access_form = "elements: its pointer {{.*}} is no argument"}
    %either = "tt.load"(%q) <{operandSegmentSizes = array<i32: 1, 0, 0>}> : (tensor<16x!tt.ptr<f32>>) -> tensor<16xf32>
    %bs = "tt.splat"(%b) : (!tt.ptr<i1>) -> tensor<16x!tt.ptr<i1>>
    %r = "tt.addptr"(%bs, %at) : (tensor<16x!tt.ptr<i1>>, tensor<16xi32>) -> tensor<16x!tt.ptr<i1>>
    // CHECK: %bits = "tt.load"{{.*}}{tw.access_form = "elements: elements of i1 are held as i8"}
    %bits = "tt.load"(%r) <{operandSegmentSizes = array<i32: 1, 0, 0>}> : (tensor<16x!tt.ptr<i1>>) -> tensor<16xi1>
    "tt.return"() : () -> ()
  }) : () -> ()
}) : () -> ()
