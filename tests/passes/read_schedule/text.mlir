// PASS: read-schedule{text="persist static"}
// PASS(NONE): read-schedule{text=""}
// The author's text becomes the schedule of the kernel; where there is none, nothing is said.
//
// CHECK: tw.schedule = #tw.schedule<"persist static">
// NONE-NOT: #tw.

"builtin.module"() ({
  "tt.func"() <{arg_attrs = [{tt.divisibility = 16 : i32}], function_type = (!tt.ptr<f32, 1>) -> (), sym_name = "k"}> ({
  ^bb0(%p: !tt.ptr<f32, 1>):
    %at = "tt.make_range"() <{start = 0 : i32, end = 512 : i32}> : () -> tensor<512xi32>
    %ps = "tt.splat"(%p) : (!tt.ptr<f32, 1>) -> tensor<512x!tt.ptr<f32, 1>>
    %pa = "tt.addptr"(%ps, %at) : (tensor<512x!tt.ptr<f32, 1>>, tensor<512xi32>) -> tensor<512x!tt.ptr<f32, 1>>
    %x = "tt.load"(%pa) <{operandSegmentSizes = array<i32: 1, 0, 0>}> : (tensor<512x!tt.ptr<f32, 1>>) -> tensor<512xf32>
    %s = "tt.reduce"(%x) <{axis = 0 : i32}> ({
    ^bb1(%a: f32, %b: f32):
      %c = "arith.addf"(%a, %b) <{fastmath = #arith.fastmath<none>}> : (f32, f32) -> f32
      "tt.reduce.return"(%c) : (f32) -> ()
    }) : (tensor<512xf32>) -> f32
    "tt.store"(%pa, %x) : (tensor<512x!tt.ptr<f32, 1>>, tensor<512xf32>) -> ()
    "tt.return"() : () -> ()
  }) : () -> ()
}) : () -> ()
