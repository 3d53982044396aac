"""The part of the native runtime that knows the operating system, as LLVM text.

Waiting, waking, the clock, memory and threads stand behind ten small functions. Linux on
x86-64 and ARM has them all (futexes, pthreads); elsewhere no worker is ever created and every
launch runs on its own thread.
"""

from __future__ import annotations

from string import Template

# Source: what Linux gives a main thread (ulimit -s), so that kernels have the same on a worker.
STACK_BYTES = 8 << 20

# ILL, TRAP, ABRT, BUS, FPE, SEGV, SYS: faults must reach the thread that caused them.
# Source: signal(7).
_KEPT_SIGNALS = (4, 5, 6, 7, 8, 11, 31)

# Source: Linux, unistd.h of each architecture: system call numbers.
_FUTEX = {"x86_64": 202, "aarch64": 98}
_GETTID = {"x86_64": 186, "aarch64": 178}
_PAUSE = {
    "x86_64": ("declare void @llvm.x86.sse2.pause()", "call void @llvm.x86.sse2.pause()"),
    "aarch64": ("declare void @llvm.aarch64.isb(i32)", "call void @llvm.aarch64.isb(i32 15)"),
}

# The only part that knows the operating system: waiting, waking, clock, memory, threads.
_LINUX = r"""
declare i64 @syscall(i64, ...)
declare i32 @clock_gettime(i32, ptr)
declare i32 @posix_memalign(ptr, i64, i64)
declare void @free(ptr)
declare i32 @sched_getcpu()
declare i32 @sched_setaffinity(i32, i64, ptr)
declare i32 @pthread_sigmask(i32, ptr, ptr)
declare i64 @pthread_self()
declare i32 @sigaction(i32, ptr, ptr)
declare i32 @pthread_attr_init(ptr)
declare i32 @pthread_attr_setstacksize(ptr, i64)
declare i32 @pthread_attr_setdetachstate(ptr, i32)
declare i32 @pthread_attr_destroy(ptr)
declare i32 @pthread_create(ptr, ptr, ptr, ptr)
declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)
$pause_declaration

; Sleep while *word == expected, until a wake whose mask shares a bit with `mask`. May return
; early; the kernel compares and sleeps in one step, so a wake is never lost in between.
define internal void @wait_word(ptr %word, i32 %expected, i32 %mask) {  ; FUTEX_WAIT_BITSET
  call i64 (i64, ...) @syscall(i64 $futex, ptr %word, i32 137, i32 %expected, ptr null,
                               ptr null, i32 %mask)
  ret void
}

define internal void @wake_word(ptr %word, i32 %mask) {  ; FUTEX_WAKE_BITSET, all sleepers
  call i64 (i64, ...) @syscall(i64 $futex, ptr %word, i32 138, i32 2147483647, ptr null,
                               ptr null, i32 %mask)
  ret void
}

define internal void @pause() alwaysinline {
  $pause
  ret void
}

define internal i64 @now_ns() {  ; CLOCK_MONOTONIC
  %time = alloca [2 x i64]
  call i32 @clock_gettime(i32 1, ptr %time)
  %s = load i64, ptr %time
  %ns.at = getelementptr i8, ptr %time, i64 8
  %ns = load i64, ptr %ns.at
  %s.ns = mul i64 %s, 1000000000
  %now = add i64 %s.ns, %ns
  ret i64 %now
}

define internal ptr @allocate(i64 %bytes) {  ; page-aligned, null when there is no memory
  %out = alloca ptr
  %error = call i32 @posix_memalign(ptr %out, i64 4096, i64 %bytes)
  %failed = icmp ne i32 %error, 0
  %memory = load ptr, ptr %out
  %result = select i1 %failed, ptr null, ptr %memory
  ret ptr %result
}

define internal void @release(ptr %memory) {
  call void @free(ptr %memory)
  ret void
}

define internal i1 @create_thread(ptr %main, ptr %argument) {  ; detached; false on failure
  %thread = alloca i64
  %attributes = alloca [16 x i64]
  call i32 @pthread_attr_init(ptr %attributes)
  call i32 @pthread_attr_setstacksize(ptr %attributes, i64 $stack_bytes)
  call i32 @pthread_attr_setdetachstate(ptr %attributes, i32 1)
  %error = call i32 @pthread_create(ptr %thread, ptr %attributes, ptr %main, ptr %argument)
  call i32 @pthread_attr_destroy(ptr %attributes)
  %ok = icmp eq i32 %error, 0
  ret i1 %ok
}

; Put `handler` before what handles SIGINT, which it finds in `chained`; whether it was not there. A
; signal that is ignored or ends the process stays so.
define internal i1 @handle_interrupts(ptr %handler, ptr %chained) {
entry:
  %action = alloca [32 x i64]
  %error = call i32 @sigaction(i32 2, ptr null, ptr %action)
  %failed = icmp ne i32 %error, 0
  br i1 %failed, label %done, label %look
look:
  %now = load ptr, ptr %action
  %ours = icmp eq ptr %now, %handler
  %number = ptrtoint ptr %now to i64
  %is.special = icmp ule i64 %number, 1  ; SIG_DFL, SIG_IGN
  %keep = or i1 %ours, %is.special
  br i1 %keep, label %done, label %change
change:
  store atomic ptr %now, ptr %chained release, align 8
  store ptr %handler, ptr %action
  %result = call i32 @sigaction(i32 2, ptr %action, ptr null)
  br label %done
done:
  %changed = phi i1 [false, %entry], [false, %look], [true, %change]
  ret i1 %changed
}

define internal i64 @current_pthread() {  ; Python's number of the calling thread
  %thread = call i64 @pthread_self()
  ret i64 %thread
}

; As `wait_word`, for 50 ms at most.
define internal void @wait_word_briefly(ptr %word, i32 %expected) {  ; FUTEX_WAIT
  %time = alloca [2 x i64]
  store i64 0, ptr %time
  %ns.at = getelementptr i8, ptr %time, i64 8
  store i64 50000000, ptr %ns.at
  call i64 (i64, ...) @syscall(i64 $futex, ptr %word, i32 128, i32 %expected, ptr %time)
  ret void
}

; Signals belong to Python's main thread; a worker keeps only the synchronous faults.
define internal void @block_signals() {
  %mask = alloca [16 x i64]
  call void @llvm.memset.p0.i64(ptr %mask, i8 -1, i64 128, i1 false)
  store i64 $signal_mask, ptr %mask
  call i32 @pthread_sigmask(i32 0, ptr %mask, ptr null)
  ret void
}

define internal i64 @current_cpu() {
  %cpu = call i32 @sched_getcpu()
  %wide = sext i32 %cpu to i64
  ret i64 %wide
}

define internal i32 @current_thread() {  ; the kernel's number of it
  %number = call i64 (i64, ...) @syscall(i64 $gettid)
  %thread = trunc i64 %number to i32
  ret i32 %thread
}

; Thread 0 is the calling one. Failure is harmless: the thread runs where it ran.
define internal void @pin_thread(i32 %thread, i64 %cpu) {
  %mask = alloca [1024 x i8]
  call void @llvm.memset.p0.i64(ptr %mask, i8 0, i64 1024, i1 false)
  %byte.index = lshr i64 %cpu, 3
  %byte = getelementptr i8, ptr %mask, i64 %byte.index
  %bit = and i64 %cpu, 7
  %one = shl i64 1, %bit
  %value = trunc i64 %one to i8
  store i8 %value, ptr %byte
  call i32 @sched_setaffinity(i32 %thread, i64 1024, ptr %mask)
  ret void
}
"""

