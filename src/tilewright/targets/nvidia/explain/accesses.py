"""How loads and stores reach global memory: vectors, sectors, and what keeps them from more."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from math import prod

import numpy as np
import numpy.typing as npt
from xdsl.ir import Operation, OpResult, SSAValue

from tilewright.analysis.affine.tile import AffineTile
from tilewright.analysis.facts import MAX_ACCESS_BYTES, AxisFacts
from tilewright.ir.annotations import decided
from tilewright.ir.effects import Access, Extent, atomic_of, global_access
from tilewright.ir.encoding import SharedType, has_layout, layout_of
from tilewright.ir.locations import describe
from tilewright.ir.op import DerivedAddress, ViewOp
from tilewright.ir.plans import AccessAttr
from tilewright.ir.types import PointerType, element_of, shape_of, storage_bytes
from tilewright.layout.linear import LinearLayout
from tilewright.ops.function import FuncOp
from tilewright.support.dataclass import dataclass
from tilewright.support.rules import RuleTable
from tilewright.targets.nvidia.tma_ops import TmaFillOp, TmaLoadOp, TmaLoadSlotOp, TmaStoreOp

SECTOR_BYTES = 32
"""What memory moves at least. Source: CUDA C++ best practices guide, "Coalesced access"."""
# Source: the same guide; a line of the caches has four sectors.
_LINE_BYTES = 128

Coordinates = npt.NDArray[np.int64]


@dataclass(frozen=True)
class AccessSummary:
    """One load, store, copy or atomic.

    *Units*: `bytes_per_lane` of one instruction; `instructions` a lane; `sectors` and `ideal` of
    32 bytes, the mean of a warp's request. `why` says what keeps it from being wider or from
    touching fewer sectors. `engine_bytes` are those of a block that the copy engine moves; no lane
    takes part in that.
    """

    operation: str
    line: str
    bytes_per_lane: int
    vector_elems: int
    instructions: int
    sectors: float
    ideal: float
    why: str = ""
    engine_bytes: int = 0

    @property
    def is_coalesced(self) -> bool:
        """Whether a request touches about as many sectors as its bytes need."""
        return self.sectors <= 1.25 * self.ideal


_BY_ENGINE: RuleTable[Callable[[Operation], AccessSummary]] = RuleTable("accesses by the engine")


def explain_accesses(kernel: FuncOp) -> tuple[AccessSummary, ...]:
    """Every access of a T2 kernel to global memory, in the order of the text."""
    facts = AxisFacts(kernel)
    return tuple(_accesses(kernel, facts))


def _accesses(kernel: FuncOp, facts: AxisFacts) -> Iterator[AccessSummary]:
    for op in kernel.walk():
        access, rule = global_access(op), _BY_ENGINE.find(type(op))
        if rule is not None:
            yield rule(op)
        elif access is not None:
            yield _summary(op, access, facts)


@_BY_ENGINE.register(TmaLoadOp, TmaLoadSlotOp, TmaFillOp)
def _loaded(op: TmaLoadOp | TmaLoadSlotOp | TmaFillOp) -> AccessSummary:
    return _by_engine(op, "block load", op.dst)


@_BY_ENGINE.register(TmaStoreOp)
def _stored(op: TmaStoreOp) -> AccessSummary:
    return _by_engine(op, "block store" if op.kind is None else "block reduce", op.src)


def _by_engine(op: Operation, name: str, tile: SSAValue) -> AccessSummary:
    assert isinstance(tile.type, SharedType)
    size = prod(tile.type.extents()) * storage_bytes(tile.type.element)
    return AccessSummary(name, describe(op), 0, 0, 0, 0.0, 0.0, engine_bytes=size)


def _summary(op: Operation, access: Access, facts: AxisFacts) -> AccessSummary:
    pointers = op.operands[0]
    size = _element_bytes(pointers)
    is_copy = access.extent is Extent.START
    name = "copy to shared" if is_copy else op.name.partition(".")[2]
    if not has_layout(pointers.type):
        return AccessSummary(name, describe(op), size, 1, 1, 1.0, 1.0, "one element")
    plan = decided(op, AccessAttr)
    width, dim = plan.vector, plan.order[0]
    layout, known = layout_of(pointers.type), facts.of(pointers)
    apart = _bytes_between_runs(pointers, facts, dim)
    request = _Request(layout, known, dim, width, size, apart)
    why = _why_not_wider(op, facts, dim, width) or _why_more_sectors(request)
    return AccessSummary(
        name,
        describe(op),
        width * size,
        width,
        request.instructions,
        request.sectors(),
        request.ideal(),
        why,
    )


def _bytes_between_runs(pointers: SSAValue, facts: AxisFacts, dim: int) -> int:
    """A power of two of bytes, a line at most, that tiles of offsets are multiples of."""
    found, rank, size = _LINE_BYTES, len(shape_of(pointers.type)), _element_bytes(pointers)
    while isinstance(pointers, OpResult):
        if isinstance(pointers.op, ViewOp):
            pointers = pointers.op.operands[0]
        elif pointers.op.has_trait(DerivedAddress) and len(pointers.op.operands) == 2:
            pointers, offset = pointers.op.operands
            if shape := shape_of(offset.type):
                divisors = facts.of(offset).divisibility
                divisor = divisors[dim] if len(shape) == rank else min(divisors)
                found = min(found, divisor * size)
        else:
            break
    return found


def _element_bytes(pointers: SSAValue) -> int:
    pointer = element_of(pointers.type)
    assert isinstance(pointer, PointerType)
    return storage_bytes(pointer.pointee)


class _Request:
    """The requests of warp 0, with addresses as far as the axis facts know them.

    Elements of one run are adjacent, equal pointers are one element, different runs are taken to
    lie apart, and to begin where their alignment allows the most sectors: an upper bound. Runs
    begin a multiple of `apart` bytes behind their array, as far as offsets say it.
    """

    def __init__(
        self, layout: LinearLayout, known: AffineTile, dim: int, width: int, size: int, apart: int
    ) -> None:
        self.layout, self.known, self.dim = layout, known, dim
        self.width, self.size, self.apart = width, size, apart
        at = layout.coordinates()[::width, :, 0]
        self.instructions = len(at)
        self._bytes = self._addresses(at)

    def _addresses(self, at: Coordinates) -> Coordinates:
        """A number for the first byte of each lane: `[instructions, lanes]`, runs apart."""
        known, size = self.known, self.size
        run = np.zeros(at.shape[:2], np.int64)
        inside = np.zeros(at.shape[:2], np.int64)
        for d, extent in enumerate(known.kind.shape):
            length = known.contiguity[d] if d == self.dim else 1
            if length > 1:
                inside = at[..., d] % length * size
                step = length
            else:
                step = known.constancy[d]
            run = run * -(-extent // step) + at[..., d] // step
        longest = known.contiguity[self.dim] * size
        # A line more: a run may begin anywhere in its first one.
        apart = -(-longest // _LINE_BYTES) * _LINE_BYTES + _LINE_BYTES
        return run * apart + inside

    def sectors(self) -> float:
        """The sectors that a request touches, on average."""
        alignment = max(self.known.divisibility[self.dim], self.size)
        # More than 16 bytes is never asked of an argument, and arrays begin at sectors.
        if alignment >= MAX_ACCESS_BYTES:
            alignment = max(alignment, min(self.apart, SECTOR_BYTES))
        return max(self._sectors_from(start) for start in range(0, SECTOR_BYTES, alignment))

    def _sectors_from(self, start: int) -> float:
        """The sectors of a request whose runs begin `start` bytes behind a sector."""
        steps = np.arange(0, self.width * self.size, min(SECTOR_BYTES, self.width * self.size))
        sectors = (self._bytes[..., None] + steps + start) // SECTOR_BYTES
        return float(np.mean([len(np.unique(request)) for request in sectors]))

    def ideal(self) -> float:
        """The sectors that the bytes of a request need, on average."""
        sizes = [len(np.unique(request)) * self.width * self.size for request in self._bytes]
        return float(np.mean([-(-size // SECTOR_BYTES) for size in sizes]))


def _why_not_wider(op: Operation, facts: AxisFacts, dim: int, width: int) -> str:
    """What keeps an access from 16 bytes a lane; '' where nothing does."""
    pointers = op.operands[0]
    size, known, layout = _element_bytes(pointers), facts.of(pointers), layout_of(pointers.type)
    if width * size >= MAX_ACCESS_BYTES:
        return ""
    if atomic_of(op) is not None:
        return "an atomic takes one element"
    if known.contiguity[dim] == 1:
        return "the addresses are not known to be adjacent along any dimension"
    if known.aligned_run(dim) <= width:
        return _why_short_run(known, dim, size)
    mask: SSAValue | None = getattr(op, "mask", None)
    if mask is not None and facts.mask_alignment(mask, dim) <= width:
        share = facts.mask_alignment(mask, dim)
        return f"the mask is known to be the same for {share} element(s) in a row only"
    share = max(1, prod(layout.shape) // (layout.num_lanes * layout.num_warps))
    if share <= width:
        threads = layout.num_lanes * layout.num_warps
        return f"{prod(layout.shape)} elements are {share} for each of {threads} lanes"
    return f"the layout of its neighbours holds {width} element(s) in a row"


def _why_short_run(known: AffineTile, dim: int, size: int) -> str:
    run, divisor = known.contiguity[dim], known.divisor_at(dim, known.contiguity[dim])
    if divisor // known.kind.unit < run and divisor < MAX_ACCESS_BYTES:
        return (
            f"the addresses are known to be multiples of {divisor} bytes only: a stride or an "
            f"offset is not known to be a multiple of {MAX_ACCESS_BYTES // size}"
        )
    return f"only {run} addresses in a row are adjacent"


def _why_more_sectors(request: _Request) -> str:
    if request.sectors() <= 1.25 * request.ideal():
        return ""
    run = request.known.contiguity[request.dim] * request.size
    if run < SECTOR_BYTES:
        return f"runs of {run} bytes use a part of each sector of {SECTOR_BYTES}"
    return "the lanes of a warp hold short pieces of many rows"
