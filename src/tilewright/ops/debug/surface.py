"""User functions that tell the compiler facts, and functions that check or print them."""

from __future__ import annotations

from xdsl.dialects.builtin import BoolAttr, DenseArrayBase, StringAttr, i32
from xdsl.ir import Attribute

from tilewright.language.core import int1, tensor
from tilewright.ops.arguments import boolean_constant, constant, integers, is_none, shown
from tilewright.ops.builder import Builder, ssa
from tilewright.ops.casting import broadcast_tensor, convert, is_number, to_tensor
from tilewright.ops.debug.ir import AssertOp, AssumeOp, BarrierOp, HintOp, PrintOp
from tilewright.ops.elementwise.operators import binary
from tilewright.ops.surface import surface
from tilewright.support.errors import (
    ConditionNotScalar,
    DtypeNotAllowed,
    InvalidOption,
    NotConstexpr,
    ShapeMismatch,
)


def _hint(b: Builder, input: object, values: object, function: str, property_: str) -> tensor:
    """`input` with one promise per dimension (one for a scalar)."""
    x = to_tensor(b, input)
    if not (x.dtype.is_int() or x.dtype.is_ptr()):
        raise DtypeNotAllowed(
            f"{function}(): `input` is {x.dtype}; integers and pointers have such facts",
            argument="input",
        )
    facts = integers(values, function, "values")
    expected = max(1, len(x.static_shape))
    if len(facts) != expected:
        raise ShapeMismatch(
            f"{function}(): {len(facts)} value(s) for {expected} dimension(s)",
            argument="values",
            types={"input": str(x.type)},
        )
    if any(fact < 1 for fact in facts):
        raise InvalidOption(
            f"{function}(): `values` {list(facts)} must be positive", argument="values"
        )
    return b.tensor(HintOp, [x], x.type, {property_: DenseArrayBase.from_list(i32, facts)})


@surface(member=True)
def multiple_of(b: Builder, input: object, values: object) -> tensor:
    """`input`, whose first element of each contiguous run is a multiple of `values`.

    Shapes: `values` has one constant per dimension. Pointers count in elements.
    Undefined: what a program does where the promise does not hold.
    Raises: DtypeNotAllowed, ShapeMismatch, InvalidOption, NotConstexpr.
    """
    return _hint(b, input, values, "multiple_of", "divisibility")


@surface(member=True)
def max_contiguous(b: Builder, input: object, values: object) -> tensor:
    """`input`, whose runs of `values` elements per dimension are consecutive; see `multiple_of`."""
    return _hint(b, input, values, "max_contiguous", "contiguity")


@surface(member=True)
def max_constancy(b: Builder, input: object, values: object) -> tensor:
    """`input`, whose runs of `values` elements per dimension are equal; see `multiple_of`."""
    return _hint(b, input, values, "max_constancy", "constancy")


@surface()
def assume(b: Builder, cond: object) -> None:
    """A promise that the scalar `cond` holds.

    Undefined: what a program does where it does not.
    Raises: ConditionNotScalar, DtypeNotAllowed; InvalidOption for a constant that is false.
    """
    if is_number(cond):
        if not constant(cond, "assume", "cond"):
            raise InvalidOption("assume(): `cond` is the constant False", argument="cond")
        return
    condition = to_tensor(b, cond)
    if condition.static_shape:
        raise ConditionNotScalar(
            f"assume(): `cond` is {condition.type}; a scalar is needed", argument="cond"
        )
    if not condition.dtype.is_bool():
        raise DtypeNotAllowed(
            f"assume(): `cond` is {condition.dtype}; int1 is needed",
            argument="cond",
            hint="write a comparison, such as `n > 0`",
        )
    b.emit(AssumeOp, [ssa(condition)])


@surface()
def debug_barrier(b: Builder) -> None:
    """Wait until all lanes of the program are here; programs do not wait for each other."""
    b.emit(BarrierOp)


