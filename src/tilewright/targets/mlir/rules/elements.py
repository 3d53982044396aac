"""What an elementwise op is on one element: a line of arith or math, or a few.

Semantics are the language's, not the dialects': shift amounts lose the bits beyond the width,
division by zero gives some number, floats of 8 bits compute in float.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from xdsl.ir import Attribute, Operation

from tilewright.ir.op import ElementwiseOp
from tilewright.ir.types import FLOAT8, bf16, element_of, f16, f32, f64, is_float, width_bits
from tilewright.ops.creation.ir import constant_of
from tilewright.ops.debug.ir import HintOp
from tilewright.ops.elementwise.comparisons import CmpFOp, CmpIOp
from tilewright.ops.elementwise.ir import (
    ELEMENTWISE,
    ArithBitcastOp,
    BinaryFloatOp,
    ClampFOp,
    ExtFOp,
    ExtSIOp,
    ExtUIOp,
    FmaOp,
    FpToFpOp,
    FPToSIOp,
    FPToUIOp,
    IndexCastOp,
    SelectOp,
    SIToFPOp,
    TruncFOp,
    TruncIOp,
    UIToFPOp,
    UnaryOp,
)
from tilewright.ops.extern.ir import ExternElementwiseOp
from tilewright.support.rules import RuleTable
from tilewright.targets.mlir.instructions import call_routine, convert_float, convert_integer
from tilewright.targets.mlir.text import Code, is_float_text, type_text

ElementRule = Callable[[Code, Operation, Sequence[str]], str]
ELEMENT_RULES: RuleTable[ElementRule] = RuleTable("mlir elements")
"""The lines that compute one element of an op's result from those of its operands."""

