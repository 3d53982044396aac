"""Cases of the corpus as the body of a role: run by some warps of a larger cta."""

from __future__ import annotations

from tests.corpus.case import Array, Case
from tests.corpus.threads import Threads, lower_for_gpu
from tilewright.codegen.simt.context import SimtContext
from tilewright.codegen.simt.partition import Partition
from tilewright.codegen.simt.roles import emit_partitions
from tilewright.interp.simt.simulate import simulate
from tilewright.ops.function import FuncOp
from tilewright.runtime.grid import check_grid
from tilewright.targets.nvidia.emit import emit_function, find_kernel

# wgmma and the copy engine want tiles at multiples of this.
ALIGNMENT = 1024


def shared_bytes(threads: Threads) -> int:
    """The shared memory of a lowered case, up to where another may begin."""
    return -(-int(str(threads.scheduled.metadata["shared_bytes"])) // ALIGNMENT) * ALIGNMENT


def emit_body(ctx: SimtContext, kernel: FuncOp) -> None:
    """Emit what a kernel does, but not its end."""
    *body, _ = kernel.body.block.ops
    for op in body:
        ctx.emit_op(op)


def run_in_role(case: Case, first_warp: int, replicas: int = 1) -> dict[str, Array]:
    """What the arrays hold after warps from `first_warp` on ran the case, the others nothing."""
    threads = lower_for_gpu(case)
    options, own = threads.request.compile_options, shared_bytes(threads)
    part = Partition(
        first_warp + replicas * options.num_warps,
        options.num_warps,
        first_warp,
        replicas,
        barrier=3,
        shared_start=2 * ALIGNMENT,
        shared_bytes=own,
    )
    kernel = find_kernel(threads.scheduled.module)

    def emit(ctx: SimtContext) -> None:
        emit_partitions(ctx, [(part, lambda: emit_body(ctx, kernel))])
        ctx.fn.emit("ret void")

    machine = threads.request.machine
    text = emit_function(threads.scheduled.module, machine, options, part.cta_warps, emit)
    # A barrier of the whole cta would not wait for warps that have ended.
    assert "cta.sync.aligned.all" not in text
    grid = check_grid(case.name, case.grid, threads.memory.values)
    name = str(threads.scheduled.metadata["symbol"])
    num_threads = machine.lanes * part.cta_warps
    simulate(text, name, grid, num_threads, threads.arguments, part.shared.stop)
    threads.memory.require_guards(case.name)
    return threads.memory.arrays()
