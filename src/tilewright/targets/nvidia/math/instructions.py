"""Functions that are one instruction of the GPU: rounding modes, conversions, fast variants."""

from __future__ import annotations

import functools

from tilewright.codegen.math.emitter import Routine
from tilewright.codegen.math.lanes import LaneCode, LaneValue
from tilewright.targets.nvidia.math import special_unit

# Our names of the rounding modes and PTX's.
_MODES = {"rn": "rn", "rz": "rz", "rd": "rm", "ru": "rp"}
_LETTER = {"float": "f", "double": "d"}
_INTEGERS = {"int": ("i", "i32"), "uint": ("ui", "i32"), "ll": ("ll", "i64"), "ull": ("ull", "i64")}


def _call(symbol: str, result: str, code: LaneCode, *operands: LaneValue) -> LaneValue:
    return code.call(symbol, *operands, result=result)


def _arithmetic(name: str, mode: str, code: LaneCode, *operands: LaneValue) -> LaneValue:
    """A rounded operation on floats or doubles."""
    return code.call(f"llvm.nvvm.{name}.{mode}.{_LETTER[operands[0].element]}", *operands)


def _subtract(mode: str, code: LaneCode, x: LaneValue, y: LaneValue) -> LaneValue:
    """A rounded difference, as the sum with the opposite."""
    return _arithmetic("add", mode, code, x, -y)


def rounded() -> dict[str, Routine]:
    """Every function with a rounding mode in its name that the machine has."""
    table: dict[str, Routine] = {}
    for ours, mode in _MODES.items():
        for name in ("add", "mul", "div", "rcp", "sqrt", "fma"):
            table[f"{name}_{ours}"] = functools.partial(_arithmetic, name, mode)
        table[f"sub_{ours}"] = functools.partial(_subtract, mode)
        for source, (letter, element) in (("float", ("f", "float")), ("double", ("d", "double"))):
            for integer, (short, kind) in _INTEGERS.items():
                to = functools.partial(_call, f"llvm.nvvm.{letter}2{short}.{mode}", kind)
                table[f"{source}2{integer}_{ours}"] = to
                back = functools.partial(_call, f"llvm.nvvm.{short}2{letter}.{mode}", element)
                table[f"{integer}2{source}_{ours}"] = back
        narrow = functools.partial(_call, f"llvm.nvvm.d2f.{mode}", "float")
        table[f"double2float_{ours}"] = narrow
    return table


def _to_long(code: LaneCode, x: LaneValue) -> LaneValue:
    """The nearest integer, halves to even, as i64."""
    return code.call(f"llvm.nvvm.{_LETTER[x.element]}2ll.rn", x, result="i64")


def _approximate_reciprocal(code: LaneCode, x: LaneValue) -> LaneValue:
    """`1/x` of a double's upper word."""
    return code.call("llvm.nvvm.rcp.approx.ftz.d", x)


_IN_ONE: dict[str, str] = {
    "byte_perm": "prmt",
    "sad": "sad.i",
    "usad": "sad.ui",
}
# Forms that hold for every element type that the function has.
INSTRUCTIONS: dict[str, Routine] = {
    **rounded(),
    **{name: functools.partial(_call, f"llvm.nvvm.{i}", "i32") for name, i in _IN_ONE.items()},
    "llrint": _to_long,
    "rcp64h": _approximate_reciprocal,
}
FAST: dict[str, Routine] = {
    "fast_exp": special_unit.fast_exp,
    "fast_exp10": special_unit.fast_exp10,
    "fast_log": special_unit.fast_log,
    "fast_log2": special_unit.fast_log2,
    "fast_log10": special_unit.fast_log10,
    "fast_pow": special_unit.fast_pow,
    "fast_sin": special_unit.fast_sin,
    "fast_cos": special_unit.fast_cos,
    "fast_tan": special_unit.fast_tan,
    "fast_tanh": special_unit.fast_tanh,
    "fast_divide": special_unit.fast_divide,
}
