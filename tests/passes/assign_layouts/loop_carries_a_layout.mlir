// PASS: decide-products decide-accesses decide-layouts assign-layouts
// An accumulator that a loop carries has the layout of its product all around the loop: what it
// starts from is made in it, nothing is converted inside, and the store takes it as it is.
//
// CHECK: %[[START:.*]] = "arith.constant"() <{value = dense<0.000000e+00> : tensor<64x64xf32, #[[ACC:.*]]>}>
// CHECK: "scf.for"({{.*}}, %[[START]]) ({
// CHECK-NEXT: ^{{.*}}(%k: i32, %{{.*}}: tensor<64x64xf32, #[[ACC]]>):
// CHECK: %[[SUM:.*]] = "ttg.dot"
// CHECK-NEXT: "scf.yield"(%[[SUM]]) : (tensor<64x64xf32, #[[ACC]]>)
// CHECK: "tt.store"({{.*}}tensor<64x64xf32, #[[ACC]]>) -> ()
// CHECK-NOT: ttg.convert_layout

!p = tensor<64x64x!tt.ptr<f16>>
!a = tensor<64x64xf16>
!q = tensor<64x64x!tt.ptr<f32>>
!c = tensor<64x64xf32>
"builtin.module"() ({
  "tt.func"() <{sym_name = "k", function_type = (!tt.ptr<f16>, !tt.ptr<f16>, !tt.ptr<f32>, i32) -> (), arg_attrs = [{}, {}, {tt.divisibility = 16 : i32}, {}]}> ({
  ^bb0(%x: !tt.ptr<f16>, %y: !tt.ptr<f16>, %z: !tt.ptr<f32>, %n: i32):
    %c = "arith.constant"() <{value = dense<0.0> : !c}> : () -> !c
    %zero = "arith.constant"() <{value = 0 : i32}> : () -> i32
    %one = "arith.constant"() <{value = 1 : i32}> : () -> i32
    %r = "scf.for"(%zero, %n, %one, %c) ({
    ^bb0(%k: i32, %s: !c):
      %pa = "tt.splat"(%x) : (!tt.ptr<f16>) -> !p
      %pb = "tt.splat"(%y) : (!tt.ptr<f16>) -> !p
      %a = "tt.load"(%pa) <{operandSegmentSizes = array<i32: 1, 0, 0>}> : (!p) -> !a
      %b = "tt.load"(%pb) <{operandSegmentSizes = array<i32: 1, 0, 0>}> : (!p) -> !a
      %d = "tt.dot"(%a, %b, %s) <{inputPrecision = 2 : i32, maxNumImpreciseAcc = 0 : i32}> : (!a, !a, !c) -> !c
      "scf.yield"(%d) : (!c) -> ()
    }) : (i32, i32, i32, !c) -> !c
    %range = "tt.make_range"() <{start = 0 : i32, end = 64 : i32}> : () -> tensor<64xi32>
    %row = "tt.expand_dims"(%range) <{axis = 0 : i32}> : (tensor<64xi32>) -> tensor<1x64xi32>
    %columns = "tt.broadcast"(%row) : (tensor<1x64xi32>) -> tensor<64x64xi32>
    %splat = "tt.splat"(%z) : (!tt.ptr<f32>) -> !q
    %pc = "tt.addptr"(%splat, %columns) : (!q, tensor<64x64xi32>) -> !q
    "tt.store"(%pc, %r) : (!q, !c) -> ()
    "tt.return"() : () -> ()
  }) : () -> ()
}) : () -> ()
