// PASS: describe-accesses{ask=box}
// What the copy engine can move, and what the launch has to test.
//
// The operands and the result of a product.
//
// CHECK: tw.access = "box of a; 64 of stride sa from 64*program_id(0) to M, where the rest is cut off; 32 of stride 1 from counter of line 48 to K; if sa is at least 1, M is at least 1, K is at least 1, M*sa + K is at most 2147483647"
// CHECK: tw.access = "box of b; 32 of stride sb from counter of line 48 to K; 64 of stride 1 from 64*program_id(1) to N; if sb is at least 1, K is at least 1, N is at least 1, K*sb + N is at most 2147483647"
// CHECK: tw.access = "box of c; 64 of stride N from 64*program_id(0) to M; 64 of stride 1 from 64*program_id(1) to N; if N is at least 1, M is at least 1, M*N + N is at most 2147483647"

"builtin.module"() ({
  "tt.func"() <{sym_name = "product", function_type = (!tt.ptr<f16>, !tt.ptr<f16>, !tt.ptr<f16>, i32, i32, i32, i32, i32) -> (), arg_attrs = [{tt.divisibility = 16 : i32}, {tt.divisibility = 16 : i32}, {tt.divisibility = 16 : i32}, {tt.divisibility = 16 : i32}, {tt.divisibility = 16 : i32}, {tt.divisibility = 16 : i32}, {tt.divisibility = 16 : i32}, {tt.divisibility = 16 : i32}]}> ({
  ^bb0(%a: !tt.ptr<f16>, %b: !tt.ptr<f16>, %c: !tt.ptr<f16>, %M: i32, %N: i32, %K: i32, %sa: i32, %sb: i32):
    %0 = "tt.get_program_id"() <{axis = 0 : i32}> : () -> i32
    %1 = "arith.constant"() <{value = 64 : i32}> : () -> i32
    %2 = "arith.muli"(%0, %1) : (i32, i32) -> i32
    %3 = "tt.make_range"() <{start = 0 : i32, end = 64 : i32}> : () -> tensor<64xi32>
    %4 = "tt.splat"(%2) : (i32) -> tensor<64xi32>
    %5 = "arith.addi"(%4, %3) : (tensor<64xi32>, tensor<64xi32>) -> tensor<64xi32>
    %6 = "tt.splat"(%M) : (i32) -> tensor<64xi32>
    %7 = "arith.remsi"(%5, %6) : (tensor<64xi32>, tensor<64xi32>) -> tensor<64xi32>
    %8 = "tt.get_program_id"() <{axis = 1 : i32}> : () -> i32
    %9 = "arith.muli"(%8, %1) : (i32, i32) -> i32
    %10 = "tt.splat"(%9) : (i32) -> tensor<64xi32>
    %11 = "arith.addi"(%10, %3) : (tensor<64xi32>, tensor<64xi32>) -> tensor<64xi32>
    %12 = "tt.make_range"() <{start = 0 : i32, end = 32 : i32}> : () -> tensor<32xi32>
    %13 = "tt.expand_dims"(%7) <{axis = 1 : i32}> : (tensor<64xi32>) -> tensor<64x1xi32>
    %14 = "tt.splat"(%sa) : (i32) -> tensor<64x1xi32>
    %15 = "arith.muli"(%13, %14) : (tensor<64x1xi32>, tensor<64x1xi32>) -> tensor<64x1xi32>
    %16 = "tt.splat"(%a) : (!tt.ptr<f16>) -> tensor<64x1x!tt.ptr<f16>>
    %17 = "tt.addptr"(%16, %15) : (tensor<64x1x!tt.ptr<f16>>, tensor<64x1xi32>) -> tensor<64x1x!tt.ptr<f16>>
    %18 = "tt.expand_dims"(%12) <{axis = 0 : i32}> : (tensor<32xi32>) -> tensor<1x32xi32>
    %19 = "tt.broadcast"(%17) : (tensor<64x1x!tt.ptr<f16>>) -> tensor<64x32x!tt.ptr<f16>>
    %20 = "tt.broadcast"(%18) : (tensor<1x32xi32>) -> tensor<64x32xi32>
    %21 = "tt.addptr"(%19, %20) : (tensor<64x32x!tt.ptr<f16>>, tensor<64x32xi32>) -> tensor<64x32x!tt.ptr<f16>>
    %22 = "tt.expand_dims"(%12) <{axis = 1 : i32}> : (tensor<32xi32>) -> tensor<32x1xi32>
    %23 = "tt.splat"(%sb) : (i32) -> tensor<32x1xi32>
    %24 = "arith.muli"(%22, %23) : (tensor<32x1xi32>, tensor<32x1xi32>) -> tensor<32x1xi32>
    %25 = "tt.splat"(%b) : (!tt.ptr<f16>) -> tensor<32x1x!tt.ptr<f16>>
    %26 = "tt.addptr"(%25, %24) : (tensor<32x1x!tt.ptr<f16>>, tensor<32x1xi32>) -> tensor<32x1x!tt.ptr<f16>>
    %27 = "tt.expand_dims"(%11) <{axis = 0 : i32}> : (tensor<64xi32>) -> tensor<1x64xi32>
    %28 = "tt.broadcast"(%26) : (tensor<32x1x!tt.ptr<f16>>) -> tensor<32x64x!tt.ptr<f16>>
    %29 = "tt.broadcast"(%27) : (tensor<1x64xi32>) -> tensor<32x64xi32>
    %30 = "tt.addptr"(%28, %29) : (tensor<32x64x!tt.ptr<f16>>, tensor<32x64xi32>) -> tensor<32x64x!tt.ptr<f16>>
    %31 = "arith.constant"() <{value = dense<0.000000e+00> : tensor<64x64xf32>}> : () -> tensor<64x64xf32>
    %32 = "arith.constant"() <{value = 0 : i32}> : () -> i32
    %33 = "arith.constant"() <{value = 32 : i32}> : () -> i32
    %34 = "arith.constant"() <{value = 0 : i64}> : () -> i64
    %35, %36, %37 = "scf.for"(%32, %K, %33, %34, %34, %31) ({
    ^bb0(%38: i32, %39: i64, %40: i64, %41: tensor<64x64xf32>):
      %42 = "tt.splat"(%40) : (i64) -> tensor<32x64xi64>
      %43 = "tt.addptr"(%30, %42) : (tensor<32x64x!tt.ptr<f16>>, tensor<32x64xi64>) -> tensor<32x64x!tt.ptr<f16>>
      %44 = "tt.splat"(%39) : (i64) -> tensor<64x32xi64>
      %45 = "tt.addptr"(%21, %44) : (tensor<64x32x!tt.ptr<f16>>, tensor<64x32xi64>) -> tensor<64x32x!tt.ptr<f16>>
      %46 = "arith.subi"(%K, %38) : (i32, i32) -> i32
      %47 = "tt.splat"(%46) : (i32) -> tensor<1x32xi32>
      %48 = "arith.cmpi"(%18, %47) <{predicate = 2 : i64}> : (tensor<1x32xi32>, tensor<1x32xi32>) -> tensor<1x32xi1>
      %49 = "tt.broadcast"(%48) : (tensor<1x32xi1>) -> tensor<64x32xi1>
      %50 = "arith.constant"() <{value = 0.000000e+00 : f32}> : () -> f32
      %51 = "arith.truncf"(%50) : (f32) -> f16
      %52 = "tt.splat"(%51) : (f16) -> tensor<64x32xf16>
      %53 = "tt.load"(%45, %49, %52) <{operandSegmentSizes = array<i32: 1, 1, 1>}> : (tensor<64x32x!tt.ptr<f16>>, tensor<64x32xi1>, tensor<64x32xf16>) -> tensor<64x32xf16>
      %54 = "tt.splat"(%46) : (i32) -> tensor<32x1xi32>
      %55 = "arith.cmpi"(%22, %54) <{predicate = 2 : i64}> : (tensor<32x1xi32>, tensor<32x1xi32>) -> tensor<32x1xi1>
      %56 = "tt.splat"(%N) : (i32) -> tensor<1x64xi32>
      %57 = "arith.cmpi"(%27, %56) <{predicate = 2 : i64}> : (tensor<1x64xi32>, tensor<1x64xi32>) -> tensor<1x64xi1>
      %58 = "tt.broadcast"(%55) : (tensor<32x1xi1>) -> tensor<32x64xi1>
      %59 = "tt.broadcast"(%57) : (tensor<1x64xi1>) -> tensor<32x64xi1>
      %60 = "arith.andi"(%58, %59) : (tensor<32x64xi1>, tensor<32x64xi1>) -> tensor<32x64xi1>
      %61 = "tt.splat"(%51) : (f16) -> tensor<32x64xf16>
      %62 = "tt.load"(%43, %60, %61) <{operandSegmentSizes = array<i32: 1, 1, 1>}> : (tensor<32x64x!tt.ptr<f16>>, tensor<32x64xi1>, tensor<32x64xf16>) -> tensor<32x64xf16>
      %63 = "tt.dot"(%53, %62, %41) <{inputPrecision = 0 : i32, maxNumImpreciseAcc = 0 : i32}> : (tensor<64x32xf16>, tensor<32x64xf16>, tensor<64x64xf32>) -> tensor<64x64xf32>
      %64 = "tt.splat"(%33) : (i32) -> tensor<64x32xi32>
      %65 = "tt.addptr"(%45, %64) : (tensor<64x32x!tt.ptr<f16>>, tensor<64x32xi32>) -> tensor<64x32x!tt.ptr<f16>>
      %66 = "arith.muli"(%33, %sb) : (i32, i32) -> i32
      %67 = "tt.splat"(%66) : (i32) -> tensor<32x64xi32>
      %68 = "tt.addptr"(%43, %67) : (tensor<32x64x!tt.ptr<f16>>, tensor<32x64xi32>) -> tensor<32x64x!tt.ptr<f16>>
      %69 = "arith.extsi"(%33) : (i32) -> i64
      %70 = "arith.addi"(%39, %69) : (i64, i64) -> i64
      %71 = "arith.extsi"(%66) : (i32) -> i64
      %72 = "arith.addi"(%40, %71) : (i64, i64) -> i64
      "scf.yield"(%70, %72, %63) : (i64, i64, tensor<64x64xf32>) -> ()
    }) : (i32, i32, i32, i64, i64, tensor<64x64xf32>) -> (i64, i64, tensor<64x64xf32>)
    %73 = "tt.expand_dims"(%5) <{axis = 1 : i32}> : (tensor<64xi32>) -> tensor<64x1xi32>
    %74 = "tt.splat"(%N) : (i32) -> tensor<64x1xi32>
    %75 = "arith.muli"(%73, %74) : (tensor<64x1xi32>, tensor<64x1xi32>) -> tensor<64x1xi32>
    %76 = "tt.splat"(%c) : (!tt.ptr<f16>) -> tensor<64x1x!tt.ptr<f16>>
    %77 = "tt.addptr"(%76, %75) : (tensor<64x1x!tt.ptr<f16>>, tensor<64x1xi32>) -> tensor<64x1x!tt.ptr<f16>>
    %78 = "tt.broadcast"(%77) : (tensor<64x1x!tt.ptr<f16>>) -> tensor<64x64x!tt.ptr<f16>>
    %79 = "tt.broadcast"(%27) : (tensor<1x64xi32>) -> tensor<64x64xi32>
    %80 = "tt.addptr"(%78, %79) : (tensor<64x64x!tt.ptr<f16>>, tensor<64x64xi32>) -> tensor<64x64x!tt.ptr<f16>>
    %81 = "arith.truncf"(%37) : (tensor<64x64xf32>) -> tensor<64x64xf16>
    %82 = "tt.splat"(%M) : (i32) -> tensor<64x1xi32>
    %83 = "arith.cmpi"(%73, %82) <{predicate = 2 : i64}> : (tensor<64x1xi32>, tensor<64x1xi32>) -> tensor<64x1xi1>
    %84 = "tt.splat"(%N) : (i32) -> tensor<1x64xi32>
    %85 = "arith.cmpi"(%27, %84) <{predicate = 2 : i64}> : (tensor<1x64xi32>, tensor<1x64xi32>) -> tensor<1x64xi1>
    %86 = "tt.broadcast"(%83) : (tensor<64x1xi1>) -> tensor<64x64xi1>
    %87 = "tt.broadcast"(%85) : (tensor<1x64xi1>) -> tensor<64x64xi1>
    %88 = "arith.andi"(%86, %87) : (tensor<64x64xi1>, tensor<64x64xi1>) -> tensor<64x64xi1>
    "tt.store"(%80, %81, %88) : (tensor<64x64x!tt.ptr<f16>>, tensor<64x64xf16>, tensor<64x64xi1>) -> ()
    "tt.return"() : () -> ()
  }) : () -> ()
}) : () -> ()
// -----
// A transposed tile, a batch, and strides that are not known to be aligned.
//
// CHECK: tw.access = "box of x transposed; 32 of stride s from 0 to n; 32 of stride 1 from 32*program_id(0) to n; if s is a multiple of 4, s is at least 1, n is at least 1, n*s + n is at most 2147483647"
// CHECK: tw.access = "box of x; 4 of stride t from 0; 32 of stride s from 0 to n; 32 of stride 1 from 32*program_id(0) to n; if t is a multiple of 4, t is at least 1, s is a multiple of 4, s is at least 1, n is at least 1"
// CHECK: tw.access = "box of x; 4 of stride t from 0 to n; 32 of stride s from 0 to n; 32 of stride 1 from 32*program_id(0) to n; if t is a multiple of 4, t is at least 1, n is at least 1, s is a multiple of 4, s is at least 1, n*t + n*s + n is at most 2147483647"

