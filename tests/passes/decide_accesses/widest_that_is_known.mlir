// PASS: decide-accesses
// PASS(ONE): decide-accesses{num_warps=1}
// PASS(LAID): decide-accesses verify-plan decide-layouts assign-layouts

// Vectors as wide as alignment, mask and a thread's share allow; what is annotated stays.
"builtin.module"() ({
  "tt.func"() <{arg_attrs = [{tt.divisibility = 16 : i32}, {tt.divisibility = 16 : i32}, {tt.divisibility = 16 : i32}], function_type = (!tt.ptr<f16, 1>, !tt.ptr<f32, 1>, i32) -> (), sym_name = "row"}> ({
  ^bb0(%p: !tt.ptr<f16, 1>, %q: !tt.ptr<f32, 1>, %n: i32):
    %at = "tt.make_range"() <{start = 0 : i32, end = 1024 : i32}> : () -> tensor<1024xi32>
    %ps = "tt.splat"(%p) : (!tt.ptr<f16, 1>) -> tensor<1024x!tt.ptr<f16, 1>>
    %pa = "tt.addptr"(%ps, %at) : (tensor<1024x!tt.ptr<f16, 1>>, tensor<1024xi32>) -> tensor<1024x!tt.ptr<f16, 1>>
    %ns = "tt.splat"(%n) : (i32) -> tensor<1024xi32>
    // The mask is the same for 16 neighbours, since n is a multiple of 16.
    // CHECK: %m = "arith.cmpi"{{.*}} {equal_runs = array<i32: 16>}
    %m = "arith.cmpi"(%at, %ns) <{predicate = 2 : i64}> : (tensor<1024xi32>, tensor<1024xi32>) -> tensor<1024xi1>
    // CHECK: %x = "tt.load"{{.*}} {tw.access = #tw.access<"vector 8, order 0">}
    // ONE: %x = "tt.load"{{.*}} {tw.access = #tw.access<"vector 8, order 0">}
    // A lane has two: what is stored one by one and what is loaded two by two then touch the fewest lines.
    // LAID: %x = "tt.load"{{.*}} {tw.access = #tw.access<"vector 2, order 0">}
    %x = "tt.load"(%pa, %m) <{operandSegmentSizes = array<i32: 1, 1, 0>}> : (tensor<1024x!tt.ptr<f16, 1>>, tensor<1024xi1>) -> tensor<1024xf16>
    // CHECK: %y = "tt.load"{{.*}} {tw.access = #tw.access<"vector 2, order 0">}
    // LAID: %y = "tt.load"{{.*}} {tw.access = #tw.access<"vector 2, order 0">}
    %y = "tt.load"(%pa) <{operandSegmentSizes = array<i32: 1, 0, 0>}> {tw.access = #tw.access<"vector 2, order 0">} : (tensor<1024x!tt.ptr<f16, 1>>) -> tensor<1024xf16>
    %z = "arith.addf"(%x, %y) <{fastmath = #arith.fastmath<none>}> : (tensor<1024xf16>, tensor<1024xf16>) -> tensor<1024xf16>
    %w = "arith.extf"(%z) : (tensor<1024xf16>) -> tensor<1024xf32>
    %qs = "tt.splat"(%q) : (!tt.ptr<f32, 1>) -> tensor<1024x!tt.ptr<f32, 1>>
    %one = "arith.constant"() <{value = 1 : i32}> : () -> i32
    %ones = "tt.splat"(%one) : (i32) -> tensor<1024xi32>
    %off = "arith.addi"(%at, %ones) : (tensor<1024xi32>, tensor<1024xi32>) -> tensor<1024xi32>
    %qa = "tt.addptr"(%qs, %off) : (tensor<1024x!tt.ptr<f32, 1>>, tensor<1024xi32>) -> tensor<1024x!tt.ptr<f32, 1>>
    // One element behind an aligned place: no vectors.
    // CHECK: "tt.store"(%qa, %w) {tw.access = #tw.access<"vector 1, order 0">}
    "tt.store"(%qa, %w) : (tensor<1024x!tt.ptr<f32, 1>>, tensor<1024xf32>) -> ()
    "tt.return"() : () -> ()
  }) : () -> ()
}) : () -> ()

// -----

// Memory that is adjacent along the first dim is read along it; loaded addresses are scattered.
"builtin.module"() ({
  "tt.func"() <{arg_attrs = [{tt.divisibility = 16 : i32}, {tt.divisibility = 16 : i32}], function_type = (!tt.ptr<f32, 1>, !tt.ptr<i32, 1>) -> (), sym_name = "columns"}> ({
  ^bb0(%p: !tt.ptr<f32, 1>, %q: !tt.ptr<i32, 1>):
    %i = "tt.make_range"() <{start = 0 : i32, end = 64 : i32}> : () -> tensor<64xi32>
    %ci = "tt.expand_dims"(%i) <{axis = 1 : i32}> : (tensor<64xi32>) -> tensor<64x1xi32>
    %ri = "tt.expand_dims"(%i) <{axis = 0 : i32}> : (tensor<64xi32>) -> tensor<1x64xi32>
    %c = "tt.broadcast"(%ci) : (tensor<64x1xi32>) -> tensor<64x64xi32>
    %r = "tt.broadcast"(%ri) : (tensor<1x64xi32>) -> tensor<64x64xi32>
    %stride = "arith.constant"() <{value = dense<64> : tensor<64x64xi32>}> : () -> tensor<64x64xi32>
    %far = "arith.muli"(%r, %stride) : (tensor<64x64xi32>, tensor<64x64xi32>) -> tensor<64x64xi32>
    %off = "arith.addi"(%c, %far) : (tensor<64x64xi32>, tensor<64x64xi32>) -> tensor<64x64xi32>
    %ps = "tt.splat"(%p) : (!tt.ptr<f32, 1>) -> tensor<64x64x!tt.ptr<f32, 1>>
    %pa = "tt.addptr"(%ps, %off) : (tensor<64x64x!tt.ptr<f32, 1>>, tensor<64x64xi32>) -> tensor<64x64x!tt.ptr<f32, 1>>
    // CHECK: sym_name = "columns"
    // CHECK: %x = "tt.load"{{.*}} {tw.access = #tw.access<"vector 4, order 0 1">}
    %x = "tt.load"(%pa) <{operandSegmentSizes = array<i32: 1, 0, 0>}> : (tensor<64x64x!tt.ptr<f32, 1>>) -> tensor<64x64xf32>
    %qs = "tt.splat"(%q) : (!tt.ptr<i32, 1>) -> tensor<64x64x!tt.ptr<i32, 1>>
    %qa = "tt.addptr"(%qs, %off) : (tensor<64x64x!tt.ptr<i32, 1>>, tensor<64x64xi32>) -> tensor<64x64x!tt.ptr<i32, 1>>
    %places = "tt.load"(%qa) <{operandSegmentSizes = array<i32: 1, 0, 0>}> : (tensor<64x64x!tt.ptr<i32, 1>>) -> tensor<64x64xi32>
    %sc = "tt.addptr"(%ps, %places) : (tensor<64x64x!tt.ptr<f32, 1>>, tensor<64x64xi32>) -> tensor<64x64x!tt.ptr<f32, 1>>
    // CHECK: "tt.store"(%sc, %x) {tw.access = #tw.access<"vector 1, order 1 0, scattered">}
    "tt.store"(%sc, %x) : (tensor<64x64x!tt.ptr<f32, 1>>, tensor<64x64xf32>) -> ()
    "tt.return"() : () -> ()
  }) : () -> ()
}) : () -> ()

// -----

// What is loaded in 8 bytes is held two by two, 16 bytes, and what goes with it too: four would be
// loaded as two halves of lines.
"builtin.module"() ({
  "tt.func"() <{arg_attrs = [{tt.divisibility = 16 : i32}, {tt.divisibility = 16 : i32}, {tt.divisibility = 16 : i32}], function_type = (!tt.ptr<f16, 1>, !tt.ptr<f32, 1>, !tt.ptr<i64, 1>) -> (), sym_name = "widened"}> ({
  ^bb0(%p: !tt.ptr<f16, 1>, %q: !tt.ptr<f32, 1>, %s: !tt.ptr<i64, 1>):
    %at = "tt.make_range"() <{start = 0 : i32, end = 1024 : i32}> : () -> tensor<1024xi32>
    %ps = "tt.splat"(%p) : (!tt.ptr<f16, 1>) -> tensor<1024x!tt.ptr<f16, 1>>
    %pa = "tt.addptr"(%ps, %at) : (tensor<1024x!tt.ptr<f16, 1>>, tensor<1024xi32>) -> tensor<1024x!tt.ptr<f16, 1>>
    // CHECK: %x = "tt.load"{{.*}} {tw.access = #tw.access<"vector 8, order 0">}
    // LAID: %x = "tt.load"{{.*}} {tw.access = #tw.access<"vector 2, order 0">}
    %x = "tt.load"(%pa) <{operandSegmentSizes = array<i32: 1, 0, 0>}> : (tensor<1024x!tt.ptr<f16, 1>>) -> tensor<1024xf16>
    %ss = "tt.splat"(%s) : (!tt.ptr<i64, 1>) -> tensor<1024x!tt.ptr<i64, 1>>
    %sa = "tt.addptr"(%ss, %at) : (tensor<1024x!tt.ptr<i64, 1>>, tensor<1024xi32>) -> tensor<1024x!tt.ptr<i64, 1>>
    // LAID: %i = "tt.load"{{.*}} {tw.access = #tw.access<"vector 2, order 0">}
    %i = "tt.load"(%sa) <{operandSegmentSizes = array<i32: 1, 0, 0>}> : (tensor<1024x!tt.ptr<i64, 1>>) -> tensor<1024xi64>
    %j = "arith.sitofp"(%i) : (tensor<1024xi64>) -> tensor<1024xf32>
    %w = "arith.extf"(%x) : (tensor<1024xf16>) -> tensor<1024xf32>
    %y = "arith.addf"(%w, %j) <{fastmath = #arith.fastmath<none>}> : (tensor<1024xf32>, tensor<1024xf32>) -> tensor<1024xf32>
    %qs = "tt.splat"(%q) : (!tt.ptr<f32, 1>) -> tensor<1024x!tt.ptr<f32, 1>>
    %qa = "tt.addptr"(%qs, %at) : (tensor<1024x!tt.ptr<f32, 1>>, tensor<1024xi32>) -> tensor<1024x!tt.ptr<f32, 1>>
    // LAID: "tt.store"({{.*}} {tw.access = #tw.access<"vector 2, order 0">}
    "tt.store"(%qa, %y) : (tensor<1024x!tt.ptr<f32, 1>>, tensor<1024xf32>) -> ()
    "tt.return"() : () -> ()
  }) : () -> ()
}) : () -> ()
