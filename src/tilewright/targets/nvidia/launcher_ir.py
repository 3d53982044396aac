"""The GPU's guarded launch as LLVM text: one C function that serves every compiled kernel.

The guards are every target's (`codegen/launch_calls.py`). When all of them hold and the thread's
context is the one that the kernel was loaded in, the function asks for the current stream, notes
the launch in the history, and calls `cuLaunchKernelEx` without the GIL. Nothing is allocated.
"""

from __future__ import annotations

from tilewright.codegen.launch_calls import PYTHON_EXTERNALS, field_offsets, launcher_text
from tilewright.runtime.grid import MAX_TILES
from tilewright.targets.nvidia.launch_maps_ir import (
    HELD,
    MAP_BYTES,
    MAP_ENTRY_KEYS,
    MAP_FIELDS,
    MAPS,
    NUM_GRID_WORDS,
)

# Byte offsets in `LaunchConfig`, the driver's own structure (cuda.h, CUlaunchConfig).
CONFIG_FIELDS: dict[str, int] = {"grid": 0, "stream": 32}
# Source: cuda.h, CUlaunchConfig: 56 bytes.
CONFIG_WORDS = 7

# Byte offsets in `LaunchRecord`; it starts with a `LaunchConfig`.
RECORD_FIELDS: dict[str, int] = {
    "config": 0,
    "function": 56,
    "context": 64,
    "launch": 72,
    "get_context": 80,
    "num_params": 88,
    "grid_scale": 96,
    "stream_getter": 104,
    "stream_argument": 112,
    "stream_slot": 120,
    "history": 128,
    "maps": 136,
    "otherwise": 144,
    "most_programs": 152,
}

# The history: a count, then entries of a record's address, three extents, a count and slots.
HISTORY_FIELDS: dict[str, int] = {"count": 0, "entries": 8}
ENTRY_FIELDS: dict[str, int] = {"record": 0, "grid": 8, "num_slots": 20, "slots": 24}
# Chosen, not measured: a fault is told with the last sixteen launches, each in four lines of memory
# with as many arguments as fit.
NUM_ENTRIES = 16
NUM_ENTRY_SLOTS = 29
ENTRY_BYTES = 256

