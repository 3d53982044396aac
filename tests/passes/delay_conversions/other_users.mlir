// PASS: delay-conversions
// Who else uses the source comes behind the conversion: here what is added to it.
//
// CHECK: %[[X:.*]] = "tt.load"
// CHECK-NEXT: %[[Z:.*]] = "tt.load"
// CHECK-NEXT: %[[Y:.*]] = "ttg.convert_layout"(%[[X]])
// CHECK-NEXT: %[[S:.*]] = "arith.addf"(%[[X]], %[[X]])
// CHECK-NEXT: "tt.load"

#l = #ttg.linear<"register(1 2 4) lane(8 16 32 64 128) warp(256 512) atom(1024)">
#m = #ttg.linear<"register(256 512 128) lane(1 2 4 8 16) warp(32 64) atom(1024)">
!p = tensor<1024x!tt.ptr<f32>, #l>
!q = tensor<1024x!tt.ptr<f32>, #m>
!v = tensor<1024xf32, #l>
!w = tensor<1024xf32, #m>
"builtin.module"() ({
  "tt.func"() <{sym_name = "k", function_type = (!p, !q) -> ()}> ({
  ^bb0(%p: !p, %q: !q):
    %x = "tt.load"(%p) <{operandSegmentSizes = array<i32: 1, 0, 0>}> : (!p) -> !v
    %y = "ttg.convert_layout"(%x) : (!v) -> !w
    %z = "tt.load"(%q) <{operandSegmentSizes = array<i32: 1, 0, 0>}> : (!q) -> !w
    %s = "arith.addf"(%x, %x) : (!v, !v) -> !v
    %t = "tt.load"(%q) <{operandSegmentSizes = array<i32: 1, 0, 0>}> : (!q) -> !w
    %u = "arith.addf"(%y, %z) : (!w, !w) -> !w
    %o = "arith.addf"(%u, %t) : (!w, !w) -> !w
    "tt.store"(%q, %o) : (!q, !w) -> ()
    "tt.store"(%p, %s) : (!p, !v) -> ()
    "tt.return"() : () -> ()
  }) : () -> ()
}) : () -> ()
