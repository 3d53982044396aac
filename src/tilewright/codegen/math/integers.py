"""Functions of integers: bit counts and orders, averages, high products, sums of differences."""

from __future__ import annotations

from tilewright.codegen.math.lanes import LaneCode, LaneValue


def num_bits(x: LaneValue) -> int:
    """The width of an integer value."""
    return int(x.element[1:])


def _with_flag(code: LaneCode, name: str, x: LaneValue) -> LaneValue:
    """An intrinsic whose second operand says that its edge case is defined."""
    false = LaneCode(code.fn, None, code.features).wrap("i1", "false")
    return code.call(f"llvm.{name}.{code.suffix(x.element)}", x, false)


def absolute(code: LaneCode, x: LaneValue) -> LaneValue:
    """The magnitude of a signed integer; the least one stays."""
    return _with_flag(code, "abs", x)


def reverse(code: LaneCode, x: LaneValue) -> LaneValue:
    """The bits in opposite order."""
    return code.intrinsic("bitreverse", x)


def _narrow(x: LaneValue) -> LaneValue:
    return x if x.element == "i32" else x.convert("trunc", "i32")


def count_leading(code: LaneCode, x: LaneValue) -> LaneValue:
    """The number of zero bits above the highest set one, as i32."""
    return _narrow(_with_flag(code, "ctlz", x))


def count_set(code: LaneCode, x: LaneValue) -> LaneValue:
    """The number of set bits, as i32."""
    return _narrow(code.intrinsic("ctpop", x))


def first_set(code: LaneCode, x: LaneValue) -> LaneValue:
    """The position of the lowest set bit counted from 1, or 0, as i32."""
    position = _narrow(_with_flag(code, "cttz", x)) + 1
    return x.compare("eq", 0).select(position.coerce(0), position)


def permute_bytes(code: LaneCode, x: LaneValue, y: LaneValue, selector: LaneValue) -> LaneValue:
    """Four bytes out of the eight of `y:x`; bit 3 of a place repeats the byte's sign."""
    joined = x.convert("zext", "i64") | (y.convert("zext", "i64") << 32)
    result = x.coerce(0)
    for place in range(4):
        choice = selector >> (4 * place)
        shift = ((choice & 7) << 3).convert("zext", "i64")
        byte = (joined >> shift).convert("trunc", "i32") & 0xFF
        sign = byte.compare("ugt", 127).select(byte.coerce(0xFF), 0)
        byte = (choice & 8).compare("ne", 0).select(sign, byte)
        result = result | (byte << (8 * place))
    return result


def average(code: LaneCode, x: LaneValue, y: LaneValue) -> LaneValue:
    """The signed `(x + y) / 2` rounded down, without overflow."""
    return (x & y) + (x ^ y).arithmetic_shift(1)


def unsigned_average(code: LaneCode, x: LaneValue, y: LaneValue) -> LaneValue:
    """The unsigned `(x + y) / 2` rounded down, without overflow."""
    return (x & y) + ((x ^ y) >> 1)


def rounded_average(code: LaneCode, x: LaneValue, y: LaneValue) -> LaneValue:
    """The signed `(x + y) / 2` rounded up, without overflow."""
    return (x | y) - (x ^ y).arithmetic_shift(1)


def unsigned_rounded_average(code: LaneCode, x: LaneValue, y: LaneValue) -> LaneValue:
    """The unsigned `(x + y) / 2` rounded up, without overflow."""
    return (x | y) - ((x ^ y) >> 1)


def short_product(code: LaneCode, x: LaneValue, y: LaneValue) -> LaneValue:
    """The low half of the product of the lowest 24 bits, signed."""
    return (x << 8).arithmetic_shift(8) * (y << 8).arithmetic_shift(8)


def unsigned_short_product(code: LaneCode, x: LaneValue, y: LaneValue) -> LaneValue:
    """The low half of the product of the lowest 24 bits, unsigned."""
    return (x & 0xFFFFFF) * (y & 0xFFFFFF)


def _high_product(extension: str, x: LaneValue, y: LaneValue) -> LaneValue:
    wide = f"i{2 * num_bits(x)}"
    product = x.convert(extension, wide) * y.convert(extension, wide)
    return (product >> num_bits(x)).convert("trunc", x.element)


def high_product(code: LaneCode, x: LaneValue, y: LaneValue) -> LaneValue:
    """The high half of the signed product."""
    return _high_product("sext", x, y)


def unsigned_high_product(code: LaneCode, x: LaneValue, y: LaneValue) -> LaneValue:
    """The high half of the unsigned product."""
    return _high_product("zext", x, y)


def distance(code: LaneCode, x: LaneValue, y: LaneValue, z: LaneValue) -> LaneValue:
    """`|x - y| + z`, `x` and `y` signed."""
    return x.compare("sgt", y).select(x - y, y - x) + z


def unsigned_distance(code: LaneCode, x: LaneValue, y: LaneValue, z: LaneValue) -> LaneValue:
    """`|x - y| + z`, `x` and `y` unsigned."""
    return x.compare("ugt", y).select(x - y, y - x) + z