# Elsewhere no worker is ever created: every launch runs inline on its thread.
_SERIAL = r"""
declare ptr @malloc(i64)
declare void @free(ptr)

define internal void @wait_word(ptr %word, i32 %expected, i32 %mask) {
  ret void
}

define internal void @wake_word(ptr %word, i32 %mask) {
  ret void
}

define internal void @wait_word_briefly(ptr %word, i32 %expected) {
  ret void
}

define internal i1 @handle_interrupts(ptr %handler, ptr %chained) {
  ret i1 false
}

define internal i64 @current_pthread() {
  ret i64 0
}

define internal void @pause() {
  ret void
}

define internal i64 @now_ns() {
  ret i64 0
}

; The address that malloc returned is kept in the 8 bytes below the aligned block.
define internal ptr @allocate(i64 %bytes) {
  %padded = add i64 %bytes, 72
  %raw = call ptr @malloc(i64 %padded)
  %failed = icmp eq ptr %raw, null
  br i1 %failed, label %none, label %align
none:
  ret ptr null
align:
  %address = ptrtoint ptr %raw to i64
  %past = add i64 %address, 71
  %aligned = and i64 %past, -64
  %memory = inttoptr i64 %aligned to ptr
  %tag = getelementptr i8, ptr %memory, i64 -8
  store ptr %raw, ptr %tag
  ret ptr %memory
}

define internal void @release(ptr %memory) {
  %none = icmp eq ptr %memory, null
  br i1 %none, label %done, label %free
free:
  %tag = getelementptr i8, ptr %memory, i64 -8
  %raw = load ptr, ptr %tag
  call void @free(ptr %raw)
  ret void
done:
  ret void
}

define internal i1 @create_thread(ptr %main, ptr %argument) {
  ret i1 false
}

define internal void @block_signals() {
  ret void
}

define internal i64 @current_cpu() {
  ret i64 0
}

define internal i32 @current_thread() {
  ret i32 0
}

define internal void @pin_thread(i32 %thread, i64 %cpu) {
  ret void
}
"""

LINUX_EXTERNALS = (
    "syscall",
    "clock_gettime",
    "posix_memalign",
    "free",
    "sched_getcpu",
    "sched_setaffinity",
    "pthread_sigmask",
    "pthread_self",
    "sigaction",
    "pthread_attr_init",
    "pthread_attr_setstacksize",
    "pthread_attr_setdetachstate",
    "pthread_attr_destroy",
    "pthread_create",
    "malloc",
)


def platform_text(architecture: str, is_linux: bool) -> str:
    """The operating system's part for `architecture`; serial where threads are not known."""
    if not (is_linux and architecture in _FUTEX):
        return _SERIAL
    declaration, pause = _PAUSE[architecture]
    return Template(_LINUX).substitute(
        futex=_FUTEX[architecture],
        gettid=_GETTID[architecture],
        pause_declaration=declaration,
        pause=pause,
        stack_bytes=STACK_BYTES,
        # Signal n is bit n-1; written as the signed number that LLVM expects.
        signal_mask=-1 - sum(1 << (signal - 1) for signal in _KEPT_SIGNALS),
    )
