// PASS: count-whiles
// What the test computes each time is computed once; other values stay carried, results stay results.
//
// CHECK: %[[END:.*]] = "arith.muli"(%n, %m)
// CHECK: %[[STEP:.*]] = "tt.get_num_programs"
// CHECK: %{{.*}} = "scf.for"(%first, %{{.*}}, %[[STEP]], %zero) ({
// CHECK-NEXT: ^{{.*}}(%{{.*}}: i32, %{{.*}}: i32):
// CHECK: "scf.yield"(%{{[a-z0-9]+}}) : (i32) -> ()
// CHECK: ttng.launch_guards = {{.*}}at_most{{.*}}2147483647

"builtin.module"() ({
  "tt.func"() <{sym_name = "k", function_type = (i32, i32) -> ()}> ({
  ^bb0(%n: i32, %m: i32):
    %first = "tt.get_program_id"() <{axis = 0 : i32}> : () -> i32
    %zero = "arith.constant"() <{value = 0 : i32}> : () -> i32
    %total, %last = "scf.while"(%zero, %first) ({
    ^bb1(%t: i32, %i: i32):
      %end = "arith.muli"(%n, %m) : (i32, i32) -> i32
      %goes = "arith.cmpi"(%end, %i) <{predicate = 4 : i64}> : (i32, i32) -> i1
      "scf.condition"(%goes, %t, %i) : (i1, i32, i32) -> ()
    }, {
    ^bb2(%u: i32, %j: i32):
      %more = "arith.addi"(%u, %j) : (i32, i32) -> i32
      %by = "tt.get_num_programs"() <{axis = 0 : i32}> : () -> i32
      %next = "arith.addi"(%by, %j) : (i32, i32) -> i32
      "scf.yield"(%more, %next) : (i32, i32) -> ()
    }) : (i32, i32) -> (i32, i32)
    "tt.print"(%total) <{prefix = "t", hex = false, isSigned = array<i32: 1>}> : (i32) -> ()
    "tt.return"() : () -> ()
  }) : () -> ()
}) : () -> ()
