"""Loads and stores of one word that order programs, and waiting for such a word."""

from __future__ import annotations

from xdsl.ir import Block, Region

from tilewright.language.core import int1, int16, int64, pointer_type, tensor, uint16, unwrap
from tilewright.ops.arguments import is_none
from tilewright.ops.atomics.ir import AtomicLoadOp, AtomicStoreOp
from tilewright.ops.atomics.surface import WORD_INTEGERS, bits_of, order_of, target_of, value_for
from tilewright.ops.builder import Builder, ir_type, shaped, ssa
from tilewright.ops.casting import convert, reinterpret_bits, to_tensor
from tilewright.ops.control_flow import ConditionOp, WhileOp, YieldOp
from tilewright.ops.elementwise.logical import logical_not
from tilewright.ops.elementwise.operators import binary
from tilewright.ops.memory.surface import as_bytes, mask_like, pointee, require_pointer
from tilewright.ops.program.ir import ClockOp
from tilewright.ops.surface import surface
from tilewright.support.errors import DtypeNotAllowed, InvalidOption, ShapeMismatch, StoreToConst


def _plain_words(x: tensor, function: str) -> None:
    element = pointee(x)
    if not (element.is_int() or element.is_standard_floating()):
        raise DtypeNotAllowed(
            f"{function}(): `pointer` points to {element}; integers and standard floats only",
            argument="pointer",
        )


@surface(member=True)
def atomic_load(
    b: Builder, pointer: object, mask: object = None, sem: object = None, scope: object = None
) -> tensor:
    """result[i] = *pointer[i], each element read in one step where mask[i].

    Shapes: `mask` broadcasts to the pointer's shape.
    Dtypes: integers and standard floats. `sem` is "acquire" (default) or "relaxed".
    Undefined: the result where the mask is false.
    Raises: NotAPointer, DtypeNotAllowed, ShapeMismatch, InvalidOption.
    """
    x = require_pointer(pointer, "atomic_load")
    _plain_words(x, "atomic_load")
    element = pointee(x)
    order = order_of(sem, scope, "atomic_load", ("relaxed", "acquire"))
    chosen = mask_like(b, mask, x, "atomic_load")
    (x,) = bits_of(b, as_bytes(b, x))
    operands = [v for v in (x, chosen) if v is not None]
    loaded = b.tensor(AtomicLoadOp, operands, shaped(pointee(x), x.static_shape), order)
    return convert(b, loaded, int1) if element.is_bool() else reinterpret_bits(b, loaded, element)


@surface(member=True)
def atomic_store(
    b: Builder,
    pointer: object,
    val: object,
    mask: object = None,
    sem: object = None,
    scope: object = None,
) -> None:
    """*pointer[i] = val[i], each element written in one step where mask[i].

    Shapes: `val` and `mask` broadcast to the pointer's shape.
    Dtypes: integers and standard floats. `sem` is "release" (default) or "relaxed".
    Raises: NotAPointer, StoreToConst, DtypeNotAllowed, ShapeMismatch, InvalidOption.
    """
    x = require_pointer(pointer, "atomic_store")
    if isinstance(x.dtype, pointer_type) and x.dtype.const:
        raise StoreToConst("atomic_store(): `pointer` points to constant memory")
    _plain_words(x, "atomic_store")
    value = value_for(b, val, x, "atomic_store", "val")
    order = order_of(sem, scope, "atomic_store", ("relaxed", "release"))
    chosen = mask_like(b, mask, x, "atomic_store")
    x = as_bytes(b, x)
    x, value = bits_of(b, x, convert(b, value, pointee(x)))
    b.emit(AtomicStoreOp, [ssa(v) for v in (x, value, chosen) if v is not None], [], order)


@surface(member=True)
def atomic_poll(
    b: Builder,
    pointer: object,
    expected_value: object,
    sem: object = None,
    scope: object = None,
    timeout_ns: object = None,
) -> tensor:
    """Wait until *pointer equals `expected_value`; whether it did (int1).

    With `timeout_ns` (an integer) the wait ends after that time, and the result may be false.

    Dtypes: 16-, 32- and 64-bit integers, one scalar pointer. `sem` is "acquire" (default) or
    "relaxed".
    Undefined: waiting for a program with a greater id, which may not run before this one ends.
    Raises: NotAPointer, DtypeNotAllowed, ShapeMismatch, InvalidOption.
    """
    x = target_of(pointer, "atomic_poll", (*WORD_INTEGERS, int16, uint16))
    if x.static_shape:
        raise ShapeMismatch(
            f"atomic_poll(): `pointer` is {x.type}; a scalar pointer is needed", argument="pointer"
        )
    expected = value_for(b, expected_value, x, "atomic_poll", "expected_value")
    order = order_of(sem, scope, "atomic_poll", ("relaxed", "acquire"))
    deadline = None if is_none(timeout_ns) else _deadline(b, timeout_ns)
    test, again = Block(), Block(arg_types=[ir_type(int1)])
    with b.inside(test):
        seen = b.tensor(AtomicLoadOp, [x], pointee(x), order)
        goes_on = binary(b, "NotEq", seen, expected)
        is_met = logical_not(b, goes_on)
        if deadline is not None:
            in_time = binary(b, "Lt", b.tensor(ClockOp, [], int64), deadline)
            goes_on = binary(b, "BitAnd", goes_on, in_time)
        b.emit(ConditionOp, [ssa(goes_on), ssa(is_met)])
    with b.inside(again):
        b.emit(YieldOp)
    loop = b.emit(WhileOp, (), [ir_type(int1)], None, [Region(test), Region(again)])
    return tensor(loop.results[0], int1) if deadline is not None else b.constant(True, int1)


def _deadline(b: Builder, timeout_ns: object) -> tensor:
    """The time at which a wait ends."""
    known = unwrap(timeout_ns)
    if isinstance(known, int) and known < 0:
        raise InvalidOption(
            f"atomic_poll(): `timeout_ns` is {known}",
            argument="timeout_ns",
            hint="pass nanoseconds from now, 0 to look once, or None to wait without an end",
        )
    timeout = to_tensor(b, timeout_ns)
    if timeout.static_shape or not timeout.dtype.is_int():
        raise DtypeNotAllowed(
            f"atomic_poll(): `timeout_ns` is {timeout.type}; a scalar integer is needed",
            argument="timeout_ns",
        )
    return binary(b, "Add", b.tensor(ClockOp, [], int64), convert(b, timeout, int64))
