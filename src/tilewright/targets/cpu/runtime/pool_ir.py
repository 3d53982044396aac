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

from tilewright.targets.cpu.runtime.interrupt_ir import (
    CONTEXT_FIELDS,
    INTERRUPTS,
    LAUNCH_FIELDS,
    WATCH_NS,
)
from tilewright.targets.cpu.runtime.platform_ir import platform_text
from tilewright.targets.cpu.runtime.worker_ir import PLACEMENT, WORKERS

# Byte offsets of the pool's state. Words that different threads write have a line each.
POOL_FIELDS: dict[str, int] = {
    "generation": 0,
    "sleepers": 64,
    "active": 128,
    "closer_sleeps": 132,
    "busy": 192,
    # The open job: written by the launch before `generation` becomes odd.
    "job_kernel": 256,
    "job_args": 264,
    "job_grid": 272,
    "job_arena_bytes": 280,
    "job_status": 288,
    "job_width": 296,
    "job_chunk": 304,
    "job_launch": 312,
    # Configuration and threads.
    "num_threads": 320,
    "num_workers": 328,
    "started": 336,
    "is_pinned": 340,
    "alive": 344,
    "stop": 348,
    "spin_ns": 352,
    "cpus": 360,
    "num_cpus": 368,
    "caller_arenas": 384,
}
NUM_CALLER_ARENAS = 8
POOL_HEADER_BYTES = POOL_FIELDS["caller_arenas"] + 64 * NUM_CALLER_ARENAS

# One per participant. The first line is what thieves write; the second is the owner's.
PARTICIPANT_FIELDS: dict[str, int] = {
    "next": 0,
    "end": 8,
    "pool": 64,
    "index": 72,
    "arena": 80,
    "cpu": 96,
    "thread": 104,
}
PARTICIPANT_BYTES = 128

# What the launch of one compiled kernel needs; filled in by Python, see `KernelRecord`.
RECORD_FIELDS: dict[str, int] = {
    "kernel": 0,
    "arena_bytes": 8,
    "program_ns": 16,
    "status": 24,
    "pool": 32,
    "flags": 40,
}

# Below this much work a launch runs inline: waking a worker costs 3 to 13 µs.
INLINE_NS = 30_000
# One more participant for every slice of this much work.
SLICE_NS = 10_000
# A chunk is at least this long, so that its claim (~20 ns) does not count.
CHUNK_NS = 2_000

OK, OUT_OF_MEMORY, GRID_TOO_LARGE, INTERRUPTED = 0, 1, 2, 3

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

# Running programs. %Context is the kernel's last argument: scratch, status, index, launch.
_WORK = r"""
%Context = type { ptr, ptr, i64, ptr }

define internal void @fill_context(ptr %context, ptr %scratch, ptr %status, i64 %index,
                                   ptr %launch) {
  store ptr %scratch, ptr %context
  %status.at = getelementptr %Context, ptr %context, i32 0, i32 1
  store ptr %status, ptr %status.at
  %index.at = getelementptr %Context, ptr %context, i32 0, i32 2
  store i64 %index, ptr %index.at
  %launch.at = getelementptr %Context, ptr %context, i32 0, i32 3
  store ptr %launch, ptr %launch.at
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

_LAUNCH = r"""
declare {i64, i1} @llvm.umul.with.overflow.i64(i64, i64)

define internal i64 @num_programs(ptr %grid) {  ; -1 when the product does not fit
  %x.32 = load i32, ptr %grid
  %y.at = getelementptr i32, ptr %grid, i64 1
  %y.32 = load i32, ptr %y.at
  %z.at = getelementptr i32, ptr %grid, i64 2
  %z.32 = load i32, ptr %z.at
  %x = zext i32 %x.32 to i64
  %y = zext i32 %y.32 to i64
  %z = zext i32 %z.32 to i64
  %xy = mul i64 %x, %y
  %xyz = call {i64, i1} @llvm.umul.with.overflow.i64(i64 %xy, i64 %z)
  %product = extractvalue {i64, i1} %xyz, 0
  %wrapped = extractvalue {i64, i1} %xyz, 1
  %negative = icmp slt i64 %product, 0
  %bad = or i1 %wrapped, %negative
  %result = select i1 %bad, i64 -1, i64 %product
  ret i64 %result
}

