"""A box of a tensor that a copy engine moves: what an access has to be for `as_box` to give one."""

from __future__ import annotations

from xdsl.ir import SSAValue

from tilewright.analysis.affine.expression import Expression, integer
from tilewright.analysis.affine.guards import Guard
from tilewright.analysis.affine.text import text_of
from tilewright.support.dataclass import dataclass


@dataclass(frozen=True)
class BoxDim:
    """One dimension of a box: `extent` elements from `start` on, of a tensor's dimension.

    The tensor ends at the least of `sizes`; without one it goes on as far as the program reads.
    With a `modulus` the box starts at start mod modulus, and does not wrap. Where it `is_cut`, the
    program has other elements beyond the tensor, but nothing looks at them. Where it `may_precede`,
    the program leaves out what lies before the tensor.
    """

    extent: int
    stride: Expression
    start: Expression
    sizes: tuple[Expression, ...]
    modulus: Expression | None = None
    is_cut: bool = False
    may_precede: bool = False


@dataclass(frozen=True)
class Within:
    """What every tile has to keep: start + extent <= limit. A mask would say so."""

    start: Expression
    extent: int
    limit: Expression

    def __str__(self) -> str:
        return f"{text_of(self.start.plus(integer(self.extent)))} <= {text_of(self.limit)}"


@dataclass(frozen=True)
class TensorBox:
    """A box of the tensor at `base` + `offset` elements, its dimensions from the outermost on.

    `order` are the dimensions of the tile that the last of these are: not ascending where the tile
    is transposed. Those before have one element each: a batch, a head, a row that the program
    chooses. The answer is right where the launch's `guards` and each tile's `within` hold.
    """

    base: SSAValue
    element_bytes: int
    offset: Expression
    dims: tuple[BoxDim, ...]
    order: tuple[int, ...]
    guards: tuple[Guard, ...]
    within: tuple[Within, ...]
