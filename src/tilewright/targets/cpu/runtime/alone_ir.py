"""Launches that run their atomics alone, as LLVM text.

An atomic costs 20 to 30 cycles also where nobody contends, and holds one number. A launch that no
other code of the process runs atomics beside, on one thread, needs none: it reads, adds and writes
vectors (`nests/updates.py`). So a launch with atomics first says how it runs them, `alone` or
`beside` others. One that comes while another is alone waits until that one ends; it is short of
waiting itself, for a kernel that may wait for somebody is never alone (`schedule/control.py`).

One thread alone may be faster than many with atomics, and may not: the record keeps the time of a
program in either form, and the shorter launch is chosen. While the time alone is not known, a small
part of a launch on many threads runs alone first.

A launch inside of a launch, out of a signal's handler, belongs to the thread that is alone: it goes
on beside what stands still meanwhile, between two programs or at a look for interrupts.
"""

from __future__ import annotations

ALONE = r"""
@atomics.alone = internal global i32 0     ; 1: one launch runs its atomics alone
@atomics.owner = internal global i64 0     ; the thread of that launch
@atomics.beside = internal global i32 0    ; how many launches run atomics beside others
@atomics.waiting = internal global i32 0   ; how many sleep until `alone` is 0

; Seq_cst against @enter_beside, which counts itself and then reads `alone`: of two that come at
; once at least one sees the other. A thread without a number, on systems of which no more is known,
; is never alone.
define internal i1 @enter_alone() {
entry:
  %thread = call i64 @current_pthread()
  %unknown = icmp eq i64 %thread, 0
  br i1 %unknown, label %no, label %try
try:
  %was = atomicrmw xchg ptr @atomics.alone, i32 1 seq_cst
  %free = icmp eq i32 %was, 0
  br i1 %free, label %look, label %no
look:
  %others = load atomic i32, ptr @atomics.beside seq_cst, align 4
  %none = icmp eq i32 %others, 0
  br i1 %none, label %yes, label %back
yes:
  store atomic i64 %thread, ptr @atomics.owner seq_cst, align 8
  ret i1 true
back:
  call void @leave_alone()
  br label %no
no:
  ret i1 false
}

define internal void @leave_alone() {
entry:
  store atomic i64 0, ptr @atomics.owner seq_cst, align 8
  store atomic i32 0, ptr @atomics.alone seq_cst, align 4
  %waiting = load atomic i32, ptr @atomics.waiting seq_cst, align 4
  %any = icmp ne i32 %waiting, 0
  br i1 %any, label %wake, label %done
wake:
  call void @wake_word(ptr @atomics.alone, i32 -1)
  br label %done
done:
  ret void
}

define internal void @enter_beside() {
entry:
  br label %try
try:
  %before = atomicrmw add ptr @atomics.beside, i32 1 seq_cst
  %alone = load atomic i32, ptr @atomics.alone seq_cst, align 4
  %free = icmp eq i32 %alone, 0
  br i1 %free, label %in, label %whose
whose:
  %owner = load atomic i64, ptr @atomics.owner seq_cst, align 8
  %thread = call i64 @current_pthread()
  %mine = icmp eq i64 %owner, %thread
  br i1 %mine, label %in, label %wait
wait:
  call void @leave_beside()
  call void @await_last_alone()
  br label %try
in:
  ret void
}

define internal void @leave_beside() {
  %was = atomicrmw sub ptr @atomics.beside, i32 1 seq_cst
  ret void
}

; First spinning, then asleep.
define internal void @await_last_alone() {
entry:
  br label %spin
spin:
  %i = phi i64 [0, %entry], [%i.next, %again]
  %seen = load atomic i32, ptr @atomics.alone seq_cst, align 4
  %over = icmp eq i32 %seen, 0
  br i1 %over, label %done, label %again
again:
  call void @pause()
  %i.next = add i64 %i, 1
  %patient = icmp slt i64 %i.next, 1000
  br i1 %patient, label %spin, label %sleep
sleep:
  %before = atomicrmw add ptr @atomics.waiting, i32 1 seq_cst
  call void @wait_word_briefly(ptr @atomics.alone, i32 1)
  %after = atomicrmw sub ptr @atomics.waiting, i32 1 seq_cst
  %still = load atomic i32, ptr @atomics.alone seq_cst, align 4
  %ended = icmp eq i32 %still, 0
  br i1 %ended, label %done, label %sleep
done:
  ret void
}

; In a forked child nobody else runs.
define internal void @forget_atomics() {
  store atomic i64 0, ptr @atomics.owner seq_cst, align 8
  store atomic i32 0, ptr @atomics.alone seq_cst, align 4
  store atomic i32 0, ptr @atomics.beside seq_cst, align 4
  store atomic i32 0, ptr @atomics.waiting seq_cst, align 4
  ret void
}

; How many of the first programs are to run alone: all, none, or a few to learn how long they take.
define internal i64 @choose_alone(ptr %record, i64 %programs, i64 %width) {
entry:
  %flags = call i64 @load_i64(ptr %record, i64 $record_flags)
  %bits = and i64 %flags, 5
  %may = icmp eq i64 %bits, 4
  br i1 %may, label %narrow, label %none
narrow:
  %one = icmp sle i64 %width, 1
  br i1 %one, label %all, label %compare
compare:
  %alone.at = getelementptr i8, ptr %record, i64 $record_alone_ns
  %alone = load atomic double, ptr %alone.at monotonic, align 8
  %unknown = fcmp olt double %alone, 0.0
  br i1 %unknown, label %probe, label %known
probe:
  %shares = mul i64 %width, $probe_share
  %part = udiv i64 %programs, %shares
  %empty = icmp eq i64 %part, 0
  %few = select i1 %empty, i64 1, i64 %part
  ret i64 %few
known:
  %each.at = getelementptr i8, ptr %record, i64 $record_program_ns
  %each = load atomic double, ptr %each.at monotonic, align 8
  %width.f = sitofp i64 %width to double
  %together = fmul double %alone, %width.f
  %shorter = fcmp olt double %together, %each
  br i1 %shorter, label %all, label %none
all:
  ret i64 %programs
none:
  ret i64 0
}

; Run the first programs alone, if they are worth it and nobody runs atomics; how many have run.
define internal i64 @run_alone(ptr %record, ptr %args, ptr %grid, i64 %programs, i64 %width,
                               ptr %context) {
entry:
  %count = call i64 @choose_alone(ptr %record, i64 %programs, i64 %width)
  %none = icmp eq i64 %count, 0
  br i1 %none, label %no, label %ask
ask:
  %granted = call i1 @enter_alone()
  br i1 %granted, label %run, label %no
run:
  %flag.at = getelementptr i8, ptr %context, i64 $context_is_alone
  store i64 1, ptr %flag.at
  %start = call i64 @now_ns()
  call void @watch_if_due(i64 %start, ptr %context)
  %kernel = call ptr @load_ptr(ptr %record, i64 $record_kernel)
  call void %kernel(ptr %args, ptr %grid, i64 0, i64 %count, ptr %context)
  %each.at = getelementptr i8, ptr %record, i64 $record_alone_ns
  call void @update_time(ptr %each.at, i64 %start, i64 %count)
  store i64 0, ptr %flag.at
  call void @leave_alone()
  ret i64 %count
no:
  ret i64 0
}
"""
