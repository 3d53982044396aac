// PASS: select-tensor-maps form-roles
// A store by pointers may meet anything: nobody knows its bytes, and the kernel stays one program.
//
// CHECK-NOT: tw.roles
// CHECK-NOT: tw.meet
// CHECK: "tt.store"
// CHECK: not split into roles: tt.store beside descriptors that the program makes: nobody knows whether they meet

!a = tensor<128x64xf16>
!b = tensor<64x128xf16>
!c = tensor<128x128xf32>
"builtin.module"() ({
  "tt.func"() <{sym_name = "k", sym_visibility = "public", function_type = (!tt.ptr<i64>, !tt.ptr<f32>, i32, i32) -> ()}> ({
  ^bb0(%all: !tt.ptr<i64>, %plain: !tt.ptr<f32>, %count: i32, %depth: i32):
    %zero = "arith.constant"() <{value = 0 : i32}> : () -> i32
    %three = "arith.constant"() <{value = 3 : i32}> : () -> i32
    %1 = "arith.constant"() <{value = 1 : i32}> : () -> i32
    %2 = "arith.constant"() <{value = 2 : i32}> : () -> i32
    %step = "arith.constant"() <{value = 64 : i32}> : () -> i32
    %size = "arith.constant"() <{value = 128 : i32}> : () -> i32
    %one = "arith.constant"() <{value = 1 : i64}> : () -> i64
    %wide = "arith.constant"() <{value = 1024 : i64}> : () -> i64
    %init = "arith.constant"() <{value = dense<0.0> : !c}> : () -> !c
    "scf.for"(%zero, %count, %1) ({
    ^bb1(%g: i32):
      %at = "arith.muli"(%g, %three) : (i32, i32) -> i32
      %pa = "tt.addptr"(%all, %at) : (!tt.ptr<i64>, i32) -> !tt.ptr<i64>
      %pb = "tt.addptr"(%pa, %1) : (!tt.ptr<i64>, i32) -> !tt.ptr<i64>
      %pc = "tt.addptr"(%pa, %2) : (!tt.ptr<i64>, i32) -> !tt.ptr<i64>
      %ia = "tt.load"(%pa) <{operandSegmentSizes = array<i32: 1, 0, 0>}> : (!tt.ptr<i64>) -> i64
      %ib = "tt.load"(%pb) <{operandSegmentSizes = array<i32: 1, 0, 0>}> : (!tt.ptr<i64>) -> i64
      %ic = "tt.load"(%pc) <{operandSegmentSizes = array<i32: 1, 0, 0>}> : (!tt.ptr<i64>) -> i64
      %a0 = "tt.int_to_ptr"(%ia) : (i64) -> !tt.ptr<f16>
      %b0 = "tt.int_to_ptr"(%ib) : (i64) -> !tt.ptr<f16>
      %c0 = "tt.int_to_ptr"(%ic) : (i64) -> !tt.ptr<f32>
      %da = "tt.make_tensor_descriptor"(%a0, %size, %depth, %wide, %one) <{operandSegmentSizes = array<i32: 1, 2, 2>}> : (!tt.ptr<f16>, i32, i32, i64, i64) -> !tt.tensordesc<!a>
      %db = "tt.make_tensor_descriptor"(%b0, %depth, %size, %wide, %one) <{operandSegmentSizes = array<i32: 1, 2, 2>}> : (!tt.ptr<f16>, i32, i32, i64, i64) -> !tt.tensordesc<!b>
      %sum = "scf.for"(%zero, %depth, %step, %init) ({
      ^bb2(%k: i32, %acc: !c):
        %a = "tt.descriptor_load"(%da, %zero, %k) : (!tt.tensordesc<!a>, i32, i32) -> !a
        %b = "tt.descriptor_load"(%db, %k, %zero) : (!tt.tensordesc<!b>, i32, i32) -> !b
        %d = "tt.dot"(%a, %b, %acc) <{inputPrecision = 0 : i32, maxNumImpreciseAcc = 0 : i32}> : (!a, !b, !c) -> !c
        "scf.yield"(%d) : (!c) -> ()
      }) : (i32, i32, i32, !c) -> !c
      %ps = "tt.splat"(%plain) : (!tt.ptr<f32>) -> tensor<128x128x!tt.ptr<f32>>
      "tt.store"(%ps, %sum) : (tensor<128x128x!tt.ptr<f32>>, !c) -> ()
      "scf.yield"() : () -> ()
    }) : (i32, i32, i32) -> ()
    "tt.return"() : () -> ()
  }) {tw.schedule = #tw.schedule<"roles load | math x2 split m; ring ab tiles load#0 load#1 slots 2">} : () -> ()
}) : () -> ()