; How many participants the job is worth; 1 is inline. An estimate below 0 is no estimate.
define internal i64 @choose_width(ptr %pool, ptr %record, i64 %programs) {
entry:
  %threads = call i64 @load_i64(ptr %pool, i64 $pool_num_threads)
  %few = icmp slt i64 %programs, %threads
  %most = select i1 %few, i64 %programs, i64 %threads
  %flags = call i64 @load_i64(ptr %record, i64 $record_flags)
  %wide.bit = and i64 %flags, 1
  %always = icmp ne i64 %wide.bit, 0
  %each.at = getelementptr i8, ptr %record, i64 $record_program_ns
  %each = load atomic double, ptr %each.at monotonic, align 8
  %unknown = fcmp olt double %each, 0.0
  %skip = or i1 %always, %unknown
  br i1 %skip, label %wide, label %estimate
estimate:
  %count = sitofp i64 %programs to double
  %work = fmul double %each, %count
  %small = fcmp olt double %work, $inline_ns
  br i1 %small, label %inline, label %slices
slices:
  %share = fdiv double %work, $slice_ns
  %huge = fcmp ogt double %share, 1.0e9
  %bounded = select i1 %huge, double 1.0e9, double %share
  %worth = fptosi double %bounded to i64
  %limited = icmp slt i64 %worth, %most
  %width = select i1 %limited, i64 %worth, i64 %most
  ret i64 %width
wide:
  ret i64 %most
inline:
  ret i64 1
}

; Programs per claim: long enough to hide the claim, eight or more claims a participant.
define internal i64 @choose_chunk(ptr %record, i64 %programs, i64 %width) {
  %each.at = getelementptr i8, ptr %record, i64 $record_program_ns
  %each = load atomic double, ptr %each.at monotonic, align 8
  %tiny = fcmp olt double %each, 0.01
  %unit = select i1 %tiny, double 0.01, double %each
  %by.time.f = fdiv double $chunk_ns, %unit
  %by.time = fptosi double %by.time.f to i64
  %claims = mul i64 %width, 8
  %by.balance = udiv i64 %programs, %claims
  %shorter = icmp slt i64 %by.time, %by.balance
  %chunk = select i1 %shorter, i64 %by.time, i64 %by.balance
  %empty = icmp slt i64 %chunk, 1
  %result = select i1 %empty, i64 1, i64 %chunk
  ret i64 %result
}

; The time of one program rises at once and falls by halves: taking a long job for a short one
; costs a factor, the other mistake a few microseconds.
define internal void @update_estimate(ptr %record, i64 %start, i64 %programs) {
entry:
  ; The workers may have taken every program before this thread came to claim one.
  %none = icmp sle i64 %programs, 0
  br i1 %none, label %done, label %measure
measure:
  %now = call i64 @now_ns()
  %elapsed = sub i64 %now, %start
  %elapsed.f = sitofp i64 %elapsed to double
  %count = sitofp i64 %programs to double
  %sample = fdiv double %elapsed.f, %count
  %each.at = getelementptr i8, ptr %record, i64 $record_program_ns
  %old = load atomic double, ptr %each.at monotonic, align 8
  %sum = fadd double %old, %sample
  %mean = fmul double %sum, 0.5
  %rises = fcmp ogt double %sample, %mean
  %new = select i1 %rises, double %sample, double %mean
  store atomic double %new, ptr %each.at monotonic, align 8
  br label %done
done:
  ret void
}

