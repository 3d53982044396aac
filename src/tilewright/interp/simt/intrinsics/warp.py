"""Operations of a warp: shuffles, votes, reductions."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tilewright.interp.simt.calls import Call, Compute, intrinsic
from tilewright.interp.simt.statistics import WARP
from tilewright.interp.simt.types import StructType
from tilewright.ir.op import Array

# The lane that `elect.sync` of a whole warp elects: always the same, and nobody says which. One
# that is not 0 shows a program that takes it for the first.
LEADER = 11


def shuffle_sources(
    mode: str, lanes: Array, distance: Array, control: Array
) -> tuple[Array, Array]:
    """The lane that each lane reads, and whether that is one of its segment.

    `control` is PTX's c operand: clamp in the low five bits, segment mask above.
    """
    clamp, segment = control & 0x1F, control >> 8 & 0x1F
    low = lanes & segment
    high = low | (clamp & ~segment)
    b = distance & 0x1F
    if mode == "up":
        source = lanes - b
        inside = source >= high
    elif mode == "down":
        source = lanes + b
        inside = source <= high
    elif mode == "bfly":
        source = lanes ^ b
        inside = source <= high
    else:
        source = low | (b & ~segment)
        inside = source <= high
    return np.where(inside, source, lanes), inside


@intrinsic("llvm.nvvm.shfl.sync.idx", "llvm.nvvm.shfl.sync.bfly")
@intrinsic("llvm.nvvm.shfl.sync.up", "llvm.nvvm.shfl.sync.down")
def _shuffle(call: Call) -> Compute:
    machine = call.machine
    mode = call.name.split(".")[4]
    with_predicate = isinstance(call.type, StructType)
    lanes = machine.thread_ids % WARP
    first = machine.thread_ids - lanes

    def compute() -> Array | tuple[Array, ...]:
        check_members(call, 0, "shfl.sync")
        distance, control = call.array(2).astype(np.int64), call.array(3).astype(np.int64)
        source, inside = shuffle_sources(mode, lanes, distance, control)
        result = call.array(1)[first + source]
        return (result, inside) if with_predicate else result

    return compute


def check_members(call: Call, index: int, what: str) -> None:
    """Raise unless the lanes that execute are those that the member mask names."""
    machine = call.machine
    if machine.mask is None:
        return
    members = call.array(index)[machine.active()]
    if (members == 0xFFFFFFFF).all():
        machine.require_whole_warps(what)
        return
    named = (call.array(index).astype(np.int64) >> (machine.thread_ids % WARP)) & 1
    warps = machine.mask.reshape(-1, WARP)
    wrong = ((named.reshape(-1, WARP) == 1) != warps) & np.repeat(
        np.any(warps, axis=1)[:, None], WARP, 1
    )
    if wrong.any():
        machine.require_whole_warps(what + " with members that do not execute it")


def _per_warp(values: Array, active: Array | None, function: Callable[[Array], Array]) -> Array:
    """Reduce each warp's active lanes to one value, and give it to all of them."""
    del active
    return np.repeat(function(values.reshape(-1, WARP)), WARP)


_REDUCTIONS: dict[str, Callable[[Array], Array]] = {
    "add": lambda v: v.sum(1, dtype=np.uint32),
    "and": lambda v: np.bitwise_and.reduce(v, axis=1),
    "or": lambda v: np.bitwise_or.reduce(v, axis=1),
    "xor": lambda v: np.bitwise_xor.reduce(v, axis=1),
    "umin": lambda v: v.min(1),
    "umax": lambda v: v.max(1),
    "min": lambda v: v.view(np.int32).min(1).view(np.uint32),
    "max": lambda v: v.view(np.int32).max(1).view(np.uint32),
}


def _reduce(call: Call) -> Compute:
    function = _REDUCTIONS[call.name.split(".")[4]]

    def compute() -> Array:
        call.machine.require_whole_warps("redux.sync")
        return _per_warp(np.ascontiguousarray(call.array(0)), None, function)

    return compute


for _name in _REDUCTIONS:
    intrinsic("llvm.nvvm.redux.sync." + _name)(_reduce)


@intrinsic("llvm.nvvm.elect.sync")
def _elect(call: Call) -> Compute:
    machine = call.machine

    def compute() -> tuple[Array, ...]:
        check_members(call, 0, "elect.sync")
        lanes = machine.thread_ids % WARP
        return np.full(machine.threads, LEADER, np.uint32), lanes == LEADER

    return compute
