"""The guards of plain values in a native launch as LLVM text, and the choice between all guards.

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

VALUE_GUARDS = r"""
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

; Whether a value is of the class of a row: a multiple of one power of two, whose other bits stand
; in the low half of `bits`, and of none that is larger, whose bits stand in the high half.
define internal i32 @class_matches(ptr %row, i64 %value) {
  %checked = call i1 @has_flag(ptr %row, i32 $flag_check_class)
  br i1 %checked, label %check, label %holds
check:
  %masks = call i64 @row_entry(ptr %row, i64 $row_bits)
  %below = and i64 %masks, 4294967295
  %below.set = and i64 %value, %below
  %is.multiple = icmp eq i64 %below.set, 0
  %larger = lshr i64 %masks, 32
  %larger.set = and i64 %value, %larger
  %not.larger = icmp ne i64 %larger.set, 0
  %is.largest = icmp eq i64 %larger, 0
  %of.none.larger = or i1 %not.larger, %is.largest
  %of.class = and i1 %is.multiple, %of.none.larger
  %is.one = icmp eq i64 %value, 1
  %one.excluded = call i1 @has_flag(ptr %row, i32 $flag_excludes_one)
  %excluded = and i1 %is.one, %one.excluded
  %taken = xor i1 %excluded, true
  %matches = and i1 %of.class, %taken
  %result = zext i1 %matches to i32
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

; None, or an object of the recorded type whose attribute is false: a chain without hooks. Where the
; attribute's place is known and has an empty list, nothing is looked up by name.
define internal i32 @guard_empty(ptr %table, ptr %row, ptr %arg) {
  %none = call ptr @table_entry(ptr %table, i64 $table_none)
  %is.none = icmp eq ptr %arg, %none
  br i1 %is.none, label %yes, label %type
type:
  %wanted = call ptr @table_entry(ptr %row, i64 $row_type)
  %exact = call i1 @type_is(ptr %arg, ptr %wanted)
  br i1 %exact, label %place, label %fail
place:
  %offset = call i64 @row_entry(ptr %row, i64 $row_lower)
  %is.known = icmp ne i64 %offset, 0
  br i1 %is.known, label %read, label %ask
read:
  %held = call ptr @table_entry(ptr %arg, i64 %offset)
  %is.unset = icmp eq ptr %held, null
  br i1 %is.unset, label %ask, label %list
list:
  %list.type = call ptr @table_entry(ptr %table, i64 $table_list_type)
  %is.list = call i1 @type_is(ptr %held, ptr %list.type)
  br i1 %is.list, label %count, label %ask
count:
  %size = call i64 @row_entry(ptr %held, i64 $object_size)
  %is.empty = icmp eq i64 %size, 0
  %answer = zext i1 %is.empty to i32
  ret i32 %answer
ask:
  %name = call ptr @table_entry(ptr %row, i64 $row_object)
  %value = call ptr @PyObject_GetAttr(ptr %arg, ptr %name)
  %missing = icmp eq ptr %value, null
  br i1 %missing, label %raise, label %truth
truth:
  %true = call i32 @PyObject_IsTrue(ptr %value)
  call void @Py_DecRef(ptr %value)
  switch i32 %true, label %fail [
    i32 0, label %yes
    i32 -1, label %raise
  ]
yes:
  ret i32 1
fail:
  ret i32 0
raise:
  ret i32 -1
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
    i32 $kind_empty, label %empty
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
empty:
  %r.empty = call i32 @guard_empty(ptr %table, ptr %row, ptr %arg)
  ret i32 %r.empty
fail:
  ret i32 0
}
"""