"builtin.module"() ({
  "tt.func"() <{sym_name = "batch", function_type = (!tt.ptr<f32>, i32, i32, i32) -> (), arg_attrs = [{tt.divisibility = 16 : i32}, {}, {}, {}]}> ({
  ^bb0(%x: !tt.ptr<f32>, %n: i32, %s: i32, %t: i32):
    %0 = "tt.make_range"() <{start = 0 : i32, end = 32 : i32}> : () -> tensor<32xi32>
    %1 = "tt.get_program_id"() <{axis = 0 : i32}> : () -> i32
    %2 = "arith.constant"() <{value = 32 : i32}> : () -> i32
    %3 = "arith.muli"(%1, %2) : (i32, i32) -> i32
    %4 = "tt.splat"(%3) : (i32) -> tensor<32xi32>
    %5 = "arith.addi"(%4, %0) : (tensor<32xi32>, tensor<32xi32>) -> tensor<32xi32>
    %6 = "tt.expand_dims"(%0) <{axis = 0 : i32}> : (tensor<32xi32>) -> tensor<1x32xi32>
    %7 = "tt.splat"(%s) : (i32) -> tensor<1x32xi32>
    %8 = "arith.muli"(%6, %7) : (tensor<1x32xi32>, tensor<1x32xi32>) -> tensor<1x32xi32>
    %9 = "tt.splat"(%x) : (!tt.ptr<f32>) -> tensor<1x32x!tt.ptr<f32>>
    %10 = "tt.addptr"(%9, %8) : (tensor<1x32x!tt.ptr<f32>>, tensor<1x32xi32>) -> tensor<1x32x!tt.ptr<f32>>
    %11 = "tt.expand_dims"(%5) <{axis = 1 : i32}> : (tensor<32xi32>) -> tensor<32x1xi32>
    %12 = "tt.broadcast"(%10) : (tensor<1x32x!tt.ptr<f32>>) -> tensor<32x32x!tt.ptr<f32>>
    %13 = "tt.broadcast"(%11) : (tensor<32x1xi32>) -> tensor<32x32xi32>
    %14 = "tt.addptr"(%12, %13) : (tensor<32x32x!tt.ptr<f32>>, tensor<32x32xi32>) -> tensor<32x32x!tt.ptr<f32>>
    %15 = "tt.splat"(%n) : (i32) -> tensor<1x32xi32>
    %16 = "arith.cmpi"(%6, %15) <{predicate = 2 : i64}> : (tensor<1x32xi32>, tensor<1x32xi32>) -> tensor<1x32xi1>
    %17 = "tt.splat"(%n) : (i32) -> tensor<32x1xi32>
    %18 = "arith.cmpi"(%11, %17) <{predicate = 2 : i64}> : (tensor<32x1xi32>, tensor<32x1xi32>) -> tensor<32x1xi1>
    %19 = "tt.broadcast"(%16) : (tensor<1x32xi1>) -> tensor<32x32xi1>
    %20 = "tt.broadcast"(%18) : (tensor<32x1xi1>) -> tensor<32x32xi1>
    %21 = "arith.andi"(%19, %20) : (tensor<32x32xi1>, tensor<32x32xi1>) -> tensor<32x32xi1>
    %22 = "arith.constant"() <{value = 1.000000e+00 : f32}> : () -> f32
    %23 = "tt.splat"(%22) : (f32) -> tensor<32x32xf32>
    "tt.store"(%14, %23, %21) : (tensor<32x32x!tt.ptr<f32>>, tensor<32x32xf32>, tensor<32x32xi1>) -> ()
    %24 = "tt.make_range"() <{start = 0 : i32, end = 4 : i32}> : () -> tensor<4xi32>
    %25 = "tt.expand_dims"(%24) <{axis = 1 : i32}> : (tensor<4xi32>) -> tensor<4x1xi32>
    %26 = "tt.expand_dims"(%25) <{axis = 2 : i32}> : (tensor<4x1xi32>) -> tensor<4x1x1xi32>
    %27 = "tt.splat"(%t) : (i32) -> tensor<4x1x1xi32>
    %28 = "arith.muli"(%26, %27) : (tensor<4x1x1xi32>, tensor<4x1x1xi32>) -> tensor<4x1x1xi32>
    %29 = "tt.expand_dims"(%6) <{axis = 2 : i32}> : (tensor<1x32xi32>) -> tensor<1x32x1xi32>
    %30 = "tt.splat"(%s) : (i32) -> tensor<1x32x1xi32>
    %31 = "arith.muli"(%29, %30) : (tensor<1x32x1xi32>, tensor<1x32x1xi32>) -> tensor<1x32x1xi32>
    %32 = "tt.broadcast"(%28) : (tensor<4x1x1xi32>) -> tensor<4x32x1xi32>
    %33 = "tt.broadcast"(%31) : (tensor<1x32x1xi32>) -> tensor<4x32x1xi32>
    %34 = "arith.addi"(%32, %33) : (tensor<4x32x1xi32>, tensor<4x32x1xi32>) -> tensor<4x32x1xi32>
    %35 = "tt.expand_dims"(%5) <{axis = 0 : i32}> : (tensor<32xi32>) -> tensor<1x32xi32>
    %36 = "tt.expand_dims"(%35) <{axis = 1 : i32}> : (tensor<1x32xi32>) -> tensor<1x1x32xi32>
    %37 = "tt.broadcast"(%34) : (tensor<4x32x1xi32>) -> tensor<4x32x32xi32>
    %38 = "tt.broadcast"(%36) : (tensor<1x1x32xi32>) -> tensor<4x32x32xi32>
    %39 = "arith.addi"(%37, %38) : (tensor<4x32x32xi32>, tensor<4x32x32xi32>) -> tensor<4x32x32xi32>
    %40 = "tt.splat"(%x) : (!tt.ptr<f32>) -> tensor<4x32x32x!tt.ptr<f32>>
    %41 = "tt.addptr"(%40, %39) : (tensor<4x32x32x!tt.ptr<f32>>, tensor<4x32x32xi32>) -> tensor<4x32x32x!tt.ptr<f32>>
    %42 = "tt.splat"(%n) : (i32) -> tensor<1x1x32xi32>
    %43 = "arith.cmpi"(%36, %42) <{predicate = 2 : i64}> : (tensor<1x1x32xi32>, tensor<1x1x32xi32>) -> tensor<1x1x32xi1>
    %44 = "tt.splat"(%n) : (i32) -> tensor<1x32x1xi32>
    %45 = "arith.cmpi"(%29, %44) <{predicate = 2 : i64}> : (tensor<1x32x1xi32>, tensor<1x32x1xi32>) -> tensor<1x32x1xi1>
    %46 = "tt.broadcast"(%43) : (tensor<1x1x32xi1>) -> tensor<1x32x32xi1>
    %47 = "tt.broadcast"(%45) : (tensor<1x32x1xi1>) -> tensor<1x32x32xi1>
    %48 = "arith.andi"(%46, %47) : (tensor<1x32x32xi1>, tensor<1x32x32xi1>) -> tensor<1x32x32xi1>
    %49 = "tt.broadcast"(%48) : (tensor<1x32x32xi1>) -> tensor<4x32x32xi1>
    %50 = "tt.load"(%41, %49) <{operandSegmentSizes = array<i32: 1, 1, 0>}> : (tensor<4x32x32x!tt.ptr<f32>>, tensor<4x32x32xi1>) -> tensor<4x32x32xf32>
    %51 = "tt.splat"(%n) : (i32) -> tensor<4x1x1xi32>
    %52 = "arith.cmpi"(%26, %51) <{predicate = 2 : i64}> : (tensor<4x1x1xi32>, tensor<4x1x1xi32>) -> tensor<4x1x1xi1>
    %53 = "tt.broadcast"(%52) : (tensor<4x1x1xi1>) -> tensor<4x32x32xi1>
    %54 = "arith.andi"(%49, %53) : (tensor<4x32x32xi1>, tensor<4x32x32xi1>) -> tensor<4x32x32xi1>
    "tt.store"(%41, %50, %54) : (tensor<4x32x32x!tt.ptr<f32>>, tensor<4x32x32xf32>, tensor<4x32x32xi1>) -> ()
    "tt.return"() : () -> ()
  }) : () -> ()
}) : () -> ()
// -----
// No mask: no tile may reach into the next row.
//
// CHECK: tw.access = "box of x; 32 of stride 64 from 0; 32 of stride 1 from 32 to 64"
// CHECK: tw.access = "box of x; 32 of stride s from 0; 32 of stride 1 from 32*program_id(0) to s; if s is at least 1; in every tile 32*program_id(0) + 32 <= s"

