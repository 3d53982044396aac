// ERROR: select-tensor-maps
// A box is held against the block and the swizzle of the engine.
//
// CHECK: PlanRefused: error[PlanRefused]: descriptor_load: the box `64x64, swizzle 96` is refused: a swizzle has 32, 64 or 128 bytes, or 0
!d = !tt.tensordesc<tensor<64x64xf16>>
!t = tensor<64x64xf16>
"builtin.module"() ({
  "tt.func"() <{sym_name = "k", function_type = (!tt.ptr<f16>, i32, i32, i64, i32) -> (), arg_attrs = [{tt.divisibility = 16 : i32}, {}, {}, {tt.divisibility = 16 : i32}, {tt.divisibility = 16 : i32}]}> ({
  ^bb0(%p: !tt.ptr<f16>, %m: i32, %n: i32, %w: i64, %i: i32):
    %one = "arith.constant"() <{value = 1 : i64}> : () -> i64
    %d = "tt.make_tensor_descriptor"(%p, %m, %n, %w, %one) <{padding = 1 : i32, operandSegmentSizes = array<i32: 1, 2, 2>}> : (!tt.ptr<f16>, i32, i32, i64, i64) -> !d
    %x = "tt.descriptor_load"(%d, %i, %i) {ttng.box = #ttng.box<"64x64, swizzle 96">} : (!d, i32, i32) -> !t
    "tt.print"(%x) <{prefix = "x", hex = false, isSigned = array<i32: 0>}> : (!t) -> ()
    "tt.return"() : () -> ()
  }) : () -> ()
}) : () -> ()

// -----

// CHECK: PlanRefused: error[PlanRefused]: descriptor_load: the box `128x64, swizzle 128` is refused: the block is 64x64
!d = !tt.tensordesc<tensor<64x64xf16>>
!t = tensor<64x64xf16>
"builtin.module"() ({
  "tt.func"() <{sym_name = "k", function_type = (!tt.ptr<f16>, i32, i32, i64, i32) -> (), arg_attrs = [{tt.divisibility = 16 : i32}, {}, {}, {tt.divisibility = 16 : i32}, {tt.divisibility = 16 : i32}]}> ({
  ^bb0(%p: !tt.ptr<f16>, %m: i32, %n: i32, %w: i64, %i: i32):
    %one = "arith.constant"() <{value = 1 : i64}> : () -> i64
    %d = "tt.make_tensor_descriptor"(%p, %m, %n, %w, %one) <{padding = 1 : i32, operandSegmentSizes = array<i32: 1, 2, 2>}> : (!tt.ptr<f16>, i32, i32, i64, i64) -> !d
    %x = "tt.descriptor_load"(%d, %i, %i) {ttng.box = #ttng.box<"128x64, swizzle 128">} : (!d, i32, i32) -> !t
    "tt.print"(%x) <{prefix = "x", hex = false, isSigned = array<i32: 0>}> : (!t) -> ()
    "tt.return"() : () -> ()
  }) : () -> ()
}) : () -> ()

// -----

// CHECK: PlanRefused: error[PlanRefused]: descriptor_load: the box `48x64, swizzle 128` is refused: the block is 64x64
!d = !tt.tensordesc<tensor<64x64xf16>>
!t = tensor<64x64xf16>
"builtin.module"() ({
  "tt.func"() <{sym_name = "k", function_type = (!tt.ptr<f16>, i32, i32, i64, i32) -> (), arg_attrs = [{tt.divisibility = 16 : i32}, {}, {}, {tt.divisibility = 16 : i32}, {tt.divisibility = 16 : i32}]}> ({
  ^bb0(%p: !tt.ptr<f16>, %m: i32, %n: i32, %w: i64, %i: i32):
    %one = "arith.constant"() <{value = 1 : i64}> : () -> i64
    %d = "tt.make_tensor_descriptor"(%p, %m, %n, %w, %one) <{padding = 1 : i32, operandSegmentSizes = array<i32: 1, 2, 2>}> : (!tt.ptr<f16>, i32, i32, i64, i64) -> !d
    %x = "tt.descriptor_load"(%d, %i, %i) {ttng.box = #ttng.box<"48x64, swizzle 128">} : (!d, i32, i32) -> !t
    "tt.print"(%x) <{prefix = "x", hex = false, isSigned = array<i32: 0>}> : (!t) -> ()
    "tt.return"() : () -> ()
  }) : () -> ()
}) : () -> ()

// -----

// CHECK: PlanRefused: error[PlanRefused]: descriptor_load: the box `64x64, swizzle 32` is refused: rows of 128 bytes are not as long as the swizzle
!d = !tt.tensordesc<tensor<64x64xf16>>
!t = tensor<64x64xf16>
"builtin.module"() ({
  "tt.func"() <{sym_name = "k", function_type = (!tt.ptr<f16>, i32, i32, i64, i32) -> (), arg_attrs = [{tt.divisibility = 16 : i32}, {}, {}, {tt.divisibility = 16 : i32}, {tt.divisibility = 16 : i32}]}> ({
  ^bb0(%p: !tt.ptr<f16>, %m: i32, %n: i32, %w: i64, %i: i32):
    %one = "arith.constant"() <{value = 1 : i64}> : () -> i64
    %d = "tt.make_tensor_descriptor"(%p, %m, %n, %w, %one) <{padding = 1 : i32, operandSegmentSizes = array<i32: 1, 2, 2>}> : (!tt.ptr<f16>, i32, i32, i64, i64) -> !d
    %x = "tt.descriptor_load"(%d, %i, %i) {ttng.box = #ttng.box<"64x64, swizzle 32">} : (!d, i32, i32) -> !t
    "tt.print"(%x) <{prefix = "x", hex = false, isSigned = array<i32: 0>}> : (!t) -> ()
    "tt.return"() : () -> ()
  }) : () -> ()
}) : () -> ()

// -----

// CHECK: PlanRefused: error[PlanRefused]: descriptor_load: the box `64, swizzle 128` is refused: it has 1 dims, the block has 2
!d = !tt.tensordesc<tensor<64x64xf16>>
!t = tensor<64x64xf16>
"builtin.module"() ({
  "tt.func"() <{sym_name = "k", function_type = (!tt.ptr<f16>, i32, i32, i64, i32) -> (), arg_attrs = [{tt.divisibility = 16 : i32}, {}, {}, {tt.divisibility = 16 : i32}, {tt.divisibility = 16 : i32}]}> ({
  ^bb0(%p: !tt.ptr<f16>, %m: i32, %n: i32, %w: i64, %i: i32):
    %one = "arith.constant"() <{value = 1 : i64}> : () -> i64
    %d = "tt.make_tensor_descriptor"(%p, %m, %n, %w, %one) <{padding = 1 : i32, operandSegmentSizes = array<i32: 1, 2, 2>}> : (!tt.ptr<f16>, i32, i32, i64, i64) -> !d
    %x = "tt.descriptor_load"(%d, %i, %i) {ttng.box = #ttng.box<"64, swizzle 128">} : (!d, i32, i32) -> !t
    "tt.print"(%x) <{prefix = "x", hex = false, isSigned = array<i32: 0>}> : (!t) -> ()
    "tt.return"() : () -> ()
  }) : () -> ()
}) : () -> ()

// -----

// CHECK: PlanRefused: error[PlanRefused]: descriptor_load: the box `0x64, swizzle 128` is refused: the block is 64x64
!d = !tt.tensordesc<tensor<64x64xf16>>
!t = tensor<64x64xf16>
"builtin.module"() ({
  "tt.func"() <{sym_name = "k", function_type = (!tt.ptr<f16>, i32, i32, i64, i32) -> (), arg_attrs = [{tt.divisibility = 16 : i32}, {}, {}, {tt.divisibility = 16 : i32}, {tt.divisibility = 16 : i32}]}> ({
  ^bb0(%p: !tt.ptr<f16>, %m: i32, %n: i32, %w: i64, %i: i32):
    %one = "arith.constant"() <{value = 1 : i64}> : () -> i64
    %d = "tt.make_tensor_descriptor"(%p, %m, %n, %w, %one) <{padding = 1 : i32, operandSegmentSizes = array<i32: 1, 2, 2>}> : (!tt.ptr<f16>, i32, i32, i64, i64) -> !d
    %x = "tt.descriptor_load"(%d, %i, %i) {ttng.box = #ttng.box<"0x64, swizzle 128">} : (!d, i32, i32) -> !t
    "tt.print"(%x) <{prefix = "x", hex = false, isSigned = array<i32: 0>}> : (!t) -> ()
    "tt.return"() : () -> ()
  }) : () -> ()
}) : () -> ()

// -----

// CHECK: PlanRefused: error[PlanRefused]: descriptor_load: the box `64x32, swizzle 128` is refused: rows of 64 bytes are not as long as the swizzle
!d = !tt.tensordesc<tensor<64x64xf16>>
!t = tensor<64x64xf16>
"builtin.module"() ({
  "tt.func"() <{sym_name = "k", function_type = (!tt.ptr<f16>, i32, i32, i64, i32) -> (), arg_attrs = [{tt.divisibility = 16 : i32}, {}, {}, {tt.divisibility = 16 : i32}, {tt.divisibility = 16 : i32}]}> ({
  ^bb0(%p: !tt.ptr<f16>, %m: i32, %n: i32, %w: i64, %i: i32):
    %one = "arith.constant"() <{value = 1 : i64}> : () -> i64
    %d = "tt.make_tensor_descriptor"(%p, %m, %n, %w, %one) <{padding = 1 : i32, operandSegmentSizes = array<i32: 1, 2, 2>}> : (!tt.ptr<f16>, i32, i32, i64, i64) -> !d
    %x = "tt.descriptor_load"(%d, %i, %i) {ttng.box = #ttng.box<"64x32, swizzle 128">} : (!d, i32, i32) -> !t
    "tt.print"(%x) <{prefix = "x", hex = false, isSigned = array<i32: 0>}> : (!t) -> ()
    "tt.return"() : () -> ()
  }) : () -> ()
}) : () -> ()
