"""Exact widening of vectors while they are packed: every value of the source is kept."""

from __future__ import annotations

from tilewright.codegen.convert import emit_fp_to_fp
from tilewright.codegen.llvm_builder import FunctionBuilder

FLOAT8_DTYPES = ("f8E4M3FN", "f8E5M2", "f8E4M3FNUZ", "f8E5M2FNUZ", "f8E4M3B11FNUZ")

# By definition: the exponent's bits of an f32, and those that a bf16 keeps (as a signed number).
_EXPONENT, _UPPER_HALF = 0x7F800000, -0x10000

STORAGE_TYPE = {
    **{"f64": "double", "f32": "float", "f16": "i16", "bf16": "i16"},
    **{"i32": "i32", "i16": "i16", "i8": "i8", "u8": "i8"},
    **dict.fromkeys(FLOAT8_DTYPES, "i8"),
}
"""The LLVM type in which an element is addressed and moved; never computed with if narrow."""

# By definition: the bytes of an LLVM type.
STORAGE_BYTES = {"double": 8, "float": 4, "i32": 4, "i16": 2, "i8": 1}


def emit_widen(
    fn: FunctionBuilder,
    source: str,
    target: str,
    lanes: int,
    value: str,
    features: frozenset[str],
) -> str:
    """`value`, a vector of `source` in its storage type, as `target` in its storage type.

    *Dtypes* i8, u8 → i16, i32; bf16, f16, fp8, f32 → f32, f64; equal dtypes pass through.
    """
    if STORAGE_TYPE[source] == STORAGE_TYPE[target] and source not in ("f16", *FLOAT8_DTYPES):
        return value
    if source in ("i8", "u8"):
        extend = "sext" if source == "i8" else "zext"
        return _cast(fn, extend, lanes, "i8", STORAGE_TYPE[target], value)
    single = value if source == "f32" else _to_single(fn, source, lanes, value, features)
    return single if target == "f32" else _cast(fn, "fpext", lanes, "float", "double", single)


def _to_single(
    fn: FunctionBuilder, source: str, lanes: int, value: str, features: frozenset[str]
) -> str:
    if source == "bf16":
        bits = _cast(fn, "zext", lanes, "i16", "i32", value)
        high = fn.value(f"shl <{lanes} x i32> {bits}, splat (i32 16)")
        return _cast(fn, "bitcast", lanes, "i32", "float", high)
    if source == "f16":
        value = _cast(fn, "bitcast", lanes, "i16", "half", value)
    return emit_fp_to_fp(fn, source, "f32", lanes, value, features=features)


def _cast(fn: FunctionBuilder, cast: str, lanes: int, source: str, target: str, value: str) -> str:
    return fn.value(f"{cast} <{lanes} x {source}> {value} to <{lanes} x {target}>")


def emit_half_part(fn: FunctionBuilder, part: int, lanes: int, value: str) -> str:
    """One part of a vector of f16, as bf16: the upper bits, these if finite, or the rest.

    The upper 8 bits and the rest add up to a finite number. Infinities and NaNs are only in part
    0, which is multiplied with part 0 alone: times a rest that is zero they would make NaNs.
    """
    wide = f"<{lanes} x i32>"
    half = _cast(fn, "bitcast", lanes, "i16", "half", value)
    single = _cast(fn, "fpext", lanes, "half", "float", half)
    bits = _cast(fn, "bitcast", lanes, "float", "i32", single)
    chosen = fn.value(f"and {wide} {bits}, splat (i32 {_UPPER_HALF})")
    if part == 2:
        first = _cast(fn, "bitcast", lanes, "i32", "float", chosen)
        rest = fn.value(f"fsub <{lanes} x float> {single}, {first}")
        chosen = _cast(fn, "bitcast", lanes, "float", "i32", rest)
    if part > 0:
        exponent = fn.value(f"and {wide} {bits}, splat (i32 {_EXPONENT})")
        is_finite = fn.value(f"icmp ne {wide} {exponent}, splat (i32 {_EXPONENT})")
        zero = f"{wide} zeroinitializer"
        chosen = fn.value(f"select <{lanes} x i1> {is_finite}, {wide} {chosen}, {zero}")
    upper = fn.value(f"lshr {wide} {chosen}, splat (i32 16)")
    return _cast(fn, "trunc", lanes, "i32", "i16", upper)
