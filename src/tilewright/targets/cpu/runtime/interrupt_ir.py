"""How Ctrl-C stops a running grid, as LLVM text.

Python's own handler only notes a signal, for the interpreter's next step, which a thread inside of
a grid does not come to. So the pool puts a handler of its own before Python's: it counts. A launch
keeps the count that it has seen, and the code that runs programs compares the two words: between
chunks, between programs, and at the back edges of loops that may be long. Where they differ the
launching thread takes the interpreter's lock and lets Python handle the signal. An exception ends
the launch: its programs return at their next look. Without one the grid goes on as if nothing had
been.

Whoever calls `signal.signal` (a notebook does for each cell) puts Python's handler in the place of
ours. A launch looks after it, at most once in `WATCH_NS`: one that begins sooner after the launch
before and the call between them cannot be stopped. Where it puts ours back, a signal may just have
come that Python has noted and we have not counted: the launch asks Python once.
"""

from __future__ import annotations

# Chosen, not measured: a launch, a call of `signal.signal` and the start of a timer take longer. A
# look is a system call: 3 µs of these 100 on 2 busy cores of a virtual Zen 5.
WATCH_NS = 100_000

# A launch: where the count is, the one that it has seen, whether its programs shall return, and the
# function that they call when the two counts differ.
LAUNCH_FIELDS: dict[str, int] = {"signals": 0, "seen": 8, "cancelled": 12, "attend": 16}
# The kernel's last argument: the place of its scratch memory, of its status, and of its launch,
# whether nobody else runs atomics, and whether this thread has begun a program of the launch.
CONTEXT_FIELDS: dict[str, int] = {
    "scratch": 0,
    "status": 8,
    "index": 16,
    "launch": 24,
    "is_alone": 32,
    "has_begun": 40,
}

