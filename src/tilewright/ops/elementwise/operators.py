"""The operators of the language on tensors and Python numbers.

`binary(b, "Add", x, y)` and its like take the names of the `ast` operator classes. Two
constexprs never come here: the frontend folds them with Python's own semantics.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from xdsl.dialects.builtin import StringAttr
from xdsl.ir import Operation, SSAValue

from tilewright.ir.attributes import APPROXIMATE, CONTRACT, RECIPROCAL
from tilewright.ir.types import shape_of
from tilewright.language.core import (
    dtype,
    float32,
    int1,
    int64,
    tensor,
    uint64,
    unwrap,
)
from tilewright.ops.builder import Builder, integer_property, shaped, ssa
from tilewright.ops.casting import (
    broadcast_pair,
    convert,
    to_tensor,
    to_tensor_beside,
)
from tilewright.ops.debug.ir import AssertOp
from tilewright.ops.elementwise.comparisons import (
    FLOAT_PREDICATES,
    INTEGER_PREDICATES,
    CmpFOp,
    CmpIOp,
)
from tilewright.ops.elementwise.ir import ELEMENTWISE, ElementwiseOp
from tilewright.ops.elementwise.promotion import promote
from tilewright.ops.memory.ir import AddPtrOp, LoadOp
from tilewright.support.errors import DtypeMismatch, DtypeNotAllowed, PointerArithmetic

_SYMBOLS = {
    "Add": "+",
    "Sub": "-",
    "Mult": "*",
    "Div": "/",
    "FloorDiv": "//",
    "Mod": "%",
    "BitAnd": "&",
    "BitOr": "|",
    "BitXor": "^",
    "LShift": "<<",
    "RShift": ">>",
    "Eq": "==",
    "NotEq": "!=",
    "Lt": "<",
    "LtE": "<=",
    "Gt": ">",
    "GtE": ">=",
}
_ARITHMETIC = {
    "Add": ("arith.addi", "arith.addf"),
    "Sub": ("arith.subi", "arith.subf"),
    "Mult": ("arith.muli", "arith.mulf"),
}
_BITWISE = {"BitAnd": "arith.andi", "BitOr": "arith.ori", "BitXor": "arith.xori"}
_COMPARISONS = {"Eq": "eq", "NotEq": "ne", "Lt": "lt", "LtE": "le", "Gt": "gt", "GtE": "ge"}


def symbol(operator: str) -> str:
    """The Python spelling of an operator's ast name."""
    return _SYMBOLS.get(operator, operator)


def elementwise(b: Builder, name: str, *operands: tensor, type_: dtype | None = None) -> tensor:
    """Append the elementwise op `name` on operands of one shape; the result is like the first."""
    cls: type[Operation] = ELEMENTWISE[name]
    properties = None
    if b.options.get("enable_fp_fusion", True) and name in _RELAXED:
        properties = {"fastmath": _RELAXED[name]}
    return b.tensor(cls, list(operands), type_ or operands[0].type, properties)


# What may change bits unless enable_fp_fusion is off: sums and products may fuse; on GPUs a
# quotient of float32 may be a product with the reciprocal and a root 1 ulp off. div_rn and
# sqrt_rn never are.
_RELAXED = {
    **dict.fromkeys(("arith.addf", "arith.subf", "arith.mulf"), CONTRACT),
    "arith.divf": RECIPROCAL,
    "math.sqrt": APPROXIMATE,
}


def operand_pair(b: Builder, lhs: object, rhs: object) -> tuple[tensor, tensor]:
    """Both operands as tensors; a Python number takes its dtype beside the other one."""
    left, right = unwrap(lhs), unwrap(rhs)
    if isinstance(left, tensor):
        return left, to_tensor_beside(b, right, left.dtype)
    if isinstance(right, tensor):
        return to_tensor_beside(b, left, right.dtype), right
    return to_tensor(b, left), to_tensor(b, right)


def meet(b: Builder, lhs: object, rhs: object, is_division: bool = False) -> tuple[tensor, tensor]:
    """Both operands broadcast to one shape and promoted to one dtype."""
    x, y = operand_pair(b, lhs, rhs)
    common = promote(x.dtype, y.dtype, is_division)
    x, y = convert(b, x, common), convert(b, y, common)
    return broadcast_pair(b, x, y)


def binary(b: Builder, operator: str, lhs: object, rhs: object) -> tensor:
    """`lhs operator rhs` for any binary operator or comparison."""
    return _BINARY[operator](b, operator, lhs, rhs)


def _describe(operator: str, x: tensor, y: tensor) -> dict[str, str]:
    return {"left": str(x.type), "right": str(y.type)}


def _invalid(x: tensor, y: tensor) -> str:
    return f"invalid operands of type {x.type.name} and {y.type.name}"


