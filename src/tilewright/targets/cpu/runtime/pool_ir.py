"""The native thread pool as LLVM text.

A job is one launch: the programs `0 … n-1` of a grid. The thread that launches is participant
0; workers are participants 1, 2, …. Every participant owns one contiguous range of the grid
(the same range on every launch, which keeps its data in its core's cache), claims chunks of
it in ascending order and, when it is empty, steals chunks from the ranges after its own.

**Progress.** A program may wait for a program with a *lower* linear id. It cannot hang:

1. Claims in a range ascend, and a claimed chunk is run at once, in ascending order.
2. Participant 0 owns the lowest range and steals from range 1, then 2, …, each until it is
   exhausted. So whenever participant 0 holds a chunk, every program below it is claimed.
3. Let p be the lowest unfinished program. If p is claimed, its chunk's owner has finished
   what lies below p, so it runs p, and p waits for nothing. If p is not claimed, participant
   0 holds no chunk above p (by 2) and none below (those are finished): it is between two
   chunks, and its next claim is p.

Nothing here asks whether a worker has started, so a worker that never gets a core delays
nobody. Nested and concurrent launches run inline, in ascending order, on their own thread.

**The state word.** `generation` is even while no job is open and odd while one is. A launch
makes it odd (publishing the job), works, makes it even, then waits until no worker is inside
(`active` is 0). A worker adds itself to `active` *before* it reads `generation`; both sides
are sequentially consistent, so either the worker sees the job closed and leaves, or the
launch sees the worker and waits. The job's fields are thus never rewritten under a worker.
"""

from __future__ import annotations

from string import Template

from tilewright.targets.cpu.runtime.alone_ir import ALONE
from tilewright.targets.cpu.runtime.interrupt_ir import INTERRUPTS
from tilewright.targets.cpu.runtime.job_ir import LAUNCH
from tilewright.targets.cpu.runtime.platform_ir import platform_text
from tilewright.targets.cpu.runtime.pool_layout import pool_constants
from tilewright.targets.cpu.runtime.worker_ir import PLACEMENT, WORKERS

# Accessors of a field at a byte offset; the always-inliner removes them.
_ACCESSORS = r"""
define internal $type @load_$type(ptr %base, i64 %offset) alwaysinline {
  %at = getelementptr i8, ptr %base, i64 %offset
  %value = load $type, ptr %at
  ret $type %value
}

define internal void @store_$type(ptr %base, i64 %offset, $type %value) alwaysinline {
  %at = getelementptr i8, ptr %base, i64 %offset
  store $type %value, ptr %at
  ret void
}
"""

# Scratch memory. An arena is {ptr base, i64 bytes}; it grows and is never given back.
_ARENAS = r"""
define internal i1 @grow_arena(ptr %arena, i64 %bytes) {  ; false when there is no memory
  %have.at = getelementptr i8, ptr %arena, i64 8
  %have = load i64, ptr %have.at
  %enough = icmp uge i64 %have, %bytes
  br i1 %enough, label %yes, label %grow
grow:
  %old = load ptr, ptr %arena
  call void @release(ptr %old)
  %past = add i64 %bytes, 4095
  %rounded = and i64 %past, -4096
  %memory = call ptr @allocate(i64 %rounded)
  store ptr %memory, ptr %arena
  %failed = icmp eq ptr %memory, null
  %size = select i1 %failed, i64 0, i64 %rounded
  store i64 %size, ptr %have.at
  br i1 %failed, label %no, label %yes
yes:
  ret i1 true
no:
  ret i1 false
}

; A launching thread borrows one of the caller arenas: {i32 lock, pad, arena}. Null when all
; are taken (more threads launch at once than there are arenas) or memory is short.
define internal ptr @borrow_arena(ptr %pool, i64 %bytes) {
entry:
  br label %try
try:
  %i = phi i64 [0, %entry], [%i.next, %taken]
  %offset = mul i64 %i, 64
  %first = getelementptr i8, ptr %pool, i64 $pool_caller_arenas
  %slot = getelementptr i8, ptr %first, i64 %offset
  ; Acquire pairs with the release in @return_arena: the last user is done with the memory.
  %was = atomicrmw xchg ptr %slot, i32 1 acquire
  %free = icmp eq i32 %was, 0
  br i1 %free, label %got, label %taken
taken:
  %i.next = add i64 %i, 1
  %more = icmp ult i64 %i.next, $num_caller_arenas
  br i1 %more, label %try, label %none
got:
  %arena = getelementptr i8, ptr %slot, i64 8
  %ok = call i1 @grow_arena(ptr %arena, i64 %bytes)
  br i1 %ok, label %lend, label %unlock
unlock:
  store atomic i32 0, ptr %slot release, align 4
  br label %none
lend:
  ret ptr %slot
none:
  ret ptr null
}

define internal void @return_arena(ptr %slot) {
  store atomic i32 0, ptr %slot release, align 4
  ret void
}
"""