INTERRUPTS = r"""
%Launch = type { ptr, i32, i32, ptr }

@signals = internal global i32 0         ; interrupts that came so far
@acknowledged = internal global i32 0    ; those that the main thread has looked at
@main_thread = internal global i64 0
@attend.python = internal global ptr null   ; i32 (i32 is_main): 1 to stop; null without Python
@chained = internal global ptr null      ; the handler that was there before ours
@is_handling = internal global i32 0
@watched_ns = internal global i64 0

define internal void @on_interrupt(i32 %signal, ptr %info, ptr %machine) {
entry:
  ; A handler that hands on to its predecessor may come back to us.
  %was = atomicrmw xchg ptr @is_handling, i32 1 seq_cst
  %first = icmp eq i32 %was, 0
  br i1 %first, label %look, label %count
look:
  %next = load atomic ptr, ptr @chained acquire, align 8
  %some = icmp ne ptr %next, null
  br i1 %some, label %call, label %clear
call:
  call void %next(i32 %signal, ptr %info, ptr %machine)
  br label %clear
clear:
  store atomic i32 0, ptr @is_handling seq_cst, align 4
  br label %count
count:
  ; Not before Python has noted it: a launch that sees the count asks Python once.
  %before = atomicrmw add ptr @signals, i32 1 seq_cst
  ret void
}

; Have interrupts counted from here on: `attend` is called on a launching thread after one.
define internal void @watch_interrupts(i64 %main.thread, ptr %attend) {
  store i64 %main.thread, ptr @main_thread
  store atomic ptr %attend, ptr @attend.python release, align 8
  %changed = call i1 @handle_interrupts(ptr @on_interrupt, ptr @chained)
  ret void
}

define internal void @watch_if_due(i64 %now, ptr %context) {
entry:
  %last = load atomic i64, ptr @watched_ns monotonic, align 8
  %since = sub i64 %now, %last
  %due = icmp sgt i64 %since, $watch_ns
  br i1 %due, label %watch, label %done
watch:
  call void @watch_again(i64 %now, ptr %context)
  br label %done
done:
  ret void
}

define internal void @watch_again(i64 %now, ptr %context) noinline cold {
entry:
  store atomic i64 %now, ptr @watched_ns monotonic, align 8
  %attend = load atomic ptr, ptr @attend.python acquire, align 8
  %some = icmp ne ptr %attend, null
  br i1 %some, label %watch, label %done
watch:
  %changed = call i1 @handle_interrupts(ptr @on_interrupt, ptr @chained)
  %thread = call i64 @current_pthread()
  %main = load i64, ptr @main_thread
  %is.main = icmp eq i64 %thread, %main
  %uncounted = and i1 %changed, %is.main
  br i1 %uncounted, label %ask, label %done
ask:
  ; Not the count: the launch's next look asks Python.
  %launch = call ptr @load_ptr(ptr %context, i64 $context_launch)
  %seen.at = getelementptr %Launch, ptr %launch, i32 0, i32 1
  %count = load atomic i32, ptr @signals monotonic, align 4
  %other = sub i32 %count, 1
  store atomic i32 %other, ptr %seen.at monotonic, align 4
  br label %done
done:
  ret void
}

; The main thread attends to what came since it last did, also between two launches; another
; thread, which Python's handlers do not run on, only to what comes from here on.
define internal void @begin_launch(ptr %launch) {
entry:
  store ptr @signals, ptr %launch
  %thread = call i64 @current_pthread()
  %main = load i64, ptr @main_thread
  %is.main = icmp eq i64 %thread, %main
  %now = load atomic i32, ptr @signals seq_cst, align 4
  %before = load atomic i32, ptr @acknowledged monotonic, align 4
  %seen = select i1 %is.main, i32 %before, i32 %now
  %seen.at = getelementptr %Launch, ptr %launch, i32 0, i32 1
  store atomic i32 %seen, ptr %seen.at monotonic, align 4
  %cancelled.at = getelementptr %Launch, ptr %launch, i32 0, i32 2
  store atomic i32 0, ptr %cancelled.at monotonic, align 4
  %attend.at = getelementptr %Launch, ptr %launch, i32 0, i32 3
  store ptr @attend, ptr %attend.at
  ret void
}

define internal i32 @is_cancelled(ptr %launch) alwaysinline {
  %at = getelementptr %Launch, ptr %launch, i32 0, i32 2
  %word = load atomic i32, ptr %at acquire, align 4
  ret i32 %word
}

; Whether a launch shall stop; asked between chunks of programs.
define internal i1 @shall_stop(ptr %context) {
entry:
  %launch = call ptr @load_ptr(ptr %context, i64 $context_launch)
  %seen.at = getelementptr %Launch, ptr %launch, i32 0, i32 1
  %seen = load atomic i32, ptr %seen.at monotonic, align 4
  %now = load atomic i32, ptr @signals monotonic, align 4
  %differ = icmp ne i32 %seen, %now
  br i1 %differ, label %ask, label %go
ask:
  %answer = call i32 @attend(ptr %context)
  %stop = icmp ne i32 %answer, 0
  ret i1 %stop
go:
  ret i1 false
}

; An interrupt came: 1 to return from the program, 0 to go on. Workers wait for what the launching
; thread (index 0) finds out.
define internal i32 @attend(ptr %context) noinline cold {
entry:
  %launch = call ptr @load_ptr(ptr %context, i64 $context_launch)
  %cancelled = call i32 @is_cancelled(ptr %launch)
  %known = icmp ne i32 %cancelled, 0
  br i1 %known, label %stop, label %whose
whose:
  %index = call i64 @load_i64(ptr %context, i64 $context_index)
  %launches = icmp eq i64 %index, 0
  br i1 %launches, label %compare, label %go
compare:
  %seen.at = getelementptr %Launch, ptr %launch, i32 0, i32 1
  %seen = load atomic i32, ptr %seen.at monotonic, align 4
  %now = load atomic i32, ptr @signals seq_cst, align 4
  %differ = icmp ne i32 %seen, %now
  br i1 %differ, label %ask, label %go
ask:
  %attend = load atomic ptr, ptr @attend.python acquire, align 8
  %some = icmp ne ptr %attend, null
  br i1 %some, label %python, label %note
python:
  %thread = call i64 @current_pthread()
  %main = load i64, ptr @main_thread
  %is.main = icmp eq i64 %thread, %main
  %is.main.32 = zext i1 %is.main to i32
  %answer = call i32 %attend(i32 %is.main.32)
  br i1 %is.main, label %acknowledge, label %judge
acknowledge:
  store atomic i32 %now, ptr @acknowledged monotonic, align 4
  br label %judge
judge:
  %raised = icmp ne i32 %answer, 0
  br i1 %raised, label %cancel, label %note
cancel:
  %cancelled.at = getelementptr %Launch, ptr %launch, i32 0, i32 2
  store atomic i32 1, ptr %cancelled.at release, align 4
  br label %stop
note:
  store atomic i32 %now, ptr %seen.at monotonic, align 4
  br label %go
stop:
  ret i32 1
go:
  ret i32 0
}
"""
