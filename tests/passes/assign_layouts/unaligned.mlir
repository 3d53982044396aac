// PASS: decide-accesses decide-layouts assign-layouts
// Without a promise on the alignment of the argument one element is read at a time.
//
// CHECK: #layout0 = #ttg.linear<"register({{.*}}) lane(1 2 4 8 16)
// CHECK: "tt.load"{{.*}}#tw.access<"vector 1, order 0">
// CHECK: "tt.store"{{.*}}#tw.access<"vector 1, order 0">

!p = tensor<1024x!tt.ptr<f16>>
!i = tensor<1024xi32>
!v = tensor<1024xf16>
"builtin.module"() ({
  "tt.func"() <{sym_name = "k", function_type = (!tt.ptr<f16>, !tt.ptr<f16>) -> ()}> ({
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
