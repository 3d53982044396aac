"""Where a torch tensor's object says that it is a negated view, for native code that looks.

The values of such a view (`x.conj().imag`) are those in memory with the other sign. torch's own
`is_neg()` lets go of the interpreter's lock, which costs more than the rest of a launch's look at
the tensor; the bit that it reads is found once, by comparing tensors with their negated views.
"""

from __future__ import annotations

import ctypes
import functools
import importlib
from collections.abc import Callable
from typing import Protocol, cast

from tilewright.support.dataclass import dataclass

_WORD = 8
# Where a Python object may hold the address of its tensor, and the words of that one; its class
# asserts that it has 26 or more of them.
_OBJECT_OFFSETS = range(2 * _WORD, 5 * _WORD, _WORD)
_BODY_OFFSETS = range(0, 26 * _WORD, _WORD)


@dataclass(frozen=True)
class NegationBit:
    """A bit of the word at `keys` of what the word at `body` of the object points to.

    A mask of 0 is of a type without negated views.
    """

    body: int
    keys: int
    mask: int


class _Torch(Protocol):
    float32: object
    float16: object
    int64: object
    empty: Callable[..., object]


def negation_bit(tensor_type: type) -> NegationBit | None:
    """The bit for objects of a type; None where it has negated views and the bit is not found."""
    if not hasattr(tensor_type, "is_neg"):
        return NegationBit(0, 0, 0)
    is_torch = any(base.__module__ == "torch._C" for base in tensor_type.__mro__)
    return _torch_bit() if is_torch else None


@functools.cache
def _torch_bit() -> NegationBit | None:
    torch = cast("_Torch", importlib.import_module("torch"))
    dtypes = (torch.float32, torch.float16, torch.float32)
    plain = [torch.empty(size, dtype=dtype) for size, dtype in enumerate(dtypes)]
    negate = cast("Callable[[object], object]", getattr(torch, "_neg_view"))  # noqa: B009
    negated = [negate(tensor) for tensor in plain]
    others = [torch.empty(2, dtype=torch.int64)]
    tensors = (*plain, *negated)
    offsets = [o for o in _OBJECT_OFFSETS if all(_word(id(t) + o) == _body(t) for t in tensors)]
    if len(offsets) != 1:
        return None
    pairs = [(_body(a), _body(b)) for a, b in zip(plain, negated, strict=True)]
    clear = [a for a, _ in pairs] + [_body(other) for other in others]
    found = [bit for keys in _BODY_OFFSETS for bit in _bits_at(keys, pairs, clear)]
    return NegationBit(offsets[0], *found[0]) if len(found) == 1 else None


def _body(tensor: object) -> int:
    """The address of what torch keeps of a tensor."""
    return int(getattr(tensor, "_cdata", 0))


def _bits_at(keys: int, pairs: list[tuple[int, int]], clear: list[int]) -> list[tuple[int, int]]:
    """The one bit of a word by which all pairs differ, unset in `clear`; [] without one."""
    changes = {_word(a + keys) ^ _word(b + keys) for a, b in pairs}
    mask = changes.pop()
    if changes or mask.bit_count() != 1:
        return []
    return [] if any(_word(body + keys) & mask for body in clear) else [(keys, mask)]


def _word(address: int) -> int:
    return ctypes.c_uint64.from_address(address).value
