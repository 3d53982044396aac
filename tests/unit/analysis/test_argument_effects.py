"""Which arguments a kernel reads and writes, as its metadata says."""

from __future__ import annotations

import numpy as np
import pytest

import tilewright
import tilewright.language as tl
from tilewright.runtime.tensor_descriptor import TensorDescriptor


@tilewright.jit
def copy(x, o, n):
    i = tl.arange(0, 16)
    tl.store(o + i, tl.load(x + i), mask=i < n)


@tilewright.jit
def in_place(x, o, n):
    i = tl.arange(0, 16)
    tl.store(x + i, tl.load(x + i) + 1)


@tilewright.jit
def atomic(x, o, n):
    i = tl.arange(0, 16)
    tl.atomic_add(o + i, tl.load(x + i))


@tilewright.jit
def pointers_in_a_loop(x, o, n):
    i = tl.arange(0, 16)
    p, q = x + i, o + i
    for _ in range(n):
        tl.store(q, tl.load(p))
        p += 16
        q += 16


@tilewright.jit
def pointers_in_a_while_loop(x, o, n):
    p, q, k = x, o, 0
    while k < n:
        tl.store(q, tl.load(p))
        p += 1
        q += 1
        k += 1


@tilewright.jit
def selected(x, o, n):
    p = x if n > 3 else o
    tl.store(p, 1.0)


@tilewright.jit
def through_an_integer(x, o, n):
    address = x.to(tl.int64) + 4
    tl.store(address.to(tl.pointer_type(tl.float32)), tl.load(o))


@tilewright.jit
def through_a_loaded_pointer(x, o, n):
    p = tl.load(x.to(tl.pointer_type(tl.int64))).to(tl.pointer_type(tl.float32))
    tl.store(p, 1.0)


@tilewright.jit
def block_pointers(x, o, n):
    p = tl.make_block_ptr(x, (16,), (1,), (0,), (16,), (0,))
    q = tl.make_block_ptr(o, (16,), (1,), (0,), (16,), (0,))
    tl.store(tl.advance(q, (4,)), tl.load(p), boundary_check=(0,))


@tilewright.jit
def descriptors(x, o, n):
    tl.make_tensor_descriptor(o, [16], [1], [16]).store([0], x.load([0]))


@tilewright.jit
def nothing(x, o, n):
    tl.device_assert(n > 0)


@tilewright.jit
def in_a_tuple(x, o, n):
    tl.store(x[1], tl.load(x[0]))


CASES = {
    copy: ("x", "o"),
    in_place: ("x", "x"),
    atomic: ("xo", "o"),
    pointers_in_a_loop: ("x", "o"),
    pointers_in_a_while_loop: ("x", "o"),
    selected: ("", "xo"),
    through_an_integer: ("o", "x"),
    through_a_loaded_pointer: ("x", "xo"),
    block_pointers: ("x", "o"),
    nothing: ("", ""),
}


@pytest.mark.parametrize("kernel", CASES, ids=lambda kernel: kernel.__name__)
def test_reads_and_writes_are_known_by_argument(kernel: tilewright.JITFunction) -> None:
    x = np.zeros(64, np.float32)
    metadata = kernel.warmup(x, x, 4).metadata
    reads, writes = CASES[kernel]
    assert metadata["reads"] == [[name] for name in reads]
    assert metadata["writes"] == [[name] for name in writes]


def test_descriptors_count_as_the_argument_that_they_are() -> None:
    x = np.zeros(64, np.float32)
    metadata = descriptors.warmup(TensorDescriptor.from_tensor(x, [16]), x, 4).metadata
    assert (metadata["reads"], metadata["writes"]) == ([["x"]], [["o"]])


def test_elements_of_tuples_have_a_path() -> None:
    x = np.zeros(64, np.float32)
    metadata = in_a_tuple.warmup((x, x), x, 4).metadata
    assert (metadata["reads"], metadata["writes"]) == ([["x", 0]], [["x", 1]])
