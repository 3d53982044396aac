// PASS: branch-masks
// A tile of a constant is selected without a branch: any thread can compute it.
//
// CHECK: "arith.select"(%m, %x, %low)
// CHECK-NOT: "scf.if"

!rows = tensor<64x32xi32>
!tile = tensor<64x32xf32>
"builtin.module"() ({
  "tt.func"() <{sym_name = "k", sym_visibility = "public", function_type = (i32, i32) -> ()}> ({
  ^bb0(%row: i32, %n: i32):
    %zero = "arith.constant"() <{value = 0 : i32}> : () -> i32
    %step = "arith.constant"() <{value = 32 : i32}> : () -> i32
    %x = "arith.constant"() <{value = dense<1.0> : !tile}> : () -> !tile
    %low = "arith.constant"() <{value = dense<-1.0> : !tile}> : () -> !tile
    %r = "tt.make_range"() <{start = 0 : i32, end = 64 : i32}> : () -> tensor<64xi32>
    %rs = "tt.splat"(%row) : (i32) -> tensor<64xi32>
    %ra = "arith.addi"(%rs, %r) : (tensor<64xi32>, tensor<64xi32>) -> tensor<64xi32>
    %re = "tt.expand_dims"(%ra) <{axis = 1 : i32}> : (tensor<64xi32>) -> tensor<64x1xi32>
    %rb = "tt.broadcast"(%re) : (tensor<64x1xi32>) -> !rows
    %c = "tt.make_range"() <{start = 0 : i32, end = 32 : i32}> : () -> tensor<32xi32>
    %res = "scf.for"(%zero, %n, %step, %x) ({
    ^bb1(%start: i32, %acc: !tile):
      %cs = "tt.splat"(%start) : (i32) -> tensor<32xi32>
      %ca = "arith.addi"(%cs, %c) : (tensor<32xi32>, tensor<32xi32>) -> tensor<32xi32>
      %ce = "tt.expand_dims"(%ca) <{axis = 0 : i32}> : (tensor<32xi32>) -> tensor<1x32xi32>
      %cb = "tt.broadcast"(%ce) : (tensor<1x32xi32>) -> !rows
      %m = "arith.cmpi"(%rb, %cb) <{predicate = 5 : i64}> : (!rows, !rows) -> tensor<64x32xi1>
      %s = "arith.select"(%m, %x, %low) : (tensor<64x32xi1>, !tile, !tile) -> !tile
      "scf.yield"(%s) : (!tile) -> ()
    }) : (i32, i32, i32, !tile) -> !tile
    "tt.return"() : () -> ()
  }) {tw.schedule = #tw.schedule<"mask branch">} : () -> ()
}) : () -> ()