define internal void @publish_job(ptr %pool, ptr %record, ptr %args, ptr %grid,
                                  i64 %programs, i64 %width) {
entry:
  %kernel = call ptr @load_ptr(ptr %record, i64 $record_kernel)
  call void @store_ptr(ptr %pool, i64 $pool_job_kernel, ptr %kernel)
  call void @store_ptr(ptr %pool, i64 $pool_job_args, ptr %args)
  call void @store_ptr(ptr %pool, i64 $pool_job_grid, ptr %grid)
  %bytes = call i64 @load_i64(ptr %record, i64 $record_arena_bytes)
  call void @store_i64(ptr %pool, i64 $pool_job_arena_bytes, i64 %bytes)
  %status = call ptr @load_ptr(ptr %record, i64 $record_status)
  call void @store_ptr(ptr %pool, i64 $pool_job_status, ptr %status)
  %width.at = getelementptr i8, ptr %pool, i64 $pool_job_width
  store atomic i64 %width, ptr %width.at monotonic, align 8
  %chunk = call i64 @choose_chunk(ptr %record, i64 %programs, i64 %width)
  call void @store_i64(ptr %pool, i64 $pool_job_chunk, i64 %chunk)
  %share = udiv i64 %programs, %width
  %extra = urem i64 %programs, %width
  br label %next
next:
  ; Range i has `share` programs, the first `extra` ranges one more.
  %i = phi i64 [0, %entry], [%i.next, %next]
  %begin = phi i64 [0, %entry], [%end, %next]
  %longer = icmp slt i64 %i, %extra
  %one = zext i1 %longer to i64
  %length = add i64 %share, %one
  %end = add i64 %begin, %length
  %range = call ptr @participant(ptr %pool, i64 %i)
  store atomic i64 %begin, ptr %range monotonic, align 8
  call void @store_i64(ptr %range, i64 $participant_end, i64 %end)
  %i.next = add i64 %i, 1
  %more = icmp slt i64 %i.next, %width
  br i1 %more, label %next, label %done
done:
  ret void
}

define internal void @wake_workers(ptr %pool, i64 %width) {
  %sleepers.at = getelementptr i8, ptr %pool, i64 $pool_sleepers
  %sleepers = load atomic i32, ptr %sleepers.at seq_cst, align 4
  %any = icmp sgt i32 %sleepers, 0
  br i1 %any, label %wake, label %done
wake:
  ; Bits 0 … width-1; from 32 participants on the bits are shared, so all of them.
  %narrow = icmp slt i64 %width, 32
  %shift = select i1 %narrow, i64 %width, i64 0
  %high = shl i64 1, %shift
  %low.bits = sub i64 %high, 1
  %mask.64 = select i1 %narrow, i64 %low.bits, i64 4294967295
  %mask = trunc i64 %mask.64 to i32
  call void @wake_word(ptr %pool, i32 %mask)
  br label %done
done:
  ret void
}

; After the job was closed: wait for the workers that are inside, first spinning, then asleep.
define internal void @await_workers(ptr %pool, ptr %context) {
entry:
  %active = getelementptr i8, ptr %pool, i64 $pool_active
  br label %spin
spin:
  %i = phi i64 [0, %entry], [%i.next, %again]
  ; Acquire pairs with the release in @join_job: the workers' stores are visible.
  %inside = load atomic i32, ptr %active seq_cst, align 4
  %none = icmp eq i32 %inside, 0
  br i1 %none, label %done, label %again
again:
  %told.0 = call i1 @shall_stop(ptr %context)
  call void @pause()
  %i.next = add i64 %i, 1
  %patient = icmp slt i64 %i.next, 1000
  br i1 %patient, label %spin, label %announce
announce:
  %flag = getelementptr i8, ptr %pool, i64 $pool_closer_sleeps
  store atomic i32 1, ptr %flag seq_cst, align 4
  br label %look
look:
  %still = load atomic i32, ptr %active seq_cst, align 4
  %gone = icmp eq i32 %still, 0
  br i1 %gone, label %clear, label %sleep
sleep:
  ; Not for long: an interrupt may have come to another thread than this one.
  call void @wait_word_briefly(ptr %active, i32 %still)
  %told.1 = call i1 @shall_stop(ptr %context)
  br label %look
clear:
  store atomic i32 0, ptr %flag seq_cst, align 4
  br label %done
done:
  ret void
}

