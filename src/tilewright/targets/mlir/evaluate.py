"""One element of a tile, computed where it is needed.

What is computed element by element is no tensor of its own: the loop that needs it computes it,
at the index that it needs. So a chain of elementwise ops, with the broadcasts, ranges and
transpositions between them, is one `linalg.generic`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from xdsl.ir import Operation, SSAValue

from tilewright.ir.types import shape_of
from tilewright.ops.creation.ir import ConstantOp, MakeRangeOp, SplatOp
from tilewright.ops.shape.ir import BroadcastOp, ExpandDimsOp, JoinOp, SplitOp, TransOp
from tilewright.support.dataclass import dataclass
from tilewright.targets.mlir.text import INDEX, Code, tensor_text, type_text


@dataclass(frozen=True)
class Coord:
    """An index along one dimension: that of a loop dimension, a constant, or a value.

    With `lanes`, a count and a dimension, it is `dim * count` and the index of that dimension.
    """

    dim: int | None = None
    constant: int = 0
    name: str = ""
    lanes: tuple[int, int] | None = None

    def is_static(self) -> bool:
        """Whether an affine map can say it."""
        return not self.name

    def map_text(self) -> str:
        """The coordinate as a result of an affine map."""
        if self.lanes is not None:
            return f"d{self.dim} * {self.lanes[0]} + d{self.lanes[1]}"
        return str(self.constant) if self.dim is None else f"d{self.dim}"


Coords = tuple[Coord, ...]
LAZY = (ConstantOp, SplatOp, MakeRangeOp, ExpandDimsOp, BroadcastOp, TransOp, JoinOp, SplitOp)
"""What moves elements, or makes them of nothing, beside the elementwise ops."""


def scalar_of(value: SSAValue) -> SSAValue | None:
    """The scalar that a tile repeats, where it is made of one."""
    match value.owner:
        case SplatOp() as op:
            return op.src
        case _:
            return None


def dims_of(rank: int) -> Coords:
    """The coordinates of a loop nest's own index."""
    return tuple(Coord(dim) for dim in range(rank))


class Values(Protocol):
    """What an evaluator asks of the function that it writes a part of."""

    code: Code

    def find(self, value: SSAValue) -> str | None:
        """The name of a scalar, or of a tile that is a tensor; None where it has none yet."""
        ...

    def scalar(self, value: SSAValue) -> str:
        """The name of a scalar."""
        ...

    def scalar_as(self, value: SSAValue, receiver: SSAValue) -> str:
        """The name of a scalar in the form that `receiver` has."""
        ...

    def element(self, op: Operation, operands: Sequence[str]) -> str:
        """One element of the result of an op that is computed element by element."""
        ...


class Evaluator:
    """Elements of tiles at coordinates, each computed once; see the module.

    With `inputs` this is the body of a `linalg.generic`: tensors that are read are added there,
    by name, type and map, and become arguments of the body. Without it, tensors are read by
    `tensor.extract`.
    """

    def __init__(
        self, values: Values, inputs: dict[tuple[str, str, str], str] | None = None
    ) -> None:
        self.values, self.code = values, values.code
        self.inputs = inputs
        self._found: dict[tuple[SSAValue, Coords], str] = {}
        self._indices: dict[Coord, str] = {}

    def fork(self) -> Evaluator:
        """An evaluator for a region inside of this one's: what it finds stays there."""
        inner = Evaluator(self.values, self.inputs)
        inner._found, inner._indices = dict(self._found), dict(self._indices)
        return inner

    def at(self, value: SSAValue, coords: Coords) -> str:
        """The element of a tile at `coords`, one for each of its dimensions; a scalar itself."""
        if not shape_of(value.type):
            return self.values.scalar(value)
        key = value, coords
        found = self._found.get(key)
        if found is None:
            found = self._found[key] = self._compute(value, coords)
        return found

    def index(self, coord: Coord) -> str:
        """A coordinate as a value of type index."""
        if coord.name:
            return coord.name
        if coord.dim is None:
            return self.code.index(coord.constant)
        if coord not in self._indices:
            self._indices[coord] = self._counted_index(coord)
        return self._indices[coord]

    def _counted_index(self, coord: Coord) -> str:
        if coord.lanes is None:
            return self.code.value(f"linalg.index {coord.dim} : index")
        count, lane = coord.lanes
        step, place = self.index(Coord(coord.dim)), self.index(Coord(lane))
        start = self.code.value(f"arith.muli {step}, {self.code.index(count)} : {INDEX}")
        return self.code.value(f"arith.addi {start}, {place} : {INDEX}")

    def read(self, tensor: str, shape: tuple[int, ...], element: str, coords: Coords) -> str:
        """An element of a tensor."""
        type_ = tensor_text(shape, element)
        if self.inputs is not None and all(coord.is_static() for coord in coords):
            at = ", ".join(coord.map_text() for coord in coords)
            key = tensor, type_, at
            return self.inputs.setdefault(
                key, f"%in{len(self.inputs)}_{tensor[1:].replace('#', '_')}"
            )
        at = ", ".join(self.index(coord) for coord in coords)
        return self.code.value(f"tensor.extract {tensor}[{at}] : {type_}")

    def _compute(self, value: SSAValue, coords: Coords) -> str:
        tensor = self.values.find(value)
        if tensor is not None:
            return self.read(tensor, shape_of(value.type), type_text(value.type), coords)
        op = value.owner
        assert isinstance(op, Operation)
        match op:
            case ConstantOp():
                return self.code.number(value.type, op.splat_value())
            case SplatOp():
                return self.values.scalar_as(op.src, value)
            case MakeRangeOp():
                return self._counted(op.start.value.data, coords[0])
            case JoinOp():
                return self._joined(op, coords)
            case SplitOp():
                last = Coord(constant=int(value is op.out_rhs))
                return self.at(op.src, (*coords, last))
            case ExpandDimsOp() | BroadcastOp() | TransOp():
                return self._viewed(op, coords)
            case _:
                operands = [self.at(operand, coords) for operand in op.operands]
                return self.values.element(op, operands)

    def _viewed(self, op: ExpandDimsOp | BroadcastOp | TransOp, coords: Coords) -> str:
        """An element of the source, whose dimensions of one element are repeated."""
        dims, shape = op.source_dims(), shape_of(op.src.type)
        source = tuple(
            Coord() if extent == 1 else coords[dim] for dim, extent in zip(dims, shape, strict=True)
        )
        return self.at(op.src, source)

    def _counted(self, start: int, coord: Coord) -> str:
        if coord.is_static() and coord.dim is None:
            return self.code.constant("i32", start + coord.constant)
        number = self.code.value(f"arith.index_cast {self.index(coord)} : {INDEX} to i32")
        if not start:
            return number
        return self.code.value(f"arith.addi {number}, {self.code.constant('i32', start)} : i32")

    def _joined(self, op: JoinOp, coords: Coords) -> str:
        *rest, last = coords
        if last.is_static() and last.dim is None:
            return self.at((op.lhs, op.rhs)[last.constant], tuple(rest))
        left, right = (self.at(side, tuple(rest)) for side in (op.lhs, op.rhs))
        zero = self.code.index(0)
        is_left = self.code.value(f"arith.cmpi eq, {self.index(last)}, {zero} : {INDEX}")
        kind = type_text(op.lhs.type)
        return self.code.value(f"arith.select {is_left}, {left}, {right} : {kind}")
