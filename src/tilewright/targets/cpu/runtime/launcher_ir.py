"""The CPU's guarded launch as LLVM text: one C function that serves every compiled kernel.

The guards are every target's (`codegen/launch_calls.py`). When all of them hold, the pool runs
the grid without the GIL.
"""

from __future__ import annotations

from collections.abc import Mapping

from tilewright.codegen.launch_calls import LAUNCHER_SYMBOLS, launcher_text

_LAUNCH = r"""
@grid.message = private constant [37 x i8] c"the grid has more than 2^63 programs\00"

define internal i32 @run_without_gil(ptr %record, ptr %slots, ptr %grid) {
  %state = call ptr @PyEval_SaveThread()
  %code = call i32 @pool_run(ptr %record, ptr %slots, ptr %grid)
  call void @PyEval_RestoreThread(ptr %state)
  ret i32 %code
}

; A signal came while the calling thread, without the GIL, ran a grid: 1 to stop, with an exception.
; Python's handlers run on the main thread; on another one `interrupt_handler` decides.
define i32 @attend_python(i32 %is.main) {
entry:
  %gil = call i32 @PyGILState_Ensure()
  %raised = call i32 @PyErr_CheckSignals()
  %is.set = icmp ne i32 %raised, 0
  br i1 %is.set, label %leave, label %whose
whose:
  %main = icmp ne i32 %is.main, 0
  br i1 %main, label %leave, label %ask
ask:
  %handler = load ptr, ptr @interrupt_handler
  %value = call ptr @PyObject_CallObject(ptr %handler, ptr null)
  %refused = icmp eq ptr %value, null
  br i1 %refused, label %leave, label %drop
drop:
  call void @Py_DecRef(ptr %value)
  br label %leave
leave:
  %stop = phi i1 [%is.set, %entry], [false, %whose], [true, %ask], [false, %drop]
  call void @PyGILState_Release(i32 %gil)
  %answer = zext i1 %stop to i32
  ret i32 %answer
}

@interrupt_handler = internal global ptr null

define void @handle_interrupts_of_python(i64 %main.thread, ptr %handler) {
  store ptr %handler, ptr @interrupt_handler
  call void @watch_interrupts(i64 %main.thread, ptr @attend_python)
  ret void
}

; What a launch returns: None, or null with the exception that the pool's code stands for.
define internal ptr @result_of(ptr %table, i32 %code) {
entry:
  switch i32 %code, label %good [
    i32 $out_of_memory, label %no.memory
    i32 $grid_too_large, label %too.large
    i32 $interrupted, label %interrupted
  ]
good:
  %none = call ptr @new_reference(ptr %table, i64 $table_none)
  ret ptr %none
no.memory:
  %null = call ptr @PyErr_NoMemory()
  ret ptr %null
interrupted:
  ret ptr null
too.large:
  %error = call ptr @table_entry(ptr %table, i64 $table_invalid_grid)
  call void @PyErr_SetString(ptr %error, ptr @grid.message)
  ret ptr null
}

; A kernel in checked mode leaves a non-zero word at its status address: call the handler,
; which raises or returns.
define internal ptr @report_status(ptr %table, ptr %record, ptr %result) {
entry:
  %status = call ptr @table_entry(ptr %record, i64 $record_status)
  %unchecked = icmp eq ptr %status, null
  %failed = icmp eq ptr %result, null
  %skip = or i1 %unchecked, %failed
  br i1 %skip, label %pass, label %look
look:
  %word = load i32, ptr %status
  %clean = icmp eq i32 %word, 0
  br i1 %clean, label %pass, label %handle
handle:
  call void @Py_DecRef(ptr %result)
  %handler = call ptr @table_entry(ptr %table, i64 $table_handler)
  %value = call ptr @PyObject_CallObject(ptr %handler, ptr null)
  ret ptr %value
pass:
  ret ptr %result
}

; Check the arguments, and run the grid on the pool.
define ptr @run_table(ptr %table, ptr %args, ptr %grid) {
entry:
  %num.slots = call i64 @row_entry(ptr %table, i64 $table_num_slots)
  %slots = alloca i64, i64 %num.slots, align 16
  %answer = call i32 @check_rows(ptr %table, ptr %args, ptr %slots)
  switch i32 %answer, label %raise [
    i32 0, label %slow
    i32 1, label %run
  ]
run:
  %record = call ptr @table_entry(ptr %table, i64 $table_record)
  %code = call i32 @run_without_gil(ptr %record, ptr %slots, ptr %grid)
  %value = call ptr @result_of(ptr %table, i32 %code)
  %result = call ptr @report_status(ptr %table, ptr %record, ptr %value)
  ret ptr %result
slow:
  %sentinel = call ptr @new_reference(ptr %table, i64 $table_sentinel)
  ret ptr %sentinel
raise:
  ret ptr null
}

; METH_FASTCALL: launch_raw(record_address, grid_x, grid_y, grid_z, slots: bytes), for the slow
; path: the arguments are checked and packed already. The sentinel says that the call is wrong.
define ptr @launch_raw(ptr %self, ptr %argv, i64 %argc) {
entry:
  %grid = alloca [3 x i32]
  %table = call ptr @table_of(ptr %self)
  %right = icmp eq i64 %argc, 5
  br i1 %right, label %read, label %wrong
read:
  %sizes = getelementptr ptr, ptr %argv, i64 1
  %grid.ok = call i1 @read_grid(ptr %table, ptr %sizes, ptr %grid)
  br i1 %grid.ok, label %unpack, label %wrong
unpack:
  %number = load ptr, ptr %argv
  %record = call ptr @PyLong_AsVoidPtr(ptr %number)
  %bytes.at = getelementptr ptr, ptr %argv, i64 4
  %bytes = load ptr, ptr %bytes.at
  %slots = call ptr @PyBytes_AsString(ptr %bytes)
  %no.record = icmp eq ptr %record, null
  %no.slots = icmp eq ptr %slots, null
  %bad = or i1 %no.record, %no.slots
  br i1 %bad, label %error, label %run
error:
  %set = call ptr @PyErr_Occurred()
  %clean = icmp eq ptr %set, null
  br i1 %clean, label %wrong, label %raise
run:
  %code = call i32 @run_without_gil(ptr %record, ptr %slots, ptr %grid)
  %result = call ptr @result_of(ptr %table, i32 %code)
  ret ptr %result
wrong:
  %sentinel = call ptr @new_reference(ptr %table, i64 $table_sentinel)
  ret ptr %sentinel
raise:
  ret ptr null
}
"""

CPU_LAUNCHER_SYMBOLS = (*LAUNCHER_SYMBOLS, "launch_raw", "handle_interrupts_of_python")


def cpu_launcher_text(constants_of_pool: Mapping[str, str]) -> str:
    """The LLVM text of the launcher; it calls `@pool_run` of the same module."""
    return launcher_text(_LAUNCH, constants_of_pool)
