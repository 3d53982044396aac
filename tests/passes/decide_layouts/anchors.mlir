// PASS: decide-accesses decide-layouts
// PASS(AGAIN): decide-accesses decide-layouts decide-layouts
// PASS(T1): decide-accesses verify-plan decide-layouts assign-layouts
// Ops are annotated with the layouts of their tiles; what depends on ranges and scalars alone stays
// open. A layout that is given is obeyed, and what follows from it too. What is decided stays as it is.
//
// CHECK-NOT: "tt.addptr"{{.*}}tw.layout
// CHECK: %x = "tt.load"{{.*}}tw.layout = #tw.layout<"register(128 256) lane(1 2 4 8 16) warp(32 64) atom(512) -> register(128 256) lane(1 2 4 8 16) warp(32 64) atom(512)">
// CHECK: "arith.addf"{{.*}}tw.layout
// CHECK: }) {tw.layout = #tw.layout<"[[X:.*]] -> _">}
// CHECK: "tt.store"{{.*}}tw.layout = #tw.layout<"
// AGAIN: }) {tw.layout = #tw.layout<"{{.*}} -> _">}
// T1-NOT: tw.layout
// T1: "tt.return"

"builtin.module"() ({
  "tt.func"() <{function_type = (!tt.ptr<f32, 1>) -> (), sym_name = "k"}> ({
  ^bb0(%p: !tt.ptr<f32, 1>):
    %at = "tt.make_range"() <{start = 0 : i32, end = 512 : i32}> : () -> tensor<512xi32>
    %ps = "tt.splat"(%p) : (!tt.ptr<f32, 1>) -> tensor<512x!tt.ptr<f32, 1>>
    %pa = "tt.addptr"(%ps, %at) : (tensor<512x!tt.ptr<f32, 1>>, tensor<512xi32>) -> tensor<512x!tt.ptr<f32, 1>>
    %x = "tt.load"(%pa) <{operandSegmentSizes = array<i32: 1, 0, 0>}> {tw.layout = #tw.layout<"register(128 256) lane(1 2 4 8 16) warp(32 64) atom(512)">} : (tensor<512x!tt.ptr<f32, 1>>) -> tensor<512xf32>
    %y = "arith.addf"(%x, %x) <{fastmath = #arith.fastmath<none>}> : (tensor<512xf32>, tensor<512xf32>) -> tensor<512xf32>
    %s = "tt.reduce"(%y) <{axis = 0 : i32}> ({
    ^bb1(%a: f32, %b: f32):
      %c = "arith.addf"(%a, %b) <{fastmath = #arith.fastmath<none>}> : (f32, f32) -> f32
      "tt.reduce.return"(%c) : (f32) -> ()
    }) : (tensor<512xf32>) -> f32
    "tt.store"(%pa, %y) : (tensor<512x!tt.ptr<f32, 1>>, tensor<512xf32>) -> ()
    "tt.store"(%p, %s) : (!tt.ptr<f32, 1>, f32) -> ()
    "tt.return"() : () -> ()
  }) : () -> ()
}) : () -> ()
