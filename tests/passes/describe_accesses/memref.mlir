// PASS: describe-accesses{ask=memref}
// Accesses as views of memory.
//
// A block of a matrix, at the place of the program.
//
// CHECK: tw.access = "reinterpret_cast x to offset: [32*program_id(0)*s + 4], sizes: [32, 32], strides: [s, 1], dimension 0 below -32*program_id(0) + m, dimension 1 not below 1, dimension 1 below -4 + n"

"builtin.module"() ({
  "tt.func"() <{sym_name = "view", function_type = (!tt.ptr<f32>, i32, i32, i32) -> (), arg_attrs = [{tt.divisibility = 16 : i32}, {}, {}, {}]}> ({
  ^bb0(%x: !tt.ptr<f32>, %m: i32, %n: i32, %s: i32):
    %0 = "tt.get_program_id"() <{axis = 0 : i32}> : () -> i32
    %1 = "arith.constant"() <{value = 32 : i32}> : () -> i32
    %2 = "arith.muli"(%0, %1) : (i32, i32) -> i32
    %3 = "tt.make_range"() <{start = 0 : i32, end = 32 : i32}> : () -> tensor<32xi32>
    %4 = "tt.splat"(%2) : (i32) -> tensor<32xi32>
    %5 = "arith.addi"(%4, %3) : (tensor<32xi32>, tensor<32xi32>) -> tensor<32xi32>
    %6 = "arith.constant"() <{value = 4 : i32}> : () -> i32
    %7 = "tt.splat"(%6) : (i32) -> tensor<32xi32>
    %8 = "arith.addi"(%7, %3) : (tensor<32xi32>, tensor<32xi32>) -> tensor<32xi32>
    %9 = "tt.expand_dims"(%5) <{axis = 1 : i32}> : (tensor<32xi32>) -> tensor<32x1xi32>
    %10 = "tt.splat"(%s) : (i32) -> tensor<32x1xi32>
    %11 = "arith.muli"(%9, %10) : (tensor<32x1xi32>, tensor<32x1xi32>) -> tensor<32x1xi32>
    %12 = "tt.splat"(%x) : (!tt.ptr<f32>) -> tensor<32x1x!tt.ptr<f32>>
    %13 = "tt.addptr"(%12, %11) : (tensor<32x1x!tt.ptr<f32>>, tensor<32x1xi32>) -> tensor<32x1x!tt.ptr<f32>>
    %14 = "tt.expand_dims"(%8) <{axis = 0 : i32}> : (tensor<32xi32>) -> tensor<1x32xi32>
    %15 = "tt.broadcast"(%13) : (tensor<32x1x!tt.ptr<f32>>) -> tensor<32x32x!tt.ptr<f32>>
    %16 = "tt.broadcast"(%14) : (tensor<1x32xi32>) -> tensor<32x32xi32>
    %17 = "tt.addptr"(%15, %16) : (tensor<32x32x!tt.ptr<f32>>, tensor<32x32xi32>) -> tensor<32x32x!tt.ptr<f32>>
    %18 = "tt.splat"(%m) : (i32) -> tensor<32x1xi32>
    %19 = "arith.cmpi"(%9, %18) <{predicate = 2 : i64}> : (tensor<32x1xi32>, tensor<32x1xi32>) -> tensor<32x1xi1>
    %20 = "tt.splat"(%n) : (i32) -> tensor<1x32xi32>
    %21 = "arith.cmpi"(%14, %20) <{predicate = 2 : i64}> : (tensor<1x32xi32>, tensor<1x32xi32>) -> tensor<1x32xi1>
    %22 = "tt.broadcast"(%19) : (tensor<32x1xi1>) -> tensor<32x32xi1>
    %23 = "tt.broadcast"(%21) : (tensor<1x32xi1>) -> tensor<32x32xi1>
    %24 = "arith.andi"(%22, %23) : (tensor<32x32xi1>, tensor<32x32xi1>) -> tensor<32x32xi1>
    %25 = "arith.constant"() <{value = 5 : i32}> : () -> i32
    %26 = "tt.splat"(%25) : (i32) -> tensor<1x32xi32>
    %27 = "arith.cmpi"(%14, %26) <{predicate = 5 : i64}> : (tensor<1x32xi32>, tensor<1x32xi32>) -> tensor<1x32xi1>
    %28 = "tt.broadcast"(%27) : (tensor<1x32xi1>) -> tensor<32x32xi1>
    %29 = "arith.andi"(%24, %28) : (tensor<32x32xi1>, tensor<32x32xi1>) -> tensor<32x32xi1>
    %30 = "arith.constant"() <{value = 1.000000e+00 : f32}> : () -> f32
    %31 = "tt.splat"(%30) : (f32) -> tensor<32x32xf32>
    "tt.store"(%17, %31, %29) : (tensor<32x32x!tt.ptr<f32>>, tensor<32x32xf32>, tensor<32x32xi1>) -> ()
    "tt.return"() : () -> ()
  }) : () -> ()
}) : () -> ()
// -----
// Side by side, one above the other, and both.
//
// CHECK: tw.access = "reinterpret_cast x to offset: [32*program_id(0)*s], sizes: [32, 32], strides: [s, 1], dimension 1 wraps from 32*program_id(0) at n"
// CHECK: tw.access = "reinterpret_cast x to offset: [32*program_id(0)], sizes: [32, 32], strides: [s, 1], dimension 0 wraps from 32*program_id(0) at m"
// CHECK: tw.access = "reinterpret_cast x to offset: [0], sizes: [32, 32], strides: [s, 1], dimension 0 wraps from 32*program_id(0) at m, dimension 1 wraps from 32*program_id(0) at n"

