"""What LLVM gets wrong, and the text that keeps it from doing so.

LLVM 22 (X86, AVX-512): a masked store of integers that were just narrowed becomes one instruction
that narrows and stores. Where the mask is constant with one lane set, or one lane of a register,
that becomes a scalar store of the *wide* element: storing lane 0 of `<16 x i8> trunc <16 x i32>`
writes four bytes. A mask that LLVM does not know to be constant is left alone.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

import llvmlite.binding as llvm

_FEATURE = "+avx512f"
_STORES = tuple(f"i{bits}.p0" for bits in (8, 16, 32))
_MASKED_STORE = re.compile(
    r"^(?P<head> *(?:tail )?call void @llvm\.masked\.store\.v\d+i(?:8|16|32)\.p0\(.*)"
    r"<(?P<lanes>\d+) x i1> <(?P<bits>[^<>]*)>(?P<tail>.*)$",
    re.MULTILINE,
)
_SMALLEST_REGISTER = 8


def is_affected(module: llvm.ModuleRef, features: Iterable[str]) -> bool:
    """Whether the module may hold what `hide_constant_masks` changes, found without its text."""
    if _FEATURE not in features:
        return False
    names = (function.name for function in module.functions)
    return any(n.startswith("llvm.masked.store.v") and n.endswith(_STORES) for n in names)


def hide_constant_masks(text: str) -> str:
    """The module with the constant masks of narrow integer stores made unknown to LLVM.

    A mask becomes the result of an empty assembly statement: two instructions, which LLVM moves
    out of loops.
    """
    count = 0

    def hidden(store: re.Match[str]) -> str:
        nonlocal count
        count += 1
        lanes = int(store["lanes"])
        bits = [lane.split()[1] == "true" for lane in store["bits"].split(",")]
        number = sum(1 << lane for lane, is_set in enumerate(bits) if is_set)
        register = max(lanes, _SMALLEST_REGISTER)
        name = f"%hidden.mask.{count}"
        lines = [f'{name}.0 = call i{register} asm "", "=r,0"(i{register} {number})']
        if lanes < register:
            lines.append(f"{name}.1 = trunc i{register} {name}.0 to i{lanes}")
        lines.append(f"{name} = bitcast i{lanes} {name}.{len(lines) - 1} to <{lanes} x i1>")
        lines.append(f"{store['head'].strip()}<{lanes} x i1> {name}{store['tail']}")
        return "\n".join(f"  {line}" for line in lines)

    return _MASKED_STORE.sub(hidden, text)
