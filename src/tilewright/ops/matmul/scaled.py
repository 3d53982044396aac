"""The user function of matrix products of microscaled formats, by way of 16-bit floats.

The product is one of bfloat16, or of fp16 where either side is fp16: that is what Triton computes
in. Every other format is exact in both. A scaled element is its product with the scale, rounded
once, to nearest even. Source: OCP Microscaling Formats (MX) specification 1.0.
"""

from __future__ import annotations

from tilewright.language.core import (
    bfloat16,
    dtype,
    float8e4nv,
    float8e5,
    float16,
    float32,
    int8,
    int32,
    tensor,
    uint8,
    uint16,
    unwrap,
)
from tilewright.ops.arguments import boolean_constant, choice, dtype_constant, is_none
from tilewright.ops.builder import Builder, require_tensor
from tilewright.ops.casting import broadcast_tensor, convert, reinterpret_bits
from tilewright.ops.elementwise.operators import binary
from tilewright.ops.elementwise.surface import select
from tilewright.ops.matmul.surface import dot
from tilewright.ops.shape.surface import insert_dim, join, reshape_to, transpose
from tilewright.ops.surface import surface
from tilewright.support.dataclass import dataclass
from tilewright.support.errors import (
    DotDtypeMismatch,
    DotShapeMismatch,
    InvalidOption,
)

FORMATS = ("e2m1", "e4m3", "e5m2", "bf16", "fp16")
ELEMS_PER_SCALE = (32, 16)
_ELEMENTS: dict[str, dtype] = {
    "e4m3": float8e4nv,
    "e5m2": float8e5,
    "bf16": bfloat16,
    "fp16": float16,
}
_EXPONENT_SHIFT = 7  # explicit mantissa bits of bfloat16
_SINGLE_SHIFT = 23  # and of fp32
_NOT_A_NUMBER = 0x7FC00000
_LEAST_SCALE = 0x00400000  # 2^-127, a subnormal of fp32


@dataclass(frozen=True)
class _Side:
    """One operand: `axis` is its dimension K, `packed_axis` where two e2m1 share a byte.

    Both count among the last two dimensions: 1 is the last.
    """

    name: str
    format: str
    axis: int
    packed_axis: int


@surface()
def dot_scaled(
    b: Builder,
    lhs: object,
    lhs_scale: object,
    lhs_format: object,
    rhs: object,
    rhs_scale: object,
    rhs_format: object,
    acc: object = None,
    fast_math: object = False,
    lhs_k_pack: object = True,
    rhs_k_pack: object = True,
    out_dtype: object = None,
) -> tensor:
    """(lhs * lhs_scale) @ (rhs * rhs_scale) + acc, each scale for 32 or 16 elements along K.

    Shapes: lhs [..., M, K], rhs [..., K, N], lhs_scale [..., M, K/32], rhs_scale [..., N, K/32]
    (or K/16), acc and result [..., M, N]; leading dimensions are a batch. e2m1 packs two elements
    in a byte, the low four bits first, along K, or along M or N with `*_k_pack=False`. A scale
    that is None is 1.
    Dtypes: formats "e2m1" (uint8 or int8), "e4m3", "e5m2" (fp8, uint8 or int8), "bf16", "fp16";
    scales are e8m0 in uint8 or int8, 255 being NaN unless `fast_math`, or float8e4nv. Scaled
    elements are rounded to fp16 if either format is "fp16", else to bf16. The result is fp32.
    Raises: InvalidOption, DotDtypeMismatch, DotShapeMismatch.
    """
    out = float32 if is_none(out_dtype) else dtype_constant(out_dtype, "dot_scaled", "out_dtype")
    if out != float32:
        raise InvalidOption("dot_scaled(): `out_dtype` must be fp32", argument="out_dtype")
    is_fast = boolean_constant(fast_math, "dot_scaled", "fast_math")
    left = _side("lhs", lhs_format, 1, lhs_k_pack)
    right = _side("rhs", rhs_format, 0, rhs_k_pack)
    to = float16 if "fp16" in (left.format, right.format) else bfloat16
    x = _scaled(b, lhs, lhs_scale, left, to, is_fast)
    y = _scaled(b, rhs, rhs_scale, right, to, is_fast)
    return dot(b, x, y, acc, out_dtype=float32)


def _side(name: str, format_: object, axis: int, k_pack: object) -> _Side:
    chosen = str(choice(format_, FORMATS, "dot_scaled", f"{name}_format"))
    packs_k = boolean_constant(k_pack, "dot_scaled", f"{name}_k_pack")
    if not packs_k and chosen != "e2m1":
        raise InvalidOption(
            f"dot_scaled(): `{name}_k_pack=False` needs the format 'e2m1', not {chosen!r}",
            argument=f"{name}_k_pack",
        )
    return _Side(name, chosen, axis, axis if packs_k else 1 - axis)


def _scaled(
    b: Builder, operand: object, scale: object, side: _Side, to: dtype, is_fast: bool
) -> tensor:
    """The operand as floats of `to` with its scales applied."""
    x = require_tensor(unwrap(operand), "dot_scaled", side.name)
    if len(x.static_shape) < 2:
        raise DotShapeMismatch(
            f"dot_scaled(): `{side.name}` is {x.type}; a tile of 2 dimensions or more is needed",
            argument=side.name,
        )
    values = _decoded(b, x, side)
    if is_none(scale):
        return convert(b, values, to)
    factors = _factors(b, scale, values.static_shape, side, is_fast)
    # The product of bfloat16s is exact in fp32, and what fp16 holds may be scaled from beyond.
    return convert(b, binary(b, "Mult", convert(b, values, float32), factors), to)


