// PASS: describe-accesses
// Bases, dimensions and masks of accesses.
//
// A block of a vector, and its mask.
//
// CHECK: tw.access = "x + 0; 64 of stride 1 from 64*program_id(0) to n"
// CHECK: tw.access = "x + 0; 64 of stride 1 from 64*program_id(0) to n"

"builtin.module"() ({
  "tt.func"() <{sym_name = "block", function_type = (!tt.ptr<f32>, i32) -> (), arg_attrs = [{tt.divisibility = 16 : i32}, {}]}> ({
  ^bb0(%x: !tt.ptr<f32>, %n: i32):
    %0 = "tt.get_program_id"() <{axis = 0 : i32}> : () -> i32
    %1 = "arith.constant"() <{value = 64 : i32}> : () -> i32
    %2 = "arith.muli"(%0, %1) : (i32, i32) -> i32
    %3 = "tt.make_range"() <{start = 0 : i32, end = 64 : i32}> : () -> tensor<64xi32>
    %4 = "tt.splat"(%2) : (i32) -> tensor<64xi32>
    %5 = "arith.addi"(%4, %3) : (tensor<64xi32>, tensor<64xi32>) -> tensor<64xi32>
    %6 = "tt.splat"(%x) : (!tt.ptr<f32>) -> tensor<64x!tt.ptr<f32>>
    %7 = "tt.addptr"(%6, %5) : (tensor<64x!tt.ptr<f32>>, tensor<64xi32>) -> tensor<64x!tt.ptr<f32>>
    %8 = "tt.splat"(%n) : (i32) -> tensor<64xi32>
    %9 = "arith.cmpi"(%5, %8) <{predicate = 2 : i64}> : (tensor<64xi32>, tensor<64xi32>) -> tensor<64xi1>
    %10 = "tt.load"(%7, %9) <{operandSegmentSizes = array<i32: 1, 1, 0>}> : (tensor<64x!tt.ptr<f32>>, tensor<64xi1>) -> tensor<64xf32>
    "tt.store"(%7, %10, %9) : (tensor<64x!tt.ptr<f32>>, tensor<64xf32>, tensor<64xi1>) -> ()
    "tt.return"() : () -> ()
  }) : () -> ()
}) : () -> ()
// -----
// What is added to the base belongs to the dimension that it is a multiple of.
//
// CHECK: tw.access = "x + 0; 32 of stride 1 from 32*program_id(1); 32 of stride s from 32*program_id(0)"
// CHECK: tw.access = "x + 0; 32 of stride s from 32*program_id(0); 32 of stride 1 from 32*program_id(1)"

"builtin.module"() ({
  "tt.func"() <{sym_name = "rows", function_type = (!tt.ptr<f32>, i32) -> (), arg_attrs = [{tt.divisibility = 16 : i32}, {}]}> ({
  ^bb0(%x: !tt.ptr<f32>, %s: i32):
    %0 = "tt.get_program_id"() <{axis = 0 : i32}> : () -> i32
    %1 = "arith.constant"() <{value = 32 : i32}> : () -> i32
    %2 = "arith.muli"(%0, %1) : (i32, i32) -> i32
    %3 = "arith.muli"(%2, %s) : (i32, i32) -> i32
    %4 = "tt.addptr"(%x, %3) : (!tt.ptr<f32>, i32) -> !tt.ptr<f32>
    %5 = "tt.get_program_id"() <{axis = 1 : i32}> : () -> i32
    %6 = "arith.muli"(%5, %1) : (i32, i32) -> i32
    %7 = "tt.addptr"(%4, %6) : (!tt.ptr<f32>, i32) -> !tt.ptr<f32>
    %8 = "tt.make_range"() <{start = 0 : i32, end = 32 : i32}> : () -> tensor<32xi32>
    %9 = "tt.expand_dims"(%8) <{axis = 1 : i32}> : (tensor<32xi32>) -> tensor<32x1xi32>
    %10 = "tt.splat"(%s) : (i32) -> tensor<32x1xi32>
    %11 = "arith.muli"(%9, %10) : (tensor<32x1xi32>, tensor<32x1xi32>) -> tensor<32x1xi32>
    %12 = "tt.splat"(%7) : (!tt.ptr<f32>) -> tensor<32x1x!tt.ptr<f32>>
    %13 = "tt.addptr"(%12, %11) : (tensor<32x1x!tt.ptr<f32>>, tensor<32x1xi32>) -> tensor<32x1x!tt.ptr<f32>>
    %14 = "tt.expand_dims"(%8) <{axis = 0 : i32}> : (tensor<32xi32>) -> tensor<1x32xi32>
    %15 = "tt.broadcast"(%13) : (tensor<32x1x!tt.ptr<f32>>) -> tensor<32x32x!tt.ptr<f32>>
    %16 = "tt.broadcast"(%14) : (tensor<1x32xi32>) -> tensor<32x32xi32>
    %17 = "tt.addptr"(%15, %16) : (tensor<32x32x!tt.ptr<f32>>, tensor<32x32xi32>) -> tensor<32x32x!tt.ptr<f32>>
    %18 = "tt.trans"(%17) <{order = array<i32: 1, 0>}> : (tensor<32x32x!tt.ptr<f32>>) -> tensor<32x32x!tt.ptr<f32>>
    %19 = "tt.load"(%18) <{operandSegmentSizes = array<i32: 1, 0, 0>}> : (tensor<32x32x!tt.ptr<f32>>) -> tensor<32x32xf32>
    "tt.store"(%17, %19) : (tensor<32x32x!tt.ptr<f32>>, tensor<32x32xf32>) -> ()
    "tt.return"() : () -> ()
  }) : () -> ()
}) : () -> ()
// -----
// Backwards, every second element, the same element all along.
//
// CHECK: tw.access = "x + 1; 32 of stride 2 from 0"
// CHECK: tw.access = "x + 0; 32 of stride -2 from -31; 32 of stride 0 from 0"

