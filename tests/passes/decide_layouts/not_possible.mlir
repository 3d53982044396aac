// ERROR: decide-accesses decide-layouts

// A given layout that does not fit the op or the program is refused with the reason.
"builtin.module"() ({
  "tt.func"() <{function_type = (!tt.ptr<f32, 1>) -> (), sym_name = "k"}> ({
  ^bb0(%p: !tt.ptr<f32, 1>):
    %at = "tt.make_range"() <{start = 0 : i32, end = 512 : i32}> : () -> tensor<512xi32>
    %ps = "tt.splat"(%p) : (!tt.ptr<f32, 1>) -> tensor<512x!tt.ptr<f32, 1>>
    %pa = "tt.addptr"(%ps, %at) : (tensor<512x!tt.ptr<f32, 1>>, tensor<512xi32>) -> tensor<512x!tt.ptr<f32, 1>>
    // CHECK: load: the layout that is given is refused: it is of shape 256, and the tiles are 512
    %x = "tt.load"(%pa) <{operandSegmentSizes = array<i32: 1, 0, 0>}> {tw.layout = #tw.layout<"register(128) lane(1 2 4 8 16) warp(32 64) atom(256)">} : (tensor<512x!tt.ptr<f32, 1>>) -> tensor<512xf32>
    %y = "arith.addf"(%x, %x) <{fastmath = #arith.fastmath<none>}> : (tensor<512xf32>, tensor<512xf32>) -> tensor<512xf32>
    %s = "tt.reduce"(%y) <{axis = 0 : i32}> ({
    ^bb1(%a: f32, %b: f32):
      %c = "arith.addf"(%a, %b) <{fastmath = #arith.fastmath<none>}> : (f32, f32) -> f32
      "tt.reduce.return"(%c) : (f32) -> ()
    }) : (tensor<512xf32>) -> f32
    "tt.store"(%pa, %y) : (tensor<512x!tt.ptr<f32, 1>>, tensor<512xf32>) -> ()
    "tt.store"(%p, %s) : (!tt.ptr<f32, 1>, f32) -> ()
    "tt.return"() : () -> ()
  }) : () -> ()
}) : () -> ()

// -----

"builtin.module"() ({
  "tt.func"() <{function_type = (!tt.ptr<f32, 1>) -> (), sym_name = "k"}> ({
  ^bb0(%p: !tt.ptr<f32, 1>):
    %at = "tt.make_range"() <{start = 0 : i32, end = 512 : i32}> : () -> tensor<512xi32>
    %ps = "tt.splat"(%p) : (!tt.ptr<f32, 1>) -> tensor<512x!tt.ptr<f32, 1>>
    %pa = "tt.addptr"(%ps, %at) : (tensor<512x!tt.ptr<f32, 1>>, tensor<512xi32>) -> tensor<512x!tt.ptr<f32, 1>>
    // CHECK: load: the layout that is given is refused: it has 2 warps, and the program has 4
    %x = "tt.load"(%pa) <{operandSegmentSizes = array<i32: 1, 0, 0>}> {tw.layout = #tw.layout<"register(64 128 256) lane(1 2 4 8 16) warp(32) atom(512)">} : (tensor<512x!tt.ptr<f32, 1>>) -> tensor<512xf32>
    %y = "arith.addf"(%x, %x) <{fastmath = #arith.fastmath<none>}> : (tensor<512xf32>, tensor<512xf32>) -> tensor<512xf32>
    %s = "tt.reduce"(%y) <{axis = 0 : i32}> ({
    ^bb1(%a: f32, %b: f32):
      %c = "arith.addf"(%a, %b) <{fastmath = #arith.fastmath<none>}> : (f32, f32) -> f32
      "tt.reduce.return"(%c) : (f32) -> ()
    }) : (tensor<512xf32>) -> f32
    "tt.store"(%pa, %y) : (tensor<512x!tt.ptr<f32, 1>>, tensor<512xf32>) -> ()
    "tt.store"(%p, %s) : (!tt.ptr<f32, 1>, f32) -> ()
    "tt.return"() : () -> ()
  }) : () -> ()
}) : () -> ()

// -----

"builtin.module"() ({
  "tt.func"() <{function_type = (!tt.ptr<f32, 1>) -> (), sym_name = "k"}> ({
  ^bb0(%p: !tt.ptr<f32, 1>):
    %at = "tt.make_range"() <{start = 0 : i32, end = 512 : i32}> : () -> tensor<512xi32>
    %ps = "tt.splat"(%p) : (!tt.ptr<f32, 1>) -> tensor<512x!tt.ptr<f32, 1>>
    %pa = "tt.addptr"(%ps, %at) : (tensor<512x!tt.ptr<f32, 1>>, tensor<512xi32>) -> tensor<512x!tt.ptr<f32, 1>>
    // CHECK: load: the layout that is given is refused: it has 16 lanes, and a warp has 32
    %x = "tt.load"(%pa) <{operandSegmentSizes = array<i32: 1, 0, 0>}> {tw.layout = #tw.layout<"register(16 128 256) lane(1 2 4 8) warp(32 64) atom(512)">} : (tensor<512x!tt.ptr<f32, 1>>) -> tensor<512xf32>
    %y = "arith.addf"(%x, %x) <{fastmath = #arith.fastmath<none>}> : (tensor<512xf32>, tensor<512xf32>) -> tensor<512xf32>
    %s = "tt.reduce"(%y) <{axis = 0 : i32}> ({
    ^bb1(%a: f32, %b: f32):
      %c = "arith.addf"(%a, %b) <{fastmath = #arith.fastmath<none>}> : (f32, f32) -> f32
      "tt.reduce.return"(%c) : (f32) -> ()
    }) : (tensor<512xf32>) -> f32
    "tt.store"(%pa, %y) : (tensor<512x!tt.ptr<f32, 1>>, tensor<512xf32>) -> ()
    "tt.store"(%p, %s) : (!tt.ptr<f32, 1>, f32) -> ()
    "tt.return"() : () -> ()
  }) : () -> ()
}) : () -> ()

// -----

"builtin.module"() ({
  "tt.func"() <{function_type = (!tt.ptr<f32, 1>) -> (), sym_name = "k"}> ({
  ^bb0(%p: !tt.ptr<f32, 1>):
    %at = "tt.make_range"() <{start = 0 : i32, end = 512 : i32}> : () -> tensor<512xi32>
    %ps = "tt.splat"(%p) : (!tt.ptr<f32, 1>) -> tensor<512x!tt.ptr<f32, 1>>
    %pa = "tt.addptr"(%ps, %at) : (tensor<512x!tt.ptr<f32, 1>>, tensor<512xi32>) -> tensor<512x!tt.ptr<f32, 1>>
    // CHECK: load: the layout that is given is refused: it does not hold every element
    %x = "tt.load"(%pa) <{operandSegmentSizes = array<i32: 1, 0, 0>}> {tw.layout = #tw.layout<"register(128 0) lane(1 2 4 8 16) warp(32 64) atom(512)">} : (tensor<512x!tt.ptr<f32, 1>>) -> tensor<512xf32>
    %y = "arith.addf"(%x, %x) <{fastmath = #arith.fastmath<none>}> : (tensor<512xf32>, tensor<512xf32>) -> tensor<512xf32>
    %s = "tt.reduce"(%y) <{axis = 0 : i32}> ({
    ^bb1(%a: f32, %b: f32):
      %c = "arith.addf"(%a, %b) <{fastmath = #arith.fastmath<none>}> : (f32, f32) -> f32
      "tt.reduce.return"(%c) : (f32) -> ()
    }) : (tensor<512xf32>) -> f32
    "tt.store"(%pa, %y) : (tensor<512x!tt.ptr<f32, 1>>, tensor<512xf32>) -> ()
    "tt.store"(%p, %s) : (!tt.ptr<f32, 1>, f32) -> ()
    "tt.return"() : () -> ()
  }) : () -> ()
}) : () -> ()

// -----

"builtin.module"() ({
  "tt.func"() <{function_type = (!tt.ptr<f32, 1>) -> (), sym_name = "k"}> ({
  ^bb0(%p: !tt.ptr<f32, 1>):
    %at = "tt.make_range"() <{start = 0 : i32, end = 512 : i32}> : () -> tensor<512xi32>
    %ps = "tt.splat"(%p) : (!tt.ptr<f32, 1>) -> tensor<512x!tt.ptr<f32, 1>>
    %pa = "tt.addptr"(%ps, %at) : (tensor<512x!tt.ptr<f32, 1>>, tensor<512xi32>) -> tensor<512x!tt.ptr<f32, 1>>
    // CHECK: `rows first` is no plan of layouts, such as `register(1 2) lane(4 8 16 32 64) warp(128 256) atom(512)`
    %x = "tt.load"(%pa) <{operandSegmentSizes = array<i32: 1, 0, 0>}> {tw.layout = #tw.layout<"rows first">} : (tensor<512x!tt.ptr<f32, 1>>) -> tensor<512xf32>
    %y = "arith.addf"(%x, %x) <{fastmath = #arith.fastmath<none>}> : (tensor<512xf32>, tensor<512xf32>) -> tensor<512xf32>
    %s = "tt.reduce"(%y) <{axis = 0 : i32}> ({
    ^bb1(%a: f32, %b: f32):
      %c = "arith.addf"(%a, %b) <{fastmath = #arith.fastmath<none>}> : (f32, f32) -> f32
      "tt.reduce.return"(%c) : (f32) -> ()
    }) : (tensor<512xf32>) -> f32
    "tt.store"(%pa, %y) : (tensor<512x!tt.ptr<f32, 1>>, tensor<512xf32>) -> ()
    "tt.store"(%p, %s) : (!tt.ptr<f32, 1>, f32) -> ()
    "tt.return"() : () -> ()
  }) : () -> ()
}) : () -> ()

// -----

"builtin.module"() ({
  "tt.func"() <{function_type = (!tt.ptr<f32, 1>) -> (), sym_name = "k"}> ({
  ^bb0(%p: !tt.ptr<f32, 1>):
    %at = "tt.make_range"() <{start = 0 : i32, end = 512 : i32}> : () -> tensor<512xi32>
    %ps = "tt.splat"(%p) : (!tt.ptr<f32, 1>) -> tensor<512x!tt.ptr<f32, 1>>
    %pa = "tt.addptr"(%ps, %at) : (tensor<512x!tt.ptr<f32, 1>>, tensor<512xi32>) -> tensor<512x!tt.ptr<f32, 1>>
    // CHECK: load: the layout that is given is refused: they do not go together; with its operands', it has `register(128 256) lane(1 2 4 8 16) warp(32 64) atom(512) -> register(128 256) lane(1 2 4 8 16) warp(32 64) atom(512)`
    %x = "tt.load"(%pa) <{operandSegmentSizes = array<i32: 1, 0, 0>}> {tw.layout = #tw.layout<"register(128 256) lane(1 2 4 8 16) warp(32 64) atom(512) -> _">} : (tensor<512x!tt.ptr<f32, 1>>) -> tensor<512xf32>
    %y = "arith.addf"(%x, %x) <{fastmath = #arith.fastmath<none>}> : (tensor<512xf32>, tensor<512xf32>) -> tensor<512xf32>
    %s = "tt.reduce"(%y) <{axis = 0 : i32}> ({
    ^bb1(%a: f32, %b: f32):
      %c = "arith.addf"(%a, %b) <{fastmath = #arith.fastmath<none>}> : (f32, f32) -> f32
      "tt.reduce.return"(%c) : (f32) -> ()
    }) : (tensor<512xf32>) -> f32
    "tt.store"(%pa, %y) : (tensor<512x!tt.ptr<f32, 1>>, tensor<512xf32>) -> ()
    "tt.store"(%p, %s) : (!tt.ptr<f32, 1>, f32) -> ()
    "tt.return"() : () -> ()
  }) : () -> ()
}) : () -> ()
