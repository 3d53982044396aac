"""Arithmetic and conversions under the four rounding modes, from instructions that round to
nearest: the sign of what they dropped says whether the neighbour is wanted.

The modes are `rn` to nearest even, `rz` toward zero, `rd` down, `ru` up.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable

from tilewright.codegen.math.double_double import two_sum
from tilewright.codegen.math.lanes import INTEGER_OF, LaneCode, LaneValue

Routine = Callable[..., LaneValue]
MODES = ("rn", "rz", "rd", "ru")
# Below the first, errors of doubles may underflow; times the second they do not.
_LOW, _LIFT = 2.0**-700, 2.0**200


def step(code: LaneCode, nearest: LaneValue, dropped: LaneValue, mode: str) -> LaneValue:
    """The result of `mode`: `nearest`, or its neighbour on the side of `dropped`.

    `dropped` has the sign of the exact result less `nearest`, and is 0 or NaN for "exact".
    """
    if mode == "rn":
        return nearest
    bits = nearest.bits()
    is_negative = bits.compare("slt", 0)
    outward, inward = bits + 1, bits - 1
    if mode == "rz":
        is_inward = is_negative.select(dropped.compare("ogt", 0.0), dropped.compare("olt", 0.0))
        return is_inward.select(inward, bits).as_float(nearest.element)
    if mode == "rd":
        moves, moved = dropped.compare("olt", 0.0), is_negative.select(outward, inward)
        least = bits.coerce(-(1 << (int(bits.element[1:]) - 1)) + 1)
    else:
        moves, moved = dropped.compare("ogt", 0.0), is_negative.select(inward, outward)
        least = bits.coerce(1)
    # From a zero the neighbour has the sign of the direction.
    moved = nearest.compare("oeq", 0.0).select(least, moved)
    return moves.select(moved, bits).as_float(nearest.element)


def to_single(code: LaneCode, exact: LaneValue, rest: LaneValue | None, mode: str) -> LaneValue:
    """The float of the unrounded sum `exact + rest` of doubles; `rest` None is 0."""
    if rest is not None:
        exact = _odd(exact, rest)
    nearest = exact.convert("fptrunc", "float")
    return step(code, nearest, exact - nearest.convert("fpext", "double"), mode)


def _odd(exact: LaneValue, rest: LaneValue) -> LaneValue:
    """A double with an odd last bit where `rest` says that it is inexact (rounding to odd)."""
    bits = exact.bits()
    is_even = (bits & 1).compare("eq", 0)
    is_inexact = rest.compare("one", 0.0) & exact.absolute().compare("olt", math.inf)
    # The truncated number and the next one outward: one of the two is odd.
    is_outward = (rest.bits() ^ bits).compare("sge", 0)
    moved = is_outward.select(bits + 1, bits - 1)
    return (is_inexact & is_even).select(moved, bits).as_float("double")


def _quotient(code: LaneCode, x: LaneValue, y: LaneValue) -> tuple[LaneValue, LaneValue]:
    quotient = code.wrap(x.element, code.fn.value(f"fdiv {x.type} {x.name}, {y.name}"))
    rest = code.fused(-quotient, y, x)
    signed = (rest.bits() ^ (y.bits() & _sign(y))).as_float(x.element)
    is_exact = y.compare("oeq", 0.0) | y.absolute().compare("oeq", math.inf)
    return quotient, is_exact.select(signed.coerce(0.0), signed)


def _sign(x: LaneValue) -> int:
    return -(1 << (int(INTEGER_OF[x.element][1:]) - 1))


def _reciprocal(code: LaneCode, x: LaneValue) -> tuple[LaneValue, LaneValue]:
    return _quotient(code, code.constant(x.element, 1.0), x)


def _root(code: LaneCode, x: LaneValue) -> tuple[LaneValue, LaneValue]:
    root = code.intrinsic("sqrt", x)
    return root, code.fused(-root, root, x)


def _sum(code: LaneCode, x: LaneValue, y: LaneValue) -> tuple[LaneValue, LaneValue]:
    return two_sum(x, y)


def _difference(code: LaneCode, x: LaneValue, y: LaneValue) -> tuple[LaneValue, LaneValue]:
    return two_sum(x, -y)


def _product(code: LaneCode, x: LaneValue, y: LaneValue) -> tuple[LaneValue, LaneValue]:
    return code.two_product(x, y)


def _double_product(code: LaneCode, x: LaneValue, y: LaneValue) -> tuple[LaneValue, LaneValue]:
    """The product, and an error whose sign is right where it underflows too."""
    product, error = code.two_product(x, y)
    is_less = x.absolute().compare("olt", y.absolute())
    small, great = is_less.select(x, y), is_less.select(y, x)
    lifted = code.fused(small * _LIFT, great, -(product * _LIFT))
    error = product.absolute().compare("olt", _LOW).select(lifted, error)
    return product, _underflow(x, y, product, error)


def _underflow(x: LaneValue, y: LaneValue, product: LaneValue, error: LaneValue) -> LaneValue:
    """`error`, or a number of the exact product's sign where that is rounded to 0."""
    is_lost = product.compare("oeq", 0.0) & x.compare("one", 0.0) & y.compare("one", 0.0)
    return is_lost.select(product.coerce(1.0).with_sign_of(product), error)