_STREAM = r"""
declare ptr @PyLong_FromLongLong(i64)

; Copy words of 8 bytes, one by one: this module links no library.
define internal void @copy_words(ptr %to, ptr %from, i64 %num) alwaysinline {
entry:
  br label %next
next:
  %i = phi i64 [0, %entry], [%i.next, %copy]
  %more = icmp ult i64 %i, %num
  br i1 %more, label %copy, label %done
copy:
  %source = getelementptr i64, ptr %from, i64 %i
  %target = getelementptr i64, ptr %to, i64 %i
  %word = load i64, ptr %source
  store i64 %word, ptr %target
  %i.next = add i64 %i, 1
  br label %next
done:
  ret void
}

; Whether this thread's context is the kernel's: its handle is good in no other.
define internal i1 @is_in_context(ptr %record) {
  %current.at = alloca ptr
  store ptr null, ptr %current.at
  %get = call ptr @table_entry(ptr %record, i64 $record_get_context)
  %code = call i32 %get(ptr %current.at)
  %current = load ptr, ptr %current.at
  %wanted = call ptr @table_entry(ptr %record, i64 $record_context)
  %same = icmp eq ptr %current, %wanted
  %good = icmp eq i32 %code, 0
  %result = and i1 %same, %good
  ret i1 %result
}

; Store the stream's handle: the argument of the launch, or what the array's package says, or 0.
define internal i1 @find_stream(ptr %record, ptr %slots, ptr %stream.at) {
  %index = call i64 @row_entry(ptr %record, i64 $record_stream_slot)
  %given = icmp sge i64 %index, 0
  br i1 %given, label %from.slot, label %ask
from.slot:
  %slot = getelementptr ptr, ptr %slots, i64 %index
  %handle = load ptr, ptr %slot
  store ptr %handle, ptr %stream.at
  ret i1 true
ask:
  store ptr null, ptr %stream.at
  %getter = call ptr @table_entry(ptr %record, i64 $record_stream_getter)
  %none = icmp eq ptr %getter, null
  br i1 %none, label %done, label %call
call:
  %argument = call ptr @table_entry(ptr %record, i64 $record_stream_argument)
  %number = call ptr @call_with(ptr %getter, ptr %argument)
  %raised = icmp eq ptr %number, null
  br i1 %raised, label %fail, label %convert
convert:
  %stream = call ptr @PyLong_AsVoidPtr(ptr %number)
  call void @Py_DecRef(ptr %number)
  store ptr %stream, ptr %stream.at
  %zero = icmp eq ptr %stream, null
  br i1 %zero, label %error, label %done
error:
  %set = call ptr @PyErr_Occurred()
  %clean = icmp eq ptr %set, null
  br i1 %clean, label %done, label %fail
done:
  ret i1 true
fail:
  ret i1 false
}

; Note a launch, so that a fault can be told with what was running.
define internal void @note_launch(ptr %record, ptr %grid, ptr %slots) {
  %history = call ptr @table_entry(ptr %record, i64 $record_history)
  %count = load i64, ptr %history
  %count.next = add i64 %count, 1
  store i64 %count.next, ptr %history
  %index = urem i64 %count, $num_entries
  %offset = mul i64 %index, $entry_bytes
  %from = add i64 %offset, $history_entries
  %at = getelementptr i8, ptr %history, i64 %from
  store ptr %record, ptr %at
  %grid.at = getelementptr i8, ptr %at, i64 $entry_grid
  %xy = load i64, ptr %grid, align 4
  store i64 %xy, ptr %grid.at, align 4
  %z.from = getelementptr i32, ptr %grid, i64 2
  %z.at = getelementptr i32, ptr %grid.at, i64 2
  %z = load i32, ptr %z.from
  store i32 %z, ptr %z.at
  %num = call i64 @row_entry(ptr %record, i64 $record_num_params)
  %fits = icmp ult i64 %num, $num_entry_slots
  %kept = select i1 %fits, i64 %num, i64 $num_entry_slots
  %kept.32 = trunc i64 %kept to i32
  %num.at = getelementptr i8, ptr %at, i64 $entry_num_slots
  store i32 %kept.32, ptr %num.at
  %slots.at = getelementptr i8, ptr %at, i64 $entry_slots
  call void @copy_words(ptr %slots.at, ptr %slots, i64 %kept)
  ret void
}

; Make of the grid that is asked for the one of a persistent kernel: at most so many programs,
; along one axis. False where their number is too large to count.
define internal i1 @limit_programs(ptr %record, ptr %config, ptr %grid, i64 %most) {
  %y.at = getelementptr i32, ptr %grid, i64 1
  %z.at = getelementptr i32, ptr %grid, i64 2
  %x.32 = load i32, ptr %grid
  %y.32 = load i32, ptr %y.at
  %z.32 = load i32, ptr %z.at
  %x = zext i32 %x.32 to i64
  %y = zext i32 %y.32 to i64
  %z = zext i32 %z.32 to i64
  ; Extents have 31 bits, so two of them do not overflow, and a product that passed one more.
  %xy = mul i64 %x, %y
  %few.xy = icmp ule i64 %xy, $max_tiles
  %xyz = mul i64 %xy, %z
  %few.xyz = icmp ule i64 %xyz, $max_tiles
  %few = and i1 %few.xy, %few.xyz
  %is.less = icmp ult i64 %xyz, %most
  %kept = select i1 %is.less, i64 %xyz, i64 %most
  %cluster = call i64 @row_entry(ptr %record, i64 $record_grid_scale)
  %started = mul i64 %kept, %cluster
  %kept.32 = trunc i64 %started to i32
  store i32 %kept.32, ptr %config
  %second = getelementptr i32, ptr %config, i64 1
  %third = getelementptr i32, ptr %config, i64 2
  store i32 1, ptr %second
  store i32 1, ptr %third
  ret i1 %few
}

; Fill a launch configuration: the kernel's own, with this grid and this stream.
define internal void @configure(ptr %record, ptr %config, ptr %grid, ptr %stream) {
  call void @copy_words(ptr %config, ptr %record, i64 $config_words)
  %x = load i32, ptr %grid
  %scale.64 = call i64 @row_entry(ptr %record, i64 $record_grid_scale)
  %scale = trunc i64 %scale.64 to i32
  %x.scaled = mul i32 %x, %scale
  store i32 %x.scaled, ptr %config
  %y.from = getelementptr i32, ptr %grid, i64 1
  %y.at = getelementptr i32, ptr %config, i64 1
  %yz = load i64, ptr %y.from, align 4
  store i64 %yz, ptr %y.at, align 4
  %stream.at = getelementptr i8, ptr %config, i64 $config_stream
  store ptr %stream, ptr %stream.at
  ret void
}

; Pointers to the slots, which is how the driver takes arguments.
define internal void @point_at(ptr %params, ptr %slots, i64 %num) {
entry:
  br label %next
next:
  %i = phi i64 [0, %entry], [%i.next, %store]
  %more = icmp ult i64 %i, %num
  br i1 %more, label %store, label %done
store:
  %slot = getelementptr i64, ptr %slots, i64 %i
  %at = getelementptr ptr, ptr %params, i64 %i
  store ptr %slot, ptr %at
  %i.next = add i64 %i, 1
  br label %next
done:
  ret void
}

; Pointers to the extents of the grid, which stand before the slots, the first one last.
define internal void @point_at_grid(ptr %params, ptr %slots) {
entry:
  br label %next
next:
  %i = phi i64 [0, %entry], [%i.next, %store]
  %more = icmp ult i64 %i, 3
  br i1 %more, label %store, label %done
store:
  %place = sub i64 -1, %i
  %extent = getelementptr i64, ptr %slots, i64 %place
  %at = getelementptr ptr, ptr %params, i64 %i
  store ptr %extent, ptr %at
  %i.next = add i64 %i, 1
  br label %next
done:
  ret void
}

"""

