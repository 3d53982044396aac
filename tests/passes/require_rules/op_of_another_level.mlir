// ERROR: tiles{target=nvidia}
// ERROR: require-rules
// What is no op of T0 is refused before the pass looks for rules.
//
// CHECK: error[MalformedText]: invalid T0: cpu.load at op_of_another_level.mlir:{{[0-9]+}} has a value of type vector<8xf32>

!v = tensor<64xf32>
"builtin.module"() ({
  "tt.func"() <{sym_name = "k", function_type = (!tt.ptr<f32>) -> ()}> ({
  ^bb0(%p: !tt.ptr<f32>):
    %y = "cpu.load"(%p) <{operandSegmentSizes = array<i32: 1, 0, 0>}> : (!tt.ptr<f32>) -> vector<8xf32>
    "tt.return"() : () -> ()
  }) : () -> ()
}) : () -> ()
