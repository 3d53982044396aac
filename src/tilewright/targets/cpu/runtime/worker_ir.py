"""The pool's workers as LLVM text: how they wait, join a job, leave, and where they run.

The names of offsets (`$pool_busy`) are those of `pool_layout.py`; `pool_ir.py` puts the texts
together.
"""

from __future__ import annotations

PLACEMENT = r"""
; The CPU of participant i is the i-th after the one that the pool is started on, around the
; mask: two processes with small pools do not meet on the same CPUs.
define internal void @assign_cpus(ptr %pool) {
entry:
  %cpus = call ptr @load_ptr(ptr %pool, i64 $pool_cpus)
  %num = call i64 @load_i64(ptr %pool, i64 $pool_num_cpus)
  %threads = call i64 @load_i64(ptr %pool, i64 $pool_num_threads)
  %here = call i64 @current_place(ptr %cpus, i64 %num)
  %some = icmp sgt i64 %num, 0
  br i1 %some, label %next, label %done
next:
  %i = phi i64 [0, %entry], [%i.next, %next]
  %turn = add i64 %here, %i
  %place = urem i64 %turn, %num
  %at = getelementptr i64, ptr %cpus, i64 %place
  %cpu = load i64, ptr %at
  %participant = call ptr @participant(ptr %pool, i64 %i)
  call void @store_i64(ptr %participant, i64 $participant_cpu, i64 %cpu)
  call void @store_i32(ptr %participant, i64 $participant_thread, i32 0)
  %i.next = add i64 %i, 1
  %more = icmp slt i64 %i.next, %threads
  br i1 %more, label %next, label %done
done:
  ret void
}

; The place of the current CPU in the list of usable ones (0 when it is not there).
define internal i64 @current_place(ptr %cpus, i64 %num) {
entry:
  %cpu = call i64 @current_cpu()
  br label %next
next:
  %i = phi i64 [0, %entry], [%i.next, %differs]
  %in = icmp slt i64 %i, %num
  br i1 %in, label %compare, label %absent
compare:
  %at = getelementptr i64, ptr %cpus, i64 %i
  %candidate = load i64, ptr %at
  %same = icmp eq i64 %candidate, %cpu
  br i1 %same, label %found, label %differs
differs:
  %i.next = add i64 %i, 1
  br label %next
found:
  ret i64 %i
absent:
  ret i64 0
}

; A new worker goes to its CPU, then tells its thread number, so that it can be moved.
define internal void @settle_worker(ptr %pool, ptr %self.at) {
entry:
  %pinned = call i32 @load_i32(ptr %pool, i64 $pool_is_pinned)
  %pin = icmp ne i32 %pinned, 0
  br i1 %pin, label %place, label %done
place:
  %cpu = call i64 @load_i64(ptr %self.at, i64 $participant_cpu)
  call void @pin_thread(i32 0, i64 %cpu)
  %thread = call i32 @current_thread()
  %thread.at = getelementptr i8, ptr %self.at, i64 $participant_thread
  store atomic i32 %thread, ptr %thread.at monotonic, align 4
  br label %done
done:
  ret void
}

; The launching thread is not ours to pin. When the kernel has moved it onto a worker's CPU,
; that worker takes the CPU that became free; otherwise the two would share one until the
; next balancing, while a CPU idles.
define internal void @make_room(ptr %pool) {
entry:
  %pinned = call i32 @load_i32(ptr %pool, i64 $pool_is_pinned)
  %pin = icmp ne i32 %pinned, 0
  br i1 %pin, label %compare, label %done
compare:
  %here = call i64 @current_cpu()
  %home.of = call ptr @participant(ptr %pool, i64 0)
  %home = call i64 @load_i64(ptr %home.of, i64 $participant_cpu)
  %moved = icmp ne i64 %here, %home
  br i1 %moved, label %move, label %done
move:
  call void @store_i64(ptr %home.of, i64 $participant_cpu, i64 %here)
  call void @evict_worker(ptr %pool, i64 %here, i64 %home)
  br label %done
done:
  ret void
}

; Move the worker that is pinned to CPU `from`, if there is one, to CPU `to`.
define internal void @evict_worker(ptr %pool, i64 %from, i64 %to) noinline {
entry:
  %workers = call i64 @load_i64(ptr %pool, i64 $pool_num_workers)
  br label %next
next:
  %i = phi i64 [1, %entry], [%i.next, %differs]
  %more = icmp sle i64 %i, %workers
  br i1 %more, label %look, label %done
look:
  %worker = call ptr @participant(ptr %pool, i64 %i)
  %cpu = call i64 @load_i64(ptr %worker, i64 $participant_cpu)
  %found = icmp eq i64 %cpu, %from
  br i1 %found, label %move, label %differs
differs:
  %i.next = add i64 %i, 1
  br label %next
move:
  %thread.at = getelementptr i8, ptr %worker, i64 $participant_thread
  %thread = load atomic i32, ptr %thread.at monotonic, align 4
  ; 0: not settled yet, and 0 would name the launching thread itself.
  %settled = icmp ne i32 %thread, 0
  br i1 %settled, label %pin, label %done
pin:
  call void @store_i64(ptr %worker, i64 $participant_cpu, i64 %to)
  call void @pin_thread(i32 %thread, i64 %to)
  br label %done
done:
  ret void
}
"""