def _add_pointer(b: Builder, operator: str, x: tensor, y: tensor) -> tensor:
    if x.dtype.is_ptr() and y.dtype.is_ptr():
        raise PointerArithmetic(
            f"two pointers cannot be combined by `{symbol(operator)}`",
            types=_describe(operator, x, y),
            hint="cast both with .to(tl.int64) for a distance in bytes",
            known_as=_invalid(x, y),
        )
    if y.dtype.is_ptr():
        if operator == "Sub":
            raise PointerArithmetic(
                "an integer minus a pointer means nothing", known_as=_invalid(x, y)
            )
        x, y = y, x
    if not y.dtype.is_int():
        raise PointerArithmetic(
            f"a pointer takes integer offsets, got {y.dtype}",
            types=_describe(operator, x, y),
            known_as=_invalid(x, y),
        )
    if y.dtype.is_int_unsigned() and y.dtype.primitive_bitwidth < 64:
        y = convert(b, y, int64)
    if operator == "Sub":
        y = elementwise(b, "arith.subi", b.constant(0, y.type), y)
    x, y = broadcast_pair(b, x, y)
    return b.tensor(AddPtrOp, [x, y], x.type)


def arithmetic(
    b: Builder, operator: str, lhs: object, rhs: object, is_checked: bool = True
) -> tensor:
    """`+`, `-` and `*`; `is_checked` asserts that integers do not overflow if the options ask."""
    x, y = operand_pair(b, lhs, rhs)
    if x.dtype.is_ptr() or y.dtype.is_ptr():
        if operator == "Mult":
            raise PointerArithmetic("a pointer cannot be multiplied", known_as=_invalid(x, y))
        return _add_pointer(b, operator, x, y)
    x, y = meet(b, x, y)
    on_integers, on_floats = _ARITHMETIC[operator]
    if x.dtype.is_floating():
        return elementwise(b, on_floats, x, y)
    if operator == "Mult" and x.dtype.is_bool():
        # Masks are often written so; passes and targets know conjunctions.
        return elementwise(b, _BITWISE["BitAnd"], x, y)
    if is_checked and _is_sanitizing(b):
        _assert_no_overflow(b, operator, x, y)
    return elementwise(b, on_integers, x, y)


def _is_sanitizing(b: Builder) -> bool:
    """Whether overflow is reported: as `sanitize_overflow` says, else as `debug` does.

    Not where elements are combined: there a part of a sum that fits need not.
    """
    if b.is_combining:
        return False
    chosen = b.options.get("sanitize_overflow")
    return bool(b.options.get("debug") if chosen is None else chosen)


def _assert_no_overflow(b: Builder, operator: str, x: tensor, y: tensor) -> None:
    """An assertion that `x operator y` fits the operands' dtype, computed in 64 bits."""
    type_ = x.dtype
    if type_.is_bool() or type_.primitive_bitwidth >= 64:
        return
    wide = int64 if type_.is_int_signed() else uint64
    operands = convert(b, x, wide), convert(b, y, wide)
    result = elementwise(b, _ARITHMETIC[operator][0], *operands)
    # An unsigned difference below zero wraps to a number above the greatest one.
    fits = _compare(b, "LtE", result, type_.get_int_max_value())
    if type_.is_int_signed():
        above = _compare(b, "GtE", result, type_.get_int_min_value())
        fits = elementwise(b, "arith.andi", fits, above)
    message = StringAttr(f"{type_} overflow in `{symbol(operator)}`")
    b.emit(AssertOp, [ssa(fits)], [], {"message": message})


def _divide(b: Builder, operator: str, lhs: object, rhs: object) -> tensor:
    x, y = operand_pair(b, lhs, rhs)
    if x.dtype.is_int() and y.dtype.is_int():
        _require_same_signedness(operator, x, y)
        x, y = convert(b, x, float32), convert(b, y, float32)
    x, y = meet(b, x, y, is_division=True)
    return elementwise(b, "arith.divf", x, y)


def _require_same_signedness(operator: str, x: tensor, y: tensor) -> None:
    if x.dtype.is_int_signed() != y.dtype.is_int_signed():
        raise DtypeMismatch(
            f"Cannot use `{symbol(operator)}` with {x.dtype} and {y.dtype} because they have "
            "different signedness",
            types=_describe(operator, x, y),
            hint="cast one side with .to(dtype)",
        )


def _floor_divide(b: Builder, operator: str, lhs: object, rhs: object) -> tensor:
    x, y = operand_pair(b, lhs, rhs)
    if not (x.dtype.is_int() and y.dtype.is_int()):
        raise DtypeNotAllowed(
            f"`//` takes integers, got {x.dtype} and {y.dtype}",
            types=_describe(operator, x, y),
            hint="use tl.floor(x / y) for floats",
            known_as=_invalid(x, y),
        )
    _require_same_signedness(operator, x, y)
    x, y = meet(b, x, y)
    _assert_divisible(b, operator, x, y)
    return elementwise(b, "arith.divsi" if x.dtype.is_int_signed() else "arith.divui", x, y)


