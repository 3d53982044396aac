"""PTX rewritten around defects of assemblers that people have.

ptxas 13.0.88 (seen 2026-11-22; 13.5.37 is right) merges two scalar conversions of float32 to
16-bit floats into one `F2FP.PACK_AB` and then loses an `and` of the low result's bits, whatever
its mask: `x.to(tl.bfloat16).to(tl.int16, bitcast=True) & 0x7FFF` keeps its sign. Conversions that
are written as pairs stay right, so a result whose bits are used goes through a pair with zero.

    cvt.rn.bf16.f32 %rs1, %r2;        cvt.rn.bf16x2.f32 %tw_pair1, 0f00000000, %r2;
    and.b16 %rs2, %rs1, 0x7FFF;  →    cvt.u16.u32 %rs1, %tw_pair1;
                                      and.b16 %rs2, %rs1, 0x7FFF;

The absolute value of bfloat16 becomes an `and` first: paired, it is an `HFMA2.BF16_V2` with
`|x|`, which was wrong on an H200 (the fuzzer's seed 500421).
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable

_ABS = re.compile(r"\babs\.bf16(x2)?([ \t]+)(%\w+), (%\w+);")
_CONVERSION = re.compile(
    r"^(?P<indent>\s*)cvt\.(?P<mode>rn|rz)\.(?P<kind>bf16|f16)\.f32[ \t]+"
    r"(?P<result>%\w+), (?P<operand>%\w+);",
    re.MULTILINE,
)
# Instructions that read a half as a float, or move it whole: no bits of it are asked for.
_WHOLE = re.compile(
    r"^(?:mov\.b32|st\.|cvt\.f(?:32|64)\.|(?:setp|fma|add|sub|mul|min|max|neg|ex2|tanh)\.\S*f16)"
)
_WIDENED = re.compile(r"^cvt\.u32\.u16[ \t]+(%\w+), %\w+;$")
_REGISTER = re.compile(r"%\w+")


def avoid_ptxas_defects(ptx: str) -> str:
    """PTX of the same meaning that every supported ptxas assembles rightly."""
    ptx = _ABS.sub(_cleared_sign, ptx)
    conversions = {found["result"] for found in _CONVERSION.finditer(ptx)}
    if not conversions:
        return ptx
    asked = _asked_for_bits(conversions, _uses(ptx.split("\n")))
    if not asked:
        return ptx
    # A register is written once on each way to where ways meet; every write has its own pair.
    numbers = itertools.count()

    def paired(found: re.Match[str]) -> str:
        if found["result"] not in asked:
            return found[0]
        pair, indent = f"%tw_pair{next(numbers)}", found["indent"]
        return (
            f"{indent}.reg .b32 {pair};\n"
            f"{indent}cvt.{found['mode']}.{found['kind']}x2.f32 {pair}, 0f00000000, "
            f"{found['operand']};\n"
            f"{indent}cvt.u16.u32 {found['result']}, {pair};"
        )

    return _CONVERSION.sub(paired, ptx)


def _cleared_sign(found: re.Match[str]) -> str:
    """The absolute value of bfloat16 as an operation on its bits."""
    is_pair, space, result, operand = found.groups()
    width, mask = (32, "0x7FFF7FFF") if is_pair else (16, "0x7FFF")
    return f"and.b{width}{space}{result}, {operand}, {mask};"


def _uses(lines: Iterable[str]) -> dict[str, list[str]]:
    """The instructions that name each register after their first operand."""
    uses: dict[str, list[str]] = {}
    for line in lines:
        text = line.strip()
        if not text or text[0] in ".$/":
            continue
        for name in set(_REGISTER.findall(text)):
            uses.setdefault(name, []).append(text)
    return uses


def _asked_for_bits(conversions: set[str], uses: dict[str, list[str]]) -> set[str]:
    """The results of conversions that an instruction may take apart."""
    return {
        name for name in conversions if not all(_is_whole(name, text, uses) for text in uses[name])
    }


def _is_whole(name: str, text: str, uses: dict[str, list[str]]) -> bool:
    """Whether an instruction that names a half leaves its bits together."""
    if _CONVERSION.match(text) or _WHOLE.match(text.split("}")[0] if text[0] == "{" else text):
        return True
    if text.startswith("@"):
        text = text.split(None, 1)[1]
        return bool(_WHOLE.match(text))
    widened = _WIDENED.match(text)
    # bfloat16 becomes float32 by a shift of 16, the most common use of all.
    return widened is not None and all(
        user == text or re.match(rf"shl\.b32[ \t]+%\w+, {re.escape(widened[1])}, 16;", user)
        for user in uses[widened[1]]
    )
