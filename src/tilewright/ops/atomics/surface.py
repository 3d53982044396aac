"""User functions that read and write memory in one step, and order programs by it.

Atomics reach the IR on integers where bits decide: exchange, compare-and-swap, loads and stores
of floats go through a bitcast, and the maximum of floats is one of two integer maxima.
"""

from __future__ import annotations

from xdsl.ir import Attribute

from tilewright.language.core import (
    bfloat16,
    dtype,
    float16,
    float32,
    float64,
    int16,
    int32,
    int64,
    pointer_type,
    tensor,
    uint16,
    uint32,
    uint64,
)
from tilewright.ops.arguments import choice, is_none
from tilewright.ops.atomics.ir import (
    MEMORY_ORDERS,
    MEMORY_SCOPES,
    RMW_KINDS,
    AtomicCasOp,
    AtomicRmwOp,
)
from tilewright.ops.builder import Builder, integer_property, shaped
from tilewright.ops.casting import convert, reinterpret_bits, to_tensor
from tilewright.ops.elementwise.ir import BitcastOp
from tilewright.ops.elementwise.operators import binary, elementwise
from tilewright.ops.elementwise.surface import select
from tilewright.ops.memory.surface import (
    fit_to_pointer,
    mask_like,
    pointee,
    require_pointer,
    require_rank,
)
from tilewright.ops.surface import surface
from tilewright.support.errors import (
    DtypeNotAllowed,
    StoreToConst,
)

WORD_INTEGERS = (int32, uint32, int64, uint64)
_WORDS = (*WORD_INTEGERS, float32, float64)
_ADDENDS = (*_WORDS, float16, bfloat16)
_COMPARABLE = (*_WORDS, int16, uint16, float16, bfloat16)
_SIGNED_OF_WIDTH = {16: int16, 32: int32, 64: int64}
_UNSIGNED_OF_WIDTH = {16: uint16, 32: uint32, 64: uint64}


def order_of(
    sem: object, scope: object, function: str, orders: tuple[str, ...] = MEMORY_ORDERS[1:]
) -> dict[str, Attribute]:
    """The `sem` and `scope` properties; the strongest order allowed is the default."""
    order = orders[-1]
    if not is_none(sem):
        order = str(choice(sem, orders, function, "sem"))
    chosen = "gpu" if is_none(scope) else str(choice(scope, MEMORY_SCOPES[1:], function, "scope"))
    return {
        "sem": integer_property(MEMORY_ORDERS.index(order)),
        "scope": integer_property(MEMORY_SCOPES.index(chosen)),
    }


def target_of(pointer: object, function: str, allowed: tuple[dtype, ...]) -> tensor:
    """The pointer of an atomic write, with its element type checked."""
    x = require_pointer(pointer, function)
    if isinstance(x.dtype, pointer_type) and x.dtype.const:
        raise StoreToConst(f"{function}(): `pointer` points to constant memory", argument="pointer")
    element = pointee(x)
    if element not in allowed:
        raise DtypeNotAllowed(
            f"{function}(): `pointer` points to {element}; it must point to "
            + " or ".join(str(a) for a in allowed),
            argument="pointer",
            types={"pointer": str(x.type)},
        )
    return x


def value_for(b: Builder, value: object, pointer: tensor, function: str, argument: str) -> tensor:
    """`value` as the pointer's element type and shape."""
    converted = convert(b, to_tensor(b, value), pointee(pointer))
    require_rank(converted, pointer, function, argument)
    return fit_to_pointer(b, converted, pointer, function, argument)


def pointer_to(b: Builder, pointer: tensor, element: dtype) -> tensor:
    """The same addresses, pointing to `element`."""
    if pointee(pointer) == element:
        return pointer
    return b.tensor(BitcastOp, [pointer], shaped(pointer_type(element), pointer.static_shape))


def bits_of(b: Builder, pointer: tensor, *values: tensor) -> tuple[tensor, ...]:
    """A pointer to floats and values of floats as integers of the same width."""
    element = pointee(pointer)
    if not element.is_floating():
        return (pointer, *values)
    integer = _SIGNED_OF_WIDTH[element.primitive_bitwidth]
    return (
        pointer_to(b, pointer, integer),
        *(reinterpret_bits(b, value, integer) for value in values),
    )


def _rmw(
    b: Builder,
    kind: str,
    pointer: tensor,
    value: tensor,
    mask: tensor | None,
    order: dict[str, Attribute],
) -> tensor:
    operands = [v for v in (pointer, value, mask) if v is not None]
    properties = {"atomic_rmw_op": integer_property(RMW_KINDS.index(kind)), **order}
    return b.tensor(AtomicRmwOp, operands, value.type, properties)


def _define_combination(name: str, kind: str, allowed: tuple[dtype, ...], meaning: str) -> None:
    function_name = f"atomic_{name}"

    def function(
        b: Builder,
        pointer: object,
        val: object,
        mask: object = None,
        sem: object = None,
        scope: object = None,
    ) -> tensor:
        x = target_of(pointer, function_name, allowed)
        value = value_for(b, val, x, function_name, "val")
        order = order_of(sem, scope, function_name)
        chosen = mask_like(b, mask, x, function_name)
        combination = "fadd" if kind == "add" and value.dtype.is_floating() else kind
        return _rmw(b, combination, x, value, chosen, order)

    function.__name__ = function_name
    function.__doc__ = _RMW_DOC.format(meaning=meaning, dtypes=", ".join(map(str, allowed)))
    surface(function_name, member=True)(function)


