// ERROR: decide-products decide-accesses verify-plan decide-layouts assign-layouts decide-copies

// A copy that cannot be is refused with what stands against it.
"builtin.module"() ({
  "tt.func"() <{arg_attrs = [{tt.divisibility = 16 : i32}], function_type = (!tt.ptr<f32, 1>) -> (), sym_name = "k"}> ({
  ^bb0(%p: !tt.ptr<f32, 1>):
    %at = "tt.make_range"() <{start = 0 : i32, end = 256 : i32}> : () -> tensor<256xi32>
    %ps = "tt.splat"(%p) : (!tt.ptr<f32, 1>) -> tensor<256x!tt.ptr<f32, 1>>
    %pa = "tt.addptr"(%ps, %at) : (tensor<256x!tt.ptr<f32, 1>>, tensor<256xi32>) -> tensor<256x!tt.ptr<f32, 1>>
    // CHECK: PlanRefused: error[PlanRefused]: load: the plan `async` is refused: its tile does not go to shared memory
    // CHECK: help: take `registers`, or no annotation
    %x = "tt.load"(%pa) <{operandSegmentSizes = array<i32: 1, 0, 0>}> {tw.copy = #tw.copy<"async">} : (tensor<256x!tt.ptr<f32, 1>>) -> tensor<256xf32>
    "tt.store"(%pa, %x) : (tensor<256x!tt.ptr<f32, 1>>, tensor<256xf32>) -> ()
    "tt.return"() : () -> ()
  }) : () -> ()
}) : () -> ()

// -----

"builtin.module"() ({
  "tt.func"() <{function_type = (!tt.ptr<f16, 1>) -> (), sym_name = "k"}> ({
  ^bb0(%p: !tt.ptr<f16, 1>):
    %pa = "tt.splat"(%p) : (!tt.ptr<f16, 1>) -> tensor<64x64x!tt.ptr<f16, 1>>
    %zero = "arith.constant"() <{value = dense<0.0> : tensor<64x64xf16>}> : () -> tensor<64x64xf16>
    // CHECK: load: the plan `async 8` is refused: its tile is needed elsewhere, too
    %x = "tt.load"(%pa) <{operandSegmentSizes = array<i32: 1, 0, 0>}> {tw.copy = #tw.copy<"async 8">} : (tensor<64x64x!tt.ptr<f16, 1>>) -> tensor<64x64xf16>
    %a = "tt.dot"(%x, %x, %zero) : (tensor<64x64xf16>, tensor<64x64xf16>, tensor<64x64xf16>) -> tensor<64x64xf16>
    "tt.store"(%pa, %x) : (tensor<64x64x!tt.ptr<f16, 1>>, tensor<64x64xf16>) -> ()
    "tt.store"(%pa, %a) : (tensor<64x64x!tt.ptr<f16, 1>>, tensor<64x64xf16>) -> ()
    "tt.return"() : () -> ()
  }) : () -> ()
}) : () -> ()

// -----

"builtin.module"() ({
  "tt.func"() <{function_type = (!tt.ptr<f16, 1>) -> (), sym_name = "k"}> ({
  ^bb0(%p: !tt.ptr<f16, 1>):
    %pa = "tt.splat"(%p) : (!tt.ptr<f16, 1>) -> tensor<64x64x!tt.ptr<f16, 1>>
    %zero = "arith.constant"() <{value = dense<0.0> : tensor<64x64xf16>}> : () -> tensor<64x64xf16>
    // CHECK: load: the plan `async 4` is refused: no 4, 8 or 16 bytes of a lane are adjacent in both memories
    %x = "tt.load"(%pa) <{operandSegmentSizes = array<i32: 1, 0, 0>}> {tw.copy = #tw.copy<"async 4">} : (tensor<64x64x!tt.ptr<f16, 1>>) -> tensor<64x64xf16>
    %y = "tt.load"(%pa) <{operandSegmentSizes = array<i32: 1, 0, 0>}> : (tensor<64x64x!tt.ptr<f16, 1>>) -> tensor<64x64xf16>
    %a = "tt.dot"(%x, %y, %zero) : (tensor<64x64xf16>, tensor<64x64xf16>, tensor<64x64xf16>) -> tensor<64x64xf16>
    "tt.store"(%pa, %a) : (tensor<64x64x!tt.ptr<f16, 1>>, tensor<64x64xf16>) -> ()
    "tt.return"() : () -> ()
  }) : () -> ()
}) : () -> ()

// -----

"builtin.module"() ({
  "tt.func"() <{function_type = () -> (), sym_name = "k"}> ({
    // CHECK: `later` is no plan of a copy, such as `async 8`
    "tt.return"() {tw.copy = #tw.copy<"later">} : () -> ()
  }) : () -> ()
}) : () -> ()