# Running programs. %Context is the kernel's last argument: scratch, status, index, launch,
# whether it runs atomics alone, and whether this thread has begun a program of the launch.
_WORK = r"""
%Context = type { ptr, ptr, i64, ptr, i64, i64 }

define internal void @fill_context(ptr %context, ptr %scratch, ptr %status, i64 %index,
                                   ptr %launch) {
  store ptr %scratch, ptr %context
  %status.at = getelementptr %Context, ptr %context, i32 0, i32 1
  store ptr %status, ptr %status.at
  %index.at = getelementptr %Context, ptr %context, i32 0, i32 2
  store i64 %index, ptr %index.at
  %launch.at = getelementptr %Context, ptr %context, i32 0, i32 3
  store ptr %launch, ptr %launch.at
  %alone.at = getelementptr %Context, ptr %context, i32 0, i32 4
  store i64 0, ptr %alone.at
  %begun.at = getelementptr %Context, ptr %context, i32 0, i32 5
  store i64 0, ptr %begun.at
  ret void
}

define internal ptr @participant(ptr %pool, i64 %index) alwaysinline {
  %offset = mul i64 %index, $participant_bytes
  %from = add i64 %offset, $pool_header_bytes
  %at = getelementptr i8, ptr %pool, i64 %from
  ret ptr %at
}

; Claim and run chunks of one range until it is exhausted; the number of programs run.
define internal i64 @drain_range(ptr %pool, ptr %range, ptr %context) {
entry:
  %kernel = call ptr @load_ptr(ptr %pool, i64 $pool_job_kernel)
  %args = call ptr @load_ptr(ptr %pool, i64 $pool_job_args)
  %grid = call ptr @load_ptr(ptr %pool, i64 $pool_job_grid)
  %chunk = call i64 @load_i64(ptr %pool, i64 $pool_job_chunk)
  %end = call i64 @load_i64(ptr %range, i64 $participant_end)
  br label %look
look:
  %ran = phi i64 [0, %entry], [%ran.next, %run]
  ; A plain look first: thieves must not write the line of an exhausted range.
  %seen = load atomic i64, ptr %range monotonic, align 8
  %open = icmp slt i64 %seen, %end
  br i1 %open, label %ask, label %done
ask:
  %stops = call i1 @shall_stop(ptr %context)
  br i1 %stops, label %done, label %claim
claim:
  ; Monotonic is enough: the claim orders nothing, it only has to be unique.
  %begin = atomicrmw add ptr %range, i64 %chunk monotonic
  %mine = icmp slt i64 %begin, %end
  br i1 %mine, label %run, label %done
run:
  %full = add i64 %begin, %chunk
  %over = icmp sgt i64 %full, %end
  %stop = select i1 %over, i64 %end, i64 %full
  call void %kernel(ptr %args, ptr %grid, i64 %begin, i64 %stop, ptr %context)
  %count = sub i64 %stop, %begin
  %ran.next = add i64 %ran, %count
  br label %look
done:
  ret i64 %ran
}

; Drain every range from one's own upwards, around the end; the number of programs run.
define internal i64 @run_job(ptr %pool, i64 %self, ptr %context) {
entry:
  %width.at = getelementptr i8, ptr %pool, i64 $pool_job_width
  %width = load atomic i64, ptr %width.at monotonic, align 8
  br label %next
next:
  %step = phi i64 [0, %entry], [%step.next, %next]
  %ran = phi i64 [0, %entry], [%ran.next, %next]
  %turn = add i64 %self, %step
  %index = urem i64 %turn, %width
  %range = call ptr @participant(ptr %pool, i64 %index)
  %count = call i64 @drain_range(ptr %pool, ptr %range, ptr %context)
  %ran.next = add i64 %ran, %count
  %step.next = add i64 %step, 1
  %more = icmp ult i64 %step.next, %width
  br i1 %more, label %next, label %done
done:
  ret i64 %ran.next
}
"""

