// PASS: insert-global-barriers
// What one iteration stores, the next one loads: the barrier stands inside of the loop.
//
// CHECK: "scf.for"
// CHECK-NEXT: ^
// CHECK-NEXT: "ttg.barrier"
// CHECK-NEXT: "tt.load"(%q)
// CHECK-NEXT: "ttg.barrier"
// CHECK-NEXT: "tt.store"(%p
// CHECK-NEXT: "scf.yield"

#l = #ttg.linear<"register(1 2 4) lane(8 16 32 64 128) warp(256 512) atom(1024)">
!p = tensor<1024x!tt.ptr<f16>, #l>
!v = tensor<1024xf16, #l>
"builtin.module"() ({
  "tt.func"() <{sym_name = "k", function_type = (!tt.ptr<f16>, tensor<1024xi32, #l>, tensor<1024xi32, #l>, i32) -> ()}> ({
  ^bb0(%x: !tt.ptr<f16>, %i: tensor<1024xi32, #l>, %j: tensor<1024xi32, #l>, %n: i32):
    %zero = "arith.constant"() <{value = 0 : i32}> : () -> i32
    %one = "arith.constant"() <{value = 1 : i32}> : () -> i32
    %xs = "tt.splat"(%x) : (!tt.ptr<f16>) -> !p
    %p = "tt.addptr"(%xs, %i) : (!p, tensor<1024xi32, #l>) -> !p
    %q = "tt.addptr"(%xs, %j) : (!p, tensor<1024xi32, #l>) -> !p
    "scf.for"(%zero, %n, %one) ({
    ^bb0(%k: i32):
      %w = "tt.load"(%q) <{operandSegmentSizes = array<i32: 1, 0, 0>}> : (!p) -> !v
      "tt.store"(%p, %w) : (!p, !v) -> ()
      "scf.yield"() : () -> ()
    }) : (i32, i32, i32) -> ()
    "tt.return"() : () -> ()
  }) : () -> ()
}) : () -> ()
