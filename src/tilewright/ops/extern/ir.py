"""Functions known by a symbol, as NVIDIA's libdevice names them: the op and the table.

A row says what a symbol takes and gives; what it computes is `reference` (NumPy) here and a
routine of `codegen/math` in generated code, both under the row's `routine`.
"""

from __future__ import annotations

from xdsl.dialects.builtin import BoolAttr, StringAttr
from xdsl.irdl import (
    irdl_op_definition,
    opt_prop_def,
    prop_def,
    result_def,
    traits_def,
    var_operand_def,
)
from xdsl.traits import Pure

from tilewright.ir.op import Array, ElementwiseOp
from tilewright.support.dataclass import dataclass
from tilewright.support.errors import UnsupportedError

_LONG = {"i": "int32", "u": "uint32", "l": "int64", "v": "uint64", "f": "fp32", "d": "fp64"}


@dataclass(frozen=True)
class Extern:
    """One function of the library: `symbol(operands) → result`, by the language's dtype names."""

    symbol: str
    name: str
    routine: str
    operands: tuple[str, ...]
    result: str

    @property
    def selector(self) -> int:
        """The operand whose type selects a routine's form: the first float, else the first."""
        floats = (i for i, name in enumerate(self.operands) if name.startswith("fp"))
        return next(floats, 0)


def _extern(name: str, symbol: str, signature: str, routine: str = "") -> Extern:
    """A row from a short form: `"ff>f"` takes two fp32 and gives one."""
    operands, result = signature.split(">")
    return Extern(
        f"__nv_{symbol}",
        name,
        routine or name,
        tuple(_LONG[letter] for letter in operands),
        _LONG[result],
    )


def _on_floats(names: str, operands: str, result: str = "T") -> list[Extern]:
    """Functions with an fp32 form `namef` and an fp64 form `name`; T is the type."""
    rows: list[Extern] = []
    for name in names.split():
        for letter, suffix in (("f", "f"), ("d", "")):
            signature = f"{operands}>{result}".replace("T", letter)
            rows.append(_extern(name, name + suffix, signature))
    return rows


def _rounded() -> list[Extern]:
    """Arithmetic with the rounding mode in its name."""
    rows: list[Extern] = []
    for mode in ("rn", "rz", "rd", "ru"):
        for letter in "fd":
            for name, arity in (("add", 2), ("sub", 2), ("mul", 2), ("div", 2)):
                symbol = f"{letter}{name}_{mode}"
                rows.append(_extern(f"{name}_{mode}", symbol, f"{letter * arity}>{letter}"))
            for name in ("rcp", "sqrt"):
                rows.append(
                    _extern(f"{name}_{mode}", f"{letter}{name}_{mode}", f"{letter}>{letter}")
                )
            fma = "fmaf" if letter == "f" else "fma"
            rows.append(_extern(f"fma_{mode}", f"{fma}_{mode}", f"{letter * 3}>{letter}"))
    return rows


def _conversions() -> list[Extern]:
    """Conversions with the rounding mode in their name; unsigned results are read as signed."""
    rows: list[Extern] = []
    for mode in ("rn", "rz", "rd", "ru"):
        for source, letter in (("float", "f"), ("double", "d")):
            for integer, result in (("int", "i"), ("uint", "i"), ("ll", "l"), ("ull", "l")):
                name = f"{source}2{integer}_{mode}"
                rows.append(_extern(name, name, f"{letter}>{result}"))
        for integer, letter in (("int", "i"), ("uint", "u"), ("ll", "l"), ("ull", "v")):
            for target, result in (("float", "f"), ("double", "d")):
                # Every 32-bit integer is a double, so that one rounding is enough.
                if target == "double" and integer in ("int", "uint") and mode != "rn":
                    continue
                name = f"{integer}2{target}_{mode}"
                rows.append(_extern(name, name, f"{letter}>{result}"))
        rows.append(_extern(f"double2float_{mode}", f"double2float_{mode}", "d>f"))
    return rows