"builtin.module"() ({
  "tt.func"() <{sym_name = "odd", function_type = (!tt.ptr<f32>) -> (), arg_attrs = [{tt.divisibility = 16 : i32}]}> ({
  ^bb0(%x: !tt.ptr<f32>):
    %0 = "tt.make_range"() <{start = 0 : i32, end = 32 : i32}> : () -> tensor<32xi32>
    %1 = "arith.constant"() <{value = 31 : i32}> : () -> i32
    %2 = "tt.splat"(%1) : (i32) -> tensor<32xi32>
    %3 = "arith.subi"(%2, %0) : (tensor<32xi32>, tensor<32xi32>) -> tensor<32xi32>
    %4 = "tt.expand_dims"(%3) <{axis = 1 : i32}> : (tensor<32xi32>) -> tensor<32x1xi32>
    %5 = "arith.constant"() <{value = 2 : i32}> : () -> i32
    %6 = "tt.splat"(%5) : (i32) -> tensor<32x1xi32>
    %7 = "arith.muli"(%4, %6) : (tensor<32x1xi32>, tensor<32x1xi32>) -> tensor<32x1xi32>
    %8 = "tt.splat"(%x) : (!tt.ptr<f32>) -> tensor<32x1x!tt.ptr<f32>>
    %9 = "tt.addptr"(%8, %7) : (tensor<32x1x!tt.ptr<f32>>, tensor<32x1xi32>) -> tensor<32x1x!tt.ptr<f32>>
    %10 = "tt.expand_dims"(%0) <{axis = 0 : i32}> : (tensor<32xi32>) -> tensor<1x32xi32>
    %11 = "arith.constant"() <{value = 0 : i32}> : () -> i32
    %12 = "tt.splat"(%11) : (i32) -> tensor<1x32xi32>
    %13 = "arith.muli"(%10, %12) : (tensor<1x32xi32>, tensor<1x32xi32>) -> tensor<1x32xi32>
    %14 = "tt.broadcast"(%9) : (tensor<32x1x!tt.ptr<f32>>) -> tensor<32x32x!tt.ptr<f32>>
    %15 = "tt.broadcast"(%13) : (tensor<1x32xi32>) -> tensor<32x32xi32>
    %16 = "tt.addptr"(%14, %15) : (tensor<32x32x!tt.ptr<f32>>, tensor<32x32xi32>) -> tensor<32x32x!tt.ptr<f32>>
    %17 = "tt.splat"(%5) : (i32) -> tensor<32xi32>
    %18 = "arith.muli"(%0, %17) : (tensor<32xi32>, tensor<32xi32>) -> tensor<32xi32>
    %19 = "tt.splat"(%x) : (!tt.ptr<f32>) -> tensor<32x!tt.ptr<f32>>
    %20 = "tt.addptr"(%19, %18) : (tensor<32x!tt.ptr<f32>>, tensor<32xi32>) -> tensor<32x!tt.ptr<f32>>
    %21 = "arith.constant"() <{value = 1 : i32}> : () -> i32
    %22 = "tt.splat"(%21) : (i32) -> tensor<32xi32>
    %23 = "tt.addptr"(%20, %22) : (tensor<32x!tt.ptr<f32>>, tensor<32xi32>) -> tensor<32x!tt.ptr<f32>>
    %24 = "tt.load"(%23) <{operandSegmentSizes = array<i32: 1, 0, 0>}> : (tensor<32x!tt.ptr<f32>>) -> tensor<32xf32>
    %25 = "tt.expand_dims"(%24) <{axis = 1 : i32}> : (tensor<32xf32>) -> tensor<32x1xf32>
    %26 = "arith.constant"() <{value = dense<0.000000e+00> : tensor<32x32xf32>}> : () -> tensor<32x32xf32>
    %27 = "tt.broadcast"(%25) : (tensor<32x1xf32>) -> tensor<32x32xf32>
    %28 = "arith.addf"(%27, %26) <{fastmath = #arith.fastmath<contract>}> : (tensor<32x32xf32>, tensor<32x32xf32>) -> tensor<32x32xf32>
    "tt.store"(%16, %28) : (tensor<32x32x!tt.ptr<f32>>, tensor<32x32xf32>) -> ()
    "tt.return"() : () -> ()
  }) : () -> ()
}) : () -> ()
// -----
// Rows that wrap, columns that are looked up.
//
// CHECK: tw.access = "idx + 0; 32 of stride 1 from 0"
// CHECK: tw.access = "x + 0; 32 of stride s from 32*program_id(0) mod m; 32 of stride 1 from 3 + load of line 121[i]"

"builtin.module"() ({
  "tt.func"() <{sym_name = "indexed", function_type = (!tt.ptr<f32>, !tt.ptr<i32>, i32, i32) -> (), arg_attrs = [{tt.divisibility = 16 : i32}, {tt.divisibility = 16 : i32}, {}, {}]}> ({
  ^bb0(%x: !tt.ptr<f32>, %idx: !tt.ptr<i32>, %m: i32, %s: i32):
    %0 = "tt.make_range"() <{start = 0 : i32, end = 32 : i32}> : () -> tensor<32xi32>
    %1 = "tt.get_program_id"() <{axis = 0 : i32}> : () -> i32
    %2 = "arith.constant"() <{value = 32 : i32}> : () -> i32
    %3 = "arith.muli"(%1, %2) : (i32, i32) -> i32
    %4 = "tt.splat"(%3) : (i32) -> tensor<32xi32>
    %5 = "arith.addi"(%4, %0) : (tensor<32xi32>, tensor<32xi32>) -> tensor<32xi32>
    %6 = "tt.splat"(%m) : (i32) -> tensor<32xi32>
    %7 = "arith.remsi"(%5, %6) : (tensor<32xi32>, tensor<32xi32>) -> tensor<32xi32>
    %8 = "tt.splat"(%idx) : (!tt.ptr<i32>) -> tensor<32x!tt.ptr<i32>>
    %9 = "tt.addptr"(%8, %0) : (tensor<32x!tt.ptr<i32>>, tensor<32xi32>) -> tensor<32x!tt.ptr<i32>>
    %10 = "tt.load"(%9) <{operandSegmentSizes = array<i32: 1, 0, 0>}> : (tensor<32x!tt.ptr<i32>>) -> tensor<32xi32>
    %11 = "tt.expand_dims"(%7) <{axis = 1 : i32}> : (tensor<32xi32>) -> tensor<32x1xi32>
    %12 = "tt.splat"(%s) : (i32) -> tensor<32x1xi32>
    %13 = "arith.muli"(%11, %12) : (tensor<32x1xi32>, tensor<32x1xi32>) -> tensor<32x1xi32>
    %14 = "tt.splat"(%x) : (!tt.ptr<f32>) -> tensor<32x1x!tt.ptr<f32>>
    %15 = "tt.addptr"(%14, %13) : (tensor<32x1x!tt.ptr<f32>>, tensor<32x1xi32>) -> tensor<32x1x!tt.ptr<f32>>
    %16 = "arith.constant"() <{value = 3 : i32}> : () -> i32
    %17 = "tt.splat"(%16) : (i32) -> tensor<32xi32>
    %18 = "arith.addi"(%10, %17) : (tensor<32xi32>, tensor<32xi32>) -> tensor<32xi32>
    %19 = "tt.expand_dims"(%18) <{axis = 0 : i32}> : (tensor<32xi32>) -> tensor<1x32xi32>
    %20 = "tt.broadcast"(%15) : (tensor<32x1x!tt.ptr<f32>>) -> tensor<32x32x!tt.ptr<f32>>
    %21 = "tt.broadcast"(%19) : (tensor<1x32xi32>) -> tensor<32x32xi32>
    %22 = "tt.addptr"(%20, %21) : (tensor<32x32x!tt.ptr<f32>>, tensor<32x32xi32>) -> tensor<32x32x!tt.ptr<f32>>
    %23 = "arith.constant"() <{value = 1.000000e+00 : f32}> : () -> f32
    %24 = "tt.splat"(%23) : (f32) -> tensor<32x32xf32>
    "tt.store"(%22, %24) : (tensor<32x32x!tt.ptr<f32>>, tensor<32x32xf32>) -> ()
    "tt.return"() : () -> ()
  }) : () -> ()
}) : () -> ()
// -----
// Two loops move one pointer: before and behind the step, and in the second loop.
//
// CHECK: tw.access = "x + 0; 32 of stride s from 0; 32 of stride 1 from 32*counter of line 163"
// CHECK: tw.access = "x + 0; 32 of stride s from 0; 32 of stride 1 from 32*counter of line 163 + 32"
// CHECK: tw.access = "x + 0; 32 of stride s from 2*counter of line 184 - 6; 32 of stride 1 from for of line 163"

"builtin.module"() ({
  "tt.func"() <{sym_name = "two_loops", function_type = (!tt.ptr<f32>, i32, i32) -> (), arg_attrs = [{tt.divisibility = 16 : i32}, {}, {}]}> ({
  ^bb0(%x: !tt.ptr<f32>, %n: i32, %s: i32):
    %0 = "tt.make_range"() <{start = 0 : i32, end = 32 : i32}> : () -> tensor<32xi32>
    %1 = "tt.expand_dims"(%0) <{axis = 1 : i32}> : (tensor<32xi32>) -> tensor<32x1xi32>
    %2 = "tt.splat"(%s) : (i32) -> tensor<32x1xi32>
    %3 = "arith.muli"(%1, %2) : (tensor<32x1xi32>, tensor<32x1xi32>) -> tensor<32x1xi32>
    %4 = "tt.splat"(%x) : (!tt.ptr<f32>) -> tensor<32x1x!tt.ptr<f32>>
    %5 = "tt.addptr"(%4, %3) : (tensor<32x1x!tt.ptr<f32>>, tensor<32x1xi32>) -> tensor<32x1x!tt.ptr<f32>>
    %6 = "tt.expand_dims"(%0) <{axis = 0 : i32}> : (tensor<32xi32>) -> tensor<1x32xi32>
    %7 = "tt.broadcast"(%5) : (tensor<32x1x!tt.ptr<f32>>) -> tensor<32x32x!tt.ptr<f32>>
    %8 = "tt.broadcast"(%6) : (tensor<1x32xi32>) -> tensor<32x32xi32>
    %9 = "tt.addptr"(%7, %8) : (tensor<32x32x!tt.ptr<f32>>, tensor<32x32xi32>) -> tensor<32x32x!tt.ptr<f32>>
    %10 = "arith.constant"() <{value = 0 : i32}> : () -> i32
    %11 = "arith.constant"() <{value = 1 : i32}> : () -> i32
    %12 = "arith.constant"() <{value = 0 : i64}> : () -> i64
    %13 = "scf.for"(%10, %n, %11, %12) ({
    ^bb0(%14: i32, %15: i64):
      %16 = "tt.splat"(%15) : (i64) -> tensor<32x32xi64>
      %17 = "tt.addptr"(%9, %16) : (tensor<32x32x!tt.ptr<f32>>, tensor<32x32xi64>) -> tensor<32x32x!tt.ptr<f32>>
      %18 = "arith.constant"() <{value = 1.000000e+00 : f32}> : () -> f32
      %19 = "tt.splat"(%18) : (f32) -> tensor<32x32xf32>
      "tt.store"(%17, %19) : (tensor<32x32x!tt.ptr<f32>>, tensor<32x32xf32>) -> ()
      %20 = "arith.constant"() <{value = 32 : i32}> : () -> i32
      %21 = "tt.splat"(%20) : (i32) -> tensor<32x32xi32>
      %22 = "tt.addptr"(%17, %21) : (tensor<32x32x!tt.ptr<f32>>, tensor<32x32xi32>) -> tensor<32x32x!tt.ptr<f32>>
      %23 = "arith.constant"() <{value = 2.000000e+00 : f32}> : () -> f32
      %24 = "tt.splat"(%23) : (f32) -> tensor<32x32xf32>
      "tt.store"(%22, %24) : (tensor<32x32x!tt.ptr<f32>>, tensor<32x32xf32>) -> ()
      %25 = "arith.extsi"(%20) : (i32) -> i64
      %26 = "arith.addi"(%15, %25) : (i64, i64) -> i64
      "scf.yield"(%26) : (i64) -> ()
    }) : (i32, i32, i32, i64) -> i64
    %27 = "tt.splat"(%13) : (i64) -> tensor<32x32xi64>
    %28 = "tt.addptr"(%9, %27) : (tensor<32x32x!tt.ptr<f32>>, tensor<32x32xi64>) -> tensor<32x32x!tt.ptr<f32>>
    %29 = "arith.constant"() <{value = 3 : i32}> : () -> i32
    %30 = "arith.constant"() <{value = 2 : i32}> : () -> i32
    %31 = "scf.for"(%29, %n, %30, %12) ({
    ^bb0(%32: i32, %33: i64):
      %34 = "tt.splat"(%33) : (i64) -> tensor<32x32xi64>
      %35 = "tt.addptr"(%28, %34) : (tensor<32x32x!tt.ptr<f32>>, tensor<32x32xi64>) -> tensor<32x32x!tt.ptr<f32>>
      %36 = "arith.constant"() <{value = 3.000000e+00 : f32}> : () -> f32
      %37 = "tt.splat"(%36) : (f32) -> tensor<32x32xf32>
      "tt.store"(%35, %37) : (tensor<32x32x!tt.ptr<f32>>, tensor<32x32xf32>) -> ()
      %38 = "arith.constant"() <{value = 4 : i32}> : () -> i32
      %39 = "arith.muli"(%38, %s) : (i32, i32) -> i32
      %40 = "tt.splat"(%39) : (i32) -> tensor<32x32xi32>
      %41 = "tt.addptr"(%35, %40) : (tensor<32x32x!tt.ptr<f32>>, tensor<32x32xi32>) -> tensor<32x32x!tt.ptr<f32>>
      %42 = "arith.extsi"(%39) : (i32) -> i64
      %43 = "arith.addi"(%33, %42) : (i64, i64) -> i64
      "scf.yield"(%43) : (i64) -> ()
    }) : (i32, i32, i32, i64) -> i64
    "tt.return"() : () -> ()
  }) : () -> ()
}) : () -> ()
// -----
// A loop in a loop: the inner one begins where the outer one is.
//
// CHECK: tw.access = "x + 0; 32 of stride 1 from s*counter of line 216 + 32*counter of line 220"

"builtin.module"() ({
  "tt.func"() <{sym_name = "nested", function_type = (!tt.ptr<f32>, i32, i32) -> (), arg_attrs = [{tt.divisibility = 16 : i32}, {}, {}]}> ({
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
        %18 = "arith.constant"() <{value = 32 : i32}> : () -> i32
        %19 = "tt.splat"(%18) : (i32) -> tensor<32xi32>
        %20 = "tt.addptr"(%15, %19) : (tensor<32x!tt.ptr<f32>>, tensor<32xi32>) -> tensor<32x!tt.ptr<f32>>
        %21 = "arith.extsi"(%18) : (i32) -> i64
        %22 = "arith.addi"(%13, %21) : (i64, i64) -> i64
        "scf.yield"(%22) : (i64) -> ()
      }) : (i32, i32, i32, i64) -> i64
      %23 = "tt.splat"(%s) : (i32) -> tensor<32xi32>
      %24 = "tt.addptr"(%10, %23) : (tensor<32x!tt.ptr<f32>>, tensor<32xi32>) -> tensor<32x!tt.ptr<f32>>
      %25 = "arith.extsi"(%s) : (i32) -> i64
      %26 = "arith.addi"(%8, %25) : (i64, i64) -> i64
      "scf.yield"(%26) : (i64) -> ()
    }) : (i32, i32, i32, i64) -> i64
    "tt.return"() : () -> ()
  }) : () -> ()
}) : () -> ()
// -----
// Bounds on both sides, <= and >, of every second index, negated, of one scalar.
//
// CHECK: tw.access = "x + 0; 32 of stride 1 from 32*c not below lo to hi + 1"
// CHECK: tw.access = "x + 0; 32 of stride 1 from 32*c not below lo to hi + 1"
// CHECK: tw.access = "x + 0; 32 of stride 1 from 0 to 4"
// CHECK: tw.access = "x + 0; 32 of stride 1 from 0 to hi; where cmpi of line 294"
// CHECK: tw.access = "x + 0; 32 of stride 1 from 0; where a mask says so"
// CHECK: tw.access = "x + 0; 32 of stride 1 from 0; where a mask says so"
// CHECK: tw.access = "x + 0; 32 of stride 1 from 0; where a mask says so"

