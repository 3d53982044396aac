// PASS: decide-products decide-accesses verify-plan decide-layouts assign-layouts decide-copies
// PASS(COPIED): decide-products decide-accesses verify-plan decide-layouts assign-layouts decide-copies copy-async

// What goes to shared memory alone is copied; what cannot be, or is told not to, says why.
"builtin.module"() ({
  "tt.func"() <{arg_attrs = [{tt.divisibility = 16 : i32}], function_type = (!tt.ptr<f16, 1>) -> (), sym_name = "k"}> ({
  ^bb0(%p: !tt.ptr<f16, 1>):
    %i = "tt.make_range"() <{start = 0 : i32, end = 64 : i32}> : () -> tensor<64xi32>
    %ci = "tt.expand_dims"(%i) <{axis = 1 : i32}> : (tensor<64xi32>) -> tensor<64x1xi32>
    %ri = "tt.expand_dims"(%i) <{axis = 0 : i32}> : (tensor<64xi32>) -> tensor<1x64xi32>
    %c = "tt.broadcast"(%ci) : (tensor<64x1xi32>) -> tensor<64x64xi32>
    %r = "tt.broadcast"(%ri) : (tensor<1x64xi32>) -> tensor<64x64xi32>
    %stride = "arith.constant"() <{value = dense<64> : tensor<64x64xi32>}> : () -> tensor<64x64xi32>
    %far = "arith.muli"(%c, %stride) : (tensor<64x64xi32>, tensor<64x64xi32>) -> tensor<64x64xi32>
    %off = "arith.addi"(%r, %far) : (tensor<64x64xi32>, tensor<64x64xi32>) -> tensor<64x64xi32>
    %ps = "tt.splat"(%p) : (!tt.ptr<f16, 1>) -> tensor<64x64x!tt.ptr<f16, 1>>
    %pa = "tt.addptr"(%ps, %off) : (tensor<64x64x!tt.ptr<f16, 1>>, tensor<64x64xi32>) -> tensor<64x64x!tt.ptr<f16, 1>>
    %zero = "arith.constant"() <{value = dense<0.0> : tensor<64x64xf16>}> : () -> tensor<64x64xf16>
    // CHECK: %x = "tt.load"{{.*}}tw.copy = #tw.copy<"async 8">
    // COPIED: "ttg.async_copy_global_to_local"{{.*}}#tw.access<"vector 8, order 1 0">
    %x = "tt.load"(%pa) <{operandSegmentSizes = array<i32: 1, 0, 0>}> : (tensor<64x64x!tt.ptr<f16, 1>>) -> tensor<64x64xf16>
    // CHECK: %y = "tt.load"{{.*}}tw.copy = #tw.copy<"registers">
    // COPIED: %y = "tt.load"
    %y = "tt.load"(%pa) <{operandSegmentSizes = array<i32: 1, 0, 0>}> {tw.copy = #tw.copy<"registers">} : (tensor<64x64x!tt.ptr<f16, 1>>) -> tensor<64x64xf16>
    %a = "tt.dot"(%x, %y, %zero) : (tensor<64x64xf16>, tensor<64x64xf16>, tensor<64x64xf16>) -> tensor<64x64xf16>
    // CHECK: %v = "tt.load"{{.*}}tw.copy = #tw.copy<"registers", "it is volatile">
    // COPIED: %v = "tt.load"
    %v = "tt.load"(%pa) <{isVolatile = true, operandSegmentSizes = array<i32: 1, 0, 0>}> : (tensor<64x64x!tt.ptr<f16, 1>>) -> tensor<64x64xf16>
    // CHECK: %w = "tt.load"{{.*}}tw.copy = #tw.copy<"async 8">
    %w = "tt.load"(%pa) <{operandSegmentSizes = array<i32: 1, 0, 0>}> {tw.copy = #tw.copy<"async">} : (tensor<64x64x!tt.ptr<f16, 1>>) -> tensor<64x64xf16>
    %b = "tt.dot"(%v, %w, %a) : (tensor<64x64xf16>, tensor<64x64xf16>, tensor<64x64xf16>) -> tensor<64x64xf16>
    // CHECK: %z = "tt.load"{{.*}} {tw.access = #tw.access<"vector 8, order 1 0">} :
    %z = "tt.load"(%pa) <{operandSegmentSizes = array<i32: 1, 0, 0>}> : (tensor<64x64x!tt.ptr<f16, 1>>) -> tensor<64x64xf16>
    %s = "arith.addf"(%b, %z) <{fastmath = #arith.fastmath<none>}> : (tensor<64x64xf16>, tensor<64x64xf16>) -> tensor<64x64xf16>
    "tt.store"(%pa, %s) : (tensor<64x64x!tt.ptr<f16, 1>>, tensor<64x64xf16>) -> ()
    "tt.return"() : () -> ()
  }) : () -> ()
}) : () -> ()
