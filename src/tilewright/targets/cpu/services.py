"""What the lowering rules ask of the CPU: conversions, math, the machine's features."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field

from xdsl.ir import Attribute, Operation

from tilewright.codegen.convert import emit_fp_to_fp
from tilewright.codegen.llvm_builder import FunctionBuilder, ModuleBuilder
from tilewright.codegen.llvm_types import FLOAT_KEYS, LLVM_FLOATS, lanes_of, llvm_type
from tilewright.codegen.math.emitter import MathEmitter
from tilewright.ir import types as ir
from tilewright.support.dataclass import dataclass


@dataclass(frozen=True)
class CpuServices:
    """What the rules ask of the CPU: float conversions, math, the machine's features."""

    module: ModuleBuilder
    features: frozenset[str]
    vector_bytes: int
    math: MathEmitter
    sites: dict[Operation, int] = field(default_factory=dict)

    def site(self, op: Operation) -> int:
        """The number of an assertion in the kernel's list of sites."""
        return self.sites[op]

    def convert_float(
        self,
        fn: FunctionBuilder,
        source: Attribute,
        target: Attribute,
        lanes: int | None,
        value: str,
        rounding: str,
    ) -> str:
        """Convert between float element types, correctly rounded."""
        keys = FLOAT_KEYS[source], FLOAT_KEYS[target]
        value = _bits_to_float(fn, source, lanes, value)
        result = emit_fp_to_fp(fn, *keys, lanes, value, rounding, self.features)
        return _float_to_bits(fn, target, lanes, result)

    def emit_math(
        self, fn: FunctionBuilder, name: str, type_: Attribute, operands: Sequence[str]
    ) -> str:
        """A math function on float32 or float64, scalar or vector."""
        element = llvm_type(ir.element_of(type_))
        return self.math.emit(fn, name, element, lanes_of(type_), operands)


def _bits_to_float(fn: FunctionBuilder, type_: Attribute, lanes: int | None, value: str) -> str:
    """A 16-bit float out of the integer that carries it; other types pass through."""
    if type_ not in (ir.f16, ir.bf16):
        return value
    return fn.value(f"bitcast {_shaped('i16', lanes)} {value} to {_float_type(type_, lanes)}")


def _float_to_bits(fn: FunctionBuilder, type_: Attribute, lanes: int | None, value: str) -> str:
    if type_ not in (ir.f16, ir.bf16):
        return value
    return fn.value(f"bitcast {_float_type(type_, lanes)} {value} to {_shaped('i16', lanes)}")


def _float_type(type_: Attribute, lanes: int | None) -> str:
    return _shaped(LLVM_FLOATS[type_], lanes)


def _shaped(element: str, lanes: int | None) -> str:
    return element if lanes is None else f"<{lanes} x {element}>"
