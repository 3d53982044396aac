"""The native launch of a kernel as LLVM text: what Python calls, around a target's `run_table`.

`launch` takes a launcher's own arguments, `warm` and `run` those of Python (`runtime/warm.py`). All
read the grid, and let the target's `run_table` check and run. CPython's functions are called by
name, its objects read where `launch_table` says.
"""

from __future__ import annotations

from collections.abc import Mapping
from string import Template

from tilewright.codegen.launch_arrays import ARRAY_GUARDS
from tilewright.codegen.launch_guards import VALUE_GUARDS
from tilewright.codegen.launch_walk import WALK
from tilewright.codegen.launch_ways import WAYS
from tilewright.runtime.launch_table import (
    ACCESSOR_FIELDS,
    FLAGS,
    KINDS,
    OBJECT_FIELDS,
    ROW_BYTES,
    ROW_FIELDS,
    TABLE_FIELDS,
    TABLE_HEADER_BYTES,
    WARM_FIELDS,
    WAY_BYTES,
    WAY_FIELDS,
)

_DECLARATIONS = r"""
declare ptr @PyTuple_GetItem(ptr, i64)
declare i64 @PyTuple_Size(ptr)
declare ptr @PyBytes_AsString(ptr)
declare i64 @PyLong_AsLongLong(ptr)
declare i64 @PyLong_AsLongLongAndOverflow(ptr, ptr)
declare i64 @PyLong_AsUnsignedLongLong(ptr)
declare ptr @PyLong_AsVoidPtr(ptr)
declare double @PyFloat_AsDouble(ptr)
declare ptr @PyObject_GetAttr(ptr, ptr)
declare ptr @PyObject_VectorcallMethod(ptr, ptr, i64, ptr)
declare ptr @PyObject_Vectorcall(ptr, ptr, i64, ptr)
declare ptr @PyDict_New()
declare i32 @PyDict_SetItem(ptr, ptr, ptr)
declare ptr @PyObject_CallObject(ptr, ptr)
declare i32 @PyObject_RichCompareBool(ptr, ptr, i32)
declare i32 @PyObject_IsTrue(ptr)
declare void @Py_IncRef(ptr)
declare void @Py_DecRef(ptr)
declare ptr @PyErr_Occurred()
declare void @PyErr_Clear()
declare void @PyErr_SetString(ptr, ptr)
declare ptr @PyErr_NoMemory()
declare ptr @PyEval_SaveThread()
declare void @PyEval_RestoreThread(ptr)
declare i32 @PyGILState_Ensure()
declare void @PyGILState_Release(i32)
declare i32 @PyErr_CheckSignals()

"""


