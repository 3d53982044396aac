// ERROR: decide-accesses verify-plan

// A vector is only as wide as the addresses are known to be adjacent and aligned.
"builtin.module"() ({
  "tt.func"() <{arg_attrs = [{tt.divisibility = 8 : i32}], function_type = (!tt.ptr<f32, 1>) -> (), sym_name = "k"}> ({
  ^bb0(%p: !tt.ptr<f32, 1>):
    %at = "tt.make_range"() <{start = 0 : i32, end = 256 : i32}> : () -> tensor<256xi32>
    %ps = "tt.splat"(%p) : (!tt.ptr<f32, 1>) -> tensor<256x!tt.ptr<f32, 1>>
    %pa = "tt.addptr"(%ps, %at) : (tensor<256x!tt.ptr<f32, 1>>, tensor<256xi32>) -> tensor<256x!tt.ptr<f32, 1>>
    // CHECK: PlanRefused: error[PlanRefused]: load: the plan `vector 4, order 0` is refused: along dim 0, 2 element(s) are known to be adjacent, aligned and under one value of the mask
    // CHECK: pointers: tile<256x*f32>
    %x = "tt.load"(%pa) <{operandSegmentSizes = array<i32: 1, 0, 0>}> {tw.access = #tw.access<"vector 4, order 0">} : (tensor<256x!tt.ptr<f32, 1>>) -> tensor<256xf32>
    "tt.return"() : () -> ()
  }) : () -> ()
}) : () -> ()

// -----

"builtin.module"() ({
  "tt.func"() <{function_type = (!tt.ptr<f32, 1>, f32) -> (), sym_name = "k"}> ({
  ^bb0(%p: !tt.ptr<f32, 1>, %x: f32):
    %ps = "tt.splat"(%p) : (!tt.ptr<f32, 1>) -> tensor<16x16x!tt.ptr<f32, 1>>
    %xs = "tt.splat"(%x) : (f32) -> tensor<16x16xf32>
    // CHECK: store: the plan `vector 1, order 1 1` is refused: the order does not name each of 2 dims once
    "tt.store"(%ps, %xs) {tw.access = #tw.access<"vector 1, order 1 1">} : (tensor<16x16x!tt.ptr<f32, 1>>, tensor<16x16xf32>) -> ()
    "tt.return"() : () -> ()
  }) : () -> ()
}) : () -> ()

// -----

"builtin.module"() ({
  "tt.func"() <{function_type = (!tt.ptr<f32, 1>, f32) -> (), sym_name = "k"}> ({
  ^bb0(%p: !tt.ptr<f32, 1>, %x: f32):
    %ps = "tt.splat"(%p) : (!tt.ptr<f32, 1>) -> tensor<16x16x!tt.ptr<f32, 1>>
    %xs = "tt.splat"(%x) : (f32) -> tensor<16x16xf32>
    // CHECK: store: the plan `vector 8, order 1 0` is refused: 32 bytes are more than 16 at once
    "tt.store"(%ps, %xs) {tw.access = #tw.access<"vector 8, order 1 0">} : (tensor<16x16x!tt.ptr<f32, 1>>, tensor<16x16xf32>) -> ()
    "tt.return"() : () -> ()
  }) : () -> ()
}) : () -> ()

// -----

"builtin.module"() ({
  "tt.func"() <{function_type = (!tt.ptr<f32, 1>, f32) -> (), sym_name = "k"}> ({
  ^bb0(%p: !tt.ptr<f32, 1>, %x: f32):
    %ps = "tt.splat"(%p) : (!tt.ptr<f32, 1>) -> tensor<16x!tt.ptr<f32, 1>>
    %xs = "tt.splat"(%x) : (f32) -> tensor<16xf32>
    // CHECK: store: the plan `vector 3, order 0` is refused: 3 elements are no power of two
    "tt.store"(%ps, %xs) {tw.access = #tw.access<"vector 3, order 0">} : (tensor<16x!tt.ptr<f32, 1>>, tensor<16xf32>) -> ()
    "tt.return"() : () -> ()
  }) : () -> ()
}) : () -> ()

// -----

"builtin.module"() ({
  "tt.func"() <{function_type = (!tt.ptr<f32, 1>, f32) -> (), sym_name = "k"}> ({
  ^bb0(%p: !tt.ptr<f32, 1>, %x: f32):
    // CHECK: `wide` is no plan of an access, such as `vector 8, order 1 0`
    "tt.store"(%p, %x) {tw.access = #tw.access<"wide">} : (!tt.ptr<f32, 1>, f32) -> ()
    "tt.return"() : () -> ()
  }) : () -> ()
}) : () -> ()