"builtin.module"() ({
  "tt.func"() <{sym_name = "wraps", function_type = (!tt.ptr<f32>, i32, i32, i32) -> (), arg_attrs = [{tt.divisibility = 16 : i32}, {}, {}, {}]}> ({
  ^bb0(%x: !tt.ptr<f32>, %m: i32, %n: i32, %s: i32):
    %0 = "tt.get_program_id"() <{axis = 0 : i32}> : () -> i32
    %1 = "arith.constant"() <{value = 32 : i32}> : () -> i32
    %2 = "arith.muli"(%0, %1) : (i32, i32) -> i32
    %3 = "tt.make_range"() <{start = 0 : i32, end = 32 : i32}> : () -> tensor<32xi32>
    %4 = "tt.splat"(%2) : (i32) -> tensor<32xi32>
    %5 = "arith.addi"(%4, %3) : (tensor<32xi32>, tensor<32xi32>) -> tensor<32xi32>
    %6 = "tt.splat"(%m) : (i32) -> tensor<32xi32>
    %7 = "arith.remsi"(%5, %6) : (tensor<32xi32>, tensor<32xi32>) -> tensor<32xi32>
    %8 = "tt.splat"(%n) : (i32) -> tensor<32xi32>
    %9 = "arith.remsi"(%5, %8) : (tensor<32xi32>, tensor<32xi32>) -> tensor<32xi32>
    %10 = "tt.expand_dims"(%5) <{axis = 1 : i32}> : (tensor<32xi32>) -> tensor<32x1xi32>
    %11 = "tt.splat"(%s) : (i32) -> tensor<32x1xi32>
    %12 = "arith.muli"(%10, %11) : (tensor<32x1xi32>, tensor<32x1xi32>) -> tensor<32x1xi32>
    %13 = "tt.splat"(%x) : (!tt.ptr<f32>) -> tensor<32x1x!tt.ptr<f32>>
    %14 = "tt.addptr"(%13, %12) : (tensor<32x1x!tt.ptr<f32>>, tensor<32x1xi32>) -> tensor<32x1x!tt.ptr<f32>>
    %15 = "tt.expand_dims"(%9) <{axis = 0 : i32}> : (tensor<32xi32>) -> tensor<1x32xi32>
    %16 = "tt.broadcast"(%14) : (tensor<32x1x!tt.ptr<f32>>) -> tensor<32x32x!tt.ptr<f32>>
    %17 = "tt.broadcast"(%15) : (tensor<1x32xi32>) -> tensor<32x32xi32>
    %18 = "tt.addptr"(%16, %17) : (tensor<32x32x!tt.ptr<f32>>, tensor<32x32xi32>) -> tensor<32x32x!tt.ptr<f32>>
    %19 = "arith.constant"() <{value = 1.000000e+00 : f32}> : () -> f32
    %20 = "tt.splat"(%19) : (f32) -> tensor<32x32xf32>
    "tt.store"(%18, %20) : (tensor<32x32x!tt.ptr<f32>>, tensor<32x32xf32>) -> ()
    %21 = "tt.expand_dims"(%7) <{axis = 1 : i32}> : (tensor<32xi32>) -> tensor<32x1xi32>
    %22 = "arith.muli"(%21, %11) : (tensor<32x1xi32>, tensor<32x1xi32>) -> tensor<32x1xi32>
    %23 = "tt.addptr"(%13, %22) : (tensor<32x1x!tt.ptr<f32>>, tensor<32x1xi32>) -> tensor<32x1x!tt.ptr<f32>>
    %24 = "tt.expand_dims"(%5) <{axis = 0 : i32}> : (tensor<32xi32>) -> tensor<1x32xi32>
    %25 = "tt.broadcast"(%23) : (tensor<32x1x!tt.ptr<f32>>) -> tensor<32x32x!tt.ptr<f32>>
    %26 = "tt.broadcast"(%24) : (tensor<1x32xi32>) -> tensor<32x32xi32>
    %27 = "tt.addptr"(%25, %26) : (tensor<32x32x!tt.ptr<f32>>, tensor<32x32xi32>) -> tensor<32x32x!tt.ptr<f32>>
    %28 = "arith.constant"() <{value = 2.000000e+00 : f32}> : () -> f32
    %29 = "tt.splat"(%28) : (f32) -> tensor<32x32xf32>
    "tt.store"(%27, %29) : (tensor<32x32x!tt.ptr<f32>>, tensor<32x32xf32>) -> ()
    %30 = "tt.addptr"(%25, %17) : (tensor<32x32x!tt.ptr<f32>>, tensor<32x32xi32>) -> tensor<32x32x!tt.ptr<f32>>
    %31 = "arith.constant"() <{value = 3.000000e+00 : f32}> : () -> f32
    %32 = "tt.splat"(%31) : (f32) -> tensor<32x32xf32>
    "tt.store"(%30, %32) : (tensor<32x32x!tt.ptr<f32>>, tensor<32x32xf32>) -> ()
    "tt.return"() : () -> ()
  }) : () -> ()
}) : () -> ()
// -----
// Rows that are looked up, a loop that moves them.
//
// CHECK: tw.access = "reinterpret_cast idx to offset: [0], sizes: [32], strides: [1]"
// CHECK: tw.access = "reinterpret_cast x to offset: [32*counter of line 122], sizes: [32, 32], strides: [s, 1], dimension 1 below n - 32*counter of line 122, dimension 0 at load of line 109"
// CHECK: tw.access = "reinterpret_cast x to offset: [32*counter of line 122], sizes: [32, 32], strides: [s, 1], dimension 0 at load of line 109"

