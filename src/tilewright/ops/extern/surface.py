"""User functions under the names of NVIDIA's libdevice, as `tl.extra.libdevice`.

Each name stands for a few functions with exact operand types (`EXTERNS`). Where an op of the
tile IR means the same, that op is used; the others are `tt.extern_elementwise`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from xdsl.dialects.builtin import IntegerAttr, StringAttr

from tilewright.language.core import dtype, int1, tensor, unwrap
from tilewright.ops.builder import Builder, integer_property, shaped
from tilewright.ops.casting import (
    broadcast_shapes,
    broadcast_tensor,
    convert,
    is_number,
    reinterpret_bits,
    to_tensor,
    to_tensor_beside,
)
from tilewright.ops.elementwise.comparisons import FLOAT_PREDICATES, CmpFOp
from tilewright.ops.elementwise.ir import FmaOp
from tilewright.ops.elementwise.operators import binary, elementwise
from tilewright.ops.elementwise.promotion import promote
from tilewright.ops.extern.ir import EXTERNS, Extern, ExternElementwiseOp, overloads
from tilewright.ops.extern.meanings import MEANINGS
from tilewright.ops.surface import surface
from tilewright.support.errors import DtypeNotAllowed

_MODULE = "extra.libdevice"
_PARAMETERS = "xyzw"
# Routines that an op of the tile IR means too, so that passes know them.
_OPS = {
    name: f"math.{name}"
    for line in (
        "acos acosh asin asinh atan atan2 atanh cbrt ceil copysign cos cosh erf exp exp2 expm1",
        "floor log log10 log1p log2 round rsqrt sin sinh sqrt tan tanh trunc",
    )
    for name in line.split()
} | {
    "pow": "math.powf",
    "rint": "math.roundeven",
    "nearbyint": "math.roundeven",
    "fmod": "arith.remf",
    "fabs": "math.absf",
    "abs": "math.absi",
    "div_rn": "tt.precise_divf",
    "sqrt_rn": "tt.precise_sqrt",
}
_BIT_CASTS = frozenset(
    {"float_as_int", "float_as_uint", "double_as_longlong"}
    | {"int_as_float", "uint_as_float", "longlong_as_double"}
)
_PREDICATES = frozenset({"isnan", "isinf", "isfinite"})
# These are in `tl.math` too.
_IN_MATH = frozenset(
    name
    for line in (
        "acos acosh asin asinh atan atan2 atanh cbrt copysign cosh expm1 fmod hypot log10 log1p",
        "pow rint round sinh tan tanh trunc",
    )
    for name in line.split()
)


def _operands(b: Builder, args: Sequence[object]) -> list[tensor]:
    """The arguments as tensors of one shape; a Python float takes a float dtype beside it."""
    plain = [unwrap(arg) for arg in args]
    floats = [a.dtype for a in plain if isinstance(a, tensor) and a.dtype.is_floating()]
    values: list[tensor] = []
    for arg in plain:
        if is_number(arg) and isinstance(arg, float) and floats:
            values.append(to_tensor_beside(b, arg, floats[0]))
        else:
            values.append(to_tensor(b, arg))
    shape: tuple[int, ...] = ()
    for value in values:
        shape = broadcast_shapes(shape, value.static_shape)
    return [broadcast_tensor(b, value, shape) for value in values]


def _unsigned_as_signed(name: str) -> str:
    return name.removeprefix("u") if name.startswith("uint") else name


def _exact(rows: Sequence[Extern], names: tuple[str, ...]) -> Extern | None:
    """The function for exactly these dtypes, or else for them without regard to signs."""
    found = next((row for row in rows if row.operands == names), None)
    plain = tuple(map(_unsigned_as_signed, names))
    return found or next(
        (row for row in rows if tuple(map(_unsigned_as_signed, row.operands)) == plain), None
    )


def _resolve(b: Builder, name: str, args: Sequence[object]) -> tuple[Extern, list[tensor]]:
    """The function for the arguments, and the arguments in its dtypes."""
    rows, values = overloads(name), _operands(b, args)
    row = _exact(rows, tuple(value.dtype.name for value in values))
    if row is None and len(values) > 1:
        common = values[0].dtype
        for value in values[1:]:
            common = promote(common, value.dtype, False)
        row = _exact(rows, (common.name,) * len(values))
        if row is not None:
            values = [convert(b, value, common) for value in values]
    if row is None:
        raise _refusal(name, rows, values)
    return row, values


def _refusal(name: str, rows: Sequence[Extern], values: list[tensor]) -> DtypeNotAllowed:
    given = ", ".join(str(value.dtype) for value in values)
    accepted = " or ".join("(" + ", ".join(row.operands) + ")" for row in rows)
    is_float = all(value.dtype.is_floating() for value in values)
    return DtypeNotAllowed(
        f"{name}(): there is no form for ({given}); it takes {accepted}",
        types=dict(zip(_PARAMETERS, (str(value.type) for value in values), strict=False)),
        hint="convert it with .to(tl.float32)" if is_float else "convert the operands with .to()",
    )


def _apply(b: Builder, name: str, args: Sequence[object]) -> tensor:
    """Append the op of the function called `name` for these arguments."""
    row, values = _resolve(b, name, args)
    result = shaped(dtype(row.result), values[0].static_shape)
    if row.routine in _BIT_CASTS:
        return reinterpret_bits(b, values[0], dtype(row.result))
    if row.routine in _PREDICATES:
        return _predicate(b, row.routine, values[0])
    if row.routine == "fma":
        return b.tensor(FmaOp, values, result)
    if row.routine in _OPS and (row.routine[-3:] != "_rn" or row.result == "fp32"):
        return elementwise(b, _OPS[row.routine], *values)
    properties = {
        "libname": StringAttr("libdevice"),
        "libpath": StringAttr(""),
        "symbol": StringAttr(row.symbol),
        "pure": IntegerAttr.from_bool(True),
    }
    return b.tensor(ExternElementwiseOp, values, result, properties)


def _predicate(b: Builder, routine: str, value: tensor) -> tensor:
    """A class of floats as int1, by a comparison."""
    if routine == "isnan":
        predicate = integer_property(FLOAT_PREDICATES.index("uno"), 64)
        result = shaped(int1, value.static_shape)
        return b.tensor(CmpFOp, [value, value], result, {"predicate": predicate})
    magnitude = elementwise(b, "math.absf", value)
    return binary(b, "Eq" if routine == "isinf" else "Lt", magnitude, float("inf"))


def _unary(name: str) -> Callable[..., tensor]:
    def function(b: Builder, x: object) -> tensor:
        return _apply(b, name, [x])

    return function


def _binary(name: str) -> Callable[..., tensor]:
    def function(b: Builder, x: object, y: object) -> tensor:
        return _apply(b, name, [x, y])

    return function


def _ternary(name: str) -> Callable[..., tensor]:
    def function(b: Builder, x: object, y: object, z: object) -> tensor:
        return _apply(b, name, [x, y, z])

    return function


def _quaternary(name: str) -> Callable[..., tensor]:
    def function(b: Builder, x: object, y: object, z: object, w: object) -> tensor:
        return _apply(b, name, [x, y, z, w])

    return function


_BY_ARITY = {1: _unary, 2: _binary, 3: _ternary, 4: _quaternary}


def _result_name(row: Extern) -> str:
    return "int1" if row.routine in _PREDICATES else row.result


def _forms(rows: Sequence[Extern]) -> str:
    """The dtypes of every form: `(fp32) → fp32, (fp64) → fp64`."""
    forms = [f"({', '.join(row.operands)}) → {_result_name(row)}" for row in rows]
    return (", " if sum(map(len, forms)) < 80 else ",\n").join(forms)


def _define(name: str) -> None:
    """Declare the user function `name` for all of its forms."""
    rows = overloads(name)
    function = _BY_ARITY[len(rows[0].operands)](name)
    function.__name__ = name
    function.__doc__ = f"{MEANINGS[name]}, element by element.\n\nDtypes: {_forms(rows)}."
    surface(name, module=_MODULE)(function)
    if name in _IN_MATH:
        surface(name, module="math")(function)


NAMES = tuple(sorted({row.name for row in EXTERNS.values()}))
for _name in NAMES:
    _define(_name)
