// PASS: select-tensor-maps{num_slots=528}
// A tensor whose extent the program loads is known to no launch: the program makes the map, in a
// slot that it takes at its start and leaves at its end.
//
// CHECK: %[[SLOT:.*]] = "ttng.take_map_slot"() <{num_slots = 528 : i32, num_maps = 1 : i32}>
// CHECK: %[[MAP:.*]] = "ttng.make_tensor_map"(%p, %m2, %n, %w, %one, %[[SLOT]])
// CHECK: "tt.descriptor_load"(%[[MAP]], %i, %i)
// CHECK: "ttng.leave_map_slot"(%[[SLOT]])
// CHECK-NEXT: "tt.return"

!d = !tt.tensordesc<tensor<64x64xf16>>
!t = tensor<64x64xf16>
"builtin.module"() ({
  "tt.func"() <{sym_name = "k", function_type = (!tt.ptr<f16>, i32, i32, i64, i32, !tt.ptr<i32>) -> (), arg_attrs = [{tt.divisibility = 16 : i32}, {}, {}, {tt.divisibility = 16 : i32}, {tt.divisibility = 16 : i32}, {}]}> ({
  ^bb0(%p: !tt.ptr<f16>, %m: i32, %n: i32, %w: i64, %i: i32, %q: !tt.ptr<i32>):
    %one = "arith.constant"() <{value = 1 : i64}> : () -> i64
    %m2 = "tt.load"(%q) <{operandSegmentSizes = array<i32: 1, 0, 0>}> : (!tt.ptr<i32>) -> i32
    %d = "tt.make_tensor_descriptor"(%p, %m2, %n, %w, %one) <{padding = 1 : i32, operandSegmentSizes = array<i32: 1, 2, 2>}> : (!tt.ptr<f16>, i32, i32, i64, i64) -> !d
    %x = "tt.descriptor_load"(%d, %i, %i) : (!d, i32, i32) -> !t
    "tt.print"(%x) <{prefix = "x", hex = false, isSigned = array<i32: 0>}> : (!t) -> ()
    "tt.return"() : () -> ()
  }) : () -> ()
}) : () -> ()
