"""LLVM text that goes over a launch's grid and rows before anything is launched."""

from __future__ import annotations

WALK = r"""
; Whether launches must take the slow path now, whatever their arguments: somebody watches them.
define internal i1 @gate_is_closed(ptr %table) alwaysinline {
  %gate = call ptr @table_entry(ptr %table, i64 $table_gate)
  %word = load volatile i64, ptr %gate
  %closed = icmp ne i64 %word, 0
  ret i1 %closed
}

; An exact int from 0 to 2^31-1; anything else is the slow path's matter.
define internal i1 @read_extent(ptr %table, ptr %arg, ptr %extent) {
  %overflow.at = alloca i32
  %int = call ptr @table_entry(ptr %table, i64 $table_int_type)
  %exact = call i1 @type_is(ptr %arg, ptr %int)
  br i1 %exact, label %convert, label %fail
convert:
  %value = call i64 @PyLong_AsLongLongAndOverflow(ptr %arg, ptr %overflow.at)
  %fits = icmp ult i64 %value, 2147483648
  br i1 %fits, label %store, label %fail
store:
  %small = trunc i64 %value to i32
  store i32 %small, ptr %extent
  ret i1 true
fail:
  ret i1 false
}

; The three extents of a grid out of three arguments.
define internal i1 @read_grid(ptr %table, ptr %argv, ptr %grid) {
entry:
  br label %next
next:
  %i = phi i64 [0, %entry], [%i.next, %read]
  %more = icmp ult i64 %i, 3
  br i1 %more, label %read, label %done
read:
  %arg.at = getelementptr ptr, ptr %argv, i64 %i
  %arg = load ptr, ptr %arg.at
  %at = getelementptr i32, ptr %grid, i64 %i
  %good = call i1 @read_extent(ptr %table, ptr %arg, ptr %at)
  %i.next = add i64 %i, 1
  br i1 %good, label %next, label %fail
done:
  ret i1 true
fail:
  ret i1 false
}

; The three extents of a grid out of a tuple of one to three.
define internal i1 @read_grid_tuple(ptr %table, ptr %tuple, ptr %grid) {
entry:
  %tuple.type = call ptr @table_entry(ptr %table, i64 $table_tuple_type)
  %exact = call i1 @type_is(ptr %tuple, ptr %tuple.type)
  br i1 %exact, label %size, label %fail
size:
  %num = call i64 @PyTuple_Size(ptr %tuple)
  %last = sub i64 %num, 1
  %right = icmp ult i64 %last, 3
  br i1 %right, label %fill, label %fail
fill:
  %y.at = getelementptr i32, ptr %grid, i64 1
  %z.at = getelementptr i32, ptr %grid, i64 2
  store i32 1, ptr %y.at
  store i32 1, ptr %z.at
  br label %next
next:
  %i = phi i64 [0, %fill], [%i.next, %read]
  %more = icmp ult i64 %i, %num
  br i1 %more, label %read, label %done
read:
  %extent = call ptr @PyTuple_GetItem(ptr %tuple, i64 %i)
  %at = getelementptr i32, ptr %grid, i64 %i
  %good = call i1 @read_extent(ptr %table, ptr %extent, ptr %at)
  %i.next = add i64 %i, 1
  br i1 %good, label %next, label %fail
done:
  ret i1 true
fail:
  ret i1 false
}

; Walk the rows while guards hold: the last guard's answer (1 when there are no rows).
define internal i32 @check_rows(ptr %table, ptr %args, ptr %slots) {
entry:
  %num = call i64 @row_entry(ptr %table, i64 $table_num_rows)
  %rows = getelementptr i8, ptr %table, i64 $table_header_bytes
  br label %next
next:
  %i = phi i64 [0, %entry], [%i.next, %guard]
  %more = icmp slt i64 %i, %num
  br i1 %more, label %check, label %done
check:
  %offset = mul i64 %i, $row_bytes
  %row = getelementptr i8, ptr %rows, i64 %offset
  %position = call i64 @row_entry(ptr %row, i64 $row_position)
  %has.none = icmp slt i64 %position, 0
  br i1 %has.none, label %guard, label %read
read:
  %arg.at = getelementptr ptr, ptr %args, i64 %position
  %read.arg = load ptr, ptr %arg.at
  br label %guard
guard:
  %arg = phi ptr [null, %check], [%read.arg, %read]
  %answer = call i32 @check_row(ptr %table, ptr %row, ptr %arg, ptr %slots)
  %i.next = add i64 %i, 1
  %holds = icmp eq i32 %answer, 1
  br i1 %holds, label %next, label %stop
stop:
  ret i32 %answer
done:
  ret i32 1
}

define internal ptr @new_reference(ptr %table, i64 %offset) {
  %object = call ptr @table_entry(ptr %table, i64 %offset)
  call void @Py_IncRef(ptr %object)
  ret ptr %object
}

; Call with one argument: a new reference, or null with an exception.
define internal ptr @call_with(ptr %callable, ptr %argument) {
  %arguments = alloca [2 x ptr]
  %first = getelementptr ptr, ptr %arguments, i64 1
  store ptr %argument, ptr %first
  %value = call ptr @PyObject_Vectorcall(ptr %callable, ptr %first,
                                        i64 -9223372036854775807, ptr null)
  ret ptr %value
}

define internal ptr @table_of(ptr %self) {
  %bytes = call ptr @PyTuple_GetItem(ptr %self, i64 0)
  %table = call ptr @PyBytes_AsString(ptr %bytes)
  ret ptr %table
}
"""