"builtin.module"() ({
  "tt.func"() <{sym_name = "masks", function_type = (!tt.ptr<f32>, i32, i32, i32) -> (), arg_attrs = [{tt.divisibility = 16 : i32}, {}, {}, {}]}> ({
  ^bb0(%x: !tt.ptr<f32>, %lo: i32, %hi: i32, %c: i32):
    %0 = "tt.make_range"() <{start = 0 : i32, end = 32 : i32}> : () -> tensor<32xi32>
    %1 = "arith.constant"() <{value = 32 : i32}> : () -> i32
    %2 = "arith.muli"(%c, %1) : (i32, i32) -> i32
    %3 = "tt.splat"(%2) : (i32) -> tensor<32xi32>
    %4 = "arith.addi"(%3, %0) : (tensor<32xi32>, tensor<32xi32>) -> tensor<32xi32>
    %5 = "tt.splat"(%x) : (!tt.ptr<f32>) -> tensor<32x!tt.ptr<f32>>
    %6 = "tt.addptr"(%5, %4) : (tensor<32x!tt.ptr<f32>>, tensor<32xi32>) -> tensor<32x!tt.ptr<f32>>
    %7 = "tt.splat"(%lo) : (i32) -> tensor<32xi32>
    %8 = "arith.cmpi"(%4, %7) <{predicate = 5 : i64}> : (tensor<32xi32>, tensor<32xi32>) -> tensor<32xi1>
    %9 = "tt.splat"(%hi) : (i32) -> tensor<32xi32>
    %10 = "arith.cmpi"(%4, %9) <{predicate = 3 : i64}> : (tensor<32xi32>, tensor<32xi32>) -> tensor<32xi1>
    %11 = "arith.andi"(%8, %10) : (tensor<32xi1>, tensor<32xi1>) -> tensor<32xi1>
    %12 = "arith.constant"() <{value = 1.000000e+00 : f32}> : () -> f32
    %13 = "tt.splat"(%12) : (f32) -> tensor<32xf32>
    "tt.store"(%6, %13, %11) : (tensor<32x!tt.ptr<f32>>, tensor<32xf32>, tensor<32xi1>) -> ()
    %14 = "arith.cmpi"(%4, %9) <{predicate = 4 : i64}> : (tensor<32xi32>, tensor<32xi32>) -> tensor<32xi1>
    %15 = "arith.cmpi"(%7, %4) <{predicate = 4 : i64}> : (tensor<32xi32>, tensor<32xi32>) -> tensor<32xi1>
    %16 = "arith.ori"(%14, %15) : (tensor<32xi1>, tensor<32xi1>) -> tensor<32xi1>
    %17 = "arith.constant"() <{value = dense<true> : tensor<32xi1>}> : () -> tensor<32xi1>
    %18 = "arith.xori"(%16, %17) : (tensor<32xi1>, tensor<32xi1>) -> tensor<32xi1>
    %19 = "arith.constant"() <{value = 2.000000e+00 : f32}> : () -> f32
    %20 = "tt.splat"(%19) : (f32) -> tensor<32xf32>
    "tt.store"(%6, %20, %18) : (tensor<32x!tt.ptr<f32>>, tensor<32xf32>, tensor<32xi1>) -> ()
    %21 = "tt.addptr"(%5, %0) : (tensor<32x!tt.ptr<f32>>, tensor<32xi32>) -> tensor<32x!tt.ptr<f32>>
    %22 = "arith.constant"() <{value = 2 : i32}> : () -> i32
    %23 = "tt.splat"(%22) : (i32) -> tensor<32xi32>
    %24 = "arith.muli"(%23, %0) : (tensor<32xi32>, tensor<32xi32>) -> tensor<32xi32>
    %25 = "arith.constant"() <{value = 8 : i32}> : () -> i32
    %26 = "tt.splat"(%25) : (i32) -> tensor<32xi32>
    %27 = "arith.cmpi"(%24, %26) <{predicate = 2 : i64}> : (tensor<32xi32>, tensor<32xi32>) -> tensor<32xi1>
    %28 = "arith.constant"() <{value = 3.000000e+00 : f32}> : () -> f32
    %29 = "tt.splat"(%28) : (f32) -> tensor<32xf32>
    "tt.store"(%21, %29, %27) : (tensor<32x!tt.ptr<f32>>, tensor<32xf32>, tensor<32xi1>) -> ()
    %30 = "arith.subi"(%9, %0) : (tensor<32xi32>, tensor<32xi32>) -> tensor<32xi32>
    %31 = "arith.constant"() <{value = 0 : i32}> : () -> i32
    %32 = "tt.splat"(%31) : (i32) -> tensor<32xi32>
    %33 = "arith.cmpi"(%30, %32) <{predicate = 4 : i64}> : (tensor<32xi32>, tensor<32xi32>) -> tensor<32xi1>
    %34 = "arith.cmpi"(%lo, %hi) <{predicate = 2 : i64}> : (i32, i32) -> i1
    %35 = "tt.splat"(%34) : (i1) -> tensor<32xi1>
    %36 = "arith.andi"(%33, %35) : (tensor<32xi1>, tensor<32xi1>) -> tensor<32xi1>
    %37 = "arith.constant"() <{value = 4.000000e+00 : f32}> : () -> f32
    %38 = "tt.splat"(%37) : (f32) -> tensor<32xf32>
    "tt.store"(%21, %38, %36) : (tensor<32x!tt.ptr<f32>>, tensor<32xf32>, tensor<32xi1>) -> ()
    %39 = "arith.cmpi"(%0, %7) <{predicate = 2 : i64}> : (tensor<32xi32>, tensor<32xi32>) -> tensor<32xi1>
    %40 = "arith.cmpi"(%0, %9) <{predicate = 2 : i64}> : (tensor<32xi32>, tensor<32xi32>) -> tensor<32xi1>
    %41 = "arith.ori"(%39, %40) : (tensor<32xi1>, tensor<32xi1>) -> tensor<32xi1>
    %42 = "arith.constant"() <{value = 5.000000e+00 : f32}> : () -> f32
    %43 = "tt.splat"(%42) : (f32) -> tensor<32xf32>
    "tt.store"(%21, %43, %41) : (tensor<32x!tt.ptr<f32>>, tensor<32xf32>, tensor<32xi1>) -> ()
    %44 = "arith.cmpi"(%24, %7) <{predicate = 2 : i64}> : (tensor<32xi32>, tensor<32xi32>) -> tensor<32xi1>
    %45 = "arith.constant"() <{value = 6.000000e+00 : f32}> : () -> f32
    %46 = "tt.splat"(%45) : (f32) -> tensor<32xf32>
    "tt.store"(%21, %46, %44) : (tensor<32x!tt.ptr<f32>>, tensor<32xf32>, tensor<32xi1>) -> ()
    %47 = "arith.cmpi"(%0, %26) <{predicate = 6 : i64}> : (tensor<32xi32>, tensor<32xi32>) -> tensor<32xi1>
    %48 = "arith.constant"() <{value = 7.000000e+00 : f32}> : () -> f32
    %49 = "tt.splat"(%48) : (f32) -> tensor<32xf32>
    "tt.store"(%21, %49, %47) : (tensor<32x!tt.ptr<f32>>, tensor<32xf32>, tensor<32xi1>) -> ()
    "tt.return"() : () -> ()
  }) : () -> ()
}) : () -> ()
// -----
// A mask along the other dimension, and one of both.
//
// CHECK: tw.access = "x + 0; 32 of stride 32 from 0 to n; 32 of stride 1 from 0 to n"
// CHECK: tw.access = "x + 0; 32 of stride 32 from 0; 32 of stride 1 from 0; where a mask says so"

