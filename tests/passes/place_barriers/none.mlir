// PASS: place-shared place-barriers
// A kernel without loads by the engine has no mbarriers, and takes what its tiles take.
//
// CHECK-NOT: ttng.init_mbarriers
// CHECK: {shared_bytes = 8192 : i32}

#w = #ttg.linear<"offset(0:1 0:2 0:4 0:8 0:16 0:32 1:8 2:16 4:32 8:0 16:0 32:0) atom(64x64)">
#t = #ttg.linear<"register(0:1 0:2 0:4 16:0 32:0) lane(0:8 0:16 0:32 1:0 2:0) warp(4:0 8:0) atom(64x64)">
!d = !tt.tensordesc<tensor<64x64xf16>>
!h = tensor<64x64xf16, #t>
!w = !ttg.memdesc<[64, 64], f16, #w, 1>
"builtin.module"() ({
  "tt.func"() <{sym_name = "k", function_type = (!h) -> ()}> ({
  ^bb0(%v: !h):
    %s = "ttg.local_alloc"(%v) : (!h) -> !w
    %r = "ttg.local_load"(%s) : (!w) -> !h
    "tt.return"() : () -> ()
  }) : () -> ()
}) : () -> ()