def _double_root(code: LaneCode, x: LaneValue) -> tuple[LaneValue, LaneValue]:
    """The square root and its error, lifted where that would underflow."""
    root, error = _root(code, x)
    raised = root * math.sqrt(_LIFT)
    lifted = code.fused(-raised, raised, x * _LIFT)
    return root, x.compare("olt", _LOW).select(lifted, error)


def _double_quotient(code: LaneCode, x: LaneValue, y: LaneValue) -> tuple[LaneValue, LaneValue]:
    """The quotient and its error, the dividend lifted where the error would underflow."""
    quotient, error = _quotient(code, x, y)
    rest = code.fused(-(quotient * _LIFT), y, x * _LIFT)
    signed = (rest.bits() ^ (y.bits() & _sign(y))).as_float("double")
    is_exact = y.compare("oeq", 0.0) | y.absolute().compare("oeq", math.inf)
    lifted = is_exact.select(signed.coerce(0.0), signed)
    return quotient, x.absolute().compare("olt", _LOW).select(lifted, error)


def _fused(code: LaneCode, x: LaneValue, y: LaneValue, z: LaneValue) -> tuple[LaneValue, LaneValue]:
    """The fused product and sum, and an approximation of its error with the right sign."""
    result = code.fused(x, y, z)
    high, low = code.two_product(x, y)
    # A lost product still says on which side of the sum the exact result is.
    least = low.coerce(5e-324).with_sign_of(high)
    is_lost = _underflow(x, y, high, low.coerce(0.0)).compare("one", 0.0)
    low = is_lost.select(least, low)
    upper, lower = two_sum(z, low)
    top, rest = two_sum(high, upper)
    return result, ((top - result) + rest) + lower


_PAIRS: dict[str, Callable[..., tuple[LaneValue, LaneValue]]] = {
    "add": _sum,
    "sub": _difference,
    "mul": _product,
    "div": _quotient,
    "rcp": _reciprocal,
    "sqrt": _root,
    "fma": _fused,
}
_DOUBLE_PAIRS = {**_PAIRS, "mul": _double_product, "div": _double_quotient, "sqrt": _double_root}


def _arithmetic(name: str, mode: str, code: LaneCode, *operands: LaneValue) -> LaneValue:
    """*Undefined*: the last place of a denormal result of doubles, but under `rn`."""
    if mode == "rn":
        return _PAIRS[name](code, *operands)[0]
    if operands[0].element == "float":
        wide = [operand.convert("fpext", "double") for operand in operands]
        exact, rest = _PAIRS[name](code, *wide) if name != "fma" else _exact_fused(code, wide)
        return _signed_zero(name, mode, to_single(code, exact, rest, mode), operands)
    result, dropped = _DOUBLE_PAIRS[name](code, *operands)
    # An overflow dropped everything beyond the largest number.
    is_finite = operands[0].absolute().compare("olt", math.inf)
    for operand in operands[1:]:
        is_finite = is_finite & operand.absolute().compare("olt", math.inf)
    if name in ("div", "rcp"):
        is_finite = is_finite & operands[-1].compare("one", 0.0)
    overflows = is_finite & result.absolute().compare("oeq", math.inf)
    dropped = overflows.select(-result, dropped)
    return _signed_zero(name, mode, step(code, result, dropped, mode), operands)


