"""The base of every op of ours, and the facets that passes and targets ask for.

A facet is a fact that an op declares about itself; a pass asks facets and traits, never for a
concrete class. The reference semantics of an op are its `reference` method, over NumPy arrays.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from types import ModuleType

import numpy as np
from xdsl.dialects.builtin import LocationAttr, UnknownLoc
from xdsl.ir import Attribute, Operation, OpResult, Region, SSAValue
from xdsl.irdl import IRDLOperation
from xdsl.traits import OpTrait
from xdsl.utils.exceptions import VerifyException

from tilewright.ir.types import element_of, shape_of
from tilewright.support.dataclass import dataclass

Array = np.ndarray
UNKNOWN_LOCATION = UnknownLoc()
ADDED_OPS: dict[str, type[Operation]] = {}
"""Ops of extensions by name; legal at every level whose types they keep to."""


class DerivedAddress(OpTrait):
    """The result points into the memory that the first operand points into."""


@dataclass(frozen=True)
class Planned(OpTrait):
    """How a GPU performs the op is decided before it is emitted, and annotated by these names."""

    plans: tuple[str, ...]


@cache
def plans_of(cls: type[Operation]) -> tuple[str, ...]:
    """What is decided about the ops of a class before they are emitted."""
    return tuple(name for trait in cls.get_traits_of_type(Planned) for name in trait.plans)


ACCESSES = Planned(("tw.access",))
EXCHANGES = Planned(("tw.exchange",))
ACCESSES_AND_EXCHANGES = Planned(("tw.access", "tw.exchange"))


class TileOp(IRDLOperation):
    """An op of the tile IR with its facets; what it does to memory: see `ir.effects`."""

    def reference(self, *operands: Array) -> Array | tuple[Array, ...]:
        """The op on NumPy arrays, one per operand; narrow floats arrive widened to float32."""
        raise NotImplementedError(f"{self.name} has no reference semantics")


class OneThreadOp(TileOp):
    """The facet of ops that one thread of a role does for all of it, and others take no part in."""


class ByHalvesOp(TileOp):
    """The facet of ops that move elements of a tile by halves: its extents are powers of two."""


class PointwiseOp(TileOp):
    """The facet of ops whose result's elements depend on the operands' elements at their index.

    They may depend on memory, too, as what a load finds does.
    """


class ElementwiseOp(PointwiseOp):
    """The elementwise facet: pointwise on operands alone, legal on scalars, tiles and vectors."""

    def verify_(self) -> None:
        """Every operand and result has the same shape."""
        shapes = {shape_of(v.type) for v in (*self.operands, *self.results)}
        if len(shapes) > 1:
            raise VerifyException(f"{self.name}: operands and results differ in shape: {shapes}")


class ViewOp(TileOp):
    """The facet of ops whose elements are those of `operands[0]`, each at some of its indices.

    *Semantics*: result[i₀, i₁, …] = operand[i of its dimensions], where an operand's dimension
    of extent 1 is repeated along the result's.
    """

    def verify_(self) -> None:
        """The elements keep their type."""
        require_one_element(self, (self.operands[0], *self.results))

    def source_dims(self) -> tuple[int, ...]:
        """For each dimension of the operand the dimension of the result that runs along it."""
        raise NotImplementedError(f"{self.name} does not say where its elements come from")


class SharedViewOp(TileOp):
    """The facet of ops whose results are views of shared tiles: of all slots, or of one."""

    def viewed(self, result: OpResult) -> SSAValue:
        """The shared tile that a result is a view of: by default the first operand."""
        return self.operands[0]

    def slot_number(self) -> int | None:
        """The one slot that is viewed, where it is known."""
        return None


class AccumulatingOp(TileOp):
    """The facet of ops that add to an operand, in whose place the result may come to lie.

    *Constraints*: an element of that operand is read before the one of the result at its index
    is written, and never after.
    """

    def accumulator_index(self) -> int:
        """Which operand it is."""
        raise NotImplementedError(f"{self.name} does not say what it adds to")


def require_one_element(op: Operation, values: Sequence[SSAValue]) -> None:
    """Refuse values of different element types in an op. *Raises*: VerifyException."""
    elements = list(dict.fromkeys(element_of(value.type) for value in values))
    if len(elements) > 1:
        found = ", ".join(map(str, elements))
        raise VerifyException(f"{op.name}: element types differ: {found}")


def ops_of(module: ModuleType) -> tuple[type[Operation], ...]:
    """The op classes that a module defines, in its order; bases without a name are none."""
    return tuple(
        cls
        for cls in vars(module).values()
        if isinstance(cls, type)
        and issubclass(cls, Operation)
        and cls.__module__ == module.__name__
        and "name" in vars(cls)
    )


def build(
    cls: type[Operation],
    operands: Sequence[SSAValue] = (),
    result_types: Sequence[Attribute] = (),
    properties: Mapping[str, Attribute] | None = None,
    regions: Sequence[Region] = (),
    location: LocationAttr | None = None,
) -> Operation:
    """Create an op without the cost of its declarative constructor (6 µs against 17-60)."""
    return cls.create(
        operands=operands,
        result_types=result_types,
        properties=properties or {},
        regions=regions,
        location=location,
    )