def _assert_divisible(b: Builder, operator: str, x: tensor, y: tensor) -> None:
    """In checked mode, an assertion that the quotient of two integers exists.

    Lanes that a masked load leaves out of either operand may hold anything. The interpreter
    knows itself which quotients are used.
    """
    if not b.options.get("checked") or b.options.get("interpret") or x.dtype.is_bool():
        return
    is_fine = _compare(b, "NotEq", y, 0)
    if x.dtype.is_int_signed():
        least = _compare(b, "NotEq", x, x.dtype.get_int_min_value())
        other = _compare(b, "NotEq", y, -1)
        fits = elementwise(b, "arith.ori", least, other)
        is_fine = elementwise(b, "arith.andi", is_fine, fits)
    masks = _masks_of_loads((ssa(x), ssa(y)))
    operands = [ssa(is_fine)]
    if masks:
        valid = masks[0]
        for mask in masks[1:]:
            valid = b.emit(ELEMENTWISE["arith.andi"], [valid, mask], [valid.type]).results[0]
        operands.append(valid)
    message = StringAttr(f"`{symbol(operator)}` of {x.dtype}")
    b.emit(AssertOp, operands, [], {"message": message, "kind": StringAttr("division")})


def _masks_of_loads(values: Sequence[SSAValue]) -> list[SSAValue]:
    """The masks of the loads that tiles of one shape are computed from, element by element."""
    shape, pending, seen = shape_of(values[0].type), list(values), set(values)
    masks: dict[SSAValue, None] = {}
    while pending:
        owner = pending.pop().owner
        if isinstance(owner, LoadOp) and owner.mask is not None:
            masks[owner.mask] = None
        elif isinstance(owner, ElementwiseOp):
            fresh = [v for v in owner.operands if v not in seen and shape_of(v.type) == shape]
            seen.update(fresh)
            pending += fresh
    return [mask for mask in masks if shape_of(mask.type) == shape]


def _modulo(b: Builder, operator: str, lhs: object, rhs: object) -> tensor:
    x, y = operand_pair(b, lhs, rhs)
    if x.dtype.is_floating() or y.dtype.is_floating():
        x, y = meet(b, x, y, is_division=True)
        return elementwise(b, "arith.remf", x, y)
    _require_same_signedness(operator, x, y)
    x, y = meet(b, x, y)
    _assert_divisible(b, operator, x, y)
    return elementwise(b, "arith.remsi" if x.dtype.is_int_signed() else "arith.remui", x, y)


def _require_integers(operator: str, x: tensor, y: tensor) -> None:
    if not (x.dtype.is_int() and y.dtype.is_int()):
        raise DtypeNotAllowed(
            f"`{symbol(operator)}` takes integers, got {x.dtype} and {y.dtype}",
            types=_describe(operator, x, y),
            hint="reinterpret floats with .to(tl.int32, bitcast=True) to work on their bits",
            known_as=_invalid(x, y),
        )


def _bitwise(b: Builder, operator: str, lhs: object, rhs: object) -> tensor:
    x, y = operand_pair(b, lhs, rhs)
    _require_integers(operator, x, y)
    x, y = meet(b, x, y)
    return elementwise(b, _BITWISE[operator], x, y)


def _shift(b: Builder, operator: str, lhs: object, rhs: object) -> tensor:
    """`<<`, and `>>` that copies the sign bit if the left operand as written has one.

    The operands still meet: `int32 >> uint32` is a uint32, of which the sign bit is copied.
    """
    x, y = operand_pair(b, lhs, rhs)
    _require_integers(operator, x, y)
    is_signed = x.dtype.is_int_signed()
    x, y = meet(b, x, y)
    if operator == "LShift":
        return elementwise(b, "arith.shli", x, y)
    return elementwise(b, "arith.shrsi" if is_signed else "arith.shrui", x, y)


def _compare(b: Builder, operator: str, lhs: object, rhs: object) -> tensor:
    x, y = operand_pair(b, lhs, rhs)
    if x.dtype.is_ptr() and y.dtype.is_ptr():
        x, y = convert(b, x, int64), convert(b, y, int64)
    x, y = meet(b, x, y)
    name = _COMPARISONS[operator]
    target = shaped(int1, x.static_shape)
    if x.dtype.is_fp8():
        x, y = convert(b, x, float32), convert(b, y, float32)
    if x.dtype.is_floating():
        code = FLOAT_PREDICATES.index("une" if name == "ne" else f"o{name}")
        return b.tensor(CmpFOp, [x, y], target, {"predicate": integer_property(code, 64)})
    sign = "" if name in ("eq", "ne") else "s" if x.dtype.is_int_signed() else "u"
    code = INTEGER_PREDICATES.index(sign + name)
    return b.tensor(CmpIOp, [x, y], target, {"predicate": integer_property(code, 64)})


_BINARY: dict[str, Callable[..., tensor]] = {
    **dict.fromkeys(("Add", "Sub", "Mult"), arithmetic),
    "Div": _divide,
    "FloorDiv": _floor_divide,
    "Mod": _modulo,
    **dict.fromkeys(("BitAnd", "BitOr", "BitXor"), _bitwise),
    **dict.fromkeys(("LShift", "RShift"), _shift),
    **dict.fromkeys(("Eq", "NotEq", "Lt", "LtE", "Gt", "GtE"), _compare),
}
