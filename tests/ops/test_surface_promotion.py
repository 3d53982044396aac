"""The dtype in which operators compute, for every pair of dtypes, and Python numbers."""

from __future__ import annotations

import pytest

from tests.ops.emission import Emission
from tilewright.language.core import (
    bfloat16,
    dtype,
    float8e4nv,
    float8e5,
    float16,
    float32,
    float64,
    int1,
    int8,
    int16,
    int32,
    int64,
    uint8,
    uint16,
    uint32,
    uint64,
)
from tilewright.ops.elementwise.logical import unary
from tilewright.ops.elementwise.operators import binary
from tilewright.support.errors import DtypeMismatch, DtypeNotAllowed, LiteralOutOfRange

DTYPES = {
    "i1": int1,
    "i8": int8,
    "i16": int16,
    "i32": int32,
    "i64": int64,
    "u8": uint8,
    "u16": uint16,
    "u32": uint32,
    "u64": uint64,
    "e4": float8e4nv,
    "e5": float8e5,
    "f16": float16,
    "bf16": bfloat16,
    "f32": float32,
    "f64": float64,
}
# Row ∘ column for `+`, `-`, `*` and comparisons; `-` has no common dtype.
TABLE = """
     i1   i8   i16  i32  i64  u8   u16  u32  u64  e4   e5   f16  bf16 f32  f64
i1   i1   i8   i16  i32  i64  u8   u16  u32  u64  -    -    f16  f32  f32  f64
i8   i8   i8   i16  i32  i64  u8   u16  u32  u64  -    -    f16  f32  f32  f64
i16  i16  i16  i16  i32  i64  i16  u16  u32  u64  -    -    f16  f32  f32  f64
i32  i32  i32  i32  i32  i64  i32  i32  u32  u64  -    -    f16  f32  f32  f64
i64  i64  i64  i64  i64  i64  i64  i64  i64  u64  -    -    f16  f32  f32  f64
u8   u8   u8   i16  i32  i64  u8   u16  u32  u64  -    -    f16  f32  f32  f64
u16  u16  u16  u16  i32  i64  u16  u16  u32  u64  -    -    f16  f32  f32  f64
u32  u32  u32  u32  u32  i64  u32  u32  u32  u64  -    -    f16  f32  f32  f64
u64  u64  u64  u64  u64  u64  u64  u64  u64  u64  -    -    f16  f32  f32  f64
e4   -    -    -    -    -    -    -    -    -    e4   f16  f16  f32  f32  f64
e5   -    -    -    -    -    -    -    -    -    f16  e5   f16  f32  f32  f64
f16  f16  f16  f16  f16  f16  f16  f16  f16  f16  f16  f16  f16  f16  f32  f64
bf16 f32  f32  f32  f32  f32  f32  f32  f32  f32  f32  f32  f16  bf16 f32  f64
f32  f32  f32  f32  f32  f32  f32  f32  f32  f32  f32  f32  f32  f32  f32  f64
f64  f64  f64  f64  f64  f64  f64  f64  f64  f64  f64  f64  f64  f64  f64  f64
"""
INTEGERS = ("i1", "i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64")
SIGNED = ("i8", "i16", "i32", "i64")
ARITHMETIC = ("Add", "Sub", "Mult")
COMPARISONS = ("Eq", "NotEq", "Lt", "LtE", "Gt", "GtE")


def table() -> dict[tuple[str, str], str]:
    header, *rows = [line.split() for line in TABLE.strip().splitlines()]
    # The f16 row also says what f16 does to i1 … : columns follow the header.
    return {(row[0], name): row[i + 1] for row in rows for i, name in enumerate(header)}


EXPECTED = table()
PAIRS = sorted(EXPECTED)


def result(operator: str, left: str, right: str) -> dtype:
    emission = Emission()
    x, y = emission.value(DTYPES[left], 4), emission.value(DTYPES[right], 4)
    value = binary(emission.builder, operator, x, y)
    assert value.static_shape == (4,)
    return value.dtype


