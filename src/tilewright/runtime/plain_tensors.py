"""Words of a torch tensor's object: that it lies plainly in the CPU's memory, and its dtype.

torch answers `dtype` and `is_cpu` out of two words of the object, in C functions that cost a launch
more than the rest of its look at the tensor. Where those words lie is found once, by comparing
tensors that are known to differ in nothing else; a tensor whose words say anything else is asked.
"""

from __future__ import annotations

import ctypes
import functools
import importlib
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Protocol, cast

from tilewright.runtime.negation import NegationBit
from tilewright.support.dataclass import dataclass

# Like `negation.py`: a body has 26 words or more.
_CODE_OFFSETS = range(0, 26 * 8, 2)
# Tensors that autograd may follow have other bits than those that it may not; in torch 2.13 two.
_MOST_OF_AUTOGRAD = 4
_DTYPES = (
    *("float64", "float32", "float16", "bfloat16", "int64", "int32", "int16", "int8", "uint8"),
    *("bool", "uint64", "uint32", "uint16", "float8_e4m3fn", "float8_e5m2"),
)


@dataclass(frozen=True)
class PlainWords:
    """The bits `care` of a word are `plain`; 16 bits at `dtype_code` are the dtype's number."""

    care: int
    plain: int
    dtype_code: int


class _Tensor(Protocol):
    _cdata: int
    is_cpu: bool

    def data_ptr(self) -> int: ...


class _Torch(Protocol):
    Tensor: type
    float32: object
    complex64: object
    empty: Callable[..., _Tensor]
    conj: Callable[[_Tensor], _Tensor]
    _neg_view: Callable[[_Tensor], _Tensor]
    _efficientzerotensor: Callable[..., _Tensor]
    sparse_coo: object
    inference_mode: Callable[[], AbstractContextManager[object]]


@functools.cache
def plain_words(bit: NegationBit) -> PlainWords | None:
    """The words of torch's tensors, whose negated views `bit` tells; None where not found."""
    torch = cast("_Torch", importlib.import_module("torch"))
    plain = _plain_tensors(torch)
    if not all(type(t) is torch.Tensor and t.is_cpu and t.data_ptr() for t in plain):
        return None  # somebody's mode makes other tensors now
    words = [_word(t, bit.keys) for t in plain]
    differing = 0
    for word in words:
        differing |= word ^ words[0]
    care = ~differing & (1 << 64) - 1
    others = (_word(t, bit.keys) & care for t in _other_tensors(torch))
    codes = _code_offsets(torch)
    is_found = differing.bit_count() <= _MOST_OF_AUTOGRAD and len(codes) == 1
    if not is_found or (words[0] & care) in others:
        return None
    return PlainWords(care, words[0] & care, codes[0])


def _plain_tensors(torch: _Torch) -> list[_Tensor]:
    """Tensors in the CPU's memory: such as autograd follows, may follow, and may not."""
    sizes = ((3,), (2, 5), (1, 2, 3))
    made = [torch.empty(size, dtype=torch.float32, device="cpu") for size in sizes]
    made.append(torch.empty(4, dtype=torch.float32, device="cpu", requires_grad=True))
    with torch.inference_mode():
        made.append(torch.empty(7, dtype=torch.float32, device="cpu"))
    return made


def _other_tensors(torch: _Torch) -> list[_Tensor]:
    """Tensors whose values do not lie in the CPU's memory as they are."""
    real = torch.empty(3, dtype=torch.float32, device="cpu")
    return [
        torch.empty(3, dtype=torch.float32, device="meta"),
        torch.empty((3, 2), dtype=torch.float32, device="cpu", layout=torch.sparse_coo),
        torch.conj(torch.empty(3, dtype=torch.complex64, device="cpu")),
        torch._neg_view(real),  # pyright: ignore[reportPrivateUsage]
        torch._efficientzerotensor(3),  # pyright: ignore[reportPrivateUsage]
    ]


def _code_offsets(torch: _Torch) -> Sequence[int]:
    """Where 16 bits are the same for all tensors of one dtype, and no two dtypes' are the same."""
    dtypes = [getattr(torch, name) for name in _DTYPES if hasattr(torch, name)]
    sizes = ((1,), (3, 5), (2, 1, 4))
    groups = [[torch.empty(n, dtype=dtype, device="cpu") for n in sizes] for dtype in dtypes]
    return [offset for offset in _CODE_OFFSETS if _is_code(offset, groups)]


def _is_code(offset: int, groups: Sequence[Sequence[_Tensor]]) -> bool:
    seen: set[int] = set()
    for group in groups:
        codes = {_code(tensor, offset) for tensor in group}
        if len(codes) != 1 or codes & seen:
            return False
        seen |= codes
    return True


def _code(tensor: _Tensor, offset: int) -> int:
    body = tensor._cdata  # pyright: ignore[reportPrivateUsage]
    return int(ctypes.c_uint16.from_address(body + offset).value)


def _word(tensor: _Tensor, offset: int) -> int:
    body = tensor._cdata  # pyright: ignore[reportPrivateUsage]
    return int(ctypes.c_uint64.from_address(body + offset).value)