def _exact_fused(code: LaneCode, wide: list[LaneValue]) -> tuple[LaneValue, LaneValue]:
    """The sum of a product of floats, which is exact in doubles, and a float."""
    return two_sum(wide[0] * wide[1], wide[2])


def _signed_zero(
    name: str, mode: str, result: LaneValue, operands: tuple[LaneValue, ...]
) -> LaneValue:
    """`result` with -0 for a sum that cancels while rounding down."""
    if mode != "rd" or name not in ("add", "sub", "fma"):
        return result
    first = operands[0] * operands[1] if name == "fma" else operands[0]
    second = -operands[-1] if name == "sub" else operands[-1]
    signs = (first.bits() ^ second.bits()).compare("slt", 0)
    cancels = signs & result.compare("oeq", 0.0) & first.compare("oeq", -second)
    return cancels.select(result.coerce(-0.0), result)


_WHOLE = {"rn": "roundeven", "rz": "trunc", "rd": "floor", "ru": "ceil"}


def _to_integer(
    integer: str, is_signed: bool, mode: str, code: LaneCode, x: LaneValue
) -> LaneValue:
    """The whole number, saturated; NaN gives 0 from float to 32 bits, else the top bit."""
    whole = code.intrinsic(_WHOLE[mode], x)
    name = "fptosi" if is_signed else "fptoui"
    symbol = f"llvm.{name}.sat.{code.suffix(integer)}.{code.suffix(x.element)}"
    result = code.call(symbol, whole, result=integer)
    if integer == "i32" and x.element == "float":
        return result
    lowest = -(1 << (int(integer[1:]) - 1))
    return x.compare("uno", x).select(result.coerce(lowest), result)


def _from_integer(
    element: str, is_signed: bool, mode: str, code: LaneCode, x: LaneValue
) -> LaneValue:
    """The float of an integer, rounded once."""
    opcode = "sitofp" if is_signed else "uitofp"
    if mode == "rn":
        return x.convert(opcode, element)
    if x.element == "i32":
        wide = x.convert(opcode, "double")
        return wide if element == "double" else to_single(code, wide, None, mode)
    # The high word is exact as a double, and so is the low one: an unrounded sum of two.
    high = x.arithmetic_shift(32) if is_signed else x >> 32
    upper = high.convert(opcode, "double") * 2.0**32
    total, rest = two_sum(upper, (x & 0xFFFFFFFF).convert("uitofp", "double"))
    if element == "float":
        return to_single(code, total, rest, mode)
    return step(code, total, rest, mode)


def _double_to_single(mode: str, code: LaneCode, x: LaneValue) -> LaneValue:
    return to_single(code, x, None, mode)


def routines() -> dict[str, Routine]:
    """Every function with a rounding mode in its name."""
    table: dict[str, Routine] = {}
    integers = (("int", "i32", True), ("uint", "i32", False))
    integers += (("ll", "i64", True), ("ull", "i64", False))
    for mode in MODES:
        for name in _PAIRS:
            table[f"{name}_{mode}"] = functools.partial(_arithmetic, name, mode)
        for integer, kind, is_signed in integers:
            for source in ("float", "double"):
                to = functools.partial(_to_integer, kind, is_signed, mode)
                table[f"{source}2{integer}_{mode}"] = to
                back = functools.partial(_from_integer, source, is_signed, mode)
                table[f"{integer}2{source}_{mode}"] = back
        table[f"double2float_{mode}"] = functools.partial(_double_to_single, mode)
    return table