"builtin.module"() ({
  "tt.func"() <{sym_name = "unmasked", function_type = (!tt.ptr<f32>, i32) -> (), arg_attrs = [{tt.divisibility = 16 : i32}, {tt.divisibility = 16 : i32}]}> ({
  ^bb0(%x: !tt.ptr<f32>, %s: i32):
    %0 = "tt.make_range"() <{start = 0 : i32, end = 32 : i32}> : () -> tensor<32xi32>
    %1 = "tt.expand_dims"(%0) <{axis = 1 : i32}> : (tensor<32xi32>) -> tensor<32x1xi32>
    %2 = "tt.splat"(%s) : (i32) -> tensor<32x1xi32>
    %3 = "arith.muli"(%1, %2) : (tensor<32x1xi32>, tensor<32x1xi32>) -> tensor<32x1xi32>
    %4 = "tt.splat"(%x) : (!tt.ptr<f32>) -> tensor<32x1x!tt.ptr<f32>>
    %5 = "tt.addptr"(%4, %3) : (tensor<32x1x!tt.ptr<f32>>, tensor<32x1xi32>) -> tensor<32x1x!tt.ptr<f32>>
    %6 = "tt.get_program_id"() <{axis = 0 : i32}> : () -> i32
    %7 = "arith.constant"() <{value = 32 : i32}> : () -> i32
    %8 = "arith.muli"(%6, %7) : (i32, i32) -> i32
    %9 = "tt.splat"(%8) : (i32) -> tensor<32xi32>
    %10 = "arith.addi"(%9, %0) : (tensor<32xi32>, tensor<32xi32>) -> tensor<32xi32>
    %11 = "tt.expand_dims"(%10) <{axis = 0 : i32}> : (tensor<32xi32>) -> tensor<1x32xi32>
    %12 = "tt.broadcast"(%5) : (tensor<32x1x!tt.ptr<f32>>) -> tensor<32x32x!tt.ptr<f32>>
    %13 = "tt.broadcast"(%11) : (tensor<1x32xi32>) -> tensor<32x32xi32>
    %14 = "tt.addptr"(%12, %13) : (tensor<32x32x!tt.ptr<f32>>, tensor<32x32xi32>) -> tensor<32x32x!tt.ptr<f32>>
    %15 = "arith.constant"() <{value = 64 : i32}> : () -> i32
    %16 = "tt.splat"(%15) : (i32) -> tensor<32x1xi32>
    %17 = "arith.muli"(%1, %16) : (tensor<32x1xi32>, tensor<32x1xi32>) -> tensor<32x1xi32>
    %18 = "tt.addptr"(%4, %17) : (tensor<32x1x!tt.ptr<f32>>, tensor<32x1xi32>) -> tensor<32x1x!tt.ptr<f32>>
    %19 = "tt.splat"(%7) : (i32) -> tensor<32xi32>
    %20 = "arith.addi"(%19, %0) : (tensor<32xi32>, tensor<32xi32>) -> tensor<32xi32>
    %21 = "tt.expand_dims"(%20) <{axis = 0 : i32}> : (tensor<32xi32>) -> tensor<1x32xi32>
    %22 = "tt.broadcast"(%18) : (tensor<32x1x!tt.ptr<f32>>) -> tensor<32x32x!tt.ptr<f32>>
    %23 = "tt.broadcast"(%21) : (tensor<1x32xi32>) -> tensor<32x32xi32>
    %24 = "tt.addptr"(%22, %23) : (tensor<32x32x!tt.ptr<f32>>, tensor<32x32xi32>) -> tensor<32x32x!tt.ptr<f32>>
    %25 = "tt.load"(%24) <{operandSegmentSizes = array<i32: 1, 0, 0>}> : (tensor<32x32x!tt.ptr<f32>>) -> tensor<32x32xf32>
    "tt.store"(%14, %25) : (tensor<32x32x!tt.ptr<f32>>, tensor<32x32xf32>) -> ()
    "tt.return"() : () -> ()
  }) : () -> ()
}) : () -> ()
// -----
// Masks on both sides, from 0 on.
//
// CHECK: tw.access = "box of x; 32 of stride s from o to n; 32 of stride 1 from 4*o to min(n, s); if s is at least 1, o is at least 0, n is at least 1, 4*o is at least 0, n*s + n is at most 2147483647"

