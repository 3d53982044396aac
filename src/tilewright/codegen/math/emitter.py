"""The table of math functions and the way each is placed: inline, or in a function of its own."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tilewright.codegen.llvm_builder import FunctionBuilder, ModuleBuilder
from tilewright.codegen.math import (
    error_function,
    exponential,
    inverse_trigonometric,
    library,
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


def _divide(code: LaneCode, x: LaneValue, y: LaneValue) -> LaneValue:
    """The quotient."""
    return x / y


def operand_elements(name: str, element: str, count: int) -> list[str]:
    """The LLVM elements of the operands of function `name` in its form on `element`."""
    kinds = library.OPERANDS.get(name, ("T",) * count)
    return [element if kind == "T" else kind for kind in kinds]


# Short ones stand in the loop that uses them.
_INLINE: dict[str, Routine] = {
    **library.INLINE,
    "nearbyint": _intrinsic("roundeven"),
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
    **library.OUTLINED,
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
# Where a machine has no faster form, the fast functions are the accurate ones.
_FAST = ("exp", "exp10", "log", "log2", "log10", "sin", "cos", "tan", "tanh", "pow")
_SLOW: dict[str, Routine] = {**_INLINE, **_OUTLINED}
ROUTINES: dict[str, Routine] = {
    **_SLOW,
    **{f"fast_{name}": _SLOW[name] for name in _FAST},
    "fast_divide": _divide,
}
_IN_PLACE = frozenset({*_INLINE, "fast_exp", "fast_tanh", "fast_log", "fast_log2", "fast_divide"})


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
        return name in ROUTINES

    def emit(
        self,
        fn: FunctionBuilder,
        name: str,
        element: str,
        lanes: int | None,
        operands: Sequence[str],
    ) -> str:
        """Emit `name(operands)` and return its value.

        *Constraints*: `element` selects among the forms of a function: `float`, `double` or
        an integer type; the operands are SSA values or constants of `operand_elements`, or
        of vectors of those.
        """
        code = LaneCode(fn, lanes, self.features)
        kinds = operand_elements(name, element, len(operands))
        values = [code.wrap(kind, value) for kind, value in zip(kinds, operands, strict=True)]
        if name in _IN_PLACE:
            return ROUTINES[name](code, *values).name
        native = vector_bits(self.features) // (32 if element == "float" else 64)
        if lanes is None or lanes <= native or lanes % native:
            return self._call(name, element, code, values).name
        columns = zip(*(code.split(value, native) for value in values), strict=True)
        part = code.with_lanes(native)
        return code.join([self._call(name, element, part, list(c)) for c in columns]).name

    def _call(self, name: str, element: str, code: LaneCode, values: list[LaneValue]) -> LaneValue:
        """Call the module's function for `name`, writing it first where it is missing."""
        kind = code.type_of(element)
        symbol = f"tw.{name}.{code.suffix(element)}"
        if not self.module.has_function(symbol):
            self._define(name, symbol, element, code.lanes, [value.element for value in values])
        arguments = ", ".join(f"{value.type} {value.name}" for value in values)
        return code.wrap(element, code.fn.value(f"call fastcc {kind} @{symbol}({arguments})"))

    def _define(
        self, name: str, symbol: str, element: str, lanes: int | None, kinds: list[str]
    ) -> None:
        """Write the function `symbol`; its result is of the selecting element."""
        vectors = [kind if lanes is None else f"<{lanes} x {kind}>" for kind in (element, *kinds)]
        names = [f"%x{index}" for index in range(len(kinds))]
        parameters = ", ".join(
            f"{vector} {parameter}" for vector, parameter in zip(vectors[1:], names, strict=True)
        )
        header = f"define internal fastcc {vectors[0]} @{symbol}({parameters}) noinline nounwind"
        fn = FunctionBuilder(self.module, header)
        code = LaneCode(fn, lanes, self.features)
        operands = [code.wrap(k, parameter) for k, parameter in zip(kinds, names, strict=True)]
        result = ROUTINES[name](code, *operands)
        fn.emit(f"ret {vectors[0]} {result.name}")
        self.module.add_function(symbol, fn.text())
