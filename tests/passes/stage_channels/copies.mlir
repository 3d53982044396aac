// PASS: form-roles decide-products decide-accesses verify-plan decide-layouts assign-layouts stage-channels
// Threads copy what the loads of a role bring: a slot is full behind their copies. Who multiplies shows it
// to the products' proxy.
//
// CHECK: %[[A:.*]] = "ttg.ring"(%{{.*}}) <{ring_name = "a", producers = 1 : i32, consumers = 1 : i32}>
// CHECK: %[[B:.*]] = "ttg.ring"(%{{.*}}) <{ring_name = "b", producers = 1 : i32, consumers = 1 : i32}>
// CHECK: "tw.roles"
// CHECK: %[[S:.*]] = "ttg.ring_acquire"(%[[A]])
// CHECK-NEXT: "ttg.async_copy_global_to_local"(%{{.*}}, %[[S]], %{{.*}}) <{cache = 1 : i32, evict = 1 : i32, operandSegmentSizes = array<i32: 1, 1, 1, 0>}> {tw.access = #tw.access<"vector 8, order 1 0">}
// CHECK-NEXT: "ttg.ring_commit"(%[[A]]) <{by_copies}>
// CHECK: %[[T:.*]] = "ttg.ring_acquire"(%[[B]])
// CHECK-NEXT: "ttg.async_copy_global_to_local"(%{{.*}}, %[[T]])
// CHECK-NEXT: "ttg.ring_commit"(%[[B]]) <{by_copies}>
// CHECK-NOT: tt.load
// CHECK: %[[U:.*]] = "ttg.ring_wait"(%[[A]])
// CHECK-NEXT: "ttng.fence_async_shared"
// CHECK-NEXT: %[[V:.*]] = "ttg.ring_wait"(%[[B]])
// CHECK-NEXT: "ttng.fence_async_shared"
// CHECK-NEXT: "ttg.dot"(%[[U]], %[[V]],
// CHECK-NEXT: "ttg.ring_release"(%[[B]])

