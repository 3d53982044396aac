// PASS: decide-copies copy-async
// Loads that someone else uses, that are volatile, that move less than 4 bytes at a time, or
// that fill masked elements with something other than zero, go through registers.
//
// CHECK-NOT: ttg.async_copy
// CHECK: tt.load
// CHECK: isVolatile = true
// CHECK: "vector 1, order 0"
// CHECK: dense<1.000000e+00>
// CHECK-NOT: ttg.async_copy

#l = #ttg.linear<"register(1 2 4) lane(8 16 32 64 128) warp(256 512) atom(1024)">
#s = #ttg.linear<"offset(1 2 4 8 16 32 64 128 256 512) atom(1024)">
!p = tensor<1024x!tt.ptr<f16>, #l>
!v = tensor<1024xf16, #l>
!s = !ttg.memdesc<[1024], f16, #s, 1>
!m = tensor<1024xi1, #l>
"builtin.module"() ({
  "tt.func"() <{sym_name = "k", function_type = (!p, !p) -> ()}> ({
  ^bb0(%p: !p, %q: !p):
    %v = "tt.load"(%p) <{operandSegmentSizes = array<i32: 1, 0, 0>}> {tw.access = #tw.access<"vector 8, order 0">} : (!p) -> !v
    %s = "ttg.local_alloc"(%v) : (!v) -> !s
    "tt.store"(%q, %v) {tw.access = #tw.access<"vector 8, order 0">} : (!p, !v) -> ()
    "tt.return"() : () -> ()
  }) : () -> ()
}) : () -> ()

// -----
#l = #ttg.linear<"register(1 2 4) lane(8 16 32 64 128) warp(256 512) atom(1024)">
#s = #ttg.linear<"offset(1 2 4 8 16 32 64 128 256 512) atom(1024)">
!p = tensor<1024x!tt.ptr<f16>, #l>
!v = tensor<1024xf16, #l>
!s = !ttg.memdesc<[1024], f16, #s, 1>
!m = tensor<1024xi1, #l>
"builtin.module"() ({
  "tt.func"() <{sym_name = "k", function_type = (!p, !p) -> ()}> ({
  ^bb0(%p: !p, %q: !p):
    %v = "tt.load"(%p) <{isVolatile = true, operandSegmentSizes = array<i32: 1, 0, 0>}> {tw.access = #tw.access<"vector 8, order 0">} : (!p) -> !v
    %s = "ttg.local_alloc"(%v) : (!v) -> !s
    %r = "ttg.local_load"(%s) : (!s) -> !v
    "tt.store"(%q, %r) {tw.access = #tw.access<"vector 8, order 0">} : (!p, !v) -> ()
    "tt.return"() : () -> ()
  }) : () -> ()
}) : () -> ()

// -----
#l = #ttg.linear<"register(1 2 4) lane(8 16 32 64 128) warp(256 512) atom(1024)">
#s = #ttg.linear<"offset(1 2 4 8 16 32 64 128 256 512) atom(1024)">
!p = tensor<1024x!tt.ptr<f16>, #l>
!v = tensor<1024xf16, #l>
!s = !ttg.memdesc<[1024], f16, #s, 1>
!m = tensor<1024xi1, #l>
"builtin.module"() ({
  "tt.func"() <{sym_name = "k", function_type = (!p, !p) -> ()}> ({
  ^bb0(%p: !p, %q: !p):
    %v = "tt.load"(%p) <{operandSegmentSizes = array<i32: 1, 0, 0>}> {tw.access = #tw.access<"vector 1, order 0">} : (!p) -> !v
    %s = "ttg.local_alloc"(%v) : (!v) -> !s
    %r = "ttg.local_load"(%s) : (!s) -> !v
    "tt.store"(%q, %r) {tw.access = #tw.access<"vector 8, order 0">} : (!p, !v) -> ()
    "tt.return"() : () -> ()
  }) : () -> ()
}) : () -> ()

// -----
#l = #ttg.linear<"register(1 2 4) lane(8 16 32 64 128) warp(256 512) atom(1024)">
#s = #ttg.linear<"offset(1 2 4 8 16 32 64 128 256 512) atom(1024)">
!p = tensor<1024x!tt.ptr<f16>, #l>
!v = tensor<1024xf16, #l>
!s = !ttg.memdesc<[1024], f16, #s, 1>
!m = tensor<1024xi1, #l>
"builtin.module"() ({
  "tt.func"() <{sym_name = "k", function_type = (!p, !p, !m) -> ()}> ({
  ^bb0(%p: !p, %q: !p, %m: !m):
    %one = "arith.constant"() <{value = dense<1.0> : !v}> : () -> !v
    %v = "tt.load"(%p, %m, %one) <{operandSegmentSizes = array<i32: 1, 1, 1>}> {tw.access = #tw.access<"vector 8, order 0">} : (!p, !m, !v) -> !v
    %s = "ttg.local_alloc"(%v) : (!v) -> !s
    %r = "ttg.local_load"(%s) : (!s) -> !v
    "tt.store"(%q, %r) {tw.access = #tw.access<"vector 8, order 0">} : (!p, !v) -> ()
    "tt.return"() : () -> ()
  }) : () -> ()
}) : () -> ()
