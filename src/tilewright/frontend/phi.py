"""Values where paths of control meet: which parts differ, and what they become.

A value is a tree (tuples nest); only the leaves that differ between the paths become results
of the branching op, everything else stays what it is at compile time.
"""

from __future__ import annotations

from collections.abc import Callable

from tilewright.frontend.values import is_number, same_constant
from tilewright.language.core import (
    block_type,
    dtype,
    int64,
    pointer_type,
    tensor,
    tuple_,
)
from tilewright.ops.builder import Builder, shaped
from tilewright.ops.casting import convert, to_tensor
from tilewright.support.dataclass import dataclass
from tilewright.support.errors import UnsupportedError


@dataclass(frozen=True)
class Slot:
    """A leaf that is decided at run time: the number of a result."""

    index: int


@dataclass(frozen=True)
class Placeholder:
    """A leaf of `type` whose value nothing reads."""

    type: dtype


class Mismatch(Exception):
    """Two paths give leaves that no value can stand for; `left` and `right` are the leaves."""

    def __init__(self, left: object, right: object) -> None:
        super().__init__("values differ in kind")
        self.left = left
        self.right = right


def join(a: object, b: object, pairs: list[tuple[object, object]]) -> object:
    """The tree of `a` and `b` with a `Slot` where they differ; the differing pairs are added.

    Raises: Mismatch when they differ in structure or in a value that only exists at compile time.
    """
    if a is b or same_constant(a, b):
        return a
    if isinstance(a, tuple_) and isinstance(b, tuple_):
        if len(a) != len(b) or a.fields != b.fields or a.factory != b.factory:
            raise Mismatch(a, b)
        items = [join(x, y, pairs) for x, y in zip(a.values, b.values, strict=True)]
        return tuple_(items, a.fields, a.factory)
    if not (_can_run(a) and _can_run(b)):
        raise Mismatch(a, b)
    pairs.append((a, b))
    return Slot(len(pairs) - 1)


def _can_run(value: object) -> bool:
    return isinstance(value, tensor | Placeholder) or is_number(value)


def stand_in(value: object, own: object = None) -> object:
    """A tree like `value` for a path on which nothing reads it.

    Leaves of `own` with the right type are used as they are, for they cost nothing.
    """
    if isinstance(value, tuple_):
        mine = own.values if isinstance(own, tuple_) and len(own) == len(value) else value.values
        items = [
            stand_in(v, None if o is v else o) for v, o in zip(value.values, mine, strict=True)
        ]
        return tuple_(items, value.fields, value.factory)
    if not isinstance(value, tensor):
        return value
    if isinstance(own, tensor) and own.type == value.type:
        return own
    return Placeholder(value.type)


def materialize(b: Builder, leaf: object) -> tensor:
    """A leaf as a runtime value at the insertion point."""
    if isinstance(leaf, Placeholder):
        return zero(b, leaf.type)
    return to_tensor(b, leaf)


def zero(b: Builder, type_: dtype) -> tensor:
    """A value of `type_` that nothing depends on.

    Raises: UnsupportedError for types that have no constants.
    """
    if isinstance(type_.scalar, pointer_type):
        shape = type_.extents if isinstance(type_, block_type) else ()
        return convert(b, b.constant(0, shaped(int64, shape)), type_.scalar)
    if not (type_.scalar.is_int() or type_.scalar.is_floating()):
        raise UnsupportedError(
            f"a value of type {type_} cannot be left undefined on a path",
            hint="assign it before the branch",
        )
    return b.constant(0, type_)


def fill(tree: object, results: Callable[[int], object]) -> object:
    """`tree` with every `Slot` replaced by its result."""
    if isinstance(tree, Slot):
        return results(tree.index)
    if isinstance(tree, tuple_):
        items = [fill(item, results) for item in tree.values]
        return tuple_(items, tree.fields, tree.factory)
    return tree
