// PASS: decide-accesses decide-layouts assign-layouts
// PASS(EIGHT): decide-accesses{num_warps=8} decide-layouts{num_warps=8} assign-layouts{num_warps=8}
// Pointers that are adjacent and aligned to 16 bytes are read 8 halves at a time, neighbouring
// lanes beside each other; with eight warps each thread has half as many.
//
// CHECK: #layout0 = #ttg.linear<"register(1 2 4) lane(8 16 32 64 128) warp(256 512) atom(1024)">
// CHECK-NOT: #layout1
// CHECK: %v = "tt.load"{{.*}}#tw.access<"vector 8, order 0">
// CHECK: "tt.store"{{.*}}#tw.access<"vector 8, order 0">
// CHECK-NOT: ttg.convert_layout
// EIGHT: #layout0 = #ttg.linear<"register(1 2) lane(4 8 16 32 64) warp(128 256 512) atom(1024)">
// EIGHT: %v = "tt.load"{{.*}}#tw.access<"vector 4, order 0">

!p = tensor<1024x!tt.ptr<f16>>
!i = tensor<1024xi32>
!v = tensor<1024xf16>
"builtin.module"() ({
  "tt.func"() <{sym_name = "k", function_type = (!tt.ptr<f16>, !tt.ptr<f16>) -> (), arg_attrs = [{tt.divisibility = 16 : i32}, {tt.divisibility = 16 : i32}]}> ({
  ^bb0(%x: !tt.ptr<f16>, %y: !tt.ptr<f16>):
    %i = "tt.make_range"() <{start = 0 : i32, end = 1024 : i32}> : () -> !i
    %ps = "tt.splat"(%x) : (!tt.ptr<f16>) -> !p
    %p = "tt.addptr"(%ps, %i) : (!p, !i) -> !p
    %v = "tt.load"(%p) <{operandSegmentSizes = array<i32: 1, 0, 0>}> : (!p) -> !v
    %qs = "tt.splat"(%y) : (!tt.ptr<f16>) -> !p
    %q = "tt.addptr"(%qs, %i) : (!p, !i) -> !p
    "tt.store"(%q, %v) : (!p, !v) -> ()
    "tt.return"() : () -> ()
  }) : () -> ()
}) : () -> ()