define internal void @run_parallel(ptr %pool, ptr %record, ptr %args, ptr %grid,
                                   i64 %programs, i64 %width, ptr %context) {
  call void @publish_job(ptr %pool, ptr %record, ptr %args, ptr %grid, i64 %programs, i64 %width)
  %launch = call ptr @load_ptr(ptr %context, i64 $context_launch)
  call void @store_ptr(ptr %pool, i64 $pool_job_launch, ptr %launch)
  ; Open. Release: the job above happens before every worker that reads the odd value.
  %even = atomicrmw add ptr %pool, i32 1 seq_cst
  call void @wake_workers(ptr %pool, i64 %width)
  %start = call i64 @now_ns()
  call void @watch_if_due(i64 %start)
  %ran = call i64 @run_job(ptr %pool, i64 0, ptr %context)
  call void @update_estimate(ptr %record, i64 %start, i64 %ran)
  ; Close. A worker that comes later sees the even value and leaves.
  %odd = atomicrmw add ptr %pool, i32 1 seq_cst
  call void @await_workers(ptr %pool, ptr %context)
  ret void
}

; The workers' number, creating them first if need be (under `busy`), at most `width`.
define internal i64 @staffed_width(ptr %pool, i64 %width) {
entry:
  %started = call i32 @load_i32(ptr %pool, i64 $pool_started)
  %ready = icmp ne i32 %started, 0
  br i1 %ready, label %limit, label %start
start:
  call void @start_workers(ptr %pool)
  br label %limit
limit:
  %workers = call i64 @load_i64(ptr %pool, i64 $pool_num_workers)
  %people = add i64 %workers, 1
  %short = icmp slt i64 %people, %width
  %result = select i1 %short, i64 %people, i64 %width
  ret i64 %result
}

define internal void @run_inline(ptr %record, ptr %args, ptr %grid, i64 %programs, ptr %context) {
  %start = call i64 @now_ns()
  call void @watch_if_due(i64 %start)
  %kernel = call ptr @load_ptr(ptr %record, i64 $record_kernel)
  call void %kernel(ptr %args, ptr %grid, i64 0, i64 %programs, ptr %context)
  call void @update_estimate(ptr %record, i64 %start, i64 %programs)
  ret void
}

; Run the grid in the way that it is worth.
define internal void @run_grid(ptr %pool, ptr %record, ptr %args, ptr %grid,
                               i64 %programs, ptr %context) {
entry:
  %width = call i64 @choose_width(ptr %pool, ptr %record, i64 %programs)
  %one = icmp sle i64 %width, 1
  br i1 %one, label %inline, label %try
try:
  ; Acquire pairs with the release below: the last job's state is settled.
  %busy.at = getelementptr i8, ptr %pool, i64 $pool_busy
  %was = atomicrmw xchg ptr %busy.at, i32 1 acquire
  %taken = icmp ne i32 %was, 0
  br i1 %taken, label %inline, label %parallel
parallel:
  %people = call i64 @staffed_width(ptr %pool, i64 %width)
  call void @make_room(ptr %pool)
  call void @run_parallel(ptr %pool, ptr %record, ptr %args, ptr %grid,
                          i64 %programs, i64 %people, ptr %context)
  store atomic i32 0, ptr %busy.at release, align 4
  ret void
inline:
  call void @run_inline(ptr %record, ptr %args, ptr %grid, i64 %programs, ptr %context)
  ret void
}

; What the launch came to: ok, or interrupted, with a Python exception.
define internal i32 @run_with_scratch(ptr %pool, ptr %record, ptr %args, ptr %grid,
                                      i64 %programs, ptr %scratch) {
  %context = alloca %Context
  %launch = alloca %Launch
  call void @begin_launch(ptr %launch)
  %status = call ptr @load_ptr(ptr %record, i64 $record_status)
  call void @fill_context(ptr %context, ptr %scratch, ptr %status, i64 0, ptr %launch)
  call void @run_grid(ptr %pool, ptr %record, ptr %args, ptr %grid, i64 %programs, ptr %context)
  %cancelled = call i32 @is_cancelled(ptr %launch)
  %stopped = icmp ne i32 %cancelled, 0
  %code = select i1 %stopped, i32 $interrupted, i32 $ok
  ret i32 %code
}