_LIFE = r"""
; End the workers and wait until each has left; launches after that run inline.
define void @pool_close(ptr %pool) {
entry:
  br label %lock
lock:
  %busy = getelementptr i8, ptr %pool, i64 $pool_busy
  %was = atomicrmw xchg ptr %busy, i32 1 acquire
  %free = icmp eq i32 %was, 0
  br i1 %free, label %stop, label %spin
spin:
  call void @pause()
  br label %lock
stop:
  call void @store_i64(ptr %pool, i64 $pool_num_threads, i64 1)
  %stop.at = getelementptr i8, ptr %pool, i64 $pool_stop
  store atomic i32 1, ptr %stop.at release, align 4
  ; By two: the word changes and stays even.
  %before = atomicrmw add ptr %pool, i32 2 seq_cst
  call void @wake_word(ptr %pool, i32 -1)
  %alive = getelementptr i8, ptr %pool, i64 $pool_alive
  br label %look
look:
  %left = load atomic i32, ptr %alive seq_cst, align 4
  %none = icmp eq i32 %left, 0
  br i1 %none, label %done, label %sleep
sleep:
  call void @wait_word(ptr %alive, i32 %left, i32 -1)
  br label %look
done:
  store atomic i32 0, ptr %busy release, align 4
  ret void
}

; In a forked child no worker exists and any lock may be held by a thread that is gone. The
; new workers stay unpinned: the parent's sit on those CPUs.
define void @pool_reset(ptr %pool) {
entry:
  %thread = call i64 @current_pthread()
  store i64 %thread, ptr @main_thread
  call void @forget_atomics()
  store atomic i32 0, ptr %pool seq_cst, align 4
  call void @store_i32(ptr %pool, i64 $pool_sleepers, i32 0)
  call void @store_i32(ptr %pool, i64 $pool_active, i32 0)
  call void @store_i32(ptr %pool, i64 $pool_closer_sleeps, i32 0)
  call void @store_i32(ptr %pool, i64 $pool_busy, i32 0)
  call void @store_i32(ptr %pool, i64 $pool_started, i32 0)
  call void @store_i32(ptr %pool, i64 $pool_is_pinned, i32 0)
  call void @store_i32(ptr %pool, i64 $pool_alive, i32 0)
  call void @store_i64(ptr %pool, i64 $pool_num_workers, i64 0)
  br label %next
next:
  %i = phi i64 [0, %entry], [%i.next, %next]
  %offset = mul i64 %i, 64
  %first = getelementptr i8, ptr %pool, i64 $pool_caller_arenas
  %slot = getelementptr i8, ptr %first, i64 %offset
  store atomic i32 0, ptr %slot release, align 4
  %i.next = add i64 %i, 1
  %more = icmp ult i64 %i.next, $num_caller_arenas
  br i1 %more, label %next, label %done
done:
  ret void
}
"""

POOL_SYMBOLS = ("pool_run", "pool_close", "pool_reset")


def pool_text(architecture: str, is_linux: bool) -> str:
    """The LLVM text of the pool for `architecture` (`x86_64`, `aarch64`, or any, serial)."""
    accessors = [Template(_ACCESSORS).substitute(type=name) for name in ("i32", "i64", "ptr")]
    parts = (INTERRUPTS, _ARENAS, _WORK, PLACEMENT, WORKERS, ALONE, LAUNCH, _LIFE)
    body = Template("".join(parts)).substitute(pool_constants())
    return "".join((platform_text(architecture, is_linux), *accessors, body))
