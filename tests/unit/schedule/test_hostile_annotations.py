"""Stages, tasks and texts in kernels where nobody should write them: an error at the line."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import tilewright
import tilewright.language as tl
from tests.ptxas.kernels import request_of
from tilewright.compiler.stages import schedule_of
from tilewright.support.errors import PlanRefused

HALVES, SUMS = np.zeros((256, 256), np.float16), np.zeros((128, 64), np.float32)
SIZES: dict[str, object] = {"M": 128, "N": 64, "K": 64}
PLACES = "ring r tiles load#0 load#1 slots 2; loop for#0 load#0 @0.0 load#1 @0.0 dot#0 @1.1"


@tilewright.jit
def staged_in_while(a, b, c, k, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    """A `while` has no stages, where its last number is read, so that it is no `for`."""
    left = tl.make_tensor_descriptor(a, [M, k], [k, 1], [M, K])
    right = tl.make_tensor_descriptor(b, [k, N], [N, 1], [K, N])
    acc = tl.zeros((M, N), tl.float32)
    at = 0
    while at < k:
        with tl.stage(0):
            x, y = left.load([0, at]), right.load([at, 0])
        acc = tl.dot(x, y, acc)
        at += K
    tl.store(c + tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :], acc + at)


@tilewright.jit
def staged_under_a_branch(a, b, c, k, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    """What a branch holds is not in the loop's own body."""
    left = tl.make_tensor_descriptor(a, [M, k], [k, 1], [M, K])
    right = tl.make_tensor_descriptor(b, [k, N], [N, 1], [K, N])
    acc = tl.zeros((M, N), tl.float32)
    for at in range(0, k, K):
        if at % 128 == 0:
            with tl.stage(1):
                acc = tl.dot(left.load([0, at]), right.load([at, 0]), acc)
    tl.store(c + tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :], acc)


@tilewright.jit
def staged_without_a_loop(a, b, c, k, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    """There is no loop."""
    left = tl.make_tensor_descriptor(a, [M, k], [k, 1], [M, K])
    right = tl.make_tensor_descriptor(b, [k, N], [N, 1], [K, N])
    with tl.stage(2):
        x = left.load([0, 0])
    acc = tl.dot(x, right.load([0, 0]))
    tl.store(c + tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :], acc)


@tilewright.jit
def written_by_two(a, b, c, k, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    """A number that what loads and what computes both write."""
    left = tl.make_tensor_descriptor(a, [M, k], [k, 1], [M, K])
    right = tl.make_tensor_descriptor(b, [k, N], [N, 1], [K, N])
    acc = tl.zeros((M, N), tl.float32)
    both = 0
    for at in range(0, k, K):
        with tl.async_task([0]):
            x, y = left.load([0, at]), right.load([at, 0])
            both += 1
        with tl.async_task([1, 2]):
            acc = tl.dot(x, y, acc)
            both += tl.max(acc).to(tl.int32)
    tl.store(c + tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :], acc + both)


@tilewright.jit
def texts(
    a, b, c, k, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr, FIRST: tl.constexpr,
    SECOND: tl.constexpr,
):  # fmt: skip
    """Two loops, each with a text of its own."""
    left = tl.make_tensor_descriptor(a, [M, k], [k, 1], [M, K])
    right = tl.make_tensor_descriptor(b, [k, N], [N, 1], [K, N])
    acc = tl.zeros((M, N), tl.float32)
    for at in tl.range(0, k, K, schedule=FIRST):
        acc = tl.dot(left.load([0, at]), right.load([at, 0]), acc)
    for at in tl.range(0, k, K, schedule=SECOND):
        acc = tl.dot(left.load([0, at]), right.load([at, 0]), acc)
    tl.store(c + tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :], acc)


WHOLE = "has clauses of the whole kernel"
KERNELS = {
    "a stage in a `while`": (staged_in_while, {}, "stands directly in no `for`"),
    "a stage under a branch": (staged_under_a_branch, {}, "stands directly in no `for`"),
    "a stage without a loop": (staged_without_a_loop, {}, "stands directly in no `for`"),
    "a number of two tasks": (written_by_two, {}, "cannot run as the tasks that it has"),
    "roles in a loop's text": (texts, {"FIRST": f"roles load | math; {PLACES}"}, WHOLE),
    "a cluster in a loop's text": (texts, {"FIRST": f"{PLACES}; cluster 2"}, WHOLE),
    "persistence in a loop's text": (texts, {"FIRST": f"{PLACES}; persist static"}, WHOLE),
    "texts of a loop and of the launch": (
        texts,
        {"FIRST": PLACES, "schedule": PLACES},
        "and a schedule is given for the whole kernel",
    ),
}


def compiled(kernel: Callable[..., object], options: dict[str, object]) -> None:
    """Compile one of the kernels for a GPU."""
    assert isinstance(kernel, tilewright.JITFunction)
    more = {"FIRST": None, "SECOND": None} if kernel is texts else {}
    schedule_of(request_of(kernel, (HALVES, HALVES, SUMS, 256), {**SIZES, **more, **options}))


@pytest.mark.parametrize("name", KERNELS)
def test_an_annotation_that_cannot_be_is_refused_at_its_line(name: str) -> None:
    kernel, options, text = KERNELS[name]
    with pytest.raises(PlanRefused, match=text) as caught:
        compiled(kernel, options)
    assert caught.value.span is not None and caught.value.span.file == __file__
    assert caught.value.hint


def test_loops_may_use_one_name_for_rings_of_their_own() -> None:
    compiled(texts, {"FIRST": PLACES, "SECOND": PLACES})
