// PASS: decide-products decide-schedule
// Nobody says how far, and the loop writes memory: it is left as it is.
//
// CHECK: "tt.dot"
// CHECK-NOT: tw.schedule

!p = tensor<64x64x!tt.ptr<f16>>
!v = tensor<64x64xf16>
!c = tensor<64x64xf32>
"builtin.module"() ({
  "tt.func"() <{sym_name = "k", function_type = (!p, !p, i32, !c) -> ()}> ({
  ^bb0(%p: !p, %q: !p, %n: i32, %zero: !c):
    %low = "arith.constant"() <{value = 0 : i32}> : () -> i32
    %one = "arith.constant"() <{value = 1 : i32}> : () -> i32
    %sum = "scf.for"(%low, %n, %one, %zero) ({
    ^bb1(%i: i32, %acc: !c):
      %x = "tt.load"(%p) <{operandSegmentSizes = array<i32: 1, 0, 0>}> : (!p) -> !v
      %y = "tt.load"(%q) <{operandSegmentSizes = array<i32: 1, 0, 0>}> : (!p) -> !v
      %d = "tt.dot"(%x, %y, %acc) : (!v, !v, !c) -> !c
      "tt.store"(%q, %x) : (!p, !v) -> ()
      "scf.yield"(%d) : (!c) -> ()
    }) : (i32, i32, i32, !c) -> !c
    "tt.return"() : () -> ()
  }) : () -> ()
}) : () -> ()
