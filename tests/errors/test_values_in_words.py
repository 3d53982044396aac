"""What is no number, where a number or tile is due: messages say what it is, as a user would."""

from __future__ import annotations

import enum
import math
from typing import NamedTuple

import numpy as np
import pytest

import tilewright
import tilewright.language as tl
from tilewright.support.errors import CompileError


class Mode(enum.Enum):
    """An Enum class of the author's own."""

    FAST = 1


@tilewright.aggregate
class Span:
    """An aggregate of the author's own."""

    first: tl.tensor
    last: tl.tensor


class Place(NamedTuple):
    """A NamedTuple class of the author's own."""

    base: object
    offset: int


@tilewright.jit
def helper(x):
    return x


def ordinary(x):
    return x


@tilewright.jit
def stores(out, K: tl.constexpr):
    if K == 0:
        tl.store(out, Mode)
    elif K == 1:
        tl.store(out, Mode.FAST)
    elif K == 2:
        tl.store(out, math)
    elif K == 3:
        tl.store(out, helper)
    elif K == 4:
        tl.store(out, ordinary)
    elif K == 5:
        tl.store(out, tl.sum)
    elif K == 6:
        tl.store(out, len)
    elif K == 7:
        tl.store(out, out.to)
    elif K == 8:
        tl.zeros((Mode,), tl.float32)
    elif K == 9:
        tl.load(helper)
    elif K == 10:
        tl.load(out, cache_modifier=tl.sum)
    elif K == 11:
        tl.store(out, tl.make_tensor_descriptor(out, [16], [1], [16]))
    elif K == 12:
        tl.exp(Span(1, out))
    elif K == 13:
        tl.load(Place(out, 1))
    elif K == 14:
        tl.full((4,), 1, tl.void)
    elif K == 15:
        out.to(tl.pointer_type(tl.void))
    elif K == 16:
        tl.full((4,), 1.0, tl.pointer_type(tl.float32))


@pytest.mark.parametrize(
    ("number", "words"),
    [
        (0, "the Enum class `Mode` is no number"),
        (1, "the member `FAST` of the Enum class `Mode` is no number"),
        (2, "the module `math` is no number"),
        (3, "the function `helper` is no number"),
        (4, "the function `ordinary` is no number"),
        (5, "the function `tl.sum` is no number"),
        (6, "Python's `len` is no number"),
        (7, "the method `to` is no number"),
        (8, "`shape` must be an integer constant, got the Enum class `Mode`"),
        (9, "`pointer` must be a tile or scalar, got the function `helper`"),
        (10, "`cache_modifier` is the function `tl.sum`; it must be one of"),
        (11, "a tensor descriptor is no number"),
        (12, "`x` must be a tile or scalar, got an instance of the aggregate class `Span`"),
        (13, "`pointer` must be a tile or scalar, got an instance of the class `Place`"),
        (14, "`dtype` is void; nothing has the type void"),
        (15, "`dtype` is ptr<void>; nothing has the type void"),
        (16, "full(): 1.0 is no value of ptr<fp32>"),
    ],
)
def test_what_is_no_number_is_named(number: int, words: str) -> None:
    with pytest.raises(CompileError) as caught:
        stores[(1,)](np.zeros(1, np.float32), K=number)
    assert words in str(caught.value)
