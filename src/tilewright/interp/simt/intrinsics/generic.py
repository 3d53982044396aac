"""LLVM's own intrinsics: arithmetic of integers and floats, bits, assumptions, traps."""

from __future__ import annotations

from collections.abc import Callable

import ml_dtypes
import numpy as np

from tilewright.interp.simt.arithmetic import signed
from tilewright.interp.simt.calls import Call, Compute, intrinsic
from tilewright.interp.simt.faults import Fault
from tilewright.interp.simt.functions import (
    leading_zeros,
    maximum,
    maximum_number,
    minimum,
    minimum_number,
    reverse_bits,
    widened,
)
from tilewright.interp.simt.rounding import fused_multiply_add
from tilewright.interp.simt.types import element_type, width_bits
from tilewright.ir.op import Array
from tilewright.support.errors import BrokenPromise, KernelFault

_One = Callable[[Array], Array]
_Two = Callable[[Array, Array], Array]


_UNARY: dict[str, _One] = {
    "fabs": lambda a: np.where(np.signbit(a), np.negative(a), a),
    "sqrt": lambda a: np.sqrt(a) if a.dtype.itemsize >= 4 else widened(np.sqrt)(a),
    "floor": lambda a: np.floor(a),
    "ceil": lambda a: np.ceil(a),
    "trunc": lambda a: np.trunc(a),
    "rint": lambda a: np.rint(a),
    "nearbyint": lambda a: np.rint(a),
    "roundeven": lambda a: np.rint(a),
    "round": lambda a: np.where(
        np.abs(a - np.trunc(a)) >= 0.5, np.trunc(a) + np.copysign(a.dtype.type(1), a), np.trunc(a)
    ).astype(a.dtype),
    "exp2": widened(np.exp2),
    "exp": widened(np.exp),
    "log2": widened(np.log2),
    "log": widened(np.log),
    "sin": widened(np.sin),
    "cos": widened(np.cos),
    "tanh": widened(np.tanh),
}
_BINARY: dict[str, _Two] = {
    "minnum": minimum_number,
    "maxnum": maximum_number,
    "minimum": minimum,
    "maximum": maximum,
    "copysign": lambda a, b: np.copysign(a, b),
    "umin": np.minimum,
    "umax": np.maximum,
}


def _elementwise(function: Callable[..., Array], arity: int) -> Callable[[Call], Compute]:
    def rule(call: Call) -> Compute:
        read = call.machine.read
        if arity == 1:
            a = call.slots[0]
            return lambda: function(read(a))
        if arity == 2:
            a, b = call.slots[:2]
            return lambda: function(read(a), read(b))
        a, b, c = call.slots[:3]
        return lambda: function(read(a), read(b), read(c))

    return rule


for _name, _unary in _UNARY.items():
    intrinsic("llvm." + _name)(_elementwise(_unary, 1))
for _name, _binary in _BINARY.items():
    intrinsic("llvm." + _name)(_elementwise(_binary, 2))
intrinsic("llvm.fma")(_elementwise(fused_multiply_add, 3))


def _element_bits(call: Call) -> int:
    return width_bits(element_type(call.type))


@intrinsic("llvm.smin", "llvm.smax")
def _signed_extreme(call: Call) -> Compute:
    bits, is_min = _element_bits(call), call.name.startswith("llvm.smin")

    def compute() -> Array:
        a, b = call.array(0), call.array(1)
        less = signed(a, bits) < signed(b, bits)
        return np.where(less == is_min, a, b)

    return compute


@intrinsic("llvm.abs")
def _absolute(call: Call) -> Compute:
    bits = _element_bits(call)

    def compute() -> Array:
        a = call.array(0)
        mask = a.dtype.type((1 << bits) - 1) if bits < 128 else (1 << bits) - 1
        return np.where(signed(a, bits) < 0, (~a + a.dtype.type(1)) & mask, a)

    return compute


@intrinsic("llvm.ctpop")
def _population(call: Call) -> Compute:
    return lambda: np.bitwise_count(call.array(0)).astype(call.array(0).dtype)


@intrinsic("llvm.ctlz")
def _count_leading(call: Call) -> Compute:
    bits = _element_bits(call)
    return lambda: leading_zeros(call.array(0), bits)


@intrinsic("llvm.cttz")
def _count_trailing(call: Call) -> Compute:
    bits = _element_bits(call)

    def compute() -> Array:
        a = call.array(0)
        lowest = a & (~a + a.dtype.type(1))
        return np.where(a == 0, bits, bits - 1 - leading_zeros(lowest, bits)).astype(a.dtype)

    return compute


@intrinsic("llvm.bitreverse")
def _reverse(call: Call) -> Compute:
    bits = _element_bits(call)
    return lambda: reverse_bits(call.array(0), bits)


@intrinsic("llvm.fshl", "llvm.fshr")
def _funnel_shift(call: Call) -> Compute:
    bits, is_left = _element_bits(call), call.name.startswith("llvm.fshl")

    def compute() -> Array:
        a, b, c = call.array(0), call.array(1), call.array(2) % bits
        left = c if is_left else bits - c
        shifted = np.left_shift(a, left) | np.right_shift(b, bits - left)
        return np.where(c == 0, a if is_left else b, shifted).astype(a.dtype)

    return compute


def _classes(a: Array) -> list[Array]:
    """Which class each element is in, in the order of the bits of `is.fpclass`."""
    wide, negative = a.astype(np.float64), np.signbit(a)
    smallest = float(ml_dtypes.finfo(a.dtype).smallest_normal)
    nan, infinite, null = np.isnan(wide), np.isinf(wide), wide == 0
    small = ~null & (np.abs(wide) < smallest)
    normal = ~(nan | infinite | null | small)
    below = [kind & negative for kind in (infinite, normal, small, null)]
    above = [kind & ~negative for kind in (null, small, normal, infinite)]
    # Signalling and quiet NaNs are not told apart.
    return [nan, nan, *below, *above]


@intrinsic("llvm.is.fpclass")
def _float_class(call: Call) -> Compute:
    wanted = call.constant(1)

    def compute() -> Array:
        classes = _classes(call.array(0))
        result = np.zeros_like(classes[0])
        for bit, members in enumerate(classes):
            if wanted >> bit & 1:
                result |= members
        return result

    return compute


@intrinsic("llvm.ldexp")
def _scale(call: Call) -> Compute:
    def compute() -> Array:
        a, exponent = call.array(0), signed(call.array(1))
        scaled = np.ldexp(a.astype(np.float64), np.clip(exponent, -4000, 4000).astype(np.int32))
        return scaled.astype(a.dtype)

    return compute


@intrinsic("llvm.assume")
def _assume(call: Call) -> Compute:
    def compute() -> None:
        broken = ~call.array(0)[call.machine.active()]
        if broken.any():
            raise Fault(BrokenPromise, "an assumption does not hold")

    return compute


@intrinsic("llvm.trap")
def _trap(call: Call) -> Compute:
    def compute() -> None:
        threads = call.machine.active()
        raise Fault(KernelFault, f"{len(threads)} threads, from thread {threads[0]}, reach a trap")

    return compute
