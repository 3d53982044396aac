// PASS: place-buffers
// Buffers that are in use at once lie behind one another; one whose time is over leaves its bytes to
// the next.
//
// CHECK: %a = "cpu.alloc"() <{{.*}}offset_bytes = [[A:[0-9]+]] : i64
// CHECK: %b = "cpu.alloc"() <{{.*}}offset_bytes = [[B:[0-9]+]] : i64
// CHECK: %c = "cpu.alloc"() <{{.*}}offset_bytes = [[A]] : i64

"builtin.module"() ({
  "tt.func"() <{sym_name = "k", function_type = (!tt.ptr<f32>) -> ()}> ({
  ^bb0(%p: !tt.ptr<f32>):
    %a = "cpu.alloc"() <{num_elems = 64 : i64}> : () -> !tt.ptr<f32>
    %b = "cpu.alloc"() <{num_elems = 64 : i64}> : () -> !tt.ptr<f32>
    %v = "cpu.load"(%p) <{operandSegmentSizes = array<i32: 1, 0, 0>}> : (!tt.ptr<f32>) -> vector<8xf32>
    "cpu.store"(%a, %v) : (!tt.ptr<f32>, vector<8xf32>) -> ()
    "cpu.store"(%b, %v) : (!tt.ptr<f32>, vector<8xf32>) -> ()
    %x = "cpu.load"(%a) <{operandSegmentSizes = array<i32: 1, 0, 0>}> : (!tt.ptr<f32>) -> vector<8xf32>
    %y = "cpu.load"(%b) <{operandSegmentSizes = array<i32: 1, 0, 0>}> : (!tt.ptr<f32>) -> vector<8xf32>
    %c = "cpu.alloc"() <{num_elems = 64 : i64}> : () -> !tt.ptr<f32>
    "cpu.store"(%c, %x) : (!tt.ptr<f32>, vector<8xf32>) -> ()
    %z = "cpu.load"(%c) <{operandSegmentSizes = array<i32: 1, 0, 0>}> : (!tt.ptr<f32>) -> vector<8xf32>
    "cpu.store"(%p, %y) : (!tt.ptr<f32>, vector<8xf32>) -> ()
    "cpu.store"(%p, %z) : (!tt.ptr<f32>, vector<8xf32>) -> ()
    "tt.return"() : () -> ()
  }) : () -> ()
}) : () -> ()