"builtin.module"() ({
  "tt.func"() <{sym_name = "two_sided", function_type = (!tt.ptr<f32>, i32, i32, i32) -> (), arg_attrs = [{tt.divisibility = 16 : i32}, {tt.divisibility = 16 : i32}, {}, {}]}> ({
  ^bb0(%x: !tt.ptr<f32>, %s: i32, %n: i32, %o: i32):
    %0 = "tt.make_range"() <{start = 0 : i32, end = 32 : i32}> : () -> tensor<32xi32>
    %1 = "tt.splat"(%o) : (i32) -> tensor<32xi32>
    %2 = "arith.addi"(%1, %0) : (tensor<32xi32>, tensor<32xi32>) -> tensor<32xi32>
    %3 = "arith.constant"() <{value = 4 : i32}> : () -> i32
    %4 = "arith.muli"(%o, %3) : (i32, i32) -> i32
    %5 = "tt.splat"(%4) : (i32) -> tensor<32xi32>
    %6 = "arith.addi"(%5, %0) : (tensor<32xi32>, tensor<32xi32>) -> tensor<32xi32>
    %7 = "tt.expand_dims"(%2) <{axis = 1 : i32}> : (tensor<32xi32>) -> tensor<32x1xi32>
    %8 = "tt.splat"(%s) : (i32) -> tensor<32x1xi32>
    %9 = "arith.muli"(%7, %8) : (tensor<32x1xi32>, tensor<32x1xi32>) -> tensor<32x1xi32>
    %10 = "tt.splat"(%x) : (!tt.ptr<f32>) -> tensor<32x1x!tt.ptr<f32>>
    %11 = "tt.addptr"(%10, %9) : (tensor<32x1x!tt.ptr<f32>>, tensor<32x1xi32>) -> tensor<32x1x!tt.ptr<f32>>
    %12 = "tt.expand_dims"(%6) <{axis = 0 : i32}> : (tensor<32xi32>) -> tensor<1x32xi32>
    %13 = "tt.broadcast"(%11) : (tensor<32x1x!tt.ptr<f32>>) -> tensor<32x32x!tt.ptr<f32>>
    %14 = "tt.broadcast"(%12) : (tensor<1x32xi32>) -> tensor<32x32xi32>
    %15 = "tt.addptr"(%13, %14) : (tensor<32x32x!tt.ptr<f32>>, tensor<32x32xi32>) -> tensor<32x32x!tt.ptr<f32>>
    %16 = "arith.constant"() <{value = 0 : i32}> : () -> i32
    %17 = "tt.splat"(%16) : (i32) -> tensor<32x1xi32>
    %18 = "arith.cmpi"(%7, %17) <{predicate = 5 : i64}> : (tensor<32x1xi32>, tensor<32x1xi32>) -> tensor<32x1xi1>
    %19 = "tt.splat"(%n) : (i32) -> tensor<32x1xi32>
    %20 = "arith.cmpi"(%7, %19) <{predicate = 2 : i64}> : (tensor<32x1xi32>, tensor<32x1xi32>) -> tensor<32x1xi1>
    %21 = "arith.andi"(%18, %20) : (tensor<32x1xi1>, tensor<32x1xi1>) -> tensor<32x1xi1>
    %22 = "tt.splat"(%16) : (i32) -> tensor<1x32xi32>
    %23 = "arith.cmpi"(%12, %22) <{predicate = 5 : i64}> : (tensor<1x32xi32>, tensor<1x32xi32>) -> tensor<1x32xi1>
    %24 = "tt.broadcast"(%21) : (tensor<32x1xi1>) -> tensor<32x32xi1>
    %25 = "tt.broadcast"(%23) : (tensor<1x32xi1>) -> tensor<32x32xi1>
    %26 = "arith.andi"(%24, %25) : (tensor<32x32xi1>, tensor<32x32xi1>) -> tensor<32x32xi1>
    %27 = "tt.splat"(%n) : (i32) -> tensor<1x32xi32>
    %28 = "arith.cmpi"(%12, %27) <{predicate = 2 : i64}> : (tensor<1x32xi32>, tensor<1x32xi32>) -> tensor<1x32xi1>
    %29 = "tt.broadcast"(%28) : (tensor<1x32xi1>) -> tensor<32x32xi1>
    %30 = "arith.andi"(%26, %29) : (tensor<32x32xi1>, tensor<32x32xi1>) -> tensor<32x32xi1>
    %31 = "tt.splat"(%s) : (i32) -> tensor<1x32xi32>
    %32 = "arith.cmpi"(%12, %31) <{predicate = 2 : i64}> : (tensor<1x32xi32>, tensor<1x32xi32>) -> tensor<1x32xi1>
    %33 = "tt.broadcast"(%32) : (tensor<1x32xi1>) -> tensor<32x32xi1>
    %34 = "arith.andi"(%30, %33) : (tensor<32x32xi1>, tensor<32x32xi1>) -> tensor<32x32xi1>
    %35 = "arith.constant"() <{value = 1.000000e+00 : f32}> : () -> f32
    %36 = "tt.splat"(%35) : (f32) -> tensor<32x32xf32>
    "tt.store"(%15, %36, %34) : (tensor<32x32x!tt.ptr<f32>>, tensor<32x32xf32>, tensor<32x32xi1>) -> ()
    "tt.return"() : () -> ()
  }) : () -> ()
}) : () -> ()
// -----
// A head that the program chooses, whose rows a mask counts; a row by its number; both.
//
// CHECK: tw.access = "box of x; 1 of stride 64*rows from program_id(1); 32 of stride 64 from 32*program_id(0) to rows; 32 of stride 1 from 0 to 64; if rows is at least 1"
// CHECK: tw.access = "box of x; 1 of stride s from program_id(0); 32 of stride 1 from 0 to rows; if rows is at least 1, s is a multiple of 4, s is at least 1"
// CHECK: tw.access = "box of x; 1 of stride rows from remsi of line 310; 1 of stride s from divsi of line 307; 32 of stride 32 from 32*program_id(0) to heads; 32 of stride 1 from 0 to 32; if heads is at least 1, rows is a multiple of 4, rows is at least 1, s is a multiple of 4, s is at least 1"
// CHECK: tw.access = "box of x; 32 of stride 64 from 32*program_id(0) + program_id(1)*rows; 32 of stride 1 from 0 to 64; if rows is at least 0"