def test_the_table_is_complete_and_symmetric() -> None:
    assert len(EXPECTED) == len(DTYPES) ** 2
    for (left, right), expected in EXPECTED.items():
        assert EXPECTED[right, left] == expected


@pytest.mark.parametrize("operator", ARITHMETIC)
def test_arithmetic_of_every_pair_follows_the_table(operator: str) -> None:
    for left, right in PAIRS:
        expected = EXPECTED[left, right]
        if expected == "-":
            with pytest.raises(DtypeMismatch):
                result(operator, left, right)
        else:
            assert result(operator, left, right) == DTYPES[expected], (left, right)


@pytest.mark.parametrize("operator", COMPARISONS)
def test_comparison_of_every_pair_gives_int1(operator: str) -> None:
    for left, right in PAIRS:
        if EXPECTED[left, right] == "-":
            with pytest.raises(DtypeMismatch):
                result(operator, left, right)
        else:
            assert result(operator, left, right) == int1, (left, right)


def test_division_of_every_pair_gives_fp32_or_fp64() -> None:
    for left, right in PAIRS:
        if EXPECTED[left, right] == "-" and left in INTEGERS + ("e4", "e5"):
            # An integer beside fp8 becomes fp32 under `/`: any float operand decides.
            assert result("Div", left, right) == float32
            continue
        if left in INTEGERS and right in INTEGERS and (left in SIGNED) != (right in SIGNED):
            continue
        wanted = float64 if "f64" in (left, right) else float32
        assert result("Div", left, right) == wanted, (left, right)


def test_remainder_of_floats_is_at_least_fp32() -> None:
    for left, right in PAIRS:
        if left in INTEGERS and right in INTEGERS:
            continue
        wanted = float64 if "f64" in (left, right) else float32
        assert result("Mod", left, right) == wanted, (left, right)


@pytest.mark.parametrize("operator", ["Div", "FloorDiv", "Mod"])
def test_integer_division_needs_one_signedness(operator: str) -> None:
    for left in INTEGERS:
        for right in INTEGERS:
            if (left in SIGNED) != (right in SIGNED):
                with pytest.raises(
                    DtypeMismatch, match=r"Cannot use .* because they have different signedness"
                ):
                    result(operator, left, right)
            else:
                wanted = float32 if operator == "Div" else DTYPES[EXPECTED[left, right]]
                assert result(operator, left, right) == wanted


def test_floor_division_of_a_float_is_refused() -> None:
    for left, right in PAIRS:
        if left not in INTEGERS or right not in INTEGERS:
            with pytest.raises(DtypeNotAllowed, match="takes integers"):
                result("FloorDiv", left, right)


@pytest.mark.parametrize("operator", ["BitAnd", "BitOr", "BitXor", "LShift", "RShift"])
def test_bitwise_operators_take_integers_alone(operator: str) -> None:
    for left, right in PAIRS:
        if left in INTEGERS and right in INTEGERS:
            assert result(operator, left, right) == DTYPES[EXPECTED[left, right]]
        else:
            with pytest.raises(DtypeNotAllowed, match="takes integers"):
                result(operator, left, right)


@pytest.mark.parametrize(
    ("operator", "element", "name"),
    [
        ("RShift", int32, "arith.shrsi"),
        ("RShift", uint32, "arith.shrui"),
        ("FloorDiv", int8, "arith.divsi"),
        ("FloorDiv", uint8, "arith.divui"),
        ("Mod", int64, "arith.remsi"),
        ("Mod", uint64, "arith.remui"),
        ("Mod", float32, "arith.remf"),
        ("Div", float64, "arith.divf"),
    ],
)
def test_signedness_chooses_the_op(operator: str, element: dtype, name: str) -> None:
    emission = Emission()
    x = emission.value(element, 8)
    binary(emission.builder, operator, x, x)
    assert emission.names()[-1] == name


