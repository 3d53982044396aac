"""The guards of arrays and tensor descriptors in a native launch, as LLVM text.

An array is a NumPy array, whose fields are read where they lie, or an object with `dtype` and
`data_ptr()`: asked by name, or through the C functions of its type (`runtime/accessors.py`).
"""

from __future__ import annotations

ARRAY_GUARDS = r"""
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
  br i1 %clean, label %nothing, label %raise
nothing:
  ; No memory: whether there are elements is the slow path's to ask, unless the row had none too.
  %known = call i1 @has_flag(ptr %row, i32 $flag_may_be_null)
  br i1 %known, label %store, label %fail
fail:
  ret i32 0
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

; Whether a tensor's own words say all: it lies plainly in the CPU's memory, with the row's dtype.
define internal i1 @is_plain(ptr %row, ptr %accessors, ptr %arg) {
  %care = call i64 @row_entry(ptr %accessors, i64 $accessor_care)
  %has.words = icmp ne i64 %care, 0
  br i1 %has.words, label %look, label %unknown
look:
  %body.offset = call i64 @row_entry(ptr %accessors, i64 $accessor_body)
  %body = call ptr @table_entry(ptr %arg, i64 %body.offset)
  %keys.offset = call i64 @row_entry(ptr %accessors, i64 $accessor_keys)
  %keys = call i64 @row_entry(ptr %body, i64 %keys.offset)
  %bits = and i64 %keys, %care
  %plain = call i64 @row_entry(ptr %accessors, i64 $accessor_plain)
  %is.here = icmp eq i64 %bits, %plain
  %code.offset = call i64 @row_entry(ptr %accessors, i64 $accessor_dtype_code)
  %code.at = getelementptr i8, ptr %body, i64 %code.offset
  %code.16 = load i16, ptr %code.at
  %code = zext i16 %code.16 to i64
  %wanted = call i64 @row_entry(ptr %row, i64 $row_bits)
  %is.same = icmp eq i64 %code, %wanted
  %both = and i1 %is.here, %is.same
  ret i1 %both
unknown:
  ret i1 false
}

; As above for a type whose accessors are known: nothing is looked up by name.
define internal i32 @guard_typed_tensor(ptr %row, ptr %arg, ptr %slot) {
  %type = call ptr @table_entry(ptr %row, i64 $row_type)
  %exact = call i1 @type_is(ptr %arg, ptr %type)
  br i1 %exact, label %words, label %fail
words:
  %accessors = call ptr @table_entry(ptr %row, i64 $row_upper)
  %plain = call i1 @is_plain(ptr %row, ptr %accessors, ptr %arg)
  br i1 %plain, label %data, label %sign
sign:
  %mask = call i64 @row_entry(ptr %accessors, i64 $accessor_negated)
  %has.views = icmp ne i64 %mask, 0
  br i1 %has.views, label %look, label %dtype
look:
  ; A negated view is the slow path's to refuse.
  %body.offset = call i64 @row_entry(ptr %accessors, i64 $accessor_body)
  %body = call ptr @table_entry(ptr %arg, i64 %body.offset)
  %keys.offset = call i64 @row_entry(ptr %accessors, i64 $accessor_keys)
  %keys = call i64 @row_entry(ptr %body, i64 %keys.offset)
  %bit = and i64 %keys, %mask
  %is.plain = icmp eq i64 %bit, 0
  br i1 %is.plain, label %dtype, label %fail
dtype:
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
  %has.none = icmp eq ptr %number, null
  br i1 %has.none, label %hidden, label %store
hidden:
  ; Its type has addresses, and this one has not (sparse, say): the slow path's to find again.
  call void @PyErr_Clear()
  ret i32 0
store:
  %result = call i32 @store_address(ptr %row, ptr %number, ptr %slot)
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
"""
