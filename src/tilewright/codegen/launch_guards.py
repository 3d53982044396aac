"""The guards of a native launch as LLVM text: what every target's launcher is made of.

A launcher `launch(grid_x, grid_y, grid_z, *args)` walks a table with one row per argument
(`runtime/launch_table.py`). A row says what the argument must look like for this compiled kernel
to be the right one; the walk checks it and writes the argument's slot in one step. When every
guard holds, the target's own part runs the grid. When one fails, the function returns the table's
sentinel, having changed nothing, and Python takes the slow path. Guards return 1 (holds),
0 (fails) or -1 (a Python exception is set).

The function's `self` is a tuple whose first item is the table, a `bytes` object; the other
items are whatever the table points to, kept alive by the callable itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from string import Template

from tilewright.runtime.launch_table import (
    ACCESSOR_FIELDS,
    FLAGS,
    INTEGER_CLASSES,
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
declare void @Py_IncRef(ptr)
declare void @Py_DecRef(ptr)
declare ptr @PyErr_Occurred()
declare void @PyErr_Clear()
declare void @PyErr_SetString(ptr, ptr)
declare ptr @PyErr_NoMemory()
declare ptr @PyEval_SaveThread()
declare void @PyEval_RestoreThread(ptr)
"""

_GUARDS = r"""
define internal ptr @table_entry(ptr %table, i64 %offset) alwaysinline {
  %at = getelementptr i8, ptr %table, i64 %offset
  %value = load ptr, ptr %at
  ret ptr %value
}

define internal i64 @row_entry(ptr %row, i64 %offset) alwaysinline {
  %at = getelementptr i8, ptr %row, i64 %offset
  %value = load i64, ptr %at
  ret i64 %value
}

define internal i1 @has_flag(ptr %row, i32 %flag) alwaysinline {
  %at = getelementptr i8, ptr %row, i64 $row_flags
  %flags = load i32, ptr %at
  %bit = and i32 %flags, %flag
  %set = icmp ne i32 %bit, 0
  ret i1 %set
}

define internal i1 @type_is(ptr %object, ptr %type) alwaysinline {
  %at = getelementptr i8, ptr %object, i64 $object_type
  %actual = load ptr, ptr %at
  %same = icmp eq ptr %actual, %type
  ret i1 %same
}

; Store a pointer if it has the recorded alignment: a multiple of 16 bytes, or not.
define internal i32 @store_pointer(ptr %row, i64 %address, ptr %slot) {
  store i64 %address, ptr %slot
  %low = and i64 %address, 15
  %aligned = icmp eq i64 %low, 0
  %wanted = call i1 @has_flag(ptr %row, i32 $flag_is_aligned)
  %match = icmp eq i1 %aligned, %wanted
  %checked = call i1 @has_flag(ptr %row, i32 $flag_check_alignment)
  %free = xor i1 %checked, true
  %holds = or i1 %match, %free
  %result = zext i1 %holds to i32
  ret i32 %result
}

; Whether the dtype object is the recorded one, or equal to it (unpickled arrays have a copy).
define internal i32 @dtype_matches(ptr %row, ptr %dtype) {
  %recorded = call ptr @table_entry(ptr %row, i64 $row_object)
  %same = icmp eq ptr %recorded, %dtype
  br i1 %same, label %yes, label %compare
compare:
  %equal = call i32 @PyObject_RichCompareBool(ptr %dtype, ptr %recorded, i32 2)
  ret i32 %equal
yes:
  ret i32 1
}

define internal i32 @guard_numpy(ptr %table, ptr %row, ptr %arg, ptr %slot) {
  %ndarray = call ptr @table_entry(ptr %table, i64 $table_ndarray_type)
  %exact = call i1 @type_is(ptr %arg, ptr %ndarray)
  br i1 %exact, label %dtype, label %fail
dtype:
  %descr = call ptr @table_entry(ptr %arg, i64 $object_array_dtype)
  %matches = call i32 @dtype_matches(ptr %row, ptr %descr)
  %is.same = icmp eq i32 %matches, 1
  br i1 %is.same, label %flags, label %differs
differs:
  ret i32 %matches
flags:
  ; Of the array's own flags (aligned, writeable) the row names those that must be set.
  %flags.at = getelementptr i8, ptr %arg, i64 $object_array_flags
  %set = load i32, ptr %flags.at
  %required.64 = call i64 @row_entry(ptr %row, i64 $row_bits)
  %required = trunc i64 %required.64 to i32
  %common = and i32 %set, %required
  %all = icmp eq i32 %common, %required
  br i1 %all, label %data, label %fail
data:
  %pointer = call ptr @table_entry(ptr %arg, i64 $object_array_data)
  %address = ptrtoint ptr %pointer to i64
  %result = call i32 @store_pointer(ptr %row, i64 %address, ptr %slot)
  ret i32 %result
fail:
  ret i32 0
}

define internal i32 @attribute_is(ptr %object, ptr %name, ptr %expected) {
  %value = call ptr @PyObject_GetAttr(ptr %object, ptr %name)
  %missing = icmp eq ptr %value, null
  br i1 %missing, label %raise, label %compare
raise:
  ret i32 -1
compare:
  %same = icmp eq ptr %value, %expected
  call void @Py_DecRef(ptr %value)
  %result = zext i1 %same to i32
  ret i32 %result
}

; An object with `dtype` and `data_ptr()`, of the recorded type, on the CPU if it can say so.
define internal i32 @guard_tensor(ptr %table, ptr %row, ptr %arg, ptr %slot) {
  %type = call ptr @table_entry(ptr %row, i64 $row_type)
  %exact = call i1 @type_is(ptr %arg, ptr %type)
  br i1 %exact, label %dtype, label %fail
dtype:
  %dtype.name = call ptr @table_entry(ptr %table, i64 $table_dtype_name)
  %recorded = call ptr @table_entry(ptr %row, i64 $row_object)
  %same = call i32 @attribute_is(ptr %arg, ptr %dtype.name, ptr %recorded)
  %is.same = icmp eq i32 %same, 1
  br i1 %is.same, label %device, label %leave.dtype
leave.dtype:
  ret i32 %same
device:
  %ask = call i1 @has_flag(ptr %row, i32 $flag_check_is_cpu)
  br i1 %ask, label %is.cpu, label %data
is.cpu:
  %cpu.name = call ptr @table_entry(ptr %table, i64 $table_is_cpu_name)
  %true = call ptr @table_entry(ptr %table, i64 $table_true)
  %here = call i32 @attribute_is(ptr %arg, ptr %cpu.name, ptr %true)
  %is.here = icmp eq i32 %here, 1
  br i1 %is.here, label %data, label %leave.device
leave.device:
  ret i32 %here
data:
  %result = call i32 @store_data_ptr(ptr %table, ptr %row, ptr %arg, ptr %slot)
  ret i32 %result
fail:
  ret i32 0
}

; An object with `dtype`, `get_device()` and `data_ptr()`, of the recorded type, on the device
; whose number the row names.
define internal i32 @guard_device_tensor(ptr %table, ptr %row, ptr %arg, ptr %slot) {
  %type = call ptr @table_entry(ptr %row, i64 $row_type)
  %exact = call i1 @type_is(ptr %arg, ptr %type)
  br i1 %exact, label %dtype, label %fail
dtype:
  %dtype.name = call ptr @table_entry(ptr %table, i64 $table_dtype_name)
  %recorded = call ptr @table_entry(ptr %row, i64 $row_object)
  %same = call i32 @attribute_is(ptr %arg, ptr %dtype.name, ptr %recorded)
  %is.same = icmp eq i32 %same, 1
  br i1 %is.same, label %device, label %leave
leave:
  ret i32 %same
device:
  %device.name = call ptr @table_entry(ptr %table, i64 $table_get_device_name)
  %number = call ptr @call_method(ptr %device.name, ptr %arg)
  %raised = icmp eq ptr %number, null
  br i1 %raised, label %raise, label %compare
compare:
  ; An object that is no int gives -1 and an exception, which is the slow path's to find again.
  %index = call i64 @PyLong_AsLongLong(ptr %number)
  call void @Py_DecRef(ptr %number)
  %wanted = call i64 @row_entry(ptr %row, i64 $row_lower)
  %here = icmp eq i64 %index, %wanted
  br i1 %here, label %data, label %elsewhere
elsewhere:
  call void @PyErr_Clear()
  ret i32 0
data:
  %result = call i32 @store_data_ptr(ptr %table, ptr %row, ptr %arg, ptr %slot)
  ret i32 %result
fail:
  ret i32 0
raise:
  ret i32 -1
}

define internal ptr @call_method(ptr %name, ptr %object) {
  ; The callee may use the word before the arguments (the high bit of the count says so).
  %arguments = alloca [2 x ptr]
  %first = getelementptr ptr, ptr %arguments, i64 1
  store ptr %object, ptr %first
  %value = call ptr @PyObject_VectorcallMethod(ptr %name, ptr %first,
                                              i64 -9223372036854775807, ptr null)
  ret ptr %value
}

define internal i32 @store_data_ptr(ptr %table, ptr %row, ptr %arg, ptr %slot) {
  %name = call ptr @table_entry(ptr %table, i64 $table_data_ptr_name)
  %number = call ptr @call_method(ptr %name, ptr %arg)
  %result = call i32 @store_address(ptr %row, ptr %number, ptr %slot)
  ret i32 %result
}

; Store the address that an int holds, and drop the int; null stands for an exception.
define internal i32 @store_address(ptr %row, ptr %number, ptr %slot) {
  %raised = icmp eq ptr %number, null
  br i1 %raised, label %raise, label %convert
convert:
  %pointer = call ptr @PyLong_AsVoidPtr(ptr %number)
  call void @Py_DecRef(ptr %number)
  %zero = icmp eq ptr %pointer, null
  br i1 %zero, label %error, label %store
error:
  %set = call ptr @PyErr_Occurred()
  %clean = icmp eq ptr %set, null
  br i1 %clean, label %store, label %raise
store:
  %address = ptrtoint ptr %pointer to i64
  %result = call i32 @store_pointer(ptr %row, i64 %address, ptr %slot)
  ret i32 %result
raise:
  ret i32 -1
}

; What the C function behind an attribute gives: a new reference, or null with an exception.
define internal ptr @access(ptr %accessors, i64 %offset, ptr %object) alwaysinline {
  %at = getelementptr i8, ptr %accessors, i64 %offset
  %function = load ptr, ptr %at
  %argument.at = getelementptr ptr, ptr %at, i64 1
  %argument = load ptr, ptr %argument.at
  %value = call ptr %function(ptr %object, ptr %argument)
  ret ptr %value
}

define internal i32 @access_is(ptr %accessors, i64 %offset, ptr %object, ptr %expected) {
  %value = call ptr @access(ptr %accessors, i64 %offset, ptr %object)
  %missing = icmp eq ptr %value, null
  br i1 %missing, label %raise, label %compare
raise:
  ret i32 -1
compare:
  %same = icmp eq ptr %value, %expected
  call void @Py_DecRef(ptr %value)
  %result = zext i1 %same to i32
  ret i32 %result
}

; As above for a type whose accessors are known: nothing is looked up by name.
define internal i32 @guard_typed_tensor(ptr %row, ptr %arg, ptr %slot) {
  %type = call ptr @table_entry(ptr %row, i64 $row_type)
  %exact = call i1 @type_is(ptr %arg, ptr %type)
  br i1 %exact, label %dtype, label %fail
dtype:
  %accessors = call ptr @table_entry(ptr %row, i64 $row_upper)
  %recorded = call ptr @table_entry(ptr %row, i64 $row_object)
  %same = call i32 @access_is(ptr %accessors, i64 $accessor_dtype, ptr %arg, ptr %recorded)
  %is.same = icmp eq i32 %same, 1
  br i1 %is.same, label %place, label %leave.dtype
leave.dtype:
  ret i32 %same
place:
  %expected = call ptr @table_entry(ptr %row, i64 $row_lower)
  %here = call i32 @access_is(ptr %accessors, i64 $accessor_place, ptr %arg, ptr %expected)
  %is.here = icmp eq i32 %here, 1
  br i1 %is.here, label %data, label %leave.place
leave.place:
  ret i32 %here
data:
  %number = call ptr @access(ptr %accessors, i64 $accessor_data_ptr, ptr %arg)
  %result = call i32 @store_address(ptr %row, ptr %number, ptr %slot)
  ret i32 %result
fail:
  ret i32 0
}

define internal i32 @guard_integer(ptr %table, ptr %row, ptr %arg, ptr %slot) {
  %overflow.at = alloca i32
  %int = call ptr @table_entry(ptr %table, i64 $table_int_type)
  %exact = call i1 @type_is(ptr %arg, ptr %int)
  br i1 %exact, label %convert, label %fail
convert:
  %value = call i64 @PyLong_AsLongLongAndOverflow(ptr %arg, ptr %overflow.at)
  store i64 %value, ptr %slot
  %overflow = load i32, ptr %overflow.at
  %fits = icmp eq i32 %overflow, 0
  %unsigned = call i1 @has_flag(ptr %row, i32 $flag_is_unsigned)
  br i1 %fits, label %signed, label %large
large:
  ; Only a row for unsigned 64-bit values takes what a signed one cannot hold.
  %positive = icmp sgt i32 %overflow, 0
  %try = and i1 %positive, %unsigned
  br i1 %try, label %convert.unsigned, label %fail
convert.unsigned:
  %wide = call i64 @PyLong_AsUnsignedLongLong(ptr %arg)
  store i64 %wide, ptr %slot
  ; Every value here is at least 2^63, so all ones is either 2^64-1 or an error.
  %suspect = icmp eq i64 %wide, -1
  br i1 %suspect, label %error, label %class
error:
  %set = call ptr @PyErr_Occurred()
  %clean = icmp eq ptr %set, null
  br i1 %clean, label %class, label %clear
clear:
  call void @PyErr_Clear()
  ret i32 0
signed:
  br i1 %unsigned, label %fail, label %range
range:
  %lower = call i64 @row_entry(ptr %row, i64 $row_lower)
  %upper = call i64 @row_entry(ptr %row, i64 $row_upper)
  %above = icmp sge i64 %value, %lower
  %below = icmp sle i64 %value, %upper
  %inside = and i1 %above, %below
  %outside.i32 = call i1 @has_flag(ptr %row, i32 $flag_outside_i32)
  %narrow = trunc i64 %value to i32
  %again = sext i32 %narrow to i64
  %is.i32 = icmp eq i64 %again, %value
  %excluded = and i1 %outside.i32, %is.i32
  %allowed = xor i1 %excluded, true
  %in.range = and i1 %inside, %allowed
  br i1 %in.range, label %class, label %fail
class:
  %stored = load i64, ptr %slot
  %result = call i32 @class_matches(ptr %row, i64 %stored)
  ret i32 %result
fail:
  ret i32 0
}

; The class of a value: 1 for one, 2 for a multiple of 16, 0 for the others.
define internal i32 @class_matches(ptr %row, i64 %value) {
  %checked = call i1 @has_flag(ptr %row, i32 $flag_check_class)
  br i1 %checked, label %check, label %holds
check:
  %is.one = icmp eq i64 %value, 1
  %low = and i64 %value, 15
  %is.multiple = icmp eq i64 %low, 0
  %rest = select i1 %is.multiple, i64 $class_multiple_of_16, i64 $class_other
  %class = select i1 %is.one, i64 $class_one, i64 %rest
  %wanted = call i64 @row_entry(ptr %row, i64 $row_bits)
  %same = icmp eq i64 %class, %wanted
  %result = zext i1 %same to i32
  ret i32 %result
holds:
  ret i32 1
}

define internal i32 @guard_float(ptr %table, ptr %row, ptr %arg, ptr %slot, i1 %is.single) {
  %float = call ptr @table_entry(ptr %table, i64 $table_float_type)
  %exact = call i1 @type_is(ptr %arg, ptr %float)
  br i1 %exact, label %convert, label %fail
convert:
  %value = call double @PyFloat_AsDouble(ptr %arg)
  br i1 %is.single, label %single, label %double
single:
  store i64 0, ptr %slot
  %narrow = fptrunc double %value to float
  store float %narrow, ptr %slot
  ret i32 1
double:
  store double %value, ptr %slot
  ret i32 1
fail:
  ret i32 0
}

define internal i32 @guard_boolean(ptr %table, ptr %row, ptr %arg, ptr %slot) {
  %true = call ptr @table_entry(ptr %table, i64 $table_true)
  %false = call ptr @table_entry(ptr %table, i64 $table_false)
  %is.true = icmp eq ptr %arg, %true
  %is.false = icmp eq ptr %arg, %false
  %value = zext i1 %is.true to i64
  store i64 %value, ptr %slot
  %either = or i1 %is.true, %is.false
  %result = zext i1 %either to i32
  ret i32 %result
}

define internal i32 @guard_identical(ptr %row, ptr %arg) {
  %recorded = call ptr @table_entry(ptr %row, i64 $row_object)
  %same = icmp eq ptr %recorded, %arg
  %result = zext i1 %same to i32
  ret i32 %result
}

; Same type and equal: True is not 1 here. A comparison that raises is the slow path's matter.
define internal i32 @guard_equal(ptr %row, ptr %arg) {
  %recorded = call ptr @table_entry(ptr %row, i64 $row_object)
  %identical = icmp eq ptr %recorded, %arg
  br i1 %identical, label %yes, label %types
types:
  %type = call ptr @table_entry(ptr %row, i64 $row_type)
  %same.type = call i1 @type_is(ptr %arg, ptr %type)
  br i1 %same.type, label %compare, label %fail
compare:
  %equal = call i32 @PyObject_RichCompareBool(ptr %arg, ptr %recorded, i32 2)
  %raised = icmp slt i32 %equal, 0
  br i1 %raised, label %clear, label %return
clear:
  call void @PyErr_Clear()
  br label %fail
return:
  ret i32 %equal
yes:
  ret i32 1
fail:
  ret i32 0
}

; A constant float by its bits: 0.0 and -0.0 are two constants, a NaN is itself.
define internal i32 @guard_same_float(ptr %table, ptr %row, ptr %arg) {
  %float = call ptr @table_entry(ptr %table, i64 $table_float_type)
  %exact = call i1 @type_is(ptr %arg, ptr %float)
  br i1 %exact, label %compare, label %fail
compare:
  %value = call double @PyFloat_AsDouble(ptr %arg)
  %bits = bitcast double %value to i64
  %wanted = call i64 @row_entry(ptr %row, i64 $row_bits)
  %same = icmp eq i64 %bits, %wanted
  %result = zext i1 %same to i32
  ret i32 %result
fail:
  ret i32 0
}

; An attribute that must equal what the row records: 1, 0, or -1 with an exception.
define internal i32 @attribute_equals(ptr %object, ptr %name, ptr %expected) {
  %value = call ptr @PyObject_GetAttr(ptr %object, ptr %name)
  %missing = icmp eq ptr %value, null
  br i1 %missing, label %raise, label %compare
raise:
  ret i32 -1
compare:
  %equal = call i32 @PyObject_RichCompareBool(ptr %value, ptr %expected, i32 2)
  call void @Py_DecRef(ptr %value)
  ret i32 %equal
}

; Store an attribute that is a tuple of `num` ints of 64 bits.
define internal i32 @store_ints(ptr %table, ptr %object, ptr %name, i64 %num, ptr %slots) {
entry:
  %overflow.at = alloca i32
  %tuple = call ptr @PyObject_GetAttr(ptr %object, ptr %name)
  %missing = icmp eq ptr %tuple, null
  br i1 %missing, label %raise, label %type
raise:
  ret i32 -1
type:
  %tuple.type = call ptr @table_entry(ptr %table, i64 $table_tuple_type)
  %int = call ptr @table_entry(ptr %table, i64 $table_int_type)
  %exact = call i1 @type_is(ptr %tuple, ptr %tuple.type)
  br i1 %exact, label %size, label %fail
size:
  %actual = call i64 @PyTuple_Size(ptr %tuple)
  %right = icmp eq i64 %actual, %num
  br i1 %right, label %next, label %fail
next:
  %i = phi i64 [0, %size], [%i.next, %convert]
  %more = icmp slt i64 %i, %num
  br i1 %more, label %item, label %done
item:
  %value = call ptr @PyTuple_GetItem(ptr %tuple, i64 %i)
  %is.int = call i1 @type_is(ptr %value, ptr %int)
  br i1 %is.int, label %convert, label %fail
convert:
  %word = call i64 @PyLong_AsLongLongAndOverflow(ptr %value, ptr %overflow.at)
  %at = getelementptr i64, ptr %slots, i64 %i
  store i64 %word, ptr %at
  %overflow = load i32, ptr %overflow.at
  %fits = icmp eq i32 %overflow, 0
  %i.next = add i64 %i, 1
  br i1 %fits, label %next, label %fail
done:
  call void @Py_DecRef(ptr %tuple)
  ret i32 1
fail:
  call void @Py_DecRef(ptr %tuple)
  ret i32 0
}

; A tensor descriptor: its block and padding as recorded, its array by the row that it holds.
define internal i32 @guard_descriptor(ptr %table, ptr %row, ptr %arg, ptr %slots) {
  %type = call ptr @table_entry(ptr %row, i64 $row_type)
  %exact = call i1 @type_is(ptr %arg, ptr %type)
  br i1 %exact, label %block, label %fail
block:
  %block.name = call ptr @table_entry(ptr %table, i64 $table_block_shape_name)
  %block.shape = call ptr @table_entry(ptr %row, i64 $row_object)
  %r.block = call i32 @attribute_equals(ptr %arg, ptr %block.name, ptr %block.shape)
  %same.block = icmp eq i32 %r.block, 1
  br i1 %same.block, label %padding, label %leave.block
leave.block:
  ret i32 %r.block
padding:
  %padding.name = call ptr @table_entry(ptr %table, i64 $table_padding_name)
  %wanted.padding = call ptr @table_entry(ptr %row, i64 $row_lower)
  %r.padding = call i32 @attribute_equals(ptr %arg, ptr %padding.name, ptr %wanted.padding)
  %same.padding = icmp eq i32 %r.padding, 1
  br i1 %same.padding, label %base, label %leave.padding
leave.padding:
  ret i32 %r.padding
base:
  %base.name = call ptr @table_entry(ptr %table, i64 $table_base_name)
  %array = call ptr @PyObject_GetAttr(ptr %arg, ptr %base.name)
  %no.array = icmp eq ptr %array, null
  br i1 %no.array, label %raise, label %check
check:
  %base.row = call ptr @table_entry(ptr %row, i64 $row_upper)
  %r.base = call i32 @check_row(ptr %table, ptr %base.row, ptr %array, ptr %slots)
  call void @Py_DecRef(ptr %array)
  %good.base = icmp eq i32 %r.base, 1
  br i1 %good.base, label %shape, label %leave.base
leave.base:
  ret i32 %r.base
shape:
  %rank = call i64 @row_entry(ptr %row, i64 $row_bits)
  %first = call i64 @row_entry(ptr %row, i64 $row_slot)
  %second = add i64 %first, 1
  %extents = getelementptr i64, ptr %slots, i64 %second
  %shape.name = call ptr @table_entry(ptr %table, i64 $table_shape_name)
  %r.shape = call i32 @store_ints(ptr %table, ptr %arg, ptr %shape.name, i64 %rank, ptr %extents)
  %good.shape = icmp eq i32 %r.shape, 1
  br i1 %good.shape, label %strides, label %leave.shape
leave.shape:
  ret i32 %r.shape
strides:
  %steps = getelementptr i64, ptr %extents, i64 %rank
  %strides.name = call ptr @table_entry(ptr %table, i64 $table_strides_name)
  %r.strides = call i32 @store_ints(ptr %table, ptr %arg, ptr %strides.name, i64 %rank, ptr %steps)
  ret i32 %r.strides
raise:
  ret i32 -1
fail:
  ret i32 0
}

define internal i32 @check_row(ptr %table, ptr %row, ptr %arg, ptr %slots) {
entry:
  %index = call i64 @row_entry(ptr %row, i64 $row_slot)
  %slot = getelementptr i64, ptr %slots, i64 %index
  %kind = load i32, ptr %row
  switch i32 %kind, label %fail [
    i32 $kind_ignored, label %ignored
    i32 $kind_numpy, label %numpy
    i32 $kind_tensor, label %tensor
    i32 $kind_device_tensor, label %device.tensor
    i32 $kind_typed_tensor, label %typed.tensor
    i32 $kind_fixed, label %fixed
    i32 $kind_descriptor, label %descriptor
    i32 $kind_integer, label %integer
    i32 $kind_float32, label %float32
    i32 $kind_float64, label %float64
    i32 $kind_boolean, label %boolean
    i32 $kind_identical, label %identical
    i32 $kind_equal, label %equal
    i32 $kind_same_float, label %same.float
  ]
ignored:
  ret i32 1
numpy:
  %r.numpy = call i32 @guard_numpy(ptr %table, ptr %row, ptr %arg, ptr %slot)
  ret i32 %r.numpy
tensor:
  %r.tensor = call i32 @guard_tensor(ptr %table, ptr %row, ptr %arg, ptr %slot)
  ret i32 %r.tensor
device.tensor:
  %r.device = call i32 @guard_device_tensor(ptr %table, ptr %row, ptr %arg, ptr %slot)
  ret i32 %r.device
descriptor:
  %r.descriptor = call i32 @guard_descriptor(ptr %table, ptr %row, ptr %arg, ptr %slots)
  ret i32 %r.descriptor
fixed:
  %word = call i64 @row_entry(ptr %row, i64 $row_bits)
  store i64 %word, ptr %slot
  ret i32 1
typed.tensor:
  %r.typed = call i32 @guard_typed_tensor(ptr %row, ptr %arg, ptr %slot)
  ret i32 %r.typed
integer:
  %r.integer = call i32 @guard_integer(ptr %table, ptr %row, ptr %arg, ptr %slot)
  ret i32 %r.integer
float32:
  %r.float32 = call i32 @guard_float(ptr %table, ptr %row, ptr %arg, ptr %slot, i1 true)
  ret i32 %r.float32
float64:
  %r.float64 = call i32 @guard_float(ptr %table, ptr %row, ptr %arg, ptr %slot, i1 false)
  ret i32 %r.float64
boolean:
  %r.boolean = call i32 @guard_boolean(ptr %table, ptr %row, ptr %arg, ptr %slot)
  ret i32 %r.boolean
identical:
  %r.identical = call i32 @guard_identical(ptr %row, ptr %arg)
  ret i32 %r.identical
equal:
  %r.equal = call i32 @guard_equal(ptr %row, ptr %arg)
  ret i32 %r.equal
same.float:
  %r.same.float = call i32 @guard_same_float(ptr %table, ptr %row, ptr %arg)
  ret i32 %r.same.float
fail:
  ret i32 0
}
"""

