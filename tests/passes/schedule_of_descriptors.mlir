// ERROR: schedule

// On text, a schedule asks whether the tile passes have lowered what it does not see.
!d = !tt.tensordesc<tensor<8x8xf32>>
"builtin.module"() ({
  "tt.func"() <{function_type = (!d, i32) -> (), sym_name = "k"}> ({
  ^bb0(%d: !d, %i: i32):
    // CHECK: MissingRule: error[MissingRule]: tt.descriptor_load has no
    %x = "tt.descriptor_load"(%d, %i, %i) <{cache = 0 : i32, evict = 0 : i32}> : (!d, i32, i32) -> tensor<8x8xf32>
    "tt.return"() : () -> ()
  }) : () -> ()
}) : () -> ()