WORKERS = r"""
; Spin, then sleep, until `generation` differs from `last`; the new value.
define internal i32 @await_generation(ptr %pool, i64 %self, i32 %last) {
entry:
  %spin = call i64 @load_i64(ptr %pool, i64 $pool_spin_ns)
  %start = call i64 @now_ns()
  %deadline = add i64 %start, %spin
  br label %poll
poll:
  %i = phi i64 [0, %entry], [%i.next, %idle], [%i.next, %check]
  ; Acquire pairs with the launch's write: the job's fields are visible from here on.
  %seen = load atomic i32, ptr %pool acquire, align 4
  %changed = icmp ne i32 %seen, %last
  br i1 %changed, label %return, label %idle
idle:
  call void @pause()
  %i.next = add i64 %i, 1
  %low = and i64 %i.next, 31
  %look = icmp eq i64 %low, 0
  br i1 %look, label %check, label %poll
check:
  %now = call i64 @now_ns()
  %late = icmp sge i64 %now, %deadline
  br i1 %late, label %sleep, label %poll
sleep:
  ; Seq_cst against the launch, which writes `generation` and then reads `sleepers`: either
  ; it sees this sleeper and wakes it, or @wait_word sees the new generation and returns.
  %sleepers = getelementptr i8, ptr %pool, i64 $pool_sleepers
  %before = atomicrmw add ptr %sleepers, i32 1 seq_cst
  %mask = call i32 @mask_of(i64 %self)
  call void @wait_word(ptr %pool, i32 %last, i32 %mask)
  %after = atomicrmw sub ptr %sleepers, i32 1 seq_cst
  %woken = load atomic i32, ptr %pool acquire, align 4
  %is.new = icmp ne i32 %woken, %last
  br i1 %is.new, label %return, label %sleep
return:
  %value = phi i32 [%seen, %poll], [%woken, %sleep]
  ret i32 %value
}

define internal i32 @mask_of(i64 %self) alwaysinline {  ; participant i sleeps on bit i mod 32
  %index = trunc i64 %self to i32
  %bit = and i32 %index, 31
  %mask = shl i32 1, %bit
  ret i32 %mask
}

; Take part in the open job, if it is still open and wide enough; the generation dealt with.
define internal i32 @join_job(ptr %pool, ptr %self.at, i64 %self, i32 %seen) {
entry:
  ; Only advice (the field may belong to the next job by now): staying away is always safe.
  %width.at = getelementptr i8, ptr %pool, i64 $pool_job_width
  %width = load atomic i64, ptr %width.at monotonic, align 8
  %useful = icmp slt i64 %self, %width
  br i1 %useful, label %enter, label %stay.away
stay.away:
  ret i32 %seen
enter:
  %active = getelementptr i8, ptr %pool, i64 $pool_active
  %before = atomicrmw add ptr %active, i32 1 seq_cst
  %generation = load atomic i32, ptr %pool seq_cst, align 4
  %open = trunc i32 %generation to i1
  br i1 %open, label %work, label %leave
work:
  call void @work_as(ptr %pool, ptr %self.at, i64 %self)
  br label %leave
leave:
  ; Release: what this worker's programs wrote is visible to the launch that reads 0 here.
  %was = atomicrmw sub ptr %active, i32 1 seq_cst
  %last = icmp eq i32 %was, 1
  br i1 %last, label %maybe.wake, label %return
maybe.wake:
  ; Seq_cst against @await_workers, which sets `closer_sleeps` and then reads `active`.
  %flag = getelementptr i8, ptr %pool, i64 $pool_closer_sleeps
  %sleeps = load atomic i32, ptr %flag seq_cst, align 4
  %wake = icmp ne i32 %sleeps, 0
  br i1 %wake, label %wake.closer, label %return
wake.closer:
  call void @wake_word(ptr %active, i32 -1)
  br label %return
return:
  ret i32 %generation
}

; A worker without memory for its arena stays idle; the launch and the others do its share.
define internal void @work_as(ptr %pool, ptr %self.at, i64 %self) {
  %context = alloca %Context
  %bytes = call i64 @load_i64(ptr %pool, i64 $pool_job_arena_bytes)
  %arena = getelementptr i8, ptr %self.at, i64 $participant_arena
  %ok = call i1 @grow_arena(ptr %arena, i64 %bytes)
  br i1 %ok, label %work, label %idle
work:
  %scratch = load ptr, ptr %arena
  %status = call ptr @load_ptr(ptr %pool, i64 $pool_job_status)
  %launch = call ptr @load_ptr(ptr %pool, i64 $pool_job_launch)
  call void @fill_context(ptr %context, ptr %scratch, ptr %status, i64 %self, ptr %launch)
  %ran = call i64 @run_job(ptr %pool, i64 %self, ptr %context)
  ret void
idle:
  ret void
}

define internal ptr @worker_main(ptr %self.at) {
entry:
  %pool = call ptr @load_ptr(ptr %self.at, i64 $participant_pool)
  %self = call i64 @load_i64(ptr %self.at, i64 $participant_index)
  call void @block_signals()
  call void @settle_worker(ptr %pool, ptr %self.at)
  br label %loop
loop:
  ; A worker is born before its first job is published, so 0 (no job yet) is never missed:
  ; any other value is a change.
  %last = phi i32 [0, %entry], [%dealt, %join]
  %seen = call i32 @await_generation(ptr %pool, i64 %self, i32 %last)
  %stop.at = getelementptr i8, ptr %pool, i64 $pool_stop
  %stop = load atomic i32, ptr %stop.at acquire, align 4
  %stopped = icmp ne i32 %stop, 0
  br i1 %stopped, label %exit, label %join
join:
  %dealt = call i32 @join_job(ptr %pool, ptr %self.at, i64 %self, i32 %seen)
  br label %loop
exit:
  %alive = getelementptr i8, ptr %pool, i64 $pool_alive
  %was = atomicrmw sub ptr %alive, i32 1 seq_cst
  call void @wake_word(ptr %alive, i32 -1)
  ret ptr null
}

; Create the workers on the first parallel launch (under `busy`). A thread that cannot be
; created ends the list: the pool is then as wide as the threads it got.
define internal void @start_workers(ptr %pool) noinline {
entry:
  call void @store_i32(ptr %pool, i64 $pool_started, i32 1)
  call void @assign_cpus(ptr %pool)
  %threads = call i64 @load_i64(ptr %pool, i64 $pool_num_threads)
  %alive = getelementptr i8, ptr %pool, i64 $pool_alive
  br label %next
next:
  %i = phi i64 [1, %entry], [%i.next, %created]
  %more = icmp slt i64 %i, %threads
  br i1 %more, label %create, label %done
create:
  %self.at = call ptr @participant(ptr %pool, i64 %i)
  call void @store_ptr(ptr %self.at, i64 $participant_pool, ptr %pool)
  call void @store_i64(ptr %self.at, i64 $participant_index, i64 %i)
  %before = atomicrmw add ptr %alive, i32 1 seq_cst
  %ok = call i1 @create_thread(ptr @worker_main, ptr %self.at)
  br i1 %ok, label %created, label %failed
created:
  %i.next = add i64 %i, 1
  br label %next
failed:
  %undo = atomicrmw sub ptr %alive, i32 1 seq_cst
  br label %done
done:
  %workers = sub i64 %i, 1
  call void @store_i64(ptr %pool, i64 $pool_num_workers, i64 %workers)
  ret void
}
"""
