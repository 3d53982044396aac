"""What a launch has to keep to so that loads may run ahead of stores through other arguments.

    for tile … { for k … { load %a, load %b }; store %c }     the next tile is loaded ahead
    ⇒ right where %c is apart from %a and from %b, in all of their tiles: two guards

A launch that does not keep to them takes the kernel without roles. Programs keep no order among
each other, so the tiles of one that was made persistent may be loaded ahead of any store.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from xdsl.ir import Operation

from tilewright.analysis.affine.access import Accesses
from tilewright.analysis.provenance import base_argument
from tilewright.ir.effects import global_access
from tilewright.ir.locations import describe
from tilewright.ops.function import FuncOp
from tilewright.passes.persist import tile_loops
from tilewright.runtime.launch_numbers import LaunchGuard
from tilewright.schedule.partition.conditions import require_known_effects, written_before
from tilewright.schedule.partition.refusal import Refused
from tilewright.targets.nvidia.address_ranges import apart, no_overlap


def overlap_guards(
    kernel: FuncOp,
    loads: Sequence[Operation],
    *,
    may_overlap: bool,
    known: Collection[Operation] = (),
) -> list[LaunchGuard]:
    """The guards of loads that run ahead, but for the reads `known`, whose order roles keep.

    *Raises*: Refused where a launch cannot tell, and where arguments `may_overlap`.
    """
    require_known_effects(kernel)
    accesses, guards = Accesses(), list[LaunchGuard]()
    loads = [load for load in loads if load not in known]
    for load, write in written_before(kernel, loads, tile_loops(kernel)):
        pair = f"{write.name} at {describe(write)} may write what is loaded ahead of it"
        if may_overlap:
            raise Refused(load, f"{pair}: arguments may overlap")
        number = apart(load, write, accesses)
        if isinstance(number, str):
            raise Refused(load, f"{pair}, and a launch cannot tell: {number}")
        guards.append(LaunchGuard(number, "at_least", 0, _names(load, write)))
    return guards


def _names(load: Operation, write: Operation) -> str:
    arguments = []
    for op in (load, write):
        access = global_access(op)
        assert access is not None and access.value is not None
        arguments.append(base_argument(access.value) or access.value)
    return no_overlap(*arguments)