# Names of convert's tables for the element types of the IR.
_DTYPES: dict[Attribute, str] = {
    f32: "f32", f64: "f64", f16: "f16", bf16: "bf16",
    **{form: str(form) for form in FLOAT8},
}  # fmt: skip
_SHIFTS = ("arith.shli", "arith.shrsi", "arith.shrui")
_DIVISIONS = ("arith.divsi", "arith.divui", "arith.remsi", "arith.remui")
_SPELLED = {"tt.precise_divf": "arith.divf", "tt.precise_sqrt": "math.sqrt"}
# Of these the dialects' own lowerings lose places, or have no float16 form.
_WIDE_MATH = frozenset(
    f"math.{name}"
    for name in (
        *("exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "rsqrt", "cbrt", "powf"),
        *("sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh", "tanh"),
        *("asinh", "acosh", "atanh", "erf", "atan2"),
    )
)
_NARROW = (*FLOAT8, f16, bf16)
# Functions of libdevice that are an op of the math dialect, by routine.
_EXTERN_MATH = {
    name: f"math.{name}"
    for name in (
        *("acos", "acosh", "asin", "asinh", "atan", "atanh", "atan2", "cbrt", "ceil", "cos"),
        *("cosh", "erf", "erfc", "exp", "exp2", "expm1", "floor", "log", "log10", "log1p"),
        *("log2", "round", "sin", "sinh", "sqrt", "tan", "tanh", "trunc", "copysign", "fma"),
    )
} | {"fabs": "math.absf", "rint": "math.roundeven", "nearbyint": "math.roundeven",
     "pow": "math.powf", "fast_sin": "math.sin", "fast_cos": "math.cos",
     "fast_tan": "math.tan"}  # fmt: skip


def emit_element(code: Code, op: Operation, operands: Sequence[str]) -> str:
    """The name of one element of the result of an elementwise op."""
    rule = ELEMENT_RULES.find(type(op))
    assert rule is not None, op.name
    return rule(code, op, operands)


def has_element_rule(op: Operation) -> bool:
    """Whether an op is known here."""
    return isinstance(op, ElementwiseOp) and ELEMENT_RULES.find(type(op)) is not None


def _ops(names: Sequence[str]) -> tuple[type[Operation], ...]:
    return tuple(ELEMENTWISE[name] for name in names)


def _simple(names: Sequence[str]) -> tuple[type[Operation], ...]:
    return _ops([f"arith.{name}" for name in names])


@ELEMENT_RULES.register(
    *_simple(("addi", "subi", "muli", "andi", "ori", "xori", "maxsi", "maxui", "minsi", "minui")),
    *_ops(("math.absi", "math.ctpop", "math.ctlz", "math.cttz")),
)
def _integer(code: Code, op: Operation, operands: Sequence[str]) -> str:
    return code.value(f"{op.name} {', '.join(operands)} : {type_text(op.results[0].type)}")


@ELEMENT_RULES.register(*_ops(_SHIFTS))
def _shift(code: Code, op: Operation, operands: Sequence[str]) -> str:
    kind, width = type_text(op.results[0].type), width_bits(op.results[0].type)
    value, amount = operands
    constant = constant_of(op.operands[1])
    if constant is not None and 0 <= constant < width:
        return code.value(f"{op.name} {value}, {amount} : {kind}")
    # The dialect leaves an amount of the width or more undefined; here all bits are shifted out.
    last = code.constant(kind, width - 1)
    least = code.value(f"arith.minui {amount}, {last} : {kind}")
    shifted = code.value(f"{op.name} {value}, {least} : {kind}")
    if op.name == "arith.shrsi":
        return shifted
    fits = code.value(f"arith.cmpi ule, {amount}, {last} : {kind}")
    zero = code.constant(kind, 0)
    return code.value(f"arith.select {fits}, {shifted}, {zero} : {kind}")


@ELEMENT_RULES.register(*_ops(_DIVISIONS))
def _division(code: Code, op: Operation, operands: Sequence[str]) -> str:
    kind, bits = type_text(op.results[0].type), width_bits(op.results[0].type)
    value, divisor = operands
    if bits == 1:
        # One-bit division by anything but the trapping zero is the dividend.
        return value if "div" in op.name else code.constant(kind, 0)
    if constant_of(op.operands[1]) in (None, 0, -1):
        divisor = _safe_divisor(code, kind, bits, operands, op.name.endswith("si"))
    return code.value(f"{op.name} {value}, {divisor} : {kind}")


def _safe_divisor(
    code: Code, kind: str, bits: int, operands: Sequence[str], is_signed: bool
) -> str:
    """The divisor with 1 in place of what traps: zero, and -1 under the least number."""
    value, divisor = operands
    traps = code.value(f"arith.cmpi eq, {divisor}, {code.constant(kind, 0)} : {kind}")
    if is_signed:
        least = code.constant(kind, -(1 << (bits - 1)))
        is_least = code.value(f"arith.cmpi eq, {value}, {least} : {kind}")
        is_minus = code.value(f"arith.cmpi eq, {divisor}, {code.constant(kind, -1)} : {kind}")
        overflows = code.value(f"arith.andi {is_least}, {is_minus} : i1")
        traps = code.value(f"arith.ori {traps}, {overflows} : i1")
    return code.value(f"arith.select {traps}, {code.constant(kind, 1)}, {divisor} : {kind}")


@ELEMENT_RULES.register(ELEMENTWISE["tt.mulhiui"])
def _high_product(code: Code, op: Operation, operands: Sequence[str]) -> str:
    kind = type_text(op.results[0].type)
    return code.values(2, f"arith.mului_extended {', '.join(operands)} : {kind}")[1]


def widened(code: Code, type_: Attribute, name: str, also: Sequence[Attribute] = ()) -> str:
    """A float of 8 bits, or of a type in `also`, as one of 32; others as they are."""
    element = element_of(type_)
    if element not in (*FLOAT8, *also):
        return name
    return convert(code, element, f32, name)


def narrowed(code: Code, type_: Attribute, name: str, also: Sequence[Attribute] = ()) -> str:
    """What `widened` made wider, rounded back to its type."""
    element = element_of(type_)
    return convert(code, f32, element, name) if element in (*FLOAT8, *also) else name


def _wide_text(type_: Attribute, also: Sequence[Attribute] = ()) -> str:
    return "f32" if element_of(type_) in (*FLOAT8, *also) else type_text(type_)


def _flags(op: Operation) -> str:
    """The op's fast-math flags; a quotient is rounded once, whatever `arcp` would allow."""
    given = op.fastmath if isinstance(op, BinaryFloatOp | UnaryOp | FmaOp) else None
    flags = [] if given is None else [str(flag) for flag in given.data if flag != "arcp"]
    is_narrow = element_of(op.results[0].type) in _NARROW
    # A narrow result is rounded after every op, so nothing may be contracted around it.
    return f" fastmath<{','.join(flags)}>" if flags and not is_narrow else ""


def _float_op(code: Code, op: Operation, operands: Sequence[str], name: str) -> str:
    also = _NARROW if name in _WIDE_MATH else ()
    type_ = op.operands[0].type
    values = [widened(code, type_, value, also) for value in operands]
    flags = _flags(op) if name not in _WIDE_MATH else ""
    result = code.value(f"{name} {', '.join(values)}{flags} : {_wide_text(type_, also)}")
    return narrowed(code, type_, result, also)


@ELEMENT_RULES.register(
    *_simple(("addf", "subf", "mulf", "divf", "remf", "negf")),
    *_simple(("maximumf", "minimumf", "maxnumf", "minnumf")),
    *_ops(("tt.precise_divf", "tt.precise_sqrt", "math.copysign", "math.absf", "math.ceil")),
    *_ops(("math.floor", "math.round", "math.roundeven", "math.trunc", "math.sqrt")),
    *_ops(tuple(sorted(_WIDE_MATH))),
)
def _float(code: Code, op: Operation, operands: Sequence[str]) -> str:
    return _float_op(code, op, operands, _SPELLED.get(op.name, op.name))


@ELEMENT_RULES.register(FmaOp)
def _fma(code: Code, op: Operation, operands: Sequence[str]) -> str:
    type_ = op.results[0].type
    # Products of narrow floats are exact in float, sums of them in double to the odd bit: LLVM
    # has both instructions for float alone.
    values = [widened(code, type_, value, _NARROW) for value in operands]
    result = code.value(f"math.fma {', '.join(values)} : {_wide_text(type_, _NARROW)}")
    return narrowed(code, type_, result, _NARROW)


@ELEMENT_RULES.register(ClampFOp)
def _clamp(code: Code, op: ClampFOp, operands: Sequence[str]) -> str:
    type_ = op.result.type
    x, low, high = (widened(code, type_, value) for value in operands)
    greater, lesser = ("maximumf", "minimumf") if op.propagates_nan() else ("maxnumf", "minnumf")
    kind = _wide_text(type_)
    raised = code.value(f"arith.{greater} {x}, {low} : {kind}")
    return narrowed(code, type_, code.value(f"arith.{lesser} {raised}, {high} : {kind}"))


@ELEMENT_RULES.register(CmpIOp)
def _compare_integers(code: Code, op: CmpIOp, operands: Sequence[str]) -> str:
    sides = ", ".join(operands)
    return code.value(f"arith.cmpi {op.predicate_name()}, {sides} : {type_text(op.lhs.type)}")


@ELEMENT_RULES.register(CmpFOp)
def _compare_floats(code: Code, op: CmpFOp, operands: Sequence[str]) -> str:
    sides = ", ".join(widened(code, op.lhs.type, value) for value in operands)
    return code.value(f"arith.cmpf {op.predicate_name()}, {sides} : {_wide_text(op.lhs.type)}")


@ELEMENT_RULES.register(SelectOp)
def _select(code: Code, op: SelectOp, operands: Sequence[str]) -> str:
    return code.value(f"arith.select {', '.join(operands)} : {type_text(op.result.type)}")


@ELEMENT_RULES.register(HintOp)
def _hint(code: Code, op: Operation, operands: Sequence[str]) -> str:
    return operands[0]


def _cast(code: Code, name: str, source: str, target: str, value: str) -> str:
    return value if source == target else code.value(f"{name} {value} : {source} to {target}")


@ELEMENT_RULES.register(ExtSIOp, ExtUIOp, TruncIOp)
def _integer_cast(code: Code, op: Operation, operands: Sequence[str]) -> str:
    source, target = type_text(op.operands[0].type), type_text(op.results[0].type)
    return _cast(code, op.name, source, target, operands[0])


@ELEMENT_RULES.register(IndexCastOp)
def _index_cast(code: Code, op: Operation, operands: Sequence[str]) -> str:
    source, target = type_text(op.operands[0].type), type_text(op.results[0].type)
    if "index" in (source, target):
        return _cast(code, "arith.index_cast", source, target, operands[0])
    wider = int(source[1:]) < int(target[1:])
    return _cast(code, "arith.extsi" if wider else "arith.trunci", source, target, operands[0])


@ELEMENT_RULES.register(ArithBitcastOp, ELEMENTWISE["tt.bitcast"])
def _bitcast(code: Code, op: Operation, operands: Sequence[str]) -> str:
    source, target = type_text(op.operands[0].type), type_text(op.results[0].type)
    return _cast(code, "arith.bitcast", source, target, operands[0])


@ELEMENT_RULES.register(ExtFOp, TruncFOp, FpToFpOp)
def _float_cast(code: Code, op: Operation, operands: Sequence[str]) -> str:
    rounding = op.rounding_name() if isinstance(op, FpToFpOp) else "rtne"
    source, target = element_of(op.operands[0].type), element_of(op.results[0].type)
    return convert(code, source, target, operands[0], rounding)


def convert(
    code: Code, source: Attribute, target: Attribute, value: str, rounding: str = "rtne"
) -> str:
    """A float converted with one rounding: by an op where the dialects have one for it."""
    if source == target:
        return value
    widths = width_bits(source), width_bits(target)
    is_exact = widths[0] < widths[1]
    is_known = source not in FLOAT8 and target not in FLOAT8
    if is_known and is_exact:
        return code.value(f"arith.extf {value} : {type_text(source)} to {type_text(target)}")
    # From double to a type of 16 bits LLVM would round twice, or call what no library has.
    is_one_step = source == f32 or (source == f64 and target == f32)
    if is_known and rounding == "rtne" and is_one_step:
        return code.value(f"arith.truncf {value} : {type_text(source)} to {type_text(target)}")
    return convert_float(code, _DTYPES[source], _DTYPES[target], value, rounding)


@ELEMENT_RULES.register(SIToFPOp, UIToFPOp)
def _integer_to_float(code: Code, op: Operation, operands: Sequence[str]) -> str:
    source, target = op.operands[0].type, element_of(op.results[0].type)
    if target in (f32, f64):
        return code.value(f"{op.name} {operands[0]} : {type_text(source)} to {type_text(target)}")
    is_signed = isinstance(op, SIToFPOp)
    bits = width_bits(source)
    return convert_integer(code, bits, is_signed, _DTYPES[target], operands[0])


@ELEMENT_RULES.register(FPToSIOp, FPToUIOp)
def _float_to_integer(code: Code, op: Operation, operands: Sequence[str]) -> str:
    source, target = op.operands[0].type, type_text(op.results[0].type)
    value = widened(code, source, operands[0], _NARROW)
    if target in ("i1", "i8", "i16"):
        # What leaves the range of the narrow type is some number, as it is everywhere else.
        name = "arith.fptosi"
        wide = code.value(f"{name} {value} : {_wide_text(source, _NARROW)} to i32")
        return code.value(f"arith.trunci {wide} : i32 to {target}")
    return code.value(f"{op.name} {value} : {_wide_text(source, _NARROW)} to {target}")


@ELEMENT_RULES.register(ExternElementwiseOp)
def _extern(code: Code, op: ExternElementwiseOp, operands: Sequence[str]) -> str:
    extern = op.extern()
    selector = type_text(op.operands[extern.selector].type)
    name = _EXTERN_MATH.get(extern.routine)
    if name is not None and is_float_text(selector) and is_float(op.result.type):
        return code.value(f"{name} {', '.join(operands)} : {selector}")
    return call_routine(code, extern.routine, selector, operands)