_LAUNCH = r"""
; METH_FASTCALL: launch(grid_x, grid_y, grid_z, *args), arguments in the order of the rows.
define ptr @launch(ptr %self, ptr %argv, i64 %argc) {
entry:
  %grid = alloca [3 x i32], align 8
  %table = call ptr @table_of(ptr %self)
  %num.rows = call i64 @row_entry(ptr %table, i64 $table_num_rows)
  %expected = add i64 %num.rows, 3
  %right = icmp eq i64 %argc, %expected
  %closed = call i1 @gate_is_closed(ptr %table)
  %open = xor i1 %closed, true
  %go = and i1 %right, %open
  br i1 %go, label %read, label %slow
read:
  %grid.ok = call i1 @read_grid(ptr %table, ptr %argv, ptr %grid)
  br i1 %grid.ok, label %run, label %slow
run:
  %args = getelementptr ptr, ptr %argv, i64 3
  %result = call ptr @run_table(ptr %table, ptr %args, ptr %grid)
  ret ptr %result
slow:
  %sentinel = call ptr @new_reference(ptr %table, i64 $table_sentinel)
  ret ptr %sentinel
}

; Whether two calls name the same keywords in the same order; names are interned strings.
define internal i1 @same_names(ptr %a, ptr %b) {
entry:
  %identical = icmp eq ptr %a, %b
  br i1 %identical, label %yes, label %both
both:
  %no.a = icmp eq ptr %a, null
  %no.b = icmp eq ptr %b, null
  %none = or i1 %no.a, %no.b
  br i1 %none, label %no, label %sizes
sizes:
  %num = call i64 @PyTuple_Size(ptr %a)
  %num.b = call i64 @PyTuple_Size(ptr %b)
  %same.size = icmp eq i64 %num, %num.b
  br i1 %same.size, label %next, label %no
next:
  %i = phi i64 [0, %sizes], [%i.next, %item]
  %more = icmp slt i64 %i, %num
  br i1 %more, label %item, label %yes
item:
  %item.a = call ptr @PyTuple_GetItem(ptr %a, i64 %i)
  %item.b = call ptr @PyTuple_GetItem(ptr %b, i64 %i)
  %same = icmp eq ptr %item.a, %item.b
  %i.next = add i64 %i, 1
  br i1 %same, label %next, label %no
yes:
  ret i1 true
no:
  ret i1 false
}

; What a grid that is a function gives for the arguments of a call, by name: a new reference, or
; null with an exception.
define internal ptr @call_grid(ptr %way, ptr %grid, ptr %args) {
entry:
  %names = call ptr @table_entry(ptr %way, i64 $way_parameters)
  %positions = call ptr @table_entry(ptr %way, i64 $way_positions)
  %defaults = call ptr @table_entry(ptr %way, i64 $way_defaults)
  %num = call i64 @PyTuple_Size(ptr %names)
  %dict = call ptr @PyDict_New()
  %no.dict = icmp eq ptr %dict, null
  br i1 %no.dict, label %raise, label %next
next:
  %i = phi i64 [0, %entry], [%i.next, %set]
  %more = icmp slt i64 %i, %num
  br i1 %more, label %find, label %call
find:
  %name = call ptr @PyTuple_GetItem(ptr %names, i64 %i)
  %position.at = getelementptr i64, ptr %positions, i64 %i
  %position = load i64, ptr %position.at
  %is.default = icmp slt i64 %position, 0
  br i1 %is.default, label %default, label %given
default:
  %default.value = call ptr @PyTuple_GetItem(ptr %defaults, i64 %i)
  br label %set
given:
  %arg.at = getelementptr ptr, ptr %args, i64 %position
  %arg = load ptr, ptr %arg.at
  br label %set
set:
  %value = phi ptr [%default.value, %default], [%arg, %given]
  %code = call i32 @PyDict_SetItem(ptr %dict, ptr %name, ptr %value)
  %i.next = add i64 %i, 1
  %is.set = icmp eq i32 %code, 0
  br i1 %is.set, label %next, label %drop
drop:
  call void @Py_DecRef(ptr %dict)
  ret ptr null
call:
  %result = call ptr @call_with(ptr %grid, ptr %dict)
  call void @Py_DecRef(ptr %dict)
  ret ptr %result
raise:
  ret ptr null
}

; Call the fallback with another grid in front of the same arguments.
define internal ptr @call_fallback(ptr %state, ptr %grid, ptr %argv, i64 %argc, ptr %names) {
entry:
  %has.names = icmp ne ptr %names, null
  br i1 %has.names, label %count, label %copy
count:
  %num.names = call i64 @PyTuple_Size(ptr %names)
  br label %copy
copy:
  %num.keywords = phi i64 [0, %entry], [%num.names, %count]
  %total = add i64 %argc, %num.keywords
  %arguments = alloca ptr, i64 %total, align 16
  store ptr %grid, ptr %arguments
  br label %next
next:
  %i = phi i64 [1, %copy], [%i.next, %move]
  %more = icmp slt i64 %i, %total
  br i1 %more, label %move, label %call
move:
  %from = getelementptr ptr, ptr %argv, i64 %i
  %to = getelementptr ptr, ptr %arguments, i64 %i
  %value = load ptr, ptr %from
  store ptr %value, ptr %to
  %i.next = add i64 %i, 1
  br label %next
call:
  %fallback = call ptr @table_entry(ptr %state, i64 $warm_fallback)
  %result = call ptr @PyObject_Vectorcall(ptr %fallback, ptr %arguments, i64 %argc, ptr %names)
  ret ptr %result
}

; METH_FASTCALL | METH_KEYWORDS: warm(grid, *args, **kwargs), as the user calls a kernel. It tries
; the launches that are known for calls of this form, and else calls the fallback, which is Python.
; A grid that is a function is called once; its answer stands for it from then on.
define ptr @warm(ptr %self, ptr %argv, i64 %argc, ptr %names) {
entry:
  %extents = alloca [3 x i32], align 8
  %grid.at = alloca ptr
  %called.at = alloca ptr
  store ptr null, ptr %called.at
  %state.at = call ptr @table_of(ptr %self)
  %state = load ptr, ptr %state.at
  %some = icmp sgt i64 %argc, 0
  br i1 %some, label %start, label %plain
start:
  %given = load ptr, ptr %argv
  store ptr %given, ptr %grid.at
  %args = getelementptr ptr, ptr %argv, i64 1
  %num.args = sub i64 %argc, 1
  br label %next
next:
  %i = phi i64 [0, %start], [0, %answered], [%i.next, %another]
  %num = call i64 @row_entry(ptr %state, i64 $warm_count)
  %more = icmp slt i64 %i, %num
  br i1 %more, label %look, label %fallback
look:
  %way = call ptr @known_way(ptr %state, i64 %i)
  %same.count = call i1 @takes(ptr %way, i64 %num.args)
  br i1 %same.count, label %compare, label %another
compare:
  %wanted.names = call ptr @table_entry(ptr %way, i64 $way_names)
  %same.names = call i1 @same_names(ptr %wanted.names, ptr %names)
  br i1 %same.names, label %open, label %another
open:
  %table = call ptr @table_entry(ptr %way, i64 $way_table)
  %closed = call i1 @gate_is_closed(ptr %table)
  br i1 %closed, label %fallback, label %read
read:
  %grid = load ptr, ptr %grid.at
  %grid.ok = call i1 @read_grid_tuple(ptr %table, ptr %grid, ptr %extents)
  br i1 %grid.ok, label %run, label %ask
ask:
  %function.type = call ptr @table_entry(ptr %table, i64 $table_function_type)
  %is.function = call i1 @type_is(ptr %grid, ptr %function.type)
  %called = load ptr, ptr %called.at
  %is.first = icmp eq ptr %called, null
  %asks = and i1 %is.function, %is.first
  br i1 %asks, label %call.grid, label %fallback
call.grid:
  ; The function is the user's: whatever it does to the state, the way must live until it is read.
  %holder = call ptr @new_reference(ptr %way, i64 $way_owner)
  %answer = call ptr @call_grid(ptr %way, ptr %grid, ptr %args)
  call void @Py_DecRef(ptr %holder)
  %no.answer = icmp eq ptr %answer, null
  br i1 %no.answer, label %raise, label %answered
answered:
  store ptr %answer, ptr %called.at
  store ptr %answer, ptr %grid.at
  ; From the start, because the state may be another one now.
  br label %next
run:
  %kernel = call ptr @new_reference(ptr %way, i64 $way_kernel)
  %sentinel = call ptr @table_entry(ptr %table, i64 $table_sentinel)
  %result = call ptr @launch_way(ptr %way, ptr %args, ptr %extents)
  %raised = icmp eq ptr %result, null
  br i1 %raised, label %drop.kernel, label %ran
ran:
  call void @Py_DecRef(ptr %result)
  %refused = icmp eq ptr %result, %sentinel
  br i1 %refused, label %refuse, label %done
refuse:
  call void @Py_DecRef(ptr %kernel)
  br label %another
done:
  call void @drop_grid(ptr %called.at)
  ret ptr %kernel
drop.kernel:
  call void @Py_DecRef(ptr %kernel)
  br label %raise
raise:
  call void @drop_grid(ptr %called.at)
  ret ptr null
another:
  %i.next = add i64 %i, 1
  br label %next
fallback:
  %final = load ptr, ptr %grid.at
  %value = call ptr @call_fallback(ptr %state, ptr %final, ptr %argv, i64 %argc, ptr %names)
  call void @drop_grid(ptr %called.at)
  ret ptr %value
plain:
  %slow = call ptr @table_entry(ptr %state, i64 $warm_fallback)
  %plain.value = call ptr @PyObject_Vectorcall(ptr %slow, ptr %argv, i64 %argc, ptr %names)
  ret ptr %plain.value
}

define internal void @drop_grid(ptr %called.at) {
  %called = load ptr, ptr %called.at
  %none = icmp eq ptr %called, null
  br i1 %none, label %done, label %drop
drop:
  call void @Py_DecRef(ptr %called)
  br label %done
done:
  ret void
}
"""

