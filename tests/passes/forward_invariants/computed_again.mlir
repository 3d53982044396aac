// PASS: forward-invariants
// An index that the loop computes again as it was computed before is the one from before, and so
// is what is computed of it.
//
// CHECK: %first = "tt.make_range"
// CHECK: %second = "arith.addi"(%first, %{{.*}})
// CHECK: "scf.for"(%zero, %n, %one, %other) ({
// CHECK-NEXT: ^{{.*}}(%k: i32, %c: tensor<64xi32>):
// CHECK: "arith.addi"(%first, %second)
// CHECK: "scf.yield"(%
// CHECK: "arith.addi"(%first, %second)

"builtin.module"() ({
  "tt.func"() <{sym_name = "k", function_type = (i32) -> ()}> ({
  ^bb0(%n: i32):
    %zero = "arith.constant"() <{value = 0 : i32}> : () -> i32
    %one = "arith.constant"() <{value = 1 : i32}> : () -> i32
    %step = "arith.constant"() <{value = 64 : i32}> : () -> i32
    %steps = "tt.splat"(%step) : (i32) -> tensor<64xi32>
    %first = "tt.make_range"() <{start = 0 : i32, end = 64 : i32}> : () -> tensor<64xi32>
    %second = "arith.addi"(%first, %steps) : (tensor<64xi32>, tensor<64xi32>) -> tensor<64xi32>
    %other = "tt.make_range"() <{start = 1 : i32, end = 65 : i32}> : () -> tensor<64xi32>
    %x, %y, %z = "scf.for"(%zero, %n, %one, %first, %second, %other) ({
    ^bb0(%k: i32, %a: tensor<64xi32>, %b: tensor<64xi32>, %c: tensor<64xi32>):
      %use = "arith.addi"(%a, %b) : (tensor<64xi32>, tensor<64xi32>) -> tensor<64xi32>
      %again = "tt.make_range"() <{start = 0 : i32, end = 64 : i32}> : () -> tensor<64xi32>
      %width = "tt.splat"(%step) : (i32) -> tensor<64xi32>
      %behind = "arith.addi"(%again, %width) : (tensor<64xi32>, tensor<64xi32>) -> tensor<64xi32>
      %changed = "arith.addi"(%c, %use) : (tensor<64xi32>, tensor<64xi32>) -> tensor<64xi32>
      "scf.yield"(%again, %behind, %changed) : (tensor<64xi32>, tensor<64xi32>, tensor<64xi32>) -> ()
    }) : (i32, i32, i32, tensor<64xi32>, tensor<64xi32>, tensor<64xi32>) -> (tensor<64xi32>, tensor<64xi32>, tensor<64xi32>)
    %sum = "arith.addi"(%x, %y) : (tensor<64xi32>, tensor<64xi32>) -> tensor<64xi32>
    %all = "arith.addi"(%sum, %z) : (tensor<64xi32>, tensor<64xi32>) -> tensor<64xi32>
    "tt.print"(%all) <{prefix = "s", hex = false, isSigned = array<i32: 1>}> : (tensor<64xi32>) -> ()
    "tt.return"() : () -> ()
  }) : () -> ()
}) : () -> ()
