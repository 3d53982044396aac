"""The table of math functions and the way each is placed: inline, or in a function of its own."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tilewright.codegen.llvm_builder import FunctionBuilder, ModuleBuilder
from tilewright.codegen.math import (
    error_function,
    exponential,
    inverse_trigonometric,
    logarithm,
    power,
    trigonometric,
)
from tilewright.codegen.math.lanes import LaneCode, LaneValue
from tilewright.support.dataclass import dataclass

Routine = Callable[..., LaneValue]


def _intrinsic(name: str) -> Routine:
    """The routine that is one LLVM intrinsic, an instruction on every CPU of interest."""

    def routine(code: LaneCode, x: LaneValue) -> LaneValue:
        return code.intrinsic(name, x)

    return routine


def _rsqrt(code: LaneCode, x: LaneValue) -> LaneValue:
    """The value `1/√x`."""
    return 1.0 / code.intrinsic("sqrt", x)


# Short ones stand in the loop that uses them.
_INLINE: dict[str, Routine] = {
    "sqrt": _intrinsic("sqrt"),
    "floor": _intrinsic("floor"),
    "ceil": _intrinsic("ceil"),
    "trunc": _intrinsic("trunc"),
    "round": _intrinsic("round"),
    "rint": _intrinsic("roundeven"),
    "rsqrt": _rsqrt,
    "exp": exponential.exp,
    "exp2": exponential.exp2,
    "sigmoid": exponential.sigmoid,
    "tanh": exponential.tanh,
    "expm1": exponential.expm1,
    "log": logarithm.log,
    "log2": logarithm.log2,
    "erf": error_function.erf,
}
# Long or branching ones are functions of the module, written once for each lane count.
_OUTLINED: dict[str, Routine] = {
    "log10": logarithm.log10,
    "log1p": logarithm.log1p,
    "sinh": exponential.sinh,
    "cosh": exponential.cosh,
    "sin": trigonometric.sin,
    "cos": trigonometric.cos,
    "tan": trigonometric.tan,
    "asin": inverse_trigonometric.asin,
    "acos": inverse_trigonometric.acos,
    "atan": inverse_trigonometric.atan,
    "atan2": inverse_trigonometric.atan2,
    "pow": power.power,
}
ROUTINES: dict[str, Routine] = {**_INLINE, **_OUTLINED}
_BINARY = frozenset({"atan2", "pow"})


def vector_bits(features: frozenset[str]) -> int:
    """The width in bits of the widest vector register that the features give."""
    if "avx512f" in features:
        return 512
    return 256 if "avx" in features else 128


@dataclass(frozen=True)
class MathEmitter:
    """Emits math functions on scalars and vectors of any length into one module.

    *Rounding*: within `ULP_BOUND` units in the last place of the result, denormals included.
    *NaN*: NaN operands give NaN (but for `pow` as IEEE 754 has it); out of the domain is NaN.
    """

    module: ModuleBuilder
    features: frozenset[str]

    def supports(self, name: str) -> bool:
        """Whether function `name` can be emitted."""
        return name in _INLINE or name in _OUTLINED

    def emit(
        self,
        fn: FunctionBuilder,
        name: str,
        element: str,
        lanes: int | None,
        operands: Sequence[str],
        approximate: bool = False,
    ) -> str:
        """Emit `name(operands)` and return its value.

        *Constraints*: `element` is `float` or `double`; the operands are SSA values or
        constants of that type, or of `<lanes x element>`. `approximate` permits a routine
        with a larger bound; today there is none.
        """
        code = LaneCode(fn, lanes, self.features)
        values = [code.wrap(element, operand) for operand in operands]
        if name in _INLINE:
            return _INLINE[name](code, *values).name
        native = vector_bits(self.features) // (32 if element == "float" else 64)
        if lanes is None or lanes <= native or lanes % native:
            return self._call(name, code, values).name
        columns = zip(*(code.split(value, native) for value in values), strict=True)
        pieces = [self._call(name, code.with_lanes(native), list(column)) for column in columns]
        return code.join(pieces).name

    def _call(self, name: str, code: LaneCode, values: list[LaneValue]) -> LaneValue:
        """Call the module's function for `name`, writing it first where it is missing."""
        kind, element = values[0].type, values[0].element
        symbol = f"tw.{name}.{code.suffix(element)}"
        if not self.module.has_function(symbol):
            self._define(name, symbol, element, code.lanes)
        arguments = ", ".join(f"{kind} {value.name}" for value in values)
        return code.wrap(element, code.fn.value(f"call fastcc {kind} @{symbol}({arguments})"))

    def _define(self, name: str, symbol: str, element: str, lanes: int | None) -> None:
        kind = element if lanes is None else f"<{lanes} x {element}>"
        names = ["%x", "%y"][: 2 if name in _BINARY else 1]
        parameters = ", ".join(f"{kind} {parameter}" for parameter in names)
        header = f"define internal fastcc {kind} @{symbol}({parameters}) noinline nounwind"
        fn = FunctionBuilder(self.module, header)
        code = LaneCode(fn, lanes, self.features)
        result = _OUTLINED[name](code, *(code.wrap(element, parameter) for parameter in names))
        fn.emit(f"ret {kind} {result.name}")
        self.module.add_function(symbol, fn.text())
