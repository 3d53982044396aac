"""NVVM's arithmetic: approximations, rounding modes, conversions.

The approximate instructions of the hardware are correctly rounded here, so a program that
depends on their last bits shows it on the hardware only.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tilewright.interp.simt import rounding
from tilewright.interp.simt.arithmetic import signed
from tilewright.interp.simt.calls import Call, Compute, intrinsic
from tilewright.interp.simt.functions import (
    float_to_int,
    int_to_float,
    permute_bytes,
    saturate,
)
from tilewright.interp.simt.rounding import MODES, convert_float, flush, fused_multiply_add
from tilewright.interp.simt.types import IntType, VectorType, dtype_of, element_type, width_bits
from tilewright.ir.op import Array
from tilewright.support.errors import UnsupportedError

_Wide = Callable[..., Array]
_APPROXIMATIONS: dict[str, _Wide] = {
    "ex2.approx": np.exp2,
    "lg2.approx": np.log2,
    "rcp.approx": np.reciprocal,
    "rsqrt.approx": lambda a: 1.0 / np.sqrt(a),
    "sqrt.approx": np.sqrt,
    "sin.approx": np.sin,
    "cos.approx": np.cos,
    "tanh.approx": np.tanh,
    "div.approx": np.divide,
    "div.full": np.divide,
}
_EXACT: dict[str, Callable[..., Array]] = {
    "add": rounding.add,
    "mul": rounding.multiply,
    "div": rounding.divide,
    "sqrt": rounding.square_root,
    "rcp": lambda a, mode: rounding.divide(np.ones_like(a), a, mode),
    "fma": fused_multiply_add,
}


def _is_flushing(call: Call) -> bool:
    return ".ftz" in call.name


def _approximation(call: Call) -> Compute:
    key = ".".join(call.name.split(".")[2:4])
    function, flushes, count = _APPROXIMATIONS[key], _is_flushing(call), len(call.slots)

    def compute() -> Array:
        arguments = [call.array(i) for i in range(count)]
        dtype = arguments[0].dtype
        if flushes:
            arguments = [flush(a) for a in arguments]
        result = function(*(a.astype(np.float64) for a in arguments)).astype(dtype)
        return flush(result) if flushes else result

    return compute


for _name in _APPROXIMATIONS:
    intrinsic("llvm.nvvm." + _name, words="ftz")(_approximation)


def _with_mode(call: Call) -> Compute:
    parts = call.name.split(".")
    function, mode, count = _EXACT[parts[2]], parts[3], len(call.slots)
    flushes, saturates = _is_flushing(call), "sat" in parts

    def compute() -> Array:
        arguments = [call.array(i) for i in range(count)]
        if flushes:
            arguments = [flush(a) for a in arguments]
        result = function(*arguments, mode)
        result = flush(result) if flushes else result
        return saturate(result) if saturates else result

    return compute


for _name in _EXACT:
    for _mode in MODES:
        intrinsic(f"llvm.nvvm.{_name}.{_mode}", words="ftz sat")(_with_mode)


@intrinsic("llvm.nvvm.saturate", words="ftz")
def _saturated(call: Call) -> Compute:
    flushes = _is_flushing(call)

    def compute() -> Array:
        result = saturate(call.array(0))
        return flush(result) if flushes else result

    return compute


# --- conversions --------------------------------------------------------------------------------


def pair(low: Array, high: Array) -> Array:
    """Two 8-bit elements as one 16-bit value, or two 16-bit ones as a vector."""
    if low.dtype.itemsize == 1:
        return low.view(np.uint8).astype(np.uint16) | (
            high.view(np.uint8).astype(np.uint16) << np.uint16(8)
        )
    return np.stack([low, high])


@intrinsic("llvm.nvvm.ff2bf16x2", "llvm.nvvm.ff2f16x2", words="rn rz relu satfinite")
@intrinsic("llvm.nvvm.ff.to.e4m3x2", "llvm.nvvm.ff.to.e5m2x2", words="rn relu")
def _pack_floats(call: Call) -> Compute:
    parts = call.name.split(".")
    target = (parts[4] if parts[2] == "ff" else parts[2][3:]).removesuffix("x2")
    mode = next(p for p in parts if p in MODES)
    saturates = target.startswith("e") or "satfinite" in parts
    is_relu = "relu" in parts

    def compute() -> Array:
        low, high = (
            convert_float(call.array(i), target, mode, saturates=saturates, is_relu=is_relu)
            for i in (1, 0)
        )
        return pair(low, high)

    return compute


@intrinsic("llvm.nvvm.e4m3x2.to.f16x2", "llvm.nvvm.e5m2x2.to.f16x2", words="rn")
def _unpack_fp8(call: Call) -> Compute:
    dtype = rounding.FLOAT_DTYPES[call.name.split(".")[2].removesuffix("x2")]

    def compute() -> Array:
        word = call.array(0)
        low = (word & np.uint16(0xFF)).astype(np.uint8)
        high = (word >> np.uint16(8)).astype(np.uint8)
        return np.stack([b.view(dtype).astype(np.float16) for b in (low, high)])

    return compute


@intrinsic("llvm.nvvm.f2bf16", "llvm.nvvm.f2f16", words="rn rz relu satfinite")
@intrinsic("llvm.nvvm.d2f", words="rn rz rm rp")
def _narrow(call: Call) -> Compute:
    parts = call.name.split(".")
    target = {"f2bf16": "bf16", "f2f16": "f16", "d2f": "f32"}[parts[2]]
    mode = next(p for p in parts if p in MODES)
    saturates, is_relu = "satfinite" in parts, "relu" in parts
    return lambda: convert_float(call.array(0), target, mode, saturates=saturates, is_relu=is_relu)


_TO_INT = {"i": (32, True), "ui": (32, False), "ll": (64, True), "ull": (64, False)}


def _to_int(call: Call) -> Compute:
    kind = call.name.split(".")[2][2:]
    bits, is_signed = _TO_INT[kind]
    mode = next(p for p in call.name.split(".") if p in MODES)
    return lambda: float_to_int(call.array(0), bits, is_signed=is_signed, mode=mode)


for _name in _TO_INT:
    for _source in "fd":
        for _mode in MODES:
            intrinsic(f"llvm.nvvm.{_source}2{_name}.{_mode}", words="ftz")(_to_int)


def _from_int(call: Call) -> Compute:
    is_signed = call.name.split(".")[2][0] != "u"
    mode = next(p for p in call.name.split(".") if p in MODES)
    dtype = dtype_of(call.type)
    return lambda: int_to_float(call.array(0), dtype, is_signed=is_signed, mode=mode)


for _name in _TO_INT:
    for _target in "fd":
        for _mode in MODES:
            intrinsic(f"llvm.nvvm.{_name}2{_target}.{_mode}")(_from_int)


# --- integers -----------------------------------------------------------------------------------


@intrinsic("llvm.nvvm.sad", words="s us i ui ll ull")
def _absolute_difference(call: Call) -> Compute:
    is_unsigned = call.name.split(".")[3].startswith("u")

    def compute() -> Array:
        a, b, c = (call.array(i) for i in range(3))
        less = a < b if is_unsigned else signed(a) < signed(b)
        return c + np.where(less, b - a, a - b)

    return compute


@intrinsic("llvm.nvvm.prmt")
def _permute(call: Call) -> Compute:
    return lambda: permute_bytes(call.array(0), call.array(1), call.array(2))


@intrinsic("llvm.fptosi.sat", "llvm.fptoui.sat")
def _saturating_cast(call: Call) -> Compute:
    element = element_type(call.type)
    if not isinstance(element, IntType) or element.bits not in (8, 16, 32, 64):
        raise UnsupportedError(f"{call.name} to {width_bits(element)} bits")
    if isinstance(call.type, VectorType):
        raise UnsupportedError(f"{call.name} of vectors")
    bits, is_signed = element.bits, "si" in call.name
    return lambda: float_to_int(call.array(0), bits, is_signed=is_signed, mode="rz")