"builtin.module"() ({
  "tt.func"() <{sym_name = "triangle", function_type = (!tt.ptr<f32>, i32) -> (), arg_attrs = [{tt.divisibility = 16 : i32}, {}]}> ({
  ^bb0(%x: !tt.ptr<f32>, %n: i32):
    %0 = "tt.make_range"() <{start = 0 : i32, end = 32 : i32}> : () -> tensor<32xi32>
    %1 = "tt.expand_dims"(%0) <{axis = 1 : i32}> : (tensor<32xi32>) -> tensor<32x1xi32>
    %2 = "arith.constant"() <{value = 32 : i32}> : () -> i32
    %3 = "tt.splat"(%2) : (i32) -> tensor<32x1xi32>
    %4 = "arith.muli"(%1, %3) : (tensor<32x1xi32>, tensor<32x1xi32>) -> tensor<32x1xi32>
    %5 = "tt.splat"(%x) : (!tt.ptr<f32>) -> tensor<32x1x!tt.ptr<f32>>
    %6 = "tt.addptr"(%5, %4) : (tensor<32x1x!tt.ptr<f32>>, tensor<32x1xi32>) -> tensor<32x1x!tt.ptr<f32>>
    %7 = "tt.expand_dims"(%0) <{axis = 0 : i32}> : (tensor<32xi32>) -> tensor<1x32xi32>
    %8 = "tt.broadcast"(%6) : (tensor<32x1x!tt.ptr<f32>>) -> tensor<32x32x!tt.ptr<f32>>
    %9 = "tt.broadcast"(%7) : (tensor<1x32xi32>) -> tensor<32x32xi32>
    %10 = "tt.addptr"(%8, %9) : (tensor<32x32x!tt.ptr<f32>>, tensor<32x32xi32>) -> tensor<32x32x!tt.ptr<f32>>
    %11 = "tt.splat"(%n) : (i32) -> tensor<1x32xi32>
    %12 = "arith.cmpi"(%7, %11) <{predicate = 2 : i64}> : (tensor<1x32xi32>, tensor<1x32xi32>) -> tensor<1x32xi1>
    %13 = "tt.splat"(%n) : (i32) -> tensor<32x1xi32>
    %14 = "arith.cmpi"(%1, %13) <{predicate = 2 : i64}> : (tensor<32x1xi32>, tensor<32x1xi32>) -> tensor<32x1xi1>
    %15 = "tt.broadcast"(%12) : (tensor<1x32xi1>) -> tensor<32x32xi1>
    %16 = "tt.broadcast"(%14) : (tensor<32x1xi1>) -> tensor<32x32xi1>
    %17 = "arith.andi"(%15, %16) : (tensor<32x32xi1>, tensor<32x32xi1>) -> tensor<32x32xi1>
    %18 = "arith.constant"() <{value = 1.000000e+00 : f32}> : () -> f32
    %19 = "tt.splat"(%18) : (f32) -> tensor<32x32xf32>
    "tt.store"(%10, %19, %17) : (tensor<32x32x!tt.ptr<f32>>, tensor<32x32xf32>, tensor<32x32xi1>) -> ()
    %20 = "tt.broadcast"(%1) : (tensor<32x1xi32>) -> tensor<32x32xi32>
    %21 = "arith.cmpi"(%9, %20) <{predicate = 3 : i64}> : (tensor<32x32xi32>, tensor<32x32xi32>) -> tensor<32x32xi1>
    %22 = "arith.constant"() <{value = 2.000000e+00 : f32}> : () -> f32
    %23 = "tt.splat"(%22) : (f32) -> tensor<32x32xf32>
    "tt.store"(%10, %23, %21) : (tensor<32x32x!tt.ptr<f32>>, tensor<32x32xf32>, tensor<32x32xi1>) -> ()
    "tt.return"() : () -> ()
  }) : () -> ()
}) : () -> ()
// -----
// What is not affine: pointers that control flow chooses, indices of few bits or unsigned.
//
// CHECK: tw.access = "its pointers are not one pointer plus offsets"
// CHECK: tw.access = "its pointers are not affine along dimension 0"
// CHECK: tw.access = "its pointers are not affine along dimension 0"
// CHECK: tw.access = "its pointers are not one pointer plus offsets"