_RMW_DOC = """*pointer[i] = {meaning}, in one step; the old values.

Shapes: `val` and `mask` broadcast to the pointer's shape.
Dtypes: {dtypes}; `val` is cast to the element type.
Where `mask` is false nothing happens.
`sem` is "relaxed", "acquire", "release" or "acq_rel" (default), `scope` "gpu" (default), "cta"
or "sys".
Undefined: the result where the mask is false.
Raises: NotAPointer, StoreToConst, DtypeNotAllowed, ShapeMismatch, InvalidOption.
"""

_define_combination("add", "add", _ADDENDS, "*pointer[i] + val[i]")
_define_combination("and", "and", WORD_INTEGERS, "*pointer[i] & val[i]")
_define_combination("or", "or", WORD_INTEGERS, "*pointer[i] | val[i]")
_define_combination("xor", "xor", WORD_INTEGERS, "*pointer[i] ^ val[i]")


def _define_extremum(name: str, meaning: str) -> None:
    function_name = f"atomic_{name}"

    def function(
        b: Builder,
        pointer: object,
        val: object,
        mask: object = None,
        sem: object = None,
        scope: object = None,
    ) -> tensor:
        x = target_of(pointer, function_name, _WORDS)
        value = value_for(b, val, x, function_name, "val")
        order = order_of(sem, scope, function_name)
        chosen = mask_like(b, mask, x, function_name)
        if value.dtype.is_floating():
            return _float_extremum(b, name, x, value, chosen, order)
        kind = name if value.dtype.is_int_signed() else f"u{name}"
        return _rmw(b, kind, x, value, chosen, order)

    function.__name__ = function_name
    function.__doc__ = _RMW_DOC.format(meaning=meaning, dtypes=", ".join(map(str, _WORDS)))
    surface(function_name, member=True)(function)


def _float_extremum(
    b: Builder,
    name: str,
    pointer: tensor,
    value: tensor,
    mask: tensor | None,
    order: dict[str, Attribute],
) -> tensor:
    """The maximum or minimum of floats by their bits; undefined for NaN.

    The bits of floats without sign bit order like signed integers, and any float with sign bit
    lies below them. Among floats with sign bit the order of the unsigned bits is reversed. So
    one of two integer extrema does it, by the sign of `value`; each is masked to its lanes.
    """
    element = value.dtype
    signed = _SIGNED_OF_WIDTH[element.primitive_bitwidth]
    unsigned = _UNSIGNED_OF_WIDTH[element.primitive_bitwidth]
    bits = reinterpret_bits(b, value, signed)
    is_positive = binary(b, "GtE", bits, 0)
    is_negative = binary(b, "Lt", bits, 0)
    if mask is not None:
        is_positive = elementwise(b, "arith.andi", is_positive, mask)
        is_negative = elementwise(b, "arith.andi", is_negative, mask)
    opposite = "umin" if name == "max" else "umax"
    above = _rmw(b, name, pointer_to(b, pointer, signed), bits, is_positive, order)
    magnitude = convert(b, bits, unsigned)
    below = _rmw(b, opposite, pointer_to(b, pointer, unsigned), magnitude, is_negative, order)
    old = select(b, is_positive, above, convert(b, below, signed))
    return reinterpret_bits(b, old, element)


_define_extremum("max", "the greater of *pointer[i] and val[i]")
_define_extremum("min", "the lesser of *pointer[i] and val[i]")


@surface(member=True)
def atomic_xchg(
    b: Builder,
    pointer: object,
    val: object,
    mask: object = None,
    sem: object = None,
    scope: object = None,
) -> tensor:
    """*pointer[i] = val[i], in one step where mask[i]; the old values.

    Shapes, `sem`, `scope` and errors as in `atomic_add`.
    Dtypes: 32- and 64-bit integers and floats.
    Undefined: the result where the mask is false.
    """
    x = target_of(pointer, "atomic_xchg", _WORDS)
    element = pointee(x)
    value = value_for(b, val, x, "atomic_xchg", "val")
    order = order_of(sem, scope, "atomic_xchg")
    chosen = mask_like(b, mask, x, "atomic_xchg")
    x, value = bits_of(b, x, value)
    return reinterpret_bits(b, _rmw(b, "exch", x, value, chosen, order), element)


@surface(member=True)
def atomic_cas(
    b: Builder,
    pointer: object,
    cmp: object,
    val: object,
    sem: object = None,
    scope: object = None,
) -> tensor:
    """*pointer[i] = val[i] if it was cmp[i], in one step; the old values.

    Shapes: `cmp` and `val` broadcast to the pointer's shape.
    Dtypes: 16-, 32- and 64-bit integers and floats; floats compare by their bits.
    `sem` and `scope` as in `atomic_add`.
    Raises: NotAPointer, StoreToConst, DtypeNotAllowed, ShapeMismatch, InvalidOption.
    """
    x = target_of(pointer, "atomic_cas", _COMPARABLE)
    element = pointee(x)
    compare = value_for(b, cmp, x, "atomic_cas", "cmp")
    value = value_for(b, val, x, "atomic_cas", "val")
    order = order_of(sem, scope, "atomic_cas")
    x, compare, value = bits_of(b, x, compare, value)
    old = b.tensor(AtomicCasOp, [x, compare, value], value.type, order)
    return reinterpret_bits(b, old, element)
