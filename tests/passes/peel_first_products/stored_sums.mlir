// PASS: peel-first-products
// A sum that is only stored, perhaps rounded, is told at run time when it begins.
//
// CHECK-LABEL: sym_name = "rounded"
// CHECK-NOT: scf.if
// CHECK: "scf.for"(%low, %n, %step, %zero)

!a = tensor<32x32xbf16>
!b = tensor<32x16xbf16>
!c = tensor<32x16xf32>
!d = tensor<32x16xbf16>
!p = tensor<32x16x!tt.ptr<bf16>>
"builtin.module"() ({
  "tt.func"() <{sym_name = "rounded", function_type = (!a, !b, !tt.ptr<bf16>, i32) -> ()}> ({
  ^bb0(%a: !a, %b: !b, %c: !tt.ptr<bf16>, %n: i32):
    %low = "arith.constant"() <{value = 0 : i32}> : () -> i32
    %step = "arith.constant"() <{value = 32 : i32}> : () -> i32
    %zero = "arith.constant"() <{value = dense<0.0> : !c}> : () -> !c
    %i = "tt.make_range"() <{start = 0 : i32, end = 16 : i32}> : () -> tensor<16xi32>
    %j = "tt.make_range"() <{start = 0 : i32, end = 32 : i32}> : () -> tensor<32xi32>
    %row = "tt.expand_dims"(%j) <{axis = 1 : i32}> : (tensor<32xi32>) -> tensor<32x1xi32>
    %column = "tt.expand_dims"(%i) <{axis = 0 : i32}> : (tensor<16xi32>) -> tensor<1x16xi32>
    %pitch = "arith.constant"() <{value = dense<16> : tensor<32x1xi32>}> : () -> tensor<32x1xi32>
    %down = "arith.muli"(%row, %pitch) : (tensor<32x1xi32>, tensor<32x1xi32>) -> tensor<32x1xi32>
    %rows = "tt.broadcast"(%down) : (tensor<32x1xi32>) -> tensor<32x16xi32>
    %columns = "tt.broadcast"(%column) : (tensor<1x16xi32>) -> tensor<32x16xi32>
    %at = "arith.addi"(%rows, %columns) : (tensor<32x16xi32>, tensor<32x16xi32>) -> tensor<32x16xi32>
    %base = "tt.splat"(%c) : (!tt.ptr<bf16>) -> !p
    %place = "tt.addptr"(%base, %at) : (!p, tensor<32x16xi32>) -> !p
    %sum = "scf.for"(%low, %n, %step, %zero) ({
    ^bb0(%k: i32, %s: !c):
      %d = "tt.dot"(%a, %b, %s) <{inputPrecision = 2 : i32, maxNumImpreciseAcc = 0 : i32}> : (!a, !b, !c) -> !c
      "scf.yield"(%d) : (!c) -> ()
    }) : (i32, i32, i32, !c) -> !c
    %less = "arith.truncf"(%sum) : (!c) -> !d
    "tt.store"(%place, %less) <{boundaryCheck = array<i32>, cache = 1 : i32, evict = 1 : i32}> : (!p, !d) -> ()
    "tt.return"() : () -> ()
  }) : () -> ()
}) : () -> ()

// -----
// CHECK-LABEL: sym_name = "doubled"
// CHECK: "scf.if"

!a = tensor<32x32xbf16>
!b = tensor<32x16xbf16>
!c = tensor<32x16xf32>
!q = tensor<32x16x!tt.ptr<f32>>
"builtin.module"() ({
  "tt.func"() <{sym_name = "doubled", function_type = (!a, !b, !q, i32) -> ()}> ({
  ^bb0(%a: !a, %b: !b, %place: !q, %n: i32):
    %low = "arith.constant"() <{value = 0 : i32}> : () -> i32
    %step = "arith.constant"() <{value = 32 : i32}> : () -> i32
    %zero = "arith.constant"() <{value = dense<0.0> : !c}> : () -> !c
    %sum = "scf.for"(%low, %n, %step, %zero) ({
    ^bb0(%k: i32, %s: !c):
      %d = "tt.dot"(%a, %b, %s) <{inputPrecision = 2 : i32, maxNumImpreciseAcc = 0 : i32}> : (!a, !b, !c) -> !c
      "scf.yield"(%d) : (!c) -> ()
    }) : (i32, i32, i32, !c) -> !c
    %twice = "arith.addf"(%sum, %sum) <{fastmath = #arith.fastmath<none>}> : (!c, !c) -> !c
    "tt.store"(%place, %twice) <{boundaryCheck = array<i32>, cache = 1 : i32, evict = 1 : i32}> : (!q, !c) -> ()
    "tt.return"() : () -> ()
  }) : () -> ()
}) : () -> ()