"builtin.module"() ({
  "tt.func"() <{sym_name = "not_affine", function_type = (!tt.ptr<f32>, !tt.ptr<f32>, i32, !tt.ptr<i32>) -> (), arg_attrs = [{tt.divisibility = 16 : i32}, {tt.divisibility = 16 : i32}, {}, {tt.divisibility = 16 : i32}]}> ({
  ^bb0(%x: !tt.ptr<f32>, %y: !tt.ptr<f32>, %n: i32, %u: !tt.ptr<i32>):
    %0 = "tt.make_range"() <{start = 0 : i32, end = 32 : i32}> : () -> tensor<32xi32>
    %1 = "tt.splat"(%x) : (!tt.ptr<f32>) -> tensor<32x!tt.ptr<f32>>
    %2 = "tt.addptr"(%1, %0) : (tensor<32x!tt.ptr<f32>>, tensor<32xi32>) -> tensor<32x!tt.ptr<f32>>
    %3 = "arith.constant"() <{value = 3 : i32}> : () -> i32
    %4 = "arith.cmpi"(%n, %3) <{predicate = 4 : i64}> : (i32, i32) -> i1
    %5 = "scf.if"(%4) ({
      %6 = "arith.constant"() <{value = 2 : i32}> : () -> i32
      %7 = "tt.splat"(%6) : (i32) -> tensor<32xi32>
      %8 = "arith.muli"(%0, %7) : (tensor<32xi32>, tensor<32xi32>) -> tensor<32xi32>
      %9 = "tt.splat"(%y) : (!tt.ptr<f32>) -> tensor<32x!tt.ptr<f32>>
      %10 = "tt.addptr"(%9, %8) : (tensor<32x!tt.ptr<f32>>, tensor<32xi32>) -> tensor<32x!tt.ptr<f32>>
      "scf.yield"(%10) : (tensor<32x!tt.ptr<f32>>) -> ()
    }, {
      "scf.yield"(%2) : (tensor<32x!tt.ptr<f32>>) -> ()
    }) : (i1) -> tensor<32x!tt.ptr<f32>>
    %11 = "arith.constant"() <{value = 1.000000e+00 : f32}> : () -> f32
    %12 = "tt.splat"(%11) : (f32) -> tensor<32xf32>
    "tt.store"(%5, %12) : (tensor<32x!tt.ptr<f32>>, tensor<32xf32>) -> ()
    %13 = "tt.splat"(%n) : (i32) -> tensor<32xi32>
    %14 = "arith.addi"(%0, %13) : (tensor<32xi32>, tensor<32xi32>) -> tensor<32xi32>
    %15 = "arith.trunci"(%14) : (tensor<32xi32>) -> tensor<32xi8>
    %16 = "tt.expand_dims"(%15) <{axis = 1 : i32}> : (tensor<32xi8>) -> tensor<32x1xi8>
    %17 = "tt.splat"(%x) : (!tt.ptr<f32>) -> tensor<32x1x!tt.ptr<f32>>
    %18 = "tt.addptr"(%17, %16) : (tensor<32x1x!tt.ptr<f32>>, tensor<32x1xi8>) -> tensor<32x1x!tt.ptr<f32>>
    %19 = "tt.make_range"() <{start = 0 : i32, end = 2 : i32}> : () -> tensor<2xi32>
    %20 = "tt.expand_dims"(%19) <{axis = 0 : i32}> : (tensor<2xi32>) -> tensor<1x2xi32>
    %21 = "tt.broadcast"(%18) : (tensor<32x1x!tt.ptr<f32>>) -> tensor<32x2x!tt.ptr<f32>>
    %22 = "tt.broadcast"(%20) : (tensor<1x2xi32>) -> tensor<32x2xi32>
    %23 = "tt.addptr"(%21, %22) : (tensor<32x2x!tt.ptr<f32>>, tensor<32x2xi32>) -> tensor<32x2x!tt.ptr<f32>>
    %24 = "arith.constant"() <{value = 2.000000e+00 : f32}> : () -> f32
    %25 = "tt.splat"(%24) : (f32) -> tensor<32x2xf32>
    "tt.store"(%23, %25) : (tensor<32x2x!tt.ptr<f32>>, tensor<32x2xf32>) -> ()
    %26 = "tt.expand_dims"(%14) <{axis = 1 : i32}> : (tensor<32xi32>) -> tensor<32x1xi32>
    %27 = "arith.extui"(%26) : (tensor<32x1xi32>) -> tensor<32x1xi64>
    %28 = "tt.addptr"(%17, %27) : (tensor<32x1x!tt.ptr<f32>>, tensor<32x1xi64>) -> tensor<32x1x!tt.ptr<f32>>
    %29 = "tt.broadcast"(%28) : (tensor<32x1x!tt.ptr<f32>>) -> tensor<32x2x!tt.ptr<f32>>
    %30 = "tt.addptr"(%29, %22) : (tensor<32x2x!tt.ptr<f32>>, tensor<32x2xi32>) -> tensor<32x2x!tt.ptr<f32>>
    %31 = "arith.constant"() <{value = 3.000000e+00 : f32}> : () -> f32
    %32 = "tt.splat"(%31) : (f32) -> tensor<32x2xf32>
    "tt.store"(%30, %32) : (tensor<32x2x!tt.ptr<f32>>, tensor<32x2xf32>) -> ()
    %33 = "arith.cmpi"(%0, %13) <{predicate = 2 : i64}> : (tensor<32xi32>, tensor<32xi32>) -> tensor<32xi1>
    %34 = "tt.splat"(%y) : (!tt.ptr<f32>) -> tensor<32x!tt.ptr<f32>>
    %35 = "tt.addptr"(%34, %0) : (tensor<32x!tt.ptr<f32>>, tensor<32xi32>) -> tensor<32x!tt.ptr<f32>>
    %36 = "arith.select"(%33, %2, %35) : (tensor<32xi1>, tensor<32x!tt.ptr<f32>>, tensor<32x!tt.ptr<f32>>) -> tensor<32x!tt.ptr<f32>>
    %37 = "arith.constant"() <{value = 4.000000e+00 : f32}> : () -> f32
    %38 = "tt.splat"(%37) : (f32) -> tensor<32xf32>
    "tt.store"(%36, %38) : (tensor<32x!tt.ptr<f32>>, tensor<32xf32>) -> ()
    "tt.return"() : () -> ()
  }) : () -> ()
}) : () -> ()