LAUNCHER_SYMBOLS = ("launch", "run_table", "warm", "run")  # of each target's launcher module

PYTHON_EXTERNALS = tuple(
    line.split("@")[1].split("(")[0]
    for line in _DECLARATIONS.splitlines()
    if line.startswith("declare")
)


def field_offsets(**groups: Mapping[str, int]) -> dict[str, str]:
    """The byte offsets of fields as texts of LLVM name them: `$group_field`."""
    return {
        f"{group}_{name}": str(offset)
        for group, fields in groups.items()
        for name, offset in fields.items()
    }


def launcher_text(target: str, constants: Mapping[str, str]) -> str:
    """The LLVM text of a launcher: guards, `launch` and `warm`, and a target's `run_table`.

    `@run_table(table, args, grid)` checks the rows and runs the grid; it returns what `launch`
    does. `constants` are substituted in all of it.
    """
    numbers = {"kind": KINDS, "flag": FLAGS}
    offsets = field_offsets(
        table=TABLE_FIELDS,
        row=ROW_FIELDS,
        object=OBJECT_FIELDS,
        accessor=ACCESSOR_FIELDS,
        warm=WARM_FIELDS,
        way=WAY_FIELDS,
        **numbers,
    )
    sizes = {
        "table_header_bytes": str(TABLE_HEADER_BYTES),
        "row_bytes": str(ROW_BYTES),
        "warm_entry_bytes": str(WAY_BYTES),
    }
    text = Template(_DECLARATIONS + VALUE_GUARDS + ARRAY_GUARDS + WALK + target + WAYS + _LAUNCH)
    return text.substitute({**offsets, **sizes, **constants})
