// PASS: delay-conversions
// A conversion waits for its load and for other warps: the second load is started before that.
//
// CHECK: %[[X:.*]] = "tt.load"
// CHECK-NEXT: %[[Z:.*]] = "tt.load"
// CHECK-NEXT: %[[Y:.*]] = "ttg.convert_layout"(%[[X]])
// CHECK-NEXT: "arith.addf"(%[[Y]], %[[Z]])

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
    %s = "arith.addf"(%y, %z) : (!w, !w) -> !w
    "tt.store"(%q, %s) : (!q, !w) -> ()
    "tt.return"() : () -> ()
  }) : () -> ()
}) : () -> ()