_WALK = r"""
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
  %offset = mul i64 %i, $warm_entry_bytes
  %from = add i64 %offset, $warm_entries
  %way = getelementptr i8, ptr %state, i64 %from
  %wanted = call i64 @row_entry(ptr %way, i64 $way_num_args)
  %same.count = icmp eq i64 %wanted, %num.args
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
  ; While the launch runs without the GIL another thread may change the state: hold on to what
  ; this launch uses.
  %kernel = call ptr @new_reference(ptr %way, i64 $way_kernel)
  %owner = call ptr @new_reference(ptr %way, i64 $way_owner)
  %launch = call ptr @table_entry(ptr %table, i64 $table_run)
  %sentinel = call ptr @table_entry(ptr %table, i64 $table_sentinel)
  %result = call ptr %launch(ptr %table, ptr %args, ptr %extents)
  call void @Py_DecRef(ptr %owner)
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

# What every target's launcher module exports.
LAUNCHER_SYMBOLS = ("launch", "run_table", "warm")

PYTHON_EXTERNALS = tuple(
    line.split("@")[1].split("(")[0]
    for line in _DECLARATIONS.splitlines()
    if line.startswith("declare")
)


def launcher_text(target: str, constants: Mapping[str, str]) -> str:
    """The LLVM text of a launcher: guards, `launch` and `warm`, and a target's `run_table`.

    `@run_table(table, args, grid)` checks the rows and runs the grid; it returns what `launch`
    does. `constants` are substituted in all of it.
    """
    groups = {
        "table": TABLE_FIELDS,
        "row": ROW_FIELDS,
        "kind": KINDS,
        "flag": FLAGS,
        "class": INTEGER_CLASSES,
        "object": OBJECT_FIELDS,
        "accessor": ACCESSOR_FIELDS,
        "warm": WARM_FIELDS,
        "way": WAY_FIELDS,
    }
    offsets = {
        f"{group}_{name}": str(value)
        for group, fields in groups.items()
        for name, value in fields.items()
    }
    sizes = {
        "table_header_bytes": str(TABLE_HEADER_BYTES),
        "row_bytes": str(ROW_BYTES),
        "warm_entry_bytes": str(WAY_BYTES),
    }
    text = Template(_DECLARATIONS + _GUARDS + _WALK + target + _LAUNCH)
    return text.substitute({**offsets, **sizes, **constants})
