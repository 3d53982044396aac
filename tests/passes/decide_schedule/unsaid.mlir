// PASS: decide-products decide-schedule
// Nobody says how far: two slots, as tiles of an iteration are few.
//
// CHECK: tw.anchor = "load#0"
// CHECK: tw.anchor = "for#0"
// CHECK: #tw.schedule<"ring ring0 tiles load#0 load#1 slots 2 cp_async release wait; loop for#0 load#0 @0.0 load#1 @0.0 dot#0 @1.1">

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
      "scf.yield"(%d) : (!c) -> ()
    }) : (i32, i32, i32, !c) -> !c
    "tt.return"() : () -> ()
  }) : () -> ()
}) : () -> ()
