"""The tuple of the language, and the plain values of what is known at compile time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any


class Constant:
    """A value known at compile time: what `constexpr` gives operators."""

    __slots__ = ("value",)

    value: Any


def unwrap(value: object) -> Any:
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

    def __getitem__(self, index: Any) -> Any:
        index = unwrap(index)
        if isinstance(index, slice):
            start, stop, step = (unwrap(p) for p in (index.start, index.stop, index.step))
            return tuple_(self.values[slice(start, stop, step)])
        return self.values[index]

    def __getattr__(self, name: str) -> Any:
        fields = object.__getattribute__(self, "fields")
        if fields is not None and name in fields:
            return self.values[fields.index(name)]
        raise AttributeError(name)

    def __add__(self, other: Iterable[object]) -> tuple_:
        return tuple_([*self.values, *other])

    def __mul__(self, count: object) -> tuple_:
        return tuple_(self.values * int(unwrap(count)))

    def __eq__(self, other: object) -> bool:
        if isinstance(other, tuple | list | tuple_):
            plain = [unwrap(v) for v in self.values]
            return plain == [unwrap(v) for v in other]
        return NotImplemented

    def __hash__(self) -> int:
        return hash(tuple(self.values))

    def __repr__(self) -> str:
        return f"tuple({', '.join(repr(v) for v in self.values)})"
