"""The ways of calling a kernel that are known natively, as LLVM text: launching by one, and `run`.

`run` is the launch that other compilers' wrappers call, `CompiledKernel.run`; `warm`, of a user's
calls, is in `launch_calls.py`.
"""

WAYS = r"""
; The way of calling number `i` of those that are known, and whether it has as many arguments.
define internal ptr @known_way(ptr %state, i64 %i) alwaysinline {
  %offset = mul i64 %i, $warm_entry_bytes
  %from = add i64 %offset, $warm_entries
  %way = getelementptr i8, ptr %state, i64 %from
  ret ptr %way
}
define internal i1 @takes(ptr %way, i64 %num.args) alwaysinline {
  %wanted = call i64 @row_entry(ptr %way, i64 $way_num_args)
  %same = icmp eq i64 %wanted, %num.args
  ret i1 %same
}

; Launch as a way says. While the launch runs without the GIL another thread may change the state:
; this holds on to what the launch uses.
define internal ptr @launch_way(ptr %way, ptr %args, ptr %extents) alwaysinline {
  %table = call ptr @table_entry(ptr %way, i64 $way_table)
  %owner = call ptr @new_reference(ptr %way, i64 $way_owner)
  %launch = call ptr @table_entry(ptr %table, i64 $table_run)
  %result = call ptr %launch(ptr %table, ptr %args, ptr %extents)
  call void @Py_DecRef(ptr %owner)
  ret ptr %result
}

; METH_FASTCALL: run(grid_x, grid_y, grid_z, *args), as Triton's clients run a compiled kernel. It
; tries the launches that are known, and else calls the fallback, which is Python.
define ptr @run(ptr %self, ptr %argv, i64 %argc) {
entry:
  %extents = alloca [3 x i32], align 8
  %state.at = call ptr @table_of(ptr %self)
  %state = load ptr, ptr %state.at
  %args = getelementptr ptr, ptr %argv, i64 3
  %num.args = sub i64 %argc, 3
  br label %next
next:
  %i = phi i64 [0, %entry], [%i.next, %another]
  %num = call i64 @row_entry(ptr %state, i64 $warm_count)
  %more = icmp slt i64 %i, %num
  br i1 %more, label %look, label %fallback
look:
  %way = call ptr @known_way(ptr %state, i64 %i)
  %same.count = call i1 @takes(ptr %way, i64 %num.args)
  br i1 %same.count, label %open, label %another
open:
  %table = call ptr @table_entry(ptr %way, i64 $way_table)
  %closed = call i1 @gate_is_closed(ptr %table)
  br i1 %closed, label %fallback, label %read
read:
  %grid.ok = call i1 @read_grid(ptr %table, ptr %argv, ptr %extents)
  br i1 %grid.ok, label %launch, label %fallback
launch:
  %sentinel = call ptr @table_entry(ptr %table, i64 $table_sentinel)
  %result = call ptr @launch_way(ptr %way, ptr %args, ptr %extents)
  %refused = icmp eq ptr %result, %sentinel
  br i1 %refused, label %refuse, label %done
refuse:
  call void @Py_DecRef(ptr %result)
  br label %another
done:
  ret ptr %result
another:
  %i.next = add i64 %i, 1
  br label %next
fallback:
  %slow = call ptr @table_entry(ptr %state, i64 $warm_fallback)
  %value = call ptr @PyObject_Vectorcall(ptr %slow, ptr %argv, i64 %argc, ptr null)
  ret ptr %value
}
"""
"""`@known_way`, `@takes`, `@launch_way`, and `@run(grid_x, grid_y, grid_z, *args)`."""
