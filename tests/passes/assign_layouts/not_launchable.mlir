// ERROR: decide-layouts assign-layouts
// A launch gives numbers and pointers, and takes nothing back.
//
// CHECK: error[MalformedText]: tt.func: argument 0 of the kernel `k` is tensor<64xf32>, which no launch can give or take
// CHECK-NEXT: not_launchable.mlir:
// CHECK: help: take pointers and numbers, load and store tiles, and return nothing

"builtin.module"() ({
  "tt.func"() <{sym_name = "k", function_type = (tensor<64xf32>, !tt.ptr<f32>) -> ()}> ({
  ^bb0(%x: tensor<64xf32>, %p: !tt.ptr<f32>):
    %y = "arith.addf"(%x, %x) : (tensor<64xf32>, tensor<64xf32>) -> tensor<64xf32>
    "tt.return"() : () -> ()
  }) : () -> ()
}) : () -> ()

// -----

// CHECK: error[MalformedText]: tt.func: result 0 of the kernel `k` is tensor<64xf32>, which no launch can give or take

"builtin.module"() ({
  "tt.func"() <{sym_name = "k", function_type = (!tt.ptr<f32>) -> (tensor<64xf32>)}> ({
  ^bb0(%p: !tt.ptr<f32>):
    %y = "arith.constant"() <{value = dense<1.0> : tensor<64xf32>}> : () -> tensor<64xf32>
    "tt.return"(%y) : (tensor<64xf32>) -> ()
  }) : () -> ()
}) : () -> ()
