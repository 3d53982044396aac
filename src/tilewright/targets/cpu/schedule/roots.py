"""What nests compute: one root per effect, fold or materialised tile."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field
from enum import Enum

from xdsl.ir import Operation, OpResult, SSAValue

from tilewright.ir.types import shape_of
from tilewright.ops.reduction.ir import CombineOp
from tilewright.ops.shape.ir import ReshapeOp
from tilewright.support.dataclass import dataclass
from tilewright.targets.cpu.schedule.inline import is_inline, is_tile, owner, reads


class RootKind(Enum):
    """The kinds of work that a nest does per element."""

    STORE = "store"
    REDUCE = "reduce"
    SCAN = "scan"
    MATERIALIZE = "materialize"
    COPY = "copy"
    ATOMIC = "atomic"
    PRINT = "print"
    ELEMENTS = "elements"
    UPDATE = "update"


# Kinds whose elements happen in index order, one scalar at a time, in a nest of their own.
SCALAR_KINDS = frozenset((RootKind.ATOMIC, RootKind.PRINT, RootKind.ELEMENTS))


@dataclass(eq=False)
class Root:
    """One piece of work over `space`: `values` are the tiles it reads at its own indices.

    A MATERIALIZE root writes `values[0]` to its home buffer; a COPY root writes it to that of
    `target`, at `offset` elements with the index strides `strides` where it fills part of a buffer.
    """

    kind: RootKind
    op: Operation
    values: tuple[SSAValue, ...]
    space: tuple[int, ...]
    position: int
    axis: int | None = None
    target: SSAValue | None = None
    offset: int = 0
    strides: tuple[int, ...] | None = None
    reached: dict[SSAValue, bool] = field(default_factory=dict)

    def is_reverse(self) -> bool:
        """Whether a fold runs from the end."""
        return isinstance(self.op, CombineOp) and self.op.is_reverse()

    def outputs(self) -> tuple[SSAValue, ...]:
        """The values that exist once the nest has run."""
        if self.kind is RootKind.MATERIALIZE:
            return self.values
        return () if self.kind is RootKind.COPY else tuple(self.op.results)


def reshaped_from(value: SSAValue) -> SSAValue | None:
    """The tile that a value is another shape of; None for other values."""
    op = owner(value)
    return op.operands[0] if isinstance(op, ReshapeOp) else None


def viewed(value: SSAValue) -> SSAValue | None:
    """The tile whose buffer a value is another shape of; None where it has elements of its own."""
    source = reshaped_from(value)
    return None if source is None or is_inline(value) else source


Sources = dict[SSAValue, tuple[tuple[SSAValue, bool], ...]]


def reach(
    values: tuple[SSAValue, ...],
    stored: set[SSAValue],
    computed: SSAValue | None = None,
    sources: Sources | None = None,
) -> dict[SSAValue, bool]:
    """Every value that evaluating `values` touches, with whether each path is pointwise.

    The walk goes through inline ops and stops at tiles in `stored` (but `computed`, which is
    being materialised), scalars and block arguments, which are part of the result. `sources`
    keeps what each value is made of from walk to walk, while the ops stay as they are.
    """
    sources = {} if sources is None else sources
    found: dict[SSAValue, bool] = {}
    pending: list[tuple[SSAValue, bool]] = [(v, True) for v in values]
    while pending:
        value, pointwise = pending.pop()
        known = found.get(value)
        if known is not None and (known is pointwise or not known):
            continue
        found[value] = pointwise
        if value in stored and value is not computed:
            continue
        operands = sources.get(value)
        if operands is None:
            operands = sources[value] = sources_of(value)
        for operand, same in operands:
            pending.append((operand, pointwise and same))
    return found


def sources_of(value: SSAValue) -> tuple[tuple[SSAValue, bool], ...]:
    """What an inline tile is made of, each with whether it is read at the same index."""
    op = owner(value)
    if op is None or not is_tile(value):
        return ()
    view = viewed(value)
    return tuple(reads(op) or ()) if view is None else ((view, False),)


def scalars_of(tile: SSAValue) -> list[SSAValue]:
    """The scalars that an inline tile is made of."""
    return [value for value in reach((tile,), set()) if not is_tile(value)]


def operands_of(value: SSAValue) -> Sequence[SSAValue]:
    """The operands of the op that makes a value; none for arguments."""
    return value.op.operands if isinstance(value, OpResult) else ()


def space_of(value: SSAValue) -> tuple[int, ...]:
    """The iteration space over a tile's elements."""
    return shape_of(value.type)
