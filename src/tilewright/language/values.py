"""The values of a kernel: what is known at compile time, and tiles."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from typing import Any

from tilewright.language.dtypes import dtype
from tilewright.language.methods import Methods
from tilewright.language.operators import Indexed, Operators
from tilewright.language.tuples import Constant, tuple_, unwrap
from tilewright.language.types import block_type, constexpr_type
from tilewright.support.errors import CompileError


class constexpr(Constant, Operators):
    """A value known at compile time.

    Arithmetic, comparison and bit operators follow Python and give constexprs.
    """

    __slots__ = ()

    def __init__(self, value: object) -> None:
        while isinstance(value, constexpr):
            value = value.value
        self.value = value

    def __repr__(self) -> str:
        return f"constexpr[{self.value!r}]"

    def __hash__(self) -> int:
        return hash((type(self.value), self.value))

    def __bool__(self) -> bool:
        return bool(self.value)

    def __index__(self) -> int:
        return operator.index(self.value)

    def __int__(self) -> int:
        return int(self.value)

    def __float__(self) -> float:
        return float(self.value)

    def __iter__(self) -> Iterator[constexpr]:
        return iter([constexpr(v) for v in self.value])

    def __len__(self) -> int:
        return len(self.value)

    def __getitem__(self, index: object) -> constexpr:
        return constexpr(self.value[unwrap(index)])

    def __call__(self, *args: object, **kwargs: object) -> Any:
        """Call the wrapped value."""
        return self.value(*args, **kwargs)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or name == "value":
            raise AttributeError(name)
        return getattr(self.value, name)

    @property
    def type(self) -> constexpr_type:
        """The compile-time type of the value."""
        return constexpr_type(self.value)


def _delegate(name: str, function: Callable[..., object], reflected: bool = False) -> None:
    def method(self: constexpr, other: object) -> constexpr:
        if isinstance(other, tensor):
            return NotImplemented
        mine, others = self.value, unwrap(other)
        return constexpr(function(others, mine) if reflected else function(mine, others))

    method.__name__ = name
    setattr(constexpr, name, method)


for _name in ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "lshift", "rshift"):
    _delegate(f"__{_name}__", getattr(operator, _name))
    _delegate(f"__r{_name}__", getattr(operator, _name), reflected=True)
for _name in ("and", "or", "xor"):
    _delegate(f"__{_name}__", getattr(operator, f"__{_name}__"))
    _delegate(f"__r{_name}__", getattr(operator, f"__{_name}__"), reflected=True)
for _name in ("lt", "le", "gt", "ge", "eq", "ne"):
    _delegate(f"__{_name}__", getattr(operator, _name))


def _delegate_unary(name: str, function: Callable[..., object]) -> None:
    def method(self: constexpr) -> constexpr:
        return constexpr(function(self.value))

    method.__name__ = name
    setattr(constexpr, name, method)


_delegate_unary("__neg__", operator.neg)
_delegate_unary("__pos__", operator.pos)
_delegate_unary("__invert__", operator.invert)
_delegate_unary("__abs__", operator.abs)


class tensor(Operators, Indexed, Methods):
    """A tile or scalar inside a kernel: an SSA value with its type.

    Operators and methods work in kernels only; the frontend gives them meaning.
    """

    __slots__ = ("handle", "type")

    def __init__(self, handle: object, type: dtype) -> None:
        self.handle = handle
        self.type = type

    @property
    def dtype(self) -> dtype:
        """The element type."""
        return self.type.scalar

    @property
    def static_shape(self) -> tuple[int, ...]:
        """The shape as plain ints; () for a scalar."""
        return self.type.extents if isinstance(self.type, block_type) else ()

    @property
    def shape(self) -> tuple_:
        """The shape as a tuple of constexprs."""
        return tuple_([constexpr(d) for d in self.static_shape])

    @property
    def numel(self) -> constexpr:
        """The number of elements."""
        return constexpr(self.type.numel if isinstance(self.type, block_type) else 1)

    def __str__(self) -> str:
        return str(self.type)

    def __repr__(self) -> str:
        return f"tensor({self.type})"

    def __bool__(self) -> bool:
        raise CompileError(
            "a tile has no truth value at compile time",
            hint="use tl.where for elementwise choice, or reduce to a scalar for `if`",
        )