"builtin.module"() ({
  "tt.func"() <{sym_name = "gathered", function_type = (!tt.ptr<f32>, !tt.ptr<i32>, i32, i32) -> (), arg_attrs = [{tt.divisibility = 16 : i32}, {tt.divisibility = 16 : i32}, {}, {}]}> ({
  ^bb0(%x: !tt.ptr<f32>, %idx: !tt.ptr<i32>, %n: i32, %s: i32):
    %0 = "tt.make_range"() <{start = 0 : i32, end = 32 : i32}> : () -> tensor<32xi32>
    %1 = "tt.splat"(%idx) : (!tt.ptr<i32>) -> tensor<32x!tt.ptr<i32>>
    %2 = "tt.addptr"(%1, %0) : (tensor<32x!tt.ptr<i32>>, tensor<32xi32>) -> tensor<32x!tt.ptr<i32>>
    %3 = "tt.load"(%2) <{operandSegmentSizes = array<i32: 1, 0, 0>}> : (tensor<32x!tt.ptr<i32>>) -> tensor<32xi32>
    %4 = "tt.expand_dims"(%3) <{axis = 1 : i32}> : (tensor<32xi32>) -> tensor<32x1xi32>
    %5 = "tt.splat"(%s) : (i32) -> tensor<32x1xi32>
    %6 = "arith.muli"(%4, %5) : (tensor<32x1xi32>, tensor<32x1xi32>) -> tensor<32x1xi32>
    %7 = "tt.splat"(%x) : (!tt.ptr<f32>) -> tensor<32x1x!tt.ptr<f32>>
    %8 = "tt.addptr"(%7, %6) : (tensor<32x1x!tt.ptr<f32>>, tensor<32x1xi32>) -> tensor<32x1x!tt.ptr<f32>>
    %9 = "tt.expand_dims"(%0) <{axis = 0 : i32}> : (tensor<32xi32>) -> tensor<1x32xi32>
    %10 = "tt.broadcast"(%8) : (tensor<32x1x!tt.ptr<f32>>) -> tensor<32x32x!tt.ptr<f32>>
    %11 = "tt.broadcast"(%9) : (tensor<1x32xi32>) -> tensor<32x32xi32>
    %12 = "tt.addptr"(%10, %11) : (tensor<32x32x!tt.ptr<f32>>, tensor<32x32xi32>) -> tensor<32x32x!tt.ptr<f32>>
    %13 = "arith.constant"() <{value = 0 : i32}> : () -> i32
    %14 = "arith.constant"() <{value = 1 : i32}> : () -> i32
    %15 = "arith.constant"() <{value = 0 : i64}> : () -> i64
    %16 = "scf.for"(%13, %n, %14, %15) ({
    ^bb0(%17: i32, %18: i64):
      %19 = "tt.splat"(%18) : (i64) -> tensor<32x32xi64>
      %20 = "tt.addptr"(%12, %19) : (tensor<32x32x!tt.ptr<f32>>, tensor<32x32xi64>) -> tensor<32x32x!tt.ptr<f32>>
      %21 = "arith.constant"() <{value = 32 : i32}> : () -> i32
      %22 = "arith.muli"(%17, %21) : (i32, i32) -> i32
      %23 = "arith.subi"(%n, %22) : (i32, i32) -> i32
      %24 = "tt.splat"(%23) : (i32) -> tensor<1x32xi32>
      %25 = "arith.cmpi"(%9, %24) <{predicate = 2 : i64}> : (tensor<1x32xi32>, tensor<1x32xi32>) -> tensor<1x32xi1>
      %26 = "tt.broadcast"(%25) : (tensor<1x32xi1>) -> tensor<32x32xi1>
      %27 = "tt.load"(%20, %26) <{operandSegmentSizes = array<i32: 1, 1, 0>}> : (tensor<32x32x!tt.ptr<f32>>, tensor<32x32xi1>) -> tensor<32x32xf32>
      "tt.store"(%20, %27) : (tensor<32x32x!tt.ptr<f32>>, tensor<32x32xf32>) -> ()
      %28 = "tt.splat"(%21) : (i32) -> tensor<32x32xi32>
      %29 = "tt.addptr"(%20, %28) : (tensor<32x32x!tt.ptr<f32>>, tensor<32x32xi32>) -> tensor<32x32x!tt.ptr<f32>>
      %30 = "arith.extsi"(%21) : (i32) -> i64
      %31 = "arith.addi"(%18, %30) : (i64, i64) -> i64
      "scf.yield"(%31) : (i64) -> ()
    }) : (i32, i32, i32, i64) -> i64
    "tt.return"() : () -> ()
  }) : () -> ()
}) : () -> ()
// -----
// Carried through two loops; the first element of a scalar.
//
// CHECK: tw.access = "reinterpret_cast x to offset: [number 1 carried by the loop of line 158 + s*counter of line 162], sizes: [32], strides: [1]"
// CHECK: tw.access = "reinterpret_cast x to offset: [counter of line 158*s], sizes: [], strides: []"

