"""Conversions between float types on one NVIDIA lane, two values at a time where that is one.

16-bit floats are carried as their bits in `i16`, 8-bit ones in `i8`, as everywhere in the
emitted text. Overflow and NaN are those of `codegen/convert.py`: the fp8 instructions are the
saturating ones (`cvt.rn.satfinite`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from xdsl.ir import Attribute

from tilewright.codegen.convert import FORMATS, from_single, llvm_element, to_single
from tilewright.codegen.llvm_builder import FunctionBuilder
from tilewright.codegen.llvm_types import FLOAT_KEYS
from tilewright.codegen.math.lanes import NVPTX, LaneCode, LaneValue
from tilewright.support.errors import InternalError

_FEATURES = frozenset({NVPTX})
_HALVES = {"f16": "half", "bf16": "bfloat"}
_PACKED_FP8 = {"f8E4M3FN": "e4m3x2", "f8E5M2": "e5m2x2"}
_ROUNDING = {"rtne": "rn", "rtz": "rz"}


def convert_float(
    fn: FunctionBuilder,
    source: Attribute,
    target: Attribute,
    lanes: int | None,
    value: str,
    rounding: str,
) -> str:
    """Convert one scalar between float element types; `lanes` must be None.

    *Rounding*: once, to nearest even (`rtne`) or toward zero (`rtz`), denormals included.
    *NaN*: stays NaN. *Overflow*: infinity, but types of 8 bits saturate; under `rtz` finite
    arguments give the largest number.
    """
    assert lanes is None, "lanes of a GPU are scalar"
    return convert_floats(fn, source, target, [value], rounding)[0]


def convert_floats(
    fn: FunctionBuilder,
    source: Attribute,
    target: Attribute,
    values: Sequence[str],
    rounding: str = "rtne",
) -> list[str]:
    """Convert several scalars; neighbours share an instruction where one takes two."""
    return convert_scalars(fn, FLOAT_KEYS[source], FLOAT_KEYS[target], values, rounding)


def convert_scalars(
    fn: FunctionBuilder, source: str, target: str, values: Sequence[str], rounding: str = "rtne"
) -> list[str]:
    """Convert scalars of dtype `source` to dtype `target` (keys of `FLOAT_KEYS`)."""
    if rounding not in _ROUNDING:
        raise InternalError(f"rounding {rounding!r} is none of {sorted(_ROUNDING)}")
    if source == target:
        return list(values)
    code = LaneCode(fn, None, _FEATURES)
    pair = _pair_conversion(source, target, rounding)
    if pair is None:
        return [_convert_one(code, source, target, value, rounding) for value in values]
    results: list[str] = []
    for index in range(0, len(values), 2):
        couple = list(values[index : index + 2])
        results.extend(pair(code, couple[0], couple[-1])[: len(couple)])
    return results


Pair = Callable[[LaneCode, str, str], list[str]]


def _pair_conversion(source: str, target: str, rounding: str) -> Pair | None:
    """How two values convert at once, None where the machine has no such instruction."""
    if source == "f32" and target in _HALVES:
        return lambda code, a, b: _halves_of_singles(code, target, a, b, rounding)
    if source == "f32" and target in _PACKED_FP8 and rounding == "rtne":
        return lambda code, a, b: _fp8_of_singles(code, target, a, b)
    if source in _PACKED_FP8 and target in ("f16", "f32"):
        return lambda code, a, b: _from_fp8(code, source, target, a, b)
    return None


def _halves_of_singles(code: LaneCode, target: str, a: str, b: str, rounding: str) -> list[str]:
    """Two floats rounded to f16 or bf16 by one instruction, whose first operand goes high."""
    suffix = _ROUNDING[rounding]
    if a == b:
        return [_half_of_single(code, target, code.wrap("float", a), suffix)] * 2
    name = f"llvm.nvvm.ff2{target}x2.{suffix}"
    packed = code.call(
        name, code.wrap("float", b), code.wrap("float", a), result=f"<2 x {_HALVES[target]}>"
    )
    return [value.name for value in _split_word(packed.convert("bitcast", "i32"), "i16")]


def _half_of_single(code: LaneCode, target: str, value: LaneValue, suffix: str) -> str:
    """One float rounded to f16 or bf16."""
    kind = _HALVES[target]
    if suffix == "rn":
        return value.convert("fptrunc", kind).convert("bitcast", "i16").name
    narrow = code.call(f"llvm.nvvm.f2{target}.{suffix}", value, result=kind)
    return narrow.convert("bitcast", "i16").name


def _split_word(word: LaneValue, half: str) -> tuple[LaneValue, LaneValue]:
    """The low and the high half of an integer."""
    return word.convert("trunc", half), (word >> int(half[1:])).convert("trunc", half)


def _fp8_of_singles(code: LaneCode, target: str, a: str, b: str) -> list[str]:
    """Two floats rounded to an fp8 type."""
    low, high = code.wrap("float", a), code.wrap("float", b)
    name = f"llvm.nvvm.ff.to.{_PACKED_FP8[target]}.rn"
    codes = _split_word(code.call(name, high, low, result="i16"), "i8")
    return [narrow.name for narrow in codes]


def _from_fp8(code: LaneCode, source: str, target: str, a: str, b: str) -> list[str]:
    """Two fp8 values, exactly, through a pair of halves."""
    word = code.wrap("i8", a).convert("zext", "i16")
    if a != b:
        word = word | (code.wrap("i8", b).convert("zext", "i16") << 8)
    name = f"llvm.nvvm.{_PACKED_FP8[source]}.to.f16x2.rn"
    packed = code.call(name, word, result="<2 x half>").convert("bitcast", "i32")
    halves = _split_word(packed, "i16")
    if target == "f16":
        return [half.name for half in halves]
    return [half.as_float("half").convert("fpext", "float").name for half in halves]


def _convert_one(code: LaneCode, source: str, target: str, value: str, rounding: str) -> str:
    """One value, where no instruction takes two."""
    operand = code.wrap(llvm_element(source), value)
    if source in _HALVES:
        operand = code.wrap("i16", value).as_float(_HALVES[source])
    if source == "f64":
        return _from_double(code, target, operand, rounding)
    if source == "f16" and target == "f64":
        return operand.convert("fpext", "double").name
    single = to_single(code, source, operand) if source not in _PACKED_FP8 else None
    if single is None:
        widened = _from_fp8(code, source, "f32", value, value)[0]
        single = code.wrap("float", widened)
    if target == "f64":
        return single.convert("fpext", "double").name
    return _from_single(code, target, single, rounding)


def _from_single(code: LaneCode, target: str, single: LaneValue, rounding: str) -> str:
    if target == "f32":
        return single.name
    pair = _pair_conversion("f32", target, rounding)
    if pair is not None:
        return pair(code, single.name, single.name)[0]
    if target == "f8E5M2":
        # Truncation composes: the upper byte of the half that is truncated.
        half = _halves_of_singles(code, "f16", single.name, single.name, rounding)[0]
        return (code.wrap("i16", half) >> 8).convert("trunc", "i8").name
    return _bits_of(from_single(code, target, single, rounding), target)


def _from_double(code: LaneCode, target: str, value: LaneValue, rounding: str) -> str:
    if target in _HALVES and rounding == "rtne":
        narrow = value.convert("fptrunc", _HALVES[target])
        return narrow.convert("bitcast", "i16").name
    if target == "f32" and rounding == "rtne":
        return value.convert("fptrunc", "float").name
    toward_zero = code.call("llvm.nvvm.d2f.rz", value, result="float")
    if rounding == "rtz":
        return _from_single(code, target, toward_zero, rounding)
    # Round to odd: an inexact result ends in a one, which no tie of a narrower type does.
    is_inexact = toward_zero.convert("fpext", "double").compare("one", value)
    odd = toward_zero.bits() | is_inexact.convert("zext", "i32")
    return _from_single(code, target, odd.as_float("float"), rounding)


def _bits_of(value: LaneValue, target: str) -> str:
    """A 16-bit float as the integer that carries it."""
    if FORMATS[target].num_bits != 16:
        return value.name
    return value.convert("bitcast", "i16").name
