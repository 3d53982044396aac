// PASS: persist{programs=4}
// A barrier orders what other programs may look at: the kernel stays as it is.
//
// CHECK: %x = "tt.get_program_id"() <{axis = 0 : i32}>
// CHECK-NOT: scf.for
// CHECK-NOT: tw.persistent

"builtin.module"() ({
  "tt.func"() <{sym_name = "k", sym_visibility = "public", function_type = (!tt.ptr<i32>) -> ()}> ({
  ^bb0(%p: !tt.ptr<i32>):
    %x = "tt.get_program_id"() <{axis = 0 : i32}> : () -> i32
    %to = "tt.addptr"(%p, %x) : (!tt.ptr<i32>, i32) -> !tt.ptr<i32>
    "tt.store"(%to, %x) : (!tt.ptr<i32>, i32) -> ()
    "gpu.barrier"() : () -> ()
    "tt.return"() : () -> ()
  }) : () -> ()
}) : () -> ()
