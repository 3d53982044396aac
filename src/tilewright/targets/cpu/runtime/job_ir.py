"""A launch on the pool as LLVM text: how wide a job is, how it is published, run and closed.

The names of offsets (`$pool_busy`) are those of `pool_layout.py`; `pool_ir.py` puts the texts
together.
"""

from __future__ import annotations

LAUNCH = r"""
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

define internal void @update_estimate(ptr %record, i64 %start, i64 %programs) {
  %each.at = getelementptr i8, ptr %record, i64 $record_program_ns
  call void @update_time(ptr %each.at, i64 %start, i64 %programs)
  ret void
}

; The time of one program rises at once and falls by halves: taking a long job for a short one
; costs a factor, the other mistake a few microseconds.
define internal void @update_time(ptr %each.at, i64 %start, i64 %programs) {
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
                                  i64 %first, i64 %programs, i64 %width) {
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
  %left = sub i64 %programs, %first
  %share = udiv i64 %left, %width
  %extra = urem i64 %left, %width
  br label %next
next:
  ; Range i has `share` programs, the first `extra` ranges one more.
  %i = phi i64 [0, %entry], [%i.next, %next]
  %begin = phi i64 [%first, %entry], [%end, %next]
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

define internal void @run_parallel(ptr %pool, ptr %record, ptr %args, ptr %grid, i64 %first,
                                   i64 %programs, i64 %width, ptr %context) {
  call void @publish_job(ptr %pool, ptr %record, ptr %args, ptr %grid, i64 %first,
                         i64 %programs, i64 %width)
  %launch = call ptr @load_ptr(ptr %context, i64 $context_launch)
  call void @store_ptr(ptr %pool, i64 $pool_job_launch, ptr %launch)
  ; Open. Release: the job above happens before every worker that reads the odd value.
  %even = atomicrmw add ptr %pool, i32 1 seq_cst
  call void @wake_workers(ptr %pool, i64 %width)
  %start = call i64 @now_ns()
  call void @watch_if_due(i64 %start, ptr %context)
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

define internal void @run_inline(ptr %record, ptr %args, ptr %grid, i64 %first, i64 %programs,
                                 ptr %context) {
  %start = call i64 @now_ns()
  call void @watch_if_due(i64 %start, ptr %context)
  %kernel = call ptr @load_ptr(ptr %record, i64 $record_kernel)
  call void %kernel(ptr %args, ptr %grid, i64 %first, i64 %programs, ptr %context)
  %count = sub i64 %programs, %first
  call void @update_estimate(ptr %record, i64 %start, i64 %count)
  ret void
}

; Run the grid in the way that it is worth.
define internal void @run_grid(ptr %pool, ptr %record, ptr %args, ptr %grid,
                               i64 %programs, ptr %context) {
entry:
  %width = call i64 @choose_width(ptr %pool, ptr %record, i64 %programs)
  %flags = call i64 @load_i64(ptr %record, i64 $record_flags)
  %atomic.bit = and i64 %flags, 2
  %is.atomic = icmp ne i64 %atomic.bit, 0
  br i1 %is.atomic, label %atomic, label %plain
plain:
  call void @run_wide(ptr %pool, ptr %record, ptr %args, ptr %grid, i64 0,
                      i64 %programs, i64 %width, ptr %context)
  ret void
atomic:
  %first = call i64 @run_alone(ptr %record, ptr %args, ptr %grid, i64 %programs, i64 %width,
                               ptr %context)
  %more = icmp slt i64 %first, %programs
  br i1 %more, label %beside, label %done
beside:
  call void @enter_beside()
  call void @run_wide(ptr %pool, ptr %record, ptr %args, ptr %grid, i64 %first,
                      i64 %programs, i64 %width, ptr %context)
  call void @leave_beside()
  ret void
done:
  ret void
}

; Run the programs from `first` on by `width` participants, if the pool is free.
define internal void @run_wide(ptr %pool, ptr %record, ptr %args, ptr %grid, i64 %first,
                               i64 %programs, i64 %width, ptr %context) {
entry:
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
  call void @run_parallel(ptr %pool, ptr %record, ptr %args, ptr %grid, i64 %first,
                          i64 %programs, i64 %people, ptr %context)
  store atomic i32 0, ptr %busy.at release, align 4
  ret void
inline:
  call void @run_inline(ptr %record, ptr %args, ptr %grid, i64 %first, i64 %programs,
                        ptr %context)
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
