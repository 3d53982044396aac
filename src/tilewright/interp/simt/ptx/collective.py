"""PTX's operations of a warp and a cta: barriers, votes, shuffles, matrices."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tilewright.interp.simt.fragments import OPERAND_DTYPES
from tilewright.interp.simt.intrinsics.matrix import (
    load_matrices,
    matrix_count,
    store_matrices,
    warp_product,
)
from tilewright.interp.simt.intrinsics.warp import LEADER, shuffle_sources
from tilewright.interp.simt.kinds import as_kind, packed
from tilewright.interp.simt.ptx.memory import space_of_words
from tilewright.interp.simt.ptx.rules import Compute, PtxCall, ptx
from tilewright.interp.simt.statistics import WARP
from tilewright.ir.op import Array


@ptx("bar.sync", "barrier.sync", "barrier.cta.sync", "bar.cta.sync", words="aligned")
def _sync(call: PtxCall) -> Compute:
    return _barrier(call, waits=True)


@ptx("bar.arrive", "barrier.arrive", "barrier.cta.arrive", "bar.cta.arrive", words="aligned")
def _arrive(call: PtxCall) -> Compute:
    return _barrier(call, waits=False)


def _barrier(call: PtxCall, *, waits: bool) -> Compute:
    call.is_suspension = True
    machine = call.machine
    number = call.read(0, "u32")
    count = call.read(1, "u32") if len(call.operands) > 1 else None

    def compute() -> None:
        machine.require_whole_warps("a barrier")
        threads = machine.active()
        numbers = number()[threads]
        for value in np.unique(numbers):
            chosen = threads[numbers == value]
            expected = None if count is None else int(count()[chosen[0]])
            machine.synchronization.arrive(int(value), expected, chosen, waits=waits)
        machine.progress += 1

    return compute


@ptx("bar.warp.sync")
def _sync_warp(call: PtxCall) -> Compute:
    machine = call.machine

    def compute() -> None:
        warps = machine.require_whole_warps("bar.warp.sync")
        machine.synchronization.clocks.synchronize_warps(warps)

    return compute


@ptx("elect.sync")
def _elect(call: PtxCall) -> Compute:
    machine = call.machine
    call.writes(*call.members(0))

    def compute() -> Sequence[Array]:
        machine.require_whole_warps("elect.sync")
        lanes = machine.thread_ids % WARP
        return [np.full(machine.threads, LEADER, np.uint32), lanes == LEADER]

    return compute


@ptx("activemask")
def _active_mask(call: PtxCall) -> Compute:
    machine = call.machine
    call.writes(call.operands[0])

    def compute() -> Sequence[Array]:
        executing = np.zeros(machine.threads, np.bool_)
        executing[machine.active()] = True
        weights = np.left_shift(np.uint32(1), machine.thread_ids.astype(np.uint32) % WARP)
        bits = np.where(executing, weights, np.uint32(0)).reshape(-1, WARP)
        return [np.repeat(bits.sum(1, dtype=np.uint32), WARP)]

    return compute


@ptx("shfl.sync", words="idx up down bfly")
def _shuffle(call: PtxCall) -> Compute:
    machine, mode = call.machine, call.words[1]
    targets = call.members(0)
    call.writes(*targets)
    value, distance, control = (call.read(i, "b32") for i in (1, 2, 3))
    lanes = machine.thread_ids % WARP
    first = machine.thread_ids - lanes

    def compute() -> Sequence[Array]:
        machine.require_whole_warps("shfl.sync")
        source, inside = shuffle_sources(
            mode, lanes, distance().astype(np.int64), control().astype(np.int64)
        )
        return [value()[first + source], inside][: len(targets)]

    return compute


@ptx("ldmatrix.sync.aligned.m8n8", words="x1 x2 x4 trans shared shared::cta")
def _load_matrix(call: PtxCall) -> Compute:
    if not call.has("b16"):
        raise call.unknown()
    count, transposes, space = matrix_count(call.words), call.has("trans"), space_of_words(call)
    call.writes(*call.members(0))
    address = call.address(1)[0]
    return lambda: load_matrices(
        call.machine, space, address(), count, call.site, transposes=transposes
    )


@ptx("stmatrix.sync.aligned.m8n8", words="x1 x2 x4 trans shared shared::cta")
def _store_matrix(call: PtxCall) -> Compute:
    if not call.has("b16"):
        raise call.unknown()
    transposes, space = call.has("trans"), space_of_words(call)
    address = call.address(0)[0]
    readers = [call.registers.reader(member, "b32") for member in call.members(1)]

    def compute() -> None:
        registers = [read() for read in readers]
        store_matrices(call.machine, space, address(), registers, call.site, transposes=transposes)

    return compute


@ptx("mma.sync.aligned", words=None)
def _multiply(call: PtxCall) -> Compute:
    kinds = [w for w in call.words[3:] if w not in ("row", "col")]
    if len(kinds) != 4 or not {kinds[1], kinds[2]} <= OPERAND_DTYPES.keys():
        raise call.unknown()
    target, a_kind, b_kind, _ = kinds
    call.writes(*call.members(0))
    width = "b64" if a_kind == "f64" else "b32"
    a, b, c = (
        [call.registers.reader(member, width) for member in call.members(i)] for i in (1, 2, 3)
    )
    element = {"f16": "f16x2", "s32": "s32", "f64": "f64"}.get(target, "f32")

    def compute() -> Sequence[Array]:
        call.machine.require_whole_warps("mma.sync")
        old = [as_kind(read(), element) for read in c]
        if element == "f16x2":
            old = [half for pair in old for half in pair]
        flat = warp_product([r() for r in a], [r() for r in b], old, (a_kind, b_kind))
        if element == "f16x2":
            return [packed(np.stack(flat[i : i + 2])) for i in range(0, len(flat), 2)]
        return flat

    return compute
