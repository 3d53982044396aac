// PASS: insert-shared-barriers
// The write of the next iteration waits for the reads of this one: two barriers in the loop.
//
// CHECK: "scf.for"
// CHECK-NEXT: ^
// CHECK-NEXT: "ttg.barrier"
// CHECK-NEXT: "ttg.local_store"
// CHECK-NEXT: "ttg.barrier"
// CHECK-NEXT: "ttg.local_load"
// CHECK-NOT: ttg.barrier

#l = #ttg.linear<"register(1 2 4) lane(8 16 32 64 128) warp(256 512) atom(1024)">
#s = #ttg.linear<"offset(1 2 4 8 16 32 64 128 256 512) atom(1024)">
!p = tensor<1024x!tt.ptr<f16>, #l>
!v = tensor<1024xf16, #l>
!s = !ttg.memdesc<[1024], f16, #s, 1>
"builtin.module"() ({
  "tt.func"() <{sym_name = "k", function_type = (!v, !p, i32) -> ()}> ({
  ^bb0(%v: !v, %p: !p, %n: i32):
    %zero = "arith.constant"() <{value = 0 : i32}> : () -> i32
    %one = "arith.constant"() <{value = 1 : i32}> : () -> i32
    %s = "ttg.local_alloc"() <{offset_bytes = 0 : i32}> : () -> !s
    "scf.for"(%zero, %n, %one) ({
    ^bb0(%k: i32):
      "ttg.local_store"(%v, %s) : (!v, !s) -> ()
      %a = "ttg.local_load"(%s) : (!s) -> !v
      "tt.store"(%p, %a) {tw.access = #tw.access<"vector 1, order 0">} : (!p, !v) -> ()
      "scf.yield"() : () -> ()
    }) : (i32, i32, i32) -> ()
    "tt.return"() : () -> ()
  }) : () -> ()
}) : () -> ()
