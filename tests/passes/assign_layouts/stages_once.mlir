// PASS: decide-products decide-accesses verify-plan decide-layouts assign-layouts
// PASS(COPIED): decide-products decide-accesses verify-plan decide-layouts assign-layouts decide-copies copy-async
// An operand of two products is staged once, also where one of them takes it transposed: that one
// sees it so. What only goes there is then copied past registers.
//
// CHECK-COUNT-2: "ttg.local_alloc"
// CHECK-NOT: "ttg.local_alloc"
// CHECK-NOT: "tt.trans"
// COPIED-COUNT-2: "ttg.async_copy_global_to_local"
// COPIED-NOT: "tt.load"

!t = tensor<64x64xf16>
!f = tensor<64x64xf32>
!p = tensor<64x64x!tt.ptr<f16, 1>>
!o = tensor<64x64x!tt.ptr<f32, 1>>
"builtin.module"() ({
  "tt.func"() <{arg_attrs = [{tt.divisibility = 16 : i32}, {tt.divisibility = 16 : i32}, {tt.divisibility = 16 : i32}], sym_name = "k", function_type = (!tt.ptr<f16, 1>, !tt.ptr<f16, 1>, !tt.ptr<f32, 1>) -> ()}> ({
  ^bb0(%p: !tt.ptr<f16, 1>, %q: !tt.ptr<f16, 1>, %o: !tt.ptr<f32, 1>):
    %i = "tt.make_range"() <{start = 0 : i32, end = 64 : i32}> : () -> tensor<64xi32>
    %ci = "tt.expand_dims"(%i) <{axis = 1 : i32}> : (tensor<64xi32>) -> tensor<64x1xi32>
    %ri = "tt.expand_dims"(%i) <{axis = 0 : i32}> : (tensor<64xi32>) -> tensor<1x64xi32>
    %c = "tt.broadcast"(%ci) : (tensor<64x1xi32>) -> tensor<64x64xi32>
    %r = "tt.broadcast"(%ri) : (tensor<1x64xi32>) -> tensor<64x64xi32>
    %stride = "arith.constant"() <{value = dense<64> : tensor<64x64xi32>}> : () -> tensor<64x64xi32>
    %far = "arith.muli"(%c, %stride) : (tensor<64x64xi32>, tensor<64x64xi32>) -> tensor<64x64xi32>
    %off = "arith.addi"(%r, %far) : (tensor<64x64xi32>, tensor<64x64xi32>) -> tensor<64x64xi32>
    %ps = "tt.splat"(%p) : (!tt.ptr<f16, 1>) -> !p
    %qs = "tt.splat"(%q) : (!tt.ptr<f16, 1>) -> !p
    %os = "tt.splat"(%o) : (!tt.ptr<f32, 1>) -> !o
    %pa = "tt.addptr"(%ps, %off) : (!p, tensor<64x64xi32>) -> !p
    %qa = "tt.addptr"(%qs, %off) : (!p, tensor<64x64xi32>) -> !p
    %oa = "tt.addptr"(%os, %off) : (!o, tensor<64x64xi32>) -> !o
    %x = "tt.load"(%pa) <{operandSegmentSizes = array<i32: 1, 0, 0>}> : (!p) -> !t
    %y = "tt.load"(%qa) <{operandSegmentSizes = array<i32: 1, 0, 0>}> : (!p) -> !t
    %zero = "arith.constant"() <{value = dense<0.0> : !f}> : () -> !f
    // CHECK: %[[SEEN:.*]] = "ttg.memdesc_trans"(%[[Y:.*]]) <{order = array<i32: 1, 0>}>
    // CHECK: "ttg.dot"(%{{.*}}, %[[SEEN]],
    // CHECK: "ttg.dot"(%{{.*}}, %[[Y]],
    %t = "tt.trans"(%y) <{order = array<i32: 1, 0>}> : (!t) -> !t
    %a = "tt.dot"(%x, %t, %zero) : (!t, !t, !f) -> !f
    %b = "tt.dot"(%x, %y, %a) : (!t, !t, !f) -> !f
    "tt.store"(%oa, %b) : (!o, !f) -> ()
    "tt.return"() : () -> ()
  }) : () -> ()
}) : () -> ()
