"""The table of math functions of a lane, and the class through which rules emit them."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import Attribute

from tilewright.codegen.llvm_builder import FunctionBuilder
from tilewright.codegen.llvm_types import llvm_type
from tilewright.codegen.math.emitter import ROUTINES, Routine, operand_elements
from tilewright.codegen.math.lanes import NVPTX, LaneCode, LaneValue
from tilewright.support.dataclass import dataclass
from tilewright.support.errors import InternalError
from tilewright.targets.nvidia.math import special_unit
from tilewright.targets.nvidia.math.instructions import FAST, INSTRUCTIONS

FEATURES = frozenset({NVPTX})


def _divide(code: LaneCode, x: LaneValue, y: LaneValue) -> LaneValue:
    """The quotient: within 2 ulp of a float, rounded of a double."""
    return x / y


_BOTH: dict[str, Routine] = {
    **ROUTINES,
    **INSTRUCTIONS,
    "div": _divide,
}
# Approximate functions exist for float32 alone.
_SINGLE: dict[str, Routine] = {
    "div_by_shared": special_unit.divide_by_shared,
    "exp": special_unit.exp,
    "exp2": special_unit.exp2,
    "sigmoid": special_unit.sigmoid,
    "sqrt": special_unit.sqrt,
    "rsqrt": special_unit.rsqrt,
    "tanh": special_unit.tanh,
    "saturatef": special_unit.saturate,
    **FAST,
}


@dataclass(frozen=True)
class NvidiaMath:
    """Emits math functions on the float32 and float64 scalars of one lane.

    *Rounding*: within `ULP_BOUND` units in the last place. *NaN*: as on the CPU. The code
    stands in place: nothing is called, but a function may add blocks to `fn`.
    """

    def supports(self, name: str, element: str = "float") -> bool:
        """Whether function `name` can be emitted on `float` or `double`."""
        return name in _BOTH or (element == "float" and name in _SINGLE)

    def emit_math(
        self, fn: FunctionBuilder, name: str, type_: Attribute, operands: Sequence[str]
    ) -> str:
        """Emit `name(operands)` on scalars of type `type_` (f32 or f64); return its value."""
        return self.emit(fn, name, llvm_type(type_), operands)

    def emit(self, fn: FunctionBuilder, name: str, element: str, operands: Sequence[str]) -> str:
        """Emit `name(operands)` on scalars of `float` or `double`; return its value."""
        code = LaneCode(fn, None, FEATURES)
        routine = _SINGLE.get(name) if element == "float" else None
        routine = routine or _BOTH.get(name)
        if routine is None:
            raise InternalError(f"math function `{name}` has no form on `{element}`")
        kinds = operand_elements(name, element, len(operands))
        values = [code.wrap(kind, value) for kind, value in zip(kinds, operands, strict=True)]
        return routine(code, *values).name