_RUN = r"""
; Check the arguments and the context, and start the grid on its stream.
define ptr @run_table(ptr %table, ptr %args, ptr %grid) {
entry:
  %config = alloca [$config_words x i64], align 8
  %stream.at = alloca ptr
  %num.slots = call i64 @row_entry(ptr %table, i64 $table_num_slots)
  %num.words = add i64 %num.slots, $num_grid_words
  %words = alloca i64, i64 %num.words, align 16
  %slots = getelementptr i64, ptr %words, i64 $num_grid_words
  %answer = call i32 @check_rows(ptr %table, ptr %args, ptr %slots)
  switch i32 %answer, label %raise [
    i32 0, label %slow
    i32 1, label %place
  ]
place:
  %first = call ptr @table_entry(ptr %table, i64 $table_record)
  %here = call i1 @is_in_context(ptr %first)
  br i1 %here, label %size, label %slow
size:
  ; The driver refuses a grid without programs, which is a launch of nothing here.
  %y.at = getelementptr i32, ptr %grid, i64 1
  %z.at = getelementptr i32, ptr %grid, i64 2
  %x = load i32, ptr %grid
  %y = load i32, ptr %y.at
  %z = load i32, ptr %z.at
  %no.x = icmp eq i32 %x, 0
  %no.y = icmp eq i32 %y, 0
  %no.z = icmp eq i32 %z, 0
  %no.xy = or i1 %no.x, %no.y
  %empty = or i1 %no.xy, %no.z
  br i1 %empty, label %good, label %stream
stream:
  %found = call i1 @find_stream(ptr %first, ptr %slots, ptr %stream.at)
  br i1 %found, label %run, label %raise
run:
  %record = phi ptr [%first, %stream], [%other, %otherwise]
  %handle = load ptr, ptr %stream.at
  %num.params = call i64 @row_entry(ptr %record, i64 $record_num_params)
  %maps = call ptr @table_entry(ptr %record, i64 $record_maps)
  %no.maps = icmp eq ptr %maps, null
  br i1 %no.maps, label %point, label %count.maps
count.maps:
  %some.maps = call i64 @row_entry(ptr %maps, i64 $map_num_maps)
  br label %point
point:
  %num.maps = phi i64 [0, %run], [%some.maps, %count.maps]
  call void @put_grid(ptr %slots, ptr %grid)
  %num.given = add i64 %num.params, %num.maps
  %num.all = add i64 %num.given, 3
  %params = alloca ptr, i64 %num.all, align 16
  %map.bytes = mul i64 %num.maps, $map_bytes
  %copies = alloca i8, i64 %map.bytes, align 64
  br i1 %no.maps, label %ready, label %find.maps
find.maps:
  %behind = getelementptr ptr, ptr %params, i64 %num.params
  %found.maps = call i32 @add_maps(ptr %maps, ptr %slots, ptr %copies, ptr %behind)
  switch i32 %found.maps, label %raise [
    i32 0, label %slow
    i32 1, label %ready
    i32 2, label %otherwise
  ]
otherwise:
  ; The kernel is not made for this launch: there may be one that is.
  %other = call ptr @table_entry(ptr %record, i64 $record_otherwise)
  %no.other = icmp eq ptr %other, null
  br i1 %no.other, label %slow, label %run
ready:
  call void @configure(ptr %record, ptr %config, ptr %grid, ptr %handle)
  %most = call i64 @row_entry(ptr %record, i64 $record_most_programs)
  %is.persistent = icmp ne i64 %most, 0
  br i1 %is.persistent, label %limit, label %start
limit:
  %is.few = call i1 @limit_programs(ptr %record, ptr %config, ptr %grid, i64 %most)
  %extents = getelementptr ptr, ptr %params, i64 %num.given
  call void @point_at_grid(ptr %extents, ptr %slots)
  br i1 %is.few, label %start, label %slow
start:
  call void @point_at(ptr %params, ptr %slots, i64 %num.params)
  call void @note_launch(ptr %record, ptr %grid, ptr %slots)
  %launch = call ptr @table_entry(ptr %record, i64 $record_launch)
  %function = call ptr @table_entry(ptr %record, i64 $record_function)
  %state = call ptr @PyEval_SaveThread()
  %code = call i32 %launch(ptr %config, ptr %function, ptr %params, ptr null)
  call void @PyEval_RestoreThread(ptr %state)
  %failed = icmp ne i32 %code, 0
  br i1 %failed, label %report, label %good
report:
  %code.64 = sext i32 %code to i64
  %number = call ptr @PyLong_FromLongLong(i64 %code.64)
  %no.number = icmp eq ptr %number, null
  br i1 %no.number, label %raise, label %handle.error
handle.error:
  %handler = call ptr @table_entry(ptr %table, i64 $table_handler)
  %value = call ptr @call_with(ptr %handler, ptr %number)
  call void @Py_DecRef(ptr %number)
  ret ptr %value
good:
  %none = call ptr @new_reference(ptr %table, i64 $table_none)
  ret ptr %none
slow:
  %sentinel = call ptr @new_reference(ptr %table, i64 $table_sentinel)
  ret ptr %sentinel
raise:
  ret ptr null
}
"""

LAUNCHER_EXTERNALS = (*PYTHON_EXTERNALS, "PyLong_FromLongLong")


def nvidia_launcher_text() -> str:
    """The LLVM text of the GPU's launcher."""
    offsets = field_offsets(
        config=CONFIG_FIELDS,
        record=RECORD_FIELDS,
        history=HISTORY_FIELDS,
        entry=ENTRY_FIELDS,
        map=MAP_FIELDS,
        held=HELD,
    )
    sizes = {
        "config_words": str(CONFIG_WORDS),
        "num_entries": str(NUM_ENTRIES),
        "num_entry_slots": str(NUM_ENTRY_SLOTS),
        "entry_bytes": str(ENTRY_BYTES),
        "map_entry_keys": str(MAP_ENTRY_KEYS),
        "map_bytes": str(MAP_BYTES),
        "num_grid_words": str(NUM_GRID_WORDS),
        "max_tiles": str(MAX_TILES),
    }
    return launcher_text(_STREAM + MAPS + _RUN, {**offsets, **sizes})