def _decoded(b: Builder, x: tensor, side: _Side) -> tensor:
    """The elements in a type that holds them exactly."""
    if side.format == "e2m1":
        _require_dtype(x, (uint8, int8), side.name, side.format)
        return _unpacked(b, reinterpret_bits(b, x, uint8), side.packed_axis)
    element = _ELEMENTS[side.format]
    allowed = (element, uint8, int8) if element.is_fp8() else (element,)
    _require_dtype(x, allowed, side.name, side.format)
    return reinterpret_bits(b, x, element)


def _require_dtype(x: tensor, allowed: tuple[dtype, ...], name: str, format_: str) -> None:
    if x.dtype not in allowed:
        raise DotDtypeMismatch(
            f"dot_scaled(): `{name}` is {x.dtype}; {format_} is held in "
            + " or ".join(str(a) for a in allowed),
            argument=name,
            types={name: str(x.type)},
        )


def _unpacked(b: Builder, x: tensor, axis: int) -> tensor:
    """Pairs of e2m1 in uint8 as twice as many bfloat16 along `axis`."""
    packed = x if axis == 1 else _turned(b, x)
    low = _from_e2m1(b, binary(b, "BitAnd", packed, 0xF))
    high = _from_e2m1(b, binary(b, "RShift", packed, 4))
    pairs = join(b, low, high)
    *leading, columns = packed.static_shape
    values = reshape_to(b, pairs, (*leading, 2 * columns))
    return values if axis == 1 else _turned(b, values)


def _turned(b: Builder, x: tensor) -> tensor:
    """`x` with its last two dimensions exchanged."""
    rank = len(x.static_shape)
    return transpose(b, x, (*range(rank - 2), rank - 1, rank - 2))


def _from_e2m1(b: Builder, code: tensor) -> tensor:
    """Four bits (sign, exponent of 2 with bias 1, mantissa of 1) in uint8 as bfloat16."""
    bits = convert(b, code, uint16)
    sign = binary(b, "LShift", binary(b, "RShift", bits, 3), 15)
    exponent = binary(b, "BitAnd", binary(b, "RShift", bits, 1), 3)
    mantissa = binary(b, "BitAnd", bits, 1)
    # 2^(e - 1) is the exponent e - 1 + 127; the mantissa bit is the first of seven.
    magnitude = binary(
        b,
        "BitOr",
        binary(b, "LShift", binary(b, "Add", exponent, 126), _EXPONENT_SHIFT),
        binary(b, "LShift", mantissa, _EXPONENT_SHIFT - 1),
    )
    # With exponent 0 the mantissa is worth a half: 0.5 has the exponent 126 and no mantissa.
    half = binary(b, "Mult", mantissa, 126 << _EXPONENT_SHIFT)
    is_subnormal = binary(b, "Eq", exponent, 0)
    bits = binary(b, "BitOr", sign, select(b, is_subnormal, half, magnitude))
    return reinterpret_bits(b, bits, bfloat16)


def _factors(
    b: Builder, scale: object, shape: tuple[int, ...], side: _Side, is_fast: bool
) -> tensor:
    """The scales of one operand as fp32, one for each element of `shape`."""
    name = f"{side.name}_scale"
    x = require_tensor(unwrap(scale), "dot_scaled", name)
    _require_dtype(x, (uint8, int8, float8e4nv), name, "a scale")
    *batch, first, last = shape
    rows, depth = (first, last) if side.axis == 1 else (last, first)
    leading = (*batch, rows)
    sizes = [n for n in ELEMS_PER_SCALE if x.static_shape == (*leading, depth // n) and depth >= n]
    if not sizes:
        raise DotShapeMismatch(
            f"dot_scaled(): `{name}` has shape {list(x.static_shape)}; for `{side.name}` of shape "
            f"{list(shape)} it must be [{', '.join(map(str, leading))}, {depth}/32] or "
            f"[{', '.join(map(str, leading))}, {depth}/16]",
            argument=name,
        )
    numbers = convert(b, x, float32) if x.dtype.is_fp8() else _power_of_two(b, x, is_fast)
    numbers = insert_dim(b, numbers, len(shape))
    repeated = broadcast_tensor(b, numbers, (*leading, depth // sizes[0], sizes[0]))
    factors = reshape_to(b, repeated, (*leading, depth))
    return factors if side.axis == 1 else _turned(b, factors)


def _power_of_two(b: Builder, exponent: tensor, is_fast: bool) -> tensor:
    """2^(e - 127) for an exponent e in eight bits as fp32; 255 is NaN."""
    wide = convert(b, reinterpret_bits(b, exponent, uint8), int32)
    bits = binary(b, "LShift", wide, _SINGLE_SHIFT)
    is_least = binary(b, "Eq", wide, 0)
    bits = select(b, is_least, b.constant(_LEAST_SCALE, bits.type), bits)
    if not is_fast:
        is_nan = binary(b, "Eq", wide, 255)
        bits = select(b, is_nan, b.constant(_NOT_A_NUMBER, bits.type), bits)
    return reinterpret_bits(b, bits, float32)
