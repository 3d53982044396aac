"""What the nest schedule decided, for people: `tilewright explain` prints it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field

from xdsl.dialects.builtin import (
    ArrayAttr,
    CallSiteLoc,
    FileLineColLoc,
    FusedLoc,
    LocationAttr,
    NameLoc,
)
from xdsl.ir import Attribute, Operation

from tilewright.ir.regions import OUTSIDE, ControlFlowOp
from tilewright.support.dataclass import dataclass
from tilewright.targets.cpu.estimate import Estimate


@dataclass(frozen=True)
class Access:
    """How one load or store of a nest reaches memory.

    `kind` is "contiguous", "uniform", "strided", "gather" or "scalar"; `why` explains a slow
    kind in the user's words.
    """

    operation: str
    line: str
    kind: str
    why: str = ""


@dataclass(frozen=True)
class Loop:
    """A loop of a kernel: its line, and its number among those in which something is computed.

    `trips` is how often it runs, None where constants do not say; `around` is the loop that it
    stands in.
    """

    line: str
    number: int
    trips: int | None = None
    around: Loop | None = None


@dataclass(frozen=True)
class NestSummary:
    """One loop nest: its bounds, its vectors, its accesses and its work per execution.

    `time` is estimated (`estimate.py`) for one execution, in a step of `loop`. What `is_rare`
    runs where a mask hides a part, or a product could not store its sums itself.
    """

    lines: tuple[str, ...]
    bounds: tuple[int, ...]
    vector: int
    lane_dim: int | None
    fused: tuple[str, ...]
    accesses: tuple[Access, ...]
    bytes: int
    flops: int
    remarks: tuple[str, ...] = ()
    loop: Loop | None = None
    time: Estimate = Estimate(0, "")
    is_rare: bool = False


@dataclass(frozen=True)
class ProductSummary:
    """One matrix product: its line, its tiles, the unit that computes it and why no faster one.

    `shape` is (m, n, k); `packed` names the operands that are copied before it, `in_place` those
    that are read where the user has them. B is cut into `panels`: how many, of how many columns.
    `is_stored`: its sum may go to the user's memory without a store's loop over the tile.
    `time` is estimated for one execution and what packs its operands, in a step of `loop`.
    A batch is `count` products, one after the other. `is_kept`: what is packed of B may be found by
    the next programs.
    """

    line: str
    shape: tuple[int, int, int]
    dtypes: tuple[str, str]
    unit: str
    packed: str
    in_place: str
    panels: tuple[int, int]
    is_stored: bool
    why_not_faster: str = ""
    loop: Loop | None = None
    time: Estimate = Estimate(0, "")
    count: int = 1
    is_kept: bool = False


@dataclass(frozen=True)
class NestReport:
    """Every nest and product of a kernel in order, and the size of the worker's arena."""

    nests: tuple[NestSummary, ...]
    arena_bytes: int
    remarks: tuple[str, ...] = ()
    products: tuple[ProductSummary, ...] = ()


@dataclass(frozen=True)
class CountedOp:
    """What a C1 op is part of: the nest of an index in the report, or the product of a T0 op.

    `is_beside`: it is no run of its own, as what packs an operand.
    """

    part: int | Operation
    is_beside: bool = False


@dataclass
class ReportBuilder:
    """Collects summaries while a kernel is lowered, and which ops each of them is about."""

    nests: list[NestSummary] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)
    products: list[ProductSummary] = field(default_factory=list)
    loops: dict[Operation, Loop] = field(default_factory=dict)
    counted: dict[Operation, CountedOp] = field(default_factory=dict)
    multiplied: list[Operation] = field(default_factory=list)
    loaded: set[Operation] = field(default_factory=set)

    def add_nest(self, ops: Sequence[Operation], summary: NestSummary) -> None:
        """Report a nest that is emitted as the first of `ops`; the others belong to it."""
        for op in ops:
            self.counted[op] = CountedOp(len(self.nests), is_beside=op is not ops[0])
        self.nests.append(summary)

    def add_product(self, op: Operation, summary: ProductSummary) -> None:
        """Report a product by its T0 op."""
        self.products.append(summary)
        self.multiplied.append(op)

    def number_of(self, op: CountedOp) -> int:
        """The number of an op's part: nests from 1 on, then products; 0 is the program."""
        if isinstance(op.part, int):
            return 1 + op.part
        return 1 + len(self.nests) + self.multiplied.index(op.part)

    def loop_of(self, op: Operation) -> Loop | None:
        """The innermost loop around an op; None outside of all."""
        around = op.parent_op()
        while around is not None and not _repeats(around):
            around = around.parent_op()
        if around is None:
            return None
        if around not in self.loops:
            outer = self.loop_of(around)
            number = len(self.loops) + 1
            self.loops[around] = Loop(line_of(around.location), number, _trips(around), outer)
        return self.loops[around]

    def finish(self, arena_bytes: int) -> NestReport:
        """The report of the whole kernel."""
        products = tuple(self.products)
        return NestReport(tuple(self.nests), arena_bytes, tuple(self.remarks), products)


def _repeats(op: Operation) -> bool:
    """Whether a region of an op may be run again."""
    if not isinstance(op, ControlFlowOp):
        return False
    return any(OUTSIDE not in (edge.source, edge.target) for edge in op.edges())


def _trips(op: Operation) -> int | None:
    """How often a loop runs, where that is a constant."""
    assert isinstance(op, ControlFlowOp)
    trips = op.trips()
    return trips.most if trips.most == trips.fewest else None


def line_of(location: LocationAttr | None) -> str:
    """`file:line` of a location, of the callee for a call site; '' when unknown."""
    if isinstance(location, FileLineColLoc):
        return f"{location.filename.data}:{location.line.data}"
    if isinstance(location, CallSiteLoc):
        return line_of(_nested(location.callee))
    if isinstance(location, NameLoc):
        return line_of(_nested(location.location))
    if isinstance(location, FusedLoc):
        parts = location.locations
        lines = [line_of(_nested(part)) for part in parts] if isinstance(parts, ArrayAttr) else []
        return next((line for line in lines if line), "")
    return ""


def _nested(attribute: Attribute) -> LocationAttr | None:
    return attribute if isinstance(attribute, LocationAttr) else None