def test_a_product_of_conditions_is_their_conjunction() -> None:
    emission = Emission()
    product = binary(emission.builder, "Mult", emission.value(int1, 2), emission.value(int1, 2))
    assert product.dtype == int1 and emission.names()[-1] == "arith.andi"


def test_a_right_shift_copies_the_sign_of_its_left_operand() -> None:
    for left in INTEGERS:
        for right in INTEGERS:
            emission = Emission()
            x = emission.value(DTYPES[left], 8)
            y = emission.value(DTYPES[right], 8)
            shifted = binary(emission.builder, "RShift", x, y)
            assert shifted.dtype == DTYPES[EXPECTED[left, right]]
            wanted = "arith.shrsi" if left in SIGNED else "arith.shrui"
            assert emission.names()[-1] == wanted, (left, right)


# Python number beside a tile → dtype, or None where the number does not fit.
NUMBERS: list[tuple[object, str, str | None]] = [
    (True, "i1", "i1"),
    (True, "i8", "i8"),
    (1, "i1", "i32"),
    (1, "i8", "i8"),
    (127, "i8", "i8"),
    (-128, "i8", "i8"),
    (200, "i8", None),
    (255, "u8", "u8"),
    (256, "u8", None),
    (-1, "u8", None),
    (-1, "u64", None),
    (2**31 - 1, "i32", "i32"),
    (2**31, "i32", None),
    (2**31, "i64", "i64"),
    (2**63, "u64", "u64"),
    (1.0, "i8", "f32"),
    (1.0, "i64", "f32"),
    (1e300, "i32", "f64"),
    (1.5, "f16", "f16"),
    (1.5, "bf16", "bf16"),
    (1e300, "f32", "f32"),
    (3, "bf16", "bf16"),
    (True, "f16", "f16"),
    (2, "f64", "f64"),
    (1.5, "i1", "f32"),
]


@pytest.mark.parametrize(("number", "name", "expected"), NUMBERS)
@pytest.mark.parametrize("is_left", [False, True])
def test_a_number_takes_the_dtype_beside_it(
    number: object, name: str, expected: str | None, is_left: bool
) -> None:
    emission = Emission()
    x = emission.value(DTYPES[name], 4)
    operands = (number, x) if is_left else (x, number)
    if expected is None:
        with pytest.raises(LiteralOutOfRange):
            binary(emission.builder, "Add", *operands)
    else:
        assert binary(emission.builder, "Add", *operands).dtype == DTYPES[expected]


def test_a_scalar_of_the_runtime_is_no_literal() -> None:
    emission = Emission()
    tile, scalar = emission.value(int8, 4), emission.value(int32)
    assert binary(emission.builder, "Add", tile, scalar).dtype == int32
    half, single = emission.value(float16, 4), emission.value(float32)
    assert binary(emission.builder, "Mult", half, single).dtype == float32


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (True, int1),
        (0, int32),
        (-(2**31), int32),
        (2**31, uint32),
        (2**32, int64),
        (-(2**31) - 1, int64),
        (2**63, uint64),
        (0.0, float32),
        (1e-40, float64),
        (float("inf"), float32),
        (float("nan"), float32),
        (3.4e38, float32),
        (3.5e38, float64),
    ],
)
def test_a_number_alone_takes_the_first_dtype_that_holds_it(value: object, expected: dtype) -> None:
    assert Emission().call("to_tensor", value).dtype == expected  # type: ignore[union-attr]


def test_a_number_beyond_64_bits_is_refused() -> None:
    with pytest.raises(LiteralOutOfRange):
        Emission().call("to_tensor", 2**64)


def test_not_takes_int1_alone() -> None:
    emission = Emission()
    assert unary(emission.builder, "Not", emission.value(int1, 2)).dtype == int1
    with pytest.raises(DtypeNotAllowed, match="takes int1"):
        unary(emission.builder, "Not", emission.value(int32))


def test_negation_of_an_unsigned_tile_stays_unsigned() -> None:
    emission = Emission()
    assert unary(emission.builder, "USub", emission.value(uint16, 2)).dtype == uint16
