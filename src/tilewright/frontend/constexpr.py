"""Evaluation of compile-time expressions by Python's own rules."""

from __future__ import annotations

import operator
from collections.abc import Callable

from tilewright.frontend.values import plain, wrap
from tilewright.support.errors import CompileError, ConstantEvaluation

BINARY: dict[str, Callable[..., object]] = {
    "Add": operator.add,
    "Sub": operator.sub,
    "Mult": operator.mul,
    "Div": operator.truediv,
    "FloorDiv": operator.floordiv,
    "Mod": operator.mod,
    "Pow": operator.pow,
    "BitAnd": operator.and_,
    "BitOr": operator.or_,
    "BitXor": operator.xor,
    "LShift": operator.lshift,
    "RShift": operator.rshift,
    "Eq": operator.eq,
    "NotEq": operator.ne,
    "Lt": operator.lt,
    "LtE": operator.le,
    "Gt": operator.gt,
    "GtE": operator.ge,
}
UNARY: dict[str, Callable[..., object]] = {
    "USub": operator.neg,
    "UAdd": operator.pos,
    "Invert": operator.invert,
    "Not": operator.not_,
}
# Bounds that keep a constant expression from filling the memory of the compiler.
MAX_INTEGER_BITS = 4096
MAX_SEQUENCE = 1 << 20

_PYTHON_ERRORS = (
    ArithmeticError,
    TypeError,
    ValueError,
    LookupError,
    AttributeError,
    AssertionError,
    NameError,
)


def evaluate(function: Callable[..., object], *arguments: object, **keywords: object) -> object:
    """`function` on plain values, its result as a value of the language.

    Raises: ConstantEvaluation with Python's own message.
    """
    return wrap(run_in_python(function, *arguments, **keywords))


def run_in_python(
    function: Callable[..., object], *arguments: object, **keywords: object
) -> object:
    """What `function` returns, as it is.

    Raises: ConstantEvaluation with Python's own message.
    """
    try:
        return function(*arguments, **keywords)
    except CompileError:
        raise
    except _PYTHON_ERRORS as error:
        raise ConstantEvaluation(f"{type(error).__name__}: {error}") from error


def fold_binary(name: str, lhs: object, rhs: object) -> object:
    """`lhs operator rhs` on compile-time values."""
    x, y = plain(lhs), plain(rhs)
    if name in ("Pow", "LShift") and isinstance(x, int) and isinstance(y, int):
        _check_growth(name, x, y)
    if name == "Mult":
        _check_repetition(x, y)
        _check_repetition(y, x)
    return evaluate(BINARY[name], x, y)


def _check_growth(name: str, x: int, y: int) -> None:
    bits = x.bit_length() * y if name == "Pow" else x.bit_length() + y
    if bits > MAX_INTEGER_BITS:
        raise ConstantEvaluation(f"the constant has more than {MAX_INTEGER_BITS} bits")


def _check_repetition(x: object, y: object) -> None:
    if isinstance(x, str | tuple) and isinstance(y, int) and len(x) * y > MAX_SEQUENCE:
        raise ConstantEvaluation(f"the constant has more than {MAX_SEQUENCE} elements")


def fold_unary(name: str, operand: object) -> object:
    """`operator operand` on a compile-time value."""
    return evaluate(UNARY[name], plain(operand))