"builtin.module"() ({
  "tt.func"() <{sym_name = "loops", function_type = (!tt.ptr<f32>, i32, i32) -> (), arg_attrs = [{tt.divisibility = 16 : i32}, {}, {}]}> ({
  ^bb0(%x: !tt.ptr<f32>, %n: i32, %s: i32):
    %0 = "tt.make_range"() <{start = 0 : i32, end = 32 : i32}> : () -> tensor<32xi32>
    %1 = "tt.splat"(%x) : (!tt.ptr<f32>) -> tensor<32x!tt.ptr<f32>>
    %2 = "tt.addptr"(%1, %0) : (tensor<32x!tt.ptr<f32>>, tensor<32xi32>) -> tensor<32x!tt.ptr<f32>>
    %3 = "arith.constant"() <{value = 0 : i32}> : () -> i32
    %4 = "arith.constant"() <{value = 1 : i32}> : () -> i32
    %5 = "arith.constant"() <{value = 0 : i64}> : () -> i64
    %6 = "scf.for"(%3, %n, %4, %5) ({
    ^bb0(%7: i32, %8: i64):
      %9 = "tt.splat"(%8) : (i64) -> tensor<32xi64>
      %10 = "tt.addptr"(%2, %9) : (tensor<32x!tt.ptr<f32>>, tensor<32xi64>) -> tensor<32x!tt.ptr<f32>>
      %11 = "scf.for"(%3, %n, %4, %5) ({
      ^bb0(%12: i32, %13: i64):
        %14 = "tt.splat"(%13) : (i64) -> tensor<32xi64>
        %15 = "tt.addptr"(%10, %14) : (tensor<32x!tt.ptr<f32>>, tensor<32xi64>) -> tensor<32x!tt.ptr<f32>>
        %16 = "arith.constant"() <{value = 1.000000e+00 : f32}> : () -> f32
        %17 = "tt.splat"(%16) : (f32) -> tensor<32xf32>
        "tt.store"(%15, %17) : (tensor<32x!tt.ptr<f32>>, tensor<32xf32>) -> ()
        %18 = "tt.splat"(%s) : (i32) -> tensor<32xi32>
        %19 = "tt.addptr"(%15, %18) : (tensor<32x!tt.ptr<f32>>, tensor<32xi32>) -> tensor<32x!tt.ptr<f32>>
        %20 = "arith.extsi"(%s) : (i32) -> i64
        %21 = "arith.addi"(%13, %20) : (i64, i64) -> i64
        "scf.yield"(%21) : (i64) -> ()
      }) : (i32, i32, i32, i64) -> i64
      %22 = "tt.splat"(%11) : (i64) -> tensor<32xi64>
      %23 = "tt.addptr"(%10, %22) : (tensor<32x!tt.ptr<f32>>, tensor<32xi64>) -> tensor<32x!tt.ptr<f32>>
      %24 = "arith.muli"(%7, %s) : (i32, i32) -> i32
      %25 = "tt.addptr"(%x, %24) : (!tt.ptr<f32>, i32) -> !tt.ptr<f32>
      %26 = "arith.constant"() <{value = 2.000000e+00 : f32}> : () -> f32
      "tt.store"(%25, %26) : (!tt.ptr<f32>, f32) -> ()
      %27 = "arith.addi"(%8, %11) : (i64, i64) -> i64
      "scf.yield"(%27) : (i64) -> ()
    }) : (i32, i32, i32, i64) -> i64
    "tt.return"() : () -> ()
  }) : () -> ()
}) : () -> ()
