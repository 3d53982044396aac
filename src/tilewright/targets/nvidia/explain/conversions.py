"""What moving elements between threads costs: conversions, and tiles that go through memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
from xdsl.ir import Attribute, Operation, SSAValue

from tilewright.interp.simt.statistics import count_wavefronts
from tilewright.ir.encoding import SharedType, layout_of
from tilewright.ir.locations import describe
from tilewright.ir.types import storage_bytes
from tilewright.layout.access import VECTOR_BYTES, Access
from tilewright.layout.convert import RegisterPermutation, SharedRoundTrip, WarpShuffle
from tilewright.layout.linear import LinearLayout
from tilewright.layout.placing import plan_access
from tilewright.layout.simulate import simulate
from tilewright.ops.function import FuncOp
from tilewright.ops.staging import (
    AsyncCopyOp,
    ConvertLayoutOp,
    LocalAllocOp,
    LocalLoadOp,
    LocalStoreOp,
)
from tilewright.schedule.conversions import conversion_of
from tilewright.support.dataclass import dataclass
from tilewright.support.rules import RuleTable
from tilewright.targets.nvidia.explain.layout_provenance import (
    Requirement,
    requirement_of_source,
    requirement_of_uses,
)
from tilewright.targets.nvidia.remarks import is_in_loop

_INSTRUCTIONS = {"vector": "", "matrix": "matrix ", "transposed_matrix": "transposed matrix "}


@dataclass(frozen=True)
class ConversionSummary:
    """One conversion between layouts.

    *Units*: `cycles` of a warp, roughly; `shared_bytes` of the program; `conflicts` are the
    wavefronts beyond what the bytes need. `made` and `wanted` are the requirements that clash.
    """

    line: str
    kind: str
    cycles: int
    shared_bytes: int
    conflicts: int
    in_loop: bool
    made: Requirement
    wanted: Requirement


@dataclass(frozen=True)
class StagingSummary:
    """A register tile that is written to shared memory, or read from it, or copied there."""

    line: str
    what: str
    bytes_per_lane: int
    wavefronts: int
    ideal: int


Side = tuple[str, SSAValue, Attribute, bool]
"""What an access does, the tile in registers, the type of the shared one, whether by matrices."""
_SIDES: RuleTable[Callable[[Operation], Iterator[Side]]] = RuleTable("accesses of shared tiles")


def explain_conversions(kernel: FuncOp) -> tuple[ConversionSummary, ...]:
    """The conversions of a T2 kernel that move elements between lanes, in order."""
    found = (op for op in kernel.walk() if isinstance(op, ConvertLayoutOp))
    return tuple(_conversion(op) for op in found if not _is_free(op))


def _is_free(op: ConvertLayoutOp) -> bool:
    return isinstance(conversion_of(op), RegisterPermutation)


def conversion_kind(op: ConvertLayoutOp) -> str:
    """How a conversion moves its elements, in words."""
    plan = conversion_of(op)
    if isinstance(plan, WarpShuffle):
        return f"{plan.num_shuffles} shuffles"
    if isinstance(plan, SharedRoundTrip):
        passes = f", {plan.num_passes} passes" if plan.num_passes > 1 else ""
        store, load = (_side(access, plan.element_bytes) for access in (plan.store, plan.load))
        return f"shared memory: {store} stores, {load} loads{passes}"
    return "renamed registers"


def _side(access: Access, element_bytes: int) -> str:
    return f"{_INSTRUCTIONS[access.kind]}{access.vector_elems * element_bytes}-byte"


def _conversion(op: ConvertLayoutOp) -> ConversionSummary:
    plan = conversion_of(op)
    is_shared = isinstance(plan, SharedRoundTrip)
    conflicts = 0
    if is_shared:
        size = storage_bytes(op.src.type)
        run = simulate(plan, layout_of(op.src.type), layout_of(op.result.type), size)
        conflicts = run.wavefronts - run.ideal
    return ConversionSummary(
        describe(op),
        conversion_kind(op),
        plan.cost(),
        plan.bytes if is_shared else 0,
        conflicts,
        is_in_loop(op),
        requirement_of_source(op.src),
        requirement_of_uses(op.result),
    )


def explain_staging(kernel: FuncOp) -> tuple[StagingSummary, ...]:
    """The accesses of a T2 kernel to shared tiles by its threads, in order."""
    found: list[StagingSummary] = []
    for op in kernel.walk():
        rule = _SIDES.find(type(op))
        for what, tile, shared, takes_matrices in () if rule is None else rule(op):
            assert isinstance(shared, SharedType)
            size = storage_bytes(shared.element)
            access = plan_access(
                layout_of(tile.type), layout_of(shared), size, matrices=takes_matrices
            )
            used, ideal = wavefronts(access, layout_of(tile.type), size)
            width = access.vector_elems * size
            found.append(StagingSummary(describe(op), what, width, used, ideal))
    return tuple(found)


@_SIDES.register(LocalAllocOp)
def _filled(op: LocalAllocOp) -> Iterator[Side]:
    if op.src is not None:
        yield "write", op.src, op.result.type, True


@_SIDES.register(LocalStoreOp)
def _stored(op: LocalStoreOp) -> Iterator[Side]:
    yield "write", op.src, op.dst.type, True


@_SIDES.register(LocalLoadOp)
def _loaded(op: LocalLoadOp) -> Iterator[Side]:
    yield "read", op.result, op.src.type, True


@_SIDES.register(AsyncCopyOp)
def _copied(op: AsyncCopyOp) -> Iterator[Side]:
    yield "asynchronous copy", op.ptr, op.dst.type, False


def wavefronts(access: Access, layout: LinearLayout, element_bytes: int) -> tuple[int, int]:
    """The wavefronts that warp 0 needs to reach a shared tile, and the least for its bytes."""
    used = ideal = 0
    lanes = np.arange(layout.num_lanes)
    width = access.vector_elems * element_bytes if access.kind == "vector" else VECTOR_BYTES
    for instructions in access.passes:
        for group in instructions:
            places = [access.offsets.offset(group[0], int(lane), 0) for lane in lanes]
            taken, least = count_wavefronts(np.array(places, np.uint64), lanes, width)
            used, ideal = used + taken, ideal + least
    return used, ideal