def _text(value: object, function: str, argument: str) -> str:
    plain = constant(value, function, argument)
    if not isinstance(plain, str):
        raise NotConstexpr(
            f"{function}(): `{argument}` must be a string literal, got {shown(plain)}",
            argument=argument,
            hint="pass the text first: tl.device_print('x', x)",
        )
    return plain


def print_prefix(prefix: str, has_values: bool = True) -> str:
    """What stands between `idx (…)` and the value: `prefix` after a space, before a colon.

    An empty prefix is the colon alone; a line without values is the text as it is.
    Raises: InvalidOption for text beyond printable ASCII.

    *Example*

    >>> print_prefix("x"), print_prefix("x:"), print_prefix(""), print_prefix("done", False)
    (' x: ', ' x: ', ': ', ' done')
    """
    if not (prefix.isascii() and (prefix.isprintable() or not prefix)):
        raise InvalidOption(
            f"device_print(): `prefix` {prefix!r} holds more than printable ASCII",
            argument="prefix",
        )
    text = prefix
    if has_values:
        text = prefix.removesuffix(" ").removesuffix(":") + ": "
    is_short = len(text) <= 2
    return text if is_short or text.startswith(" ") else f" {text}"


@surface()
def device_print(b: Builder, prefix: object, *args: object, hex: object = False) -> None:
    """Print every element of `args` as a line `pid (x, y, z) idx (i, j) prefix: value`.

    `prefix` is a literal of printable ASCII; `hex` prints integers as hexadecimal numbers of their
    width and floats exactly, as C's `%a` does.
    Raises: NotConstexpr, InvalidOption.
    """
    text = print_prefix(_text(prefix, "device_print", "prefix"), has_values=bool(args))
    values = [to_tensor(b, arg) for arg in args]
    signs = [int(v.dtype.is_int_signed()) for v in values]
    properties: dict[str, Attribute] = {
        "prefix": StringAttr(text),
        "hex": BoolAttr.from_bool(boolean_constant(hex, "device_print", "hex")),
        "isSigned": DenseArrayBase.from_list(i32, signs),
    }
    b.emit(PrintOp, [ssa(v) for v in values], [], properties)


def is_checking(b: Builder) -> bool:
    """Whether device assertions are compiled: with the options `debug` or `checked`."""
    return bool(b.options.get("debug")) or bool(b.options.get("checked"))


@surface()
def device_assert(b: Builder, cond: object, msg: object = "", mask: object = None) -> None:
    """Report `msg`, program and index where `cond` is false and `mask` holds.

    Without the options `debug` or `checked` it costs nothing and checks nothing.
    Shapes: `mask` broadcasts to `cond`. A `cond` that is no int1 tests `!= 0`.
    Raises: NotConstexpr, DtypeNotAllowed, BroadcastMismatch.
    """
    text = _text(msg, "device_assert", "msg")
    condition = to_tensor(b, cond)
    chosen = None if is_none(mask) else to_tensor(b, mask)
    if chosen is not None and not chosen.dtype.is_bool():
        raise DtypeNotAllowed(
            f"device_assert(): `mask` must be int1, got {chosen.type}", argument="mask"
        )
    if not is_checking(b):
        return
    operands = [convert(b, condition, int1)]
    if chosen is not None:
        operands.append(broadcast_tensor(b, chosen, condition.static_shape))
    b.emit(AssertOp, [ssa(v) for v in operands], [], {"message": StringAttr(text)})


@surface()
def expect_zero(b: Builder, x: object, mask: object) -> tensor:
    """`x` itself, with the promise that it is zero where `mask` holds.

    With the options `debug` or `checked` the promise is asserted.
    Raises: DtypeNotAllowed for pointers.
    """
    value = to_tensor(b, x)
    if value.dtype.is_ptr():
        raise DtypeNotAllowed(
            f"expect_zero(): `x` is {value.type}; a number is needed", argument="x"
        )
    is_zero = binary(b, "Eq", value, b.constant(0, value.dtype))
    device_assert(b, is_zero, "expect_zero: a value is not zero", mask)
    return value