; Scratch for one launch of its own, when the shared caller arenas are all lent.
define internal i32 @run_with_private_arena(ptr %pool, ptr %record, ptr %args, ptr %grid,
                                            i64 %programs, i64 %bytes) noinline {
  %scratch = call ptr @allocate(i64 %bytes)
  %failed = icmp eq ptr %scratch, null
  br i1 %failed, label %no.memory, label %run
run:
  %ran = call i32 @run_with_scratch(ptr %pool, ptr %record, ptr %args, ptr %grid,
                                    i64 %programs, ptr %scratch)
  call void @release(ptr %scratch)
  ret i32 %ran
no.memory:
  ret i32 $out_of_memory
}

; Run every program of the grid once and return when all have finished.
define i32 @pool_run(ptr %record, ptr %args, ptr %grid) {
entry:
  %pool = call ptr @load_ptr(ptr %record, i64 $record_pool)
  %programs = call i64 @num_programs(ptr %grid)
  %positive = icmp sgt i64 %programs, 0
  br i1 %positive, label %some, label %none
none:
  %overflow = icmp slt i64 %programs, 0
  %code = select i1 %overflow, i32 $grid_too_large, i32 $ok
  ret i32 %code
some:
  %bytes = call i64 @load_i64(ptr %record, i64 $record_arena_bytes)
  %needs = icmp sgt i64 %bytes, 0
  br i1 %needs, label %borrow, label %bare
bare:
  %ran.bare = call i32 @run_with_scratch(ptr %pool, ptr %record, ptr %args, ptr %grid,
                                         i64 %programs, ptr null)
  ret i32 %ran.bare
borrow:
  %slot = call ptr @borrow_arena(ptr %pool, i64 %bytes)
  %lent = icmp ne ptr %slot, null
  br i1 %lent, label %shared, label %private
shared:
  %base.at = getelementptr i8, ptr %slot, i64 8
  %scratch = load ptr, ptr %base.at
  %ran = call i32 @run_with_scratch(ptr %pool, ptr %record, ptr %args, ptr %grid,
                                    i64 %programs, ptr %scratch)
  call void @return_arena(ptr %slot)
  ret i32 %ran
private:
  %status = call i32 @run_with_private_arena(ptr %pool, ptr %record, ptr %args, ptr %grid,
                                             i64 %programs, i64 %bytes)
  ret i32 %status
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
    parts = (INTERRUPTS, _ARENAS, _WORK, PLACEMENT, WORKERS, _LAUNCH, _LIFE)
    body = Template("".join(parts)).substitute(pool_constants())
    return "".join((platform_text(architecture, is_linux), *accessors, body))


def pool_constants() -> dict[str, str]:
    """The numbers that the texts of the pool and of its users refer to by name."""
    return {
        **{f"pool_{name}": str(offset) for name, offset in POOL_FIELDS.items()},
        **{f"participant_{name}": str(offset) for name, offset in PARTICIPANT_FIELDS.items()},
        **{f"record_{name}": str(offset) for name, offset in RECORD_FIELDS.items()},
        **{f"launch_{name}": str(offset) for name, offset in LAUNCH_FIELDS.items()},
        **{f"context_{name}": str(offset) for name, offset in CONTEXT_FIELDS.items()},
        "watch_ns": str(WATCH_NS),
        "interrupted": str(INTERRUPTED),
        "pool_header_bytes": str(POOL_HEADER_BYTES),
        "participant_bytes": str(PARTICIPANT_BYTES),
        "num_caller_arenas": str(NUM_CALLER_ARENAS),
        "inline_ns": f"{INLINE_NS}.0",
        "slice_ns": f"{SLICE_NS}.0",
        "chunk_ns": f"{CHUNK_NS}.0",
        "ok": str(OK),
        "out_of_memory": str(OUT_OF_MEMORY),
        "grid_too_large": str(GRID_TOO_LARGE),
    }
