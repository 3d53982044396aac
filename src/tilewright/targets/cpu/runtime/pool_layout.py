"""Where the fields of the pool's native structures are, and the numbers that it decides by.

the state of a pool                       a participant
  0  generation     odd: a job is open      0  next, end     what is left of its range;
 64  sleepers                                                thieves write it
128  active         workers inside         64  pool, index,  a line of its owner
192  busy           one launch at a time       arena, cpu,
256  job_…          written while closed       thread
320  num_threads, … configuration
384  caller_arenas  eight locks with scratch memory, a line each
896  participants, 128 bytes each; 0 is the thread that launches
"""

from __future__ import annotations

from tilewright.codegen.launch_calls import field_offsets
from tilewright.targets.cpu.runtime.interrupt_ir import (
    CONTEXT_FIELDS,
    LAUNCH_FIELDS,
    WATCH_NS,
)

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
# Chosen, not measured: threads that launch at once beyond these take memory of their own.
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
# By definition: two lines, see the table of fields.
PARTICIPANT_BYTES = 128

# What the launch of one compiled kernel needs; filled in by Python, see `KernelRecord`.
RECORD_FIELDS: dict[str, int] = {
    "kernel": 0,
    "arena_bytes": 8,
    "program_ns": 16,
    "status": 24,
    "pool": 32,
    "flags": 40,
    "alone_ns": 48,
}

# Of a launch on many threads whose time alone is not known yet, the programs of this share of a
# thread's time run alone first. Chosen, not measured: a wrong guess costs the first launch 6 %.
PROBE_SHARE = 16

# Below this much work a launch runs inline. Measured on a machine that was not noted, 2026-11-21:
# waking a worker costs 3 to 13 µs, the claim of a chunk about 20 ns.
INLINE_NS = 30_000
# One more participant for every slice of this much work: about what waking one costs.
SLICE_NS = 10_000
# A chunk is at least this long, so that its claim does not count.
CHUNK_NS = 2_000

# By definition: what `pool_run` returns.
OK, OUT_OF_MEMORY, GRID_TOO_LARGE, INTERRUPTED = 0, 1, 2, 3


def pool_constants() -> dict[str, str]:
    """The numbers that the texts of the pool and of its users refer to by name."""
    return {
        **field_offsets(
            pool=POOL_FIELDS,
            participant=PARTICIPANT_FIELDS,
            record=RECORD_FIELDS,
            launch=LAUNCH_FIELDS,
            context=CONTEXT_FIELDS,
        ),
        "watch_ns": str(WATCH_NS),
        "interrupted": str(INTERRUPTED),
        "pool_header_bytes": str(POOL_HEADER_BYTES),
        "participant_bytes": str(PARTICIPANT_BYTES),
        "num_caller_arenas": str(NUM_CALLER_ARENAS),
        "inline_ns": f"{INLINE_NS}.0",
        "slice_ns": f"{SLICE_NS}.0",
        "chunk_ns": f"{CHUNK_NS}.0",
        "probe_share": str(PROBE_SHARE),
        "ok": str(OK),
        "out_of_memory": str(OUT_OF_MEMORY),
        "grid_too_large": str(GRID_TOO_LARGE),
    }
