// PASS: delay-conversions
// A conversion whose result the next load needs stays, as does one with no load before its use:
// what a branch uses is needed in front of the branch.
//
// CHECK: "tt.load"
// CHECK-NEXT: "ttg.convert_layout"
// CHECK-NEXT: "tt.addptr"
// CHECK-NEXT: %[[Z:.*]] = "tt.load"
// CHECK-NEXT: "ttg.convert_layout"(%[[Z]])
// CHECK-NEXT: "arith.constant"
// CHECK-NEXT: "scf.if"

#l = #ttg.linear<"register(1 2 4) lane(8 16 32 64 128) warp(256 512) atom(1024)">
#m = #ttg.linear<"register(256 512 128) lane(1 2 4 8 16) warp(32 64) atom(1024)">
!p = tensor<1024x!tt.ptr<i32>, #l>
!q = tensor<1024x!tt.ptr<i32>, #m>
!v = tensor<1024xi32, #l>
!w = tensor<1024xi32, #m>
"builtin.module"() ({
  "tt.func"() <{sym_name = "k", function_type = (!p, !q, i1) -> ()}> ({
  ^bb0(%p: !p, %q: !q, %is_stored: i1):
    %x = "tt.load"(%p) <{operandSegmentSizes = array<i32: 1, 0, 0>}> : (!p) -> !v
    %y = "ttg.convert_layout"(%x) : (!v) -> !w
    %at = "tt.addptr"(%q, %y) : (!q, !w) -> !q
    %z = "tt.load"(%at) <{operandSegmentSizes = array<i32: 1, 0, 0>}> : (!q) -> !w
    %back = "ttg.convert_layout"(%z) : (!w) -> !v
    %zero = "arith.constant"() <{value = 0 : i32}> : () -> i32
    "scf.if"(%is_stored) ({
      "tt.store"(%p, %back) : (!p, !v) -> ()
      "scf.yield"() : () -> ()
    }, {
    }) : (i1) -> ()
    %last = "tt.load"(%p) <{operandSegmentSizes = array<i32: 1, 0, 0>}> : (!p) -> !v
    "tt.store"(%p, %last) : (!p, !v) -> ()
    "tt.return"() : () -> ()
  }) : () -> ()
}) : () -> ()