_FAST = "cosf sinf tanf expf exp10f logf log2f log10f"
_INTEGER = (
    _extern("abs", "abs", "i>i"),
    _extern("abs", "llabs", "l>l"),
    _extern("brev", "brev", "i>i"),
    _extern("brev", "brevll", "l>l"),
    _extern("byte_perm", "byte_perm", "iii>i"),
    _extern("clz", "clz", "i>i"),
    _extern("clz", "clzll", "l>i"),
    _extern("ffs", "ffs", "i>i"),
    _extern("ffs", "ffsll", "l>i"),
    _extern("popc", "popc", "i>i"),
    _extern("popc", "popcll", "l>i"),
    _extern("hadd", "hadd", "ii>i"),
    _extern("hadd", "uhadd", "uu>u", "uhadd"),
    _extern("rhadd", "rhadd", "ii>i"),
    _extern("rhadd", "urhadd", "uu>u", "urhadd"),
    _extern("mul24", "mul24", "ii>i"),
    _extern("mul24", "umul24", "uu>u", "umul24"),
    _extern("mulhi", "mulhi", "ii>i"),
    _extern("mulhi", "mul64hi", "ll>l"),
    _extern("mulhi", "umulhi", "uu>u", "umulhi"),
    _extern("mulhi", "umul64hi", "vv>v", "umulhi"),
    _extern("sad", "sad", "iiu>i"),
    _extern("sad", "usad", "uuu>u", "usad"),
)
_BITS = (
    _extern("float_as_int", "float_as_int", "f>i"),
    _extern("float_as_uint", "float_as_uint", "f>i"),
    _extern("int_as_float", "int_as_float", "i>f"),
    _extern("uint_as_float", "uint_as_float", "u>f"),
    _extern("double_as_longlong", "double_as_longlong", "d>l"),
    _extern("longlong_as_double", "longlong_as_double", "l>d"),
    _extern("hiloint2double", "hiloint2double", "ii>d"),
    _extern("double2hiint", "double2hiint", "d>i"),
    _extern("double2loint", "double2loint", "d>i"),
)
_PREDICATES = (
    _extern("finitef", "finitef", "f>i", "isfinite"),
    _extern("isfinited", "isfinited", "d>i", "isfinite"),
    _extern("isinf", "isinff", "f>i"),
    _extern("isinf", "isinfd", "d>i"),
    _extern("isnan", "isnanf", "f>i"),
    _extern("isnan", "isnand", "d>i"),
    _extern("signbit", "signbitf", "f>i"),
    _extern("signbit", "signbitd", "d>i"),
)
_ROWS: tuple[Extern, ...] = (
    *_on_floats("acos acosh asin asinh atan atanh cbrt ceil cos cosh cospi", "T"),
    *_on_floats("cyl_bessel_i0 cyl_bessel_i1 erf erfc erfcinv erfcx erfinv", "T"),
    *_on_floats("exp exp10 exp2 expm1 floor j0 j1 lgamma log log10 log1p log2 logb", "T"),
    *_on_floats("nearbyint normcdf normcdfinv rcbrt rint round rsqrt sin sinh sinpi", "T"),
    *_on_floats("sqrt tan tanh tgamma trunc y0 y1", "T"),
    *_on_floats("atan2 copysign fdim fmod hypot nextafter pow remainder rhypot", "TT"),
    *_on_floats("norm3d rnorm3d fma", "TTT"),
    *_on_floats("norm4d rnorm4d", "TTTT"),
    *_on_floats("ldexp scalbn", "Ti"),
    *_on_floats("jn yn", "iT"),
    *_on_floats("ilogb", "T", "i"),
    *_on_floats("llrint llround", "T", "l"),
    _extern("abs", "fabsf", "f>f", "fabs"),
    _extern("abs", "fabs", "d>d", "fabs"),
    _extern("pow", "powif", "fi>f", "powi"),
    _extern("pow", "powi", "di>d", "powi"),
    _extern("rcp64h", "rcp64h", "d>d"),
    _extern("rsqrt_rn", "frsqrt_rn", "f>f"),
    _extern("saturatef", "saturatef", "f>f"),
    *(
        _extern(f"fast_{name}", f"fast_{name}", "f>f", f"fast_{name[:-1]}")
        for name in _FAST.split()
    ),
    _extern("fast_powf", "fast_powf", "ff>f", "fast_pow"),
    _extern("fast_dividef", "fast_fdividef", "ff>f", "fast_divide"),
    _extern("fast_tanhf", "fast_tanhf", "f>f", "fast_tanh"),
    *_rounded(),
    *_conversions(),
    *_INTEGER,
    *_BITS,
    *_PREDICATES,
)
EXTERNS: dict[str, Extern] = {row.symbol: row for row in _ROWS}


def _by_name() -> dict[str, tuple[Extern, ...]]:
    names: dict[str, list[Extern]] = {}
    for row in _ROWS:
        names.setdefault(row.name, []).append(row)
    return {name: tuple(rows) for name, rows in names.items()}


_BY_NAME = _by_name()


def overloads(name: str) -> tuple[Extern, ...]:
    """The functions of one public name."""
    return _BY_NAME[name]


@irdl_op_definition
class ExternElementwiseOp(ElementwiseOp):
    """The function called `symbol`, element by element; `EXTERNS` lists those that exist."""

    name = "tt.extern_elementwise"
    libname = opt_prop_def(StringAttr)
    libpath = opt_prop_def(StringAttr)
    symbol = prop_def(StringAttr)
    pure = opt_prop_def(BoolAttr)
    srcs = var_operand_def()
    result = result_def()
    traits = traits_def(Pure())

    def extern(self) -> Extern:
        """The row of the op's symbol, or UnsupportedError."""
        symbol = self.symbol.data
        if symbol not in EXTERNS:
            raise UnsupportedError(
                f"the function `{symbol}` of a bitcode library cannot be called here",
                hint="functions of NVIDIA's libdevice work under their names (`__nv_…`)",
            )
        return EXTERNS[symbol]

    def reference(self, *operands: Array) -> Array:
        # What 300 functions compute is no part of a compile.
        from tilewright.ops.extern.reference import REFERENCES

        return REFERENCES[self.extern().routine](*operands)