"builtin.module"() ({
  "tt.func"() <{sym_name = "chosen_parts", function_type = (!tt.ptr<f32>, i32, i32, i32) -> (), arg_attrs = [{tt.divisibility = 16 : i32}, {}, {}, {}]}> ({
  ^bb0(%x: !tt.ptr<f32>, %heads: i32, %rows: i32, %s: i32):
    %0 = "tt.make_range"() <{start = 0 : i32, end = 32 : i32}> : () -> tensor<32xi32>
    %1 = "tt.get_program_id"() <{axis = 1 : i32}> : () -> i32
    %2 = "tt.get_program_id"() <{axis = 0 : i32}> : () -> i32
    %3 = "arith.constant"() <{value = 32 : i32}> : () -> i32
    %4 = "arith.muli"(%2, %3) : (i32, i32) -> i32
    %5 = "tt.splat"(%4) : (i32) -> tensor<32xi32>
    %6 = "arith.addi"(%5, %0) : (tensor<32xi32>, tensor<32xi32>) -> tensor<32xi32>
    %7 = "arith.muli"(%1, %rows) : (i32, i32) -> i32
    %8 = "arith.constant"() <{value = 64 : i32}> : () -> i32
    %9 = "arith.muli"(%7, %8) : (i32, i32) -> i32
    %10 = "tt.addptr"(%x, %9) : (!tt.ptr<f32>, i32) -> !tt.ptr<f32>
    %11 = "tt.expand_dims"(%6) <{axis = 1 : i32}> : (tensor<32xi32>) -> tensor<32x1xi32>
    %12 = "tt.splat"(%8) : (i32) -> tensor<32x1xi32>
    %13 = "arith.muli"(%11, %12) : (tensor<32x1xi32>, tensor<32x1xi32>) -> tensor<32x1xi32>
    %14 = "tt.splat"(%10) : (!tt.ptr<f32>) -> tensor<32x1x!tt.ptr<f32>>
    %15 = "tt.addptr"(%14, %13) : (tensor<32x1x!tt.ptr<f32>>, tensor<32x1xi32>) -> tensor<32x1x!tt.ptr<f32>>
    %16 = "tt.expand_dims"(%0) <{axis = 0 : i32}> : (tensor<32xi32>) -> tensor<1x32xi32>
    %17 = "tt.broadcast"(%15) : (tensor<32x1x!tt.ptr<f32>>) -> tensor<32x32x!tt.ptr<f32>>
    %18 = "tt.broadcast"(%16) : (tensor<1x32xi32>) -> tensor<32x32xi32>
    %19 = "tt.addptr"(%17, %18) : (tensor<32x32x!tt.ptr<f32>>, tensor<32x32xi32>) -> tensor<32x32x!tt.ptr<f32>>
    %20 = "tt.splat"(%rows) : (i32) -> tensor<32x1xi32>
    %21 = "arith.cmpi"(%11, %20) <{predicate = 2 : i64}> : (tensor<32x1xi32>, tensor<32x1xi32>) -> tensor<32x1xi1>
    %22 = "arith.constant"() <{value = 1.000000e+00 : f32}> : () -> f32
    %23 = "tt.splat"(%22) : (f32) -> tensor<32x32xf32>
    %24 = "tt.broadcast"(%21) : (tensor<32x1xi1>) -> tensor<32x32xi1>
    "tt.store"(%19, %23, %24) : (tensor<32x32x!tt.ptr<f32>>, tensor<32x32xf32>, tensor<32x32xi1>) -> ()
    %25 = "arith.muli"(%2, %s) : (i32, i32) -> i32
    %26 = "tt.addptr"(%x, %25) : (!tt.ptr<f32>, i32) -> !tt.ptr<f32>
    %27 = "tt.splat"(%26) : (!tt.ptr<f32>) -> tensor<32x!tt.ptr<f32>>
    %28 = "tt.addptr"(%27, %0) : (tensor<32x!tt.ptr<f32>>, tensor<32xi32>) -> tensor<32x!tt.ptr<f32>>
    %29 = "tt.splat"(%rows) : (i32) -> tensor<32xi32>
    %30 = "arith.cmpi"(%0, %29) <{predicate = 2 : i64}> : (tensor<32xi32>, tensor<32xi32>) -> tensor<32xi1>
    %31 = "arith.constant"() <{value = 2.000000e+00 : f32}> : () -> f32
    %32 = "tt.splat"(%31) : (f32) -> tensor<32xf32>
    "tt.store"(%28, %32, %30) : (tensor<32x!tt.ptr<f32>>, tensor<32xf32>, tensor<32xi1>) -> ()
    %33 = "arith.divsi"(%1, %heads) : (i32, i32) -> i32
    %34 = "arith.muli"(%33, %s) : (i32, i32) -> i32
    %35 = "tt.addptr"(%x, %34) : (!tt.ptr<f32>, i32) -> !tt.ptr<f32>
    %36 = "arith.remsi"(%1, %heads) : (i32, i32) -> i32
    %37 = "arith.muli"(%36, %rows) : (i32, i32) -> i32
    %38 = "tt.addptr"(%35, %37) : (!tt.ptr<f32>, i32) -> !tt.ptr<f32>
    %39 = "tt.splat"(%3) : (i32) -> tensor<32x1xi32>
    %40 = "arith.muli"(%11, %39) : (tensor<32x1xi32>, tensor<32x1xi32>) -> tensor<32x1xi32>
    %41 = "tt.splat"(%38) : (!tt.ptr<f32>) -> tensor<32x1x!tt.ptr<f32>>
    %42 = "tt.addptr"(%41, %40) : (tensor<32x1x!tt.ptr<f32>>, tensor<32x1xi32>) -> tensor<32x1x!tt.ptr<f32>>
    %43 = "tt.broadcast"(%42) : (tensor<32x1x!tt.ptr<f32>>) -> tensor<32x32x!tt.ptr<f32>>
    %44 = "tt.addptr"(%43, %18) : (tensor<32x32x!tt.ptr<f32>>, tensor<32x32xi32>) -> tensor<32x32x!tt.ptr<f32>>
    %45 = "tt.splat"(%heads) : (i32) -> tensor<32x1xi32>
    %46 = "arith.cmpi"(%11, %45) <{predicate = 2 : i64}> : (tensor<32x1xi32>, tensor<32x1xi32>) -> tensor<32x1xi1>
    %47 = "arith.constant"() <{value = 3.000000e+00 : f32}> : () -> f32
    %48 = "tt.splat"(%47) : (f32) -> tensor<32x32xf32>
    %49 = "tt.broadcast"(%46) : (tensor<32x1xi1>) -> tensor<32x32xi1>
    "tt.store"(%44, %48, %49) : (tensor<32x32x!tt.ptr<f32>>, tensor<32x32xf32>, tensor<32x32xi1>) -> ()
    %50 = "arith.constant"() <{value = 4.000000e+00 : f32}> : () -> f32
    %51 = "tt.splat"(%50) : (f32) -> tensor<32x32xf32>
    "tt.store"(%19, %51) : (tensor<32x32x!tt.ptr<f32>>, tensor<32x32xf32>) -> ()
    "tt.return"() : () -> ()
  }) : () -> ()
}) : () -> ()