"builtin.module"() ({
  "tt.func"() <{sym_name = "k", function_type = (!tt.ptr<f16>, !tt.ptr<f16>, !tt.ptr<f32>, i32) -> (), sym_visibility = "public", arg_attrs = [{tt.divisibility = 16 : i32}, {tt.divisibility = 16 : i32}, {tt.divisibility = 16 : i32}, {tt.divisibility = 16 : i32}]}> ({
  ^bb0(%x: !tt.ptr<f16>, %y: !tt.ptr<f16>, %z: !tt.ptr<f32>, %n: i32):
    %0 = "tt.make_range"() <{start = 0 : i32, end = 64 : i32}> : () -> tensor<64xi32>
    %1 = "arith.constant"() <{value = dense<0.000000e+00> : tensor<64x64xf32>}> : () -> tensor<64x64xf32>
    %2 = "arith.constant"() <{value = 0 : i32}> : () -> i32
    %3 = "arith.constant"() <{value = 64 : i32}> : () -> i32
    %4 = "scf.for"(%2, %n, %3, %1) ({
    ^bb0(%5: i32, %6: tensor<64x64xf32>):
      %7 = "tt.expand_dims"(%0) <{axis = 1 : i32}> : (tensor<64xi32>) -> tensor<64x1xi32>
      %8 = "tt.splat"(%3) : (i32) -> tensor<64x1xi32>
      %9 = "arith.muli"(%7, %8) : (tensor<64x1xi32>, tensor<64x1xi32>) -> tensor<64x1xi32>
      %10 = "tt.splat"(%x) : (!tt.ptr<f16>) -> tensor<64x1x!tt.ptr<f16>>
      %11 = "tt.addptr"(%10, %9) : (tensor<64x1x!tt.ptr<f16>>, tensor<64x1xi32>) -> tensor<64x1x!tt.ptr<f16>>
      %12 = "tt.splat"(%5) : (i32) -> tensor<64xi32>
      %13 = "arith.addi"(%12, %0) : (tensor<64xi32>, tensor<64xi32>) -> tensor<64xi32>
      %14 = "tt.expand_dims"(%13) <{axis = 0 : i32}> : (tensor<64xi32>) -> tensor<1x64xi32>
      %15 = "tt.broadcast"(%11) : (tensor<64x1x!tt.ptr<f16>>) -> tensor<64x64x!tt.ptr<f16>>
      %16 = "tt.broadcast"(%14) : (tensor<1x64xi32>) -> tensor<64x64xi32>
      %17 = "tt.addptr"(%15, %16) : (tensor<64x64x!tt.ptr<f16>>, tensor<64x64xi32>) -> tensor<64x64x!tt.ptr<f16>>
      %18 = "tt.splat"(%n) : (i32) -> tensor<64xi32>
      %19 = "arith.cmpi"(%13, %18) <{predicate = 2 : i64}> : (tensor<64xi32>, tensor<64xi32>) -> tensor<64xi1>
      %20 = "tt.expand_dims"(%19) <{axis = 0 : i32}> : (tensor<64xi1>) -> tensor<1x64xi1>
      %21 = "tt.broadcast"(%20) : (tensor<1x64xi1>) -> tensor<64x64xi1>
      %22 = "arith.constant"() <{value = 0.000000e+00 : f32}> : () -> f32
      %23 = "arith.truncf"(%22) : (f32) -> f16
      %24 = "tt.splat"(%23) : (f16) -> tensor<64x64xf16>
      %25 = "tt.load"(%17, %21, %24) <{cache = 1 : i32, evict = 1 : i32, isVolatile = false, operandSegmentSizes = array<i32: 1, 1, 1>}> : (tensor<64x64x!tt.ptr<f16>>, tensor<64x64xi1>, tensor<64x64xf16>) -> tensor<64x64xf16>
      %26 = "tt.expand_dims"(%13) <{axis = 1 : i32}> : (tensor<64xi32>) -> tensor<64x1xi32>
      %27 = "arith.muli"(%26, %8) : (tensor<64x1xi32>, tensor<64x1xi32>) -> tensor<64x1xi32>
      %28 = "tt.splat"(%y) : (!tt.ptr<f16>) -> tensor<64x1x!tt.ptr<f16>>
      %29 = "tt.addptr"(%28, %27) : (tensor<64x1x!tt.ptr<f16>>, tensor<64x1xi32>) -> tensor<64x1x!tt.ptr<f16>>
      %30 = "tt.expand_dims"(%0) <{axis = 0 : i32}> : (tensor<64xi32>) -> tensor<1x64xi32>
      %31 = "tt.broadcast"(%29) : (tensor<64x1x!tt.ptr<f16>>) -> tensor<64x64x!tt.ptr<f16>>
      %32 = "tt.broadcast"(%30) : (tensor<1x64xi32>) -> tensor<64x64xi32>
      %33 = "tt.addptr"(%31, %32) : (tensor<64x64x!tt.ptr<f16>>, tensor<64x64xi32>) -> tensor<64x64x!tt.ptr<f16>>
      %34 = "tt.load"(%33) <{cache = 1 : i32, evict = 1 : i32, isVolatile = false, operandSegmentSizes = array<i32: 1, 0, 0>}> : (tensor<64x64x!tt.ptr<f16>>) -> tensor<64x64xf16>
      %35 = "tt.dot"(%25, %34, %6) <{inputPrecision = 0 : i32, maxNumImpreciseAcc = 0 : i32}> : (tensor<64x64xf16>, tensor<64x64xf16>, tensor<64x64xf32>) -> tensor<64x64xf32>
      "scf.yield"(%35) : (tensor<64x64xf32>) -> ()
    }) : (i32, i32, i32, tensor<64x64xf32>) -> tensor<64x64xf32>
    %36 = "tt.expand_dims"(%0) <{axis = 1 : i32}> : (tensor<64xi32>) -> tensor<64x1xi32>
    %37 = "tt.splat"(%3) : (i32) -> tensor<64x1xi32>
    %38 = "arith.muli"(%36, %37) : (tensor<64x1xi32>, tensor<64x1xi32>) -> tensor<64x1xi32>
    %39 = "tt.splat"(%z) : (!tt.ptr<f32>) -> tensor<64x1x!tt.ptr<f32>>
    %40 = "tt.addptr"(%39, %38) : (tensor<64x1x!tt.ptr<f32>>, tensor<64x1xi32>) -> tensor<64x1x!tt.ptr<f32>>
    %41 = "tt.expand_dims"(%0) <{axis = 0 : i32}> : (tensor<64xi32>) -> tensor<1x64xi32>
    %42 = "tt.broadcast"(%40) : (tensor<64x1x!tt.ptr<f32>>) -> tensor<64x64x!tt.ptr<f32>>
    %43 = "tt.broadcast"(%41) : (tensor<1x64xi32>) -> tensor<64x64xi32>
    %44 = "tt.addptr"(%42, %43) : (tensor<64x64x!tt.ptr<f32>>, tensor<64x64xi32>) -> tensor<64x64x!tt.ptr<f32>>
    "tt.store"(%44, %4) <{cache = 1 : i32, evict = 1 : i32}> : (tensor<64x64x!tt.ptr<f32>>, tensor<64x64xf32>) -> ()
    "tt.return"() : () -> ()
  }) {tw.schedule = #tw.schedule<"roles load | math; ring a tiles load#0 slots 3 cp_async; ring b tiles load#1 slots 2 cp_async">} : () -> ()
}) : () -> ()
