"""Special registers: which thread, warp and program this is."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tilewright.interp.simt.calls import Call, Compute, intrinsic
from tilewright.interp.simt.machine import Machine
from tilewright.interp.simt.statistics import WARP
from tilewright.interp.simt.types import dtype_of
from tilewright.ir.op import Array
from tilewright.support.errors import UnsupportedError

_PREFIX = "llvm.nvvm.read.ptx.sreg."
_CLOCKS = {
    "clock": np.uint32,
    "clock_hi": np.uint32,
    "clock64": np.uint64,
    "globaltimer": np.uint64,
    "globaltimer_lo": np.uint32,
    "globaltimer_hi": np.uint32,
}


def _register(machine: Machine, name: str) -> Array | None:
    """A register that stays the same for the launch, one element per thread."""
    ids = machine.thread_ids % machine.cta_threads
    fixed: dict[str, Array | int] = {
        "tid.x": ids,
        "tid.y": 0,
        "tid.z": 0,
        "ntid.x": machine.cta_threads,
        "ntid.y": 1,
        "ntid.z": 1,
        "nctaid.x": machine.grid[0],
        "nctaid.y": machine.grid[1],
        "nctaid.z": machine.grid[2],
        "laneid": ids % WARP,
        "warpid": ids // WARP,
        "warpsize": WARP,
        "cluster.ctarank": machine.ranks,
        "cluster.nctarank": machine.cluster,
        "smid": 0,
        "lanemask.lt": (1 << ids % WARP) - 1,
        "lanemask.eq": 1 << ids % WARP,
    }
    value = fixed.get(name)
    return None if value is None else np.broadcast_to(np.asarray(value), ids.shape)


def special_register(machine: Machine, name: str) -> Callable[[], Array]:
    """What reads a special register, as unsigned integers of its width."""
    value = _register(machine, name)
    if value is not None:
        fixed = value.astype(np.uint32)
        return lambda: fixed
    if name.startswith("ctaid."):
        axis = "xyz".index(name[-1])
        beside = (machine.ranks if axis == 0 else 0 * machine.ranks).astype(np.uint32)
        return lambda: np.uint32(machine.cta[axis]) + beside
    if name in _CLOCKS:
        return lambda: np.full(machine.threads, machine.tick(), _CLOCKS[name])
    raise UnsupportedError(f"the simulator does not know the special register '{name}'")


def _special_register(call: Call) -> Compute:
    read = special_register(call.machine, call.name.removeprefix(_PREFIX))
    dtype = dtype_of(call.type)
    return lambda: read().astype(dtype)


for _name in [
    "tid.x",
    "tid.y",
    "tid.z",
    "ntid.x",
    "ntid.y",
    "ntid.z",
    "ctaid.x",
    "ctaid.y",
    "ctaid.z",
    "nctaid.x",
    "nctaid.y",
    "nctaid.z",
    "laneid",
    "warpid",
    "warpsize",
    "cluster.ctarank",
    "cluster.nctarank",
    "smid",
    "lanemask.lt",
    "lanemask.eq",
    "globaltimer",
    "clock",
    "clock64",
]:
    intrinsic(_PREFIX + _name)(_special_register)
