"""The tuple of the language, and the plain values of what is known at compile time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, cast


class Constant:
    """A value known at compile time: what `constexpr` gives operators."""

    __slots__ = ("value",)

    value: object


def unwrap(value: object) -> object:
    """The plain value of a constexpr, anything else unchanged."""
    return value.value if isinstance(value, Constant) else value


class tuple_:
    """The tuple of the language: immutable, indexable at compile time, optionally named.

    `fields` names the elements when it came from a NamedTuple; `factory` rebuilds that class.
    """

    __slots__ = ("factory", "fields", "values")

    def __init__(
        self,
        values: Sequence[object],
        fields: Sequence[str] | None = None,
        factory: object = None,
    ) -> None:
        self.values = list(values)
        self.fields = None if fields is None else list(fields)
        self.factory = factory

    def __len__(self) -> int:
        return len(self.values)

    def __iter__(self) -> Iterator[Any]:
        return iter(self.values)

    def __getitem__(self, index: object) -> Any:
        index = unwrap(index)
        if isinstance(index, slice):
            start, stop, step = (unwrap(p) for p in (index.start, index.stop, index.step))
            return tuple_(self.values[cast("slice", slice(start, stop, step))])
        return self.values[index]  # type: ignore[index]

    def __getattr__(self, name: str) -> Any:
        fields = object.__getattribute__(self, "fields")
        if fields is not None and name in fields:
            return self.values[fields.index(name)]
        raise AttributeError(name)

    def __add__(self, other: object) -> tuple_:
        return tuple_([*self.values, *other])  # type: ignore[misc]

    def __mul__(self, count: object) -> tuple_:
        return tuple_(self.values * int(unwrap(count)))  # type: ignore[call-overload]

    def __eq__(self, other: object) -> bool:
        if isinstance(other, tuple | list | tuple_):
            plain = [unwrap(v) for v in self.values]
            return plain == [unwrap(v) for v in other]
        return NotImplemented

    def __hash__(self) -> int:
        return hash(tuple(self.values))

    def __repr__(self) -> str:
        return f"tuple({', '.join(repr(v) for v in self.values)})"
