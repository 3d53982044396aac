"""Control flow that differs from lane to lane, while a function of scalars maps over tiles.

A branch on a tile lowers both of its sides, one after the other, and selects what each lane
keeps; a loop goes on while any lane does, and lanes that are done keep what they have. Divisions
on a path use 1 in the lanes that are elsewhere, for a division by zero is undefined.
"""

from __future__ import annotations

from xdsl.ir import Block

from tilewright.ir.effects import is_free
from tilewright.language.core import int1, int32, tensor
from tilewright.ops.builder import Builder
from tilewright.ops.casting import broadcast_tensor, convert
from tilewright.ops.elementwise.logical import logical_not
from tilewright.ops.elementwise.operators import binary
from tilewright.ops.elementwise.surface import select
from tilewright.ops.library import SURFACE
from tilewright.support.errors import UnsupportedError


def is_divergent(b: Builder, test: tensor) -> bool:
    """Whether `test` holds one truth value for each lane."""
    return b.lanes is not None and test.static_shape == b.lanes != ()


def spread(b: Builder, value: tensor) -> tensor:
    """A scalar as the tile that holds it in each lane; outside of a mapping the value itself."""
    if not b.lanes or value.static_shape:
        return value
    return broadcast_tensor(b, value, b.lanes)


def any_lane(b: Builder, test: tensor) -> tensor:
    """Whether a test holds in some lane, as a scalar."""
    if not test.static_shape:
        return test
    highest = SURFACE["max"].function(b, convert(b, test, int32))
    assert isinstance(highest, tensor)
    return convert(b, highest, int1)


def on_path(b: Builder, test: tensor) -> tensor | None:
    """The lanes that come here and where `test` holds; None when all lanes go together."""
    if not is_divergent(b, test):
        return b.active
    return test if b.active is None else binary(b, "BitAnd", b.active, test)


def off_path(b: Builder, test: tensor) -> tensor | None:
    """The lanes that come here and where `test` does not hold."""
    return on_path(b, logical_not(b, test)) if is_divergent(b, test) else b.active


def splice(b: Builder, block: Block) -> None:
    """Move the ops of one side of a branch to the insertion point, for all lanes to execute.

    Raises: UnsupportedError for ops with effects, which lanes on another path must not have.
    """
    for op in list(block.ops):
        if not is_free(op):
            raise UnsupportedError(
                f"map_elementwise(): a branch that depends on an element contains {op.name}",
                argument="scalar_fn",
                hint="touch memory outside of the branch; only computations may differ by element",
            )
        op.detach()
        b.block.add_op(op)


def safe_divisor(b: Builder, divisor: object) -> object:
    """A divisor that is 1 in the lanes that are on another path."""
    if b.active is None or not isinstance(divisor, tensor) or not divisor.dtype.is_int():
        return divisor
    lanes = spread(b, divisor)
    return select(b, b.active, lanes, b.constant(1, lanes.type))
