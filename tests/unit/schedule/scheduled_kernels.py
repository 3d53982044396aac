"""Kernels whose authors say where ops run, right and wrong."""

from __future__ import annotations

import tilewright
import tilewright.language as tl

LATE = (
    "ring ab tiles load#0 load#1 slots 4 cp_async release late; "
    "loop for#0 load#0 @0.1 load#1 @0.1 dot#0 @2.0"
)
TWO_SLOTS = (
    "ring ab tiles load#0 load#1 slots 2 cp_async; loop for#0 load#0 @0.0 load#1 @0.0 dot#0 @1.1"
)
RING_OF_ONE = "ring ab tiles load#0 load#1 slots 1 cp_async; loop for#0 load#0 @0.0 dot#0 @2.0"
UNKNOWN_LOAD = "ring ab tiles load#7 slots 2 cp_async; loop for#0 load#7 @0.0 dot#0 @1.0"
WITH_ROLES = "roles load | math x2"


@tilewright.jit
def step(a, b, k, K, N: tl.constexpr, S: tl.constexpr):
    """The tiles of one iteration."""
    i = tl.arange(0, S)
    x = tl.load(a + i[:, None] * K + (k + i)[None, :], mask=(k + i)[None, :] < K, other=0.0)
    y = tl.load(b + (k + i)[:, None] * N + i[None, :], mask=(k + i)[:, None] < K, other=0.0)
    return x, y


@tilewright.jit
def staged(
    a, b, out, K, S: tl.constexpr, LOADS: tl.constexpr, PRODUCT: tl.constexpr,
    STAGES: tl.constexpr = None,
):  # fmt: skip
    """A product whose loads and products have stages."""
    i = tl.arange(0, S)
    acc = tl.zeros((S, S), tl.float32)
    for k in tl.range(0, K, S, num_stages=STAGES):
        with tl.stage(LOADS, cluster=1):
            x, y = step(a, b, k, K, S, S)
        with tl.stage(PRODUCT):
            acc = tl.dot(x, y, acc)
    tl.store(out + i[:, None] * S + i[None, :], acc)


@tilewright.jit
def hinted(a, b, out, K, S: tl.constexpr, TEXT: tl.constexpr, STAGES: tl.constexpr = None):
    """Two products, the first of which has a text of its own."""
    i = tl.arange(0, S)
    acc = tl.zeros((S, S), tl.float32)
    for k in tl.range(0, K, S, num_stages=STAGES, schedule=TEXT):
        x, y = step(a, b, k, K, S, S)
        acc = tl.dot(x, y, acc)
    for k in range(0, K, S):
        x, y = step(a, b, k, K, S, S)
        acc = tl.dot(x, y, acc)
    tl.store(out + i[:, None] * S + i[None, :], acc)


@tilewright.jit
def add_product(acc, a, b, K, S: tl.constexpr, TEXT: tl.constexpr):
    """A loop that is inlined where it is called."""
    for k in tl.range(0, K, S, schedule=TEXT):
        x, y = step(a, b, k, K, S, S)
        acc = tl.dot(x, y, acc)
    return acc


@tilewright.jit
def inlined_twice(a, b, out, K, S: tl.constexpr, TEXT: tl.constexpr):
    """One text for two loops, whose rings have one name."""
    i = tl.arange(0, S)
    acc = tl.zeros((S, S), tl.float32)
    acc = add_product(acc, a, b, K, S, TEXT)
    acc = add_product(acc, a, b, K, S, TEXT)
    tl.store(out + i[:, None] * S + i[None, :], acc)


@tilewright.jit
def said_twice(a, b, out, K, S: tl.constexpr, TEXT: tl.constexpr):
    """A loop with a text and an op with a stage."""
    i = tl.arange(0, S)
    acc = tl.zeros((S, S), tl.float32)
    for k in tl.range(0, K, S, schedule=TEXT):
        with tl.stage(0):
            x, y = step(a, b, k, K, S, S)
        acc = tl.dot(x, y, acc)
    tl.store(out + i[:, None] * S + i[None, :], acc)


@tilewright.jit
def staged_under_if(a, b, out, K, S: tl.constexpr):
    """A stage where no stage can be."""
    i = tl.arange(0, S)
    acc = tl.zeros((S, S), tl.float32)
    for k in range(0, K, S):
        if k != S:
            with tl.stage(1):
                x, y = step(a, b, k, K, S, S)
            acc = tl.dot(x, y, acc)
    tl.store(out + i[:, None] * S + i[None, :], acc)


@tilewright.jit
def in_tasks(
    a, b, c, k, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr, LOADS: tl.constexpr,
    PRODUCT: tl.constexpr,
):  # fmt: skip
    """A product of descriptors whose loads and products have tasks."""
    left = tl.make_tensor_descriptor(a, [M, k], [k, 1], [M, K])
    right = tl.make_tensor_descriptor(b, [k, N], [N, 1], [K, N])
    acc = tl.zeros((M, N), tl.float32)
    for start in range(0, k, K):
        with tl.async_task(LOADS):
            x = left.load([0, start])
            y = right.load([start, 0])
        with tl.async_task(PRODUCT):
            acc = tl.dot(x, y, acc)
    at = tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :]
    tl.store(c + at, acc)


@tilewright.jit
def plain_in_tasks(a, b, out, K, S: tl.constexpr):
    """Loads through pointers in the task that loads."""
    i = tl.arange(0, S)
    acc = tl.zeros((S, S), tl.float32)
    for k in range(0, K, S):
        with tl.async_task([0]):
            x, y = step(a, b, k, K, S, S)
        with tl.async_task([1, 2]):
            acc = tl.dot(x, y, acc)
    tl.store(out + i[:, None] * S + i[None, :], acc)


@tilewright.jit
def attention_in_tasks(
    q, k, v, out, length, M: tl.constexpr, N: tl.constexpr, D: tl.constexpr, TASKED: tl.constexpr
):  # fmt: skip
    """Attention in which one thing has tasks: loads of keys or values, a product, the softmax."""
    queries = tl.make_tensor_descriptor(q, [length, D], [D, 1], [M, D])
    keys = tl.make_tensor_descriptor(k, [length, D], [D, 1], [N, D])
    values = tl.make_tensor_descriptor(v, [length, D], [D, 1], [N, D])
    first = tl.program_id(0) * M
    tile = queries.load([first, 0])
    acc = tl.zeros((M, D), tl.float32)
    total, highest = tl.zeros((M,), tl.float32), tl.full((M,), -1.0e30, tl.float32)
    for start in range(0, length, N):
        with tl.async_task([0] if TASKED == "keys" else []):
            key = keys.load([start, 0])
        with tl.async_task([1, 2] if TASKED == "product" else []):
            scores = tl.dot(tile, key.T)
        with tl.async_task([1, 2] if TASKED == "softmax" else []):
            higher = tl.maximum(highest, tl.max(scores, axis=1))
            weights = tl.exp2(scores - higher[:, None])
        scale = tl.exp2(highest - higher)
        total = total * scale + tl.sum(weights, axis=1)
        with tl.async_task([0] if TASKED == "values" else []):
            value = values.load([start, 0])
        acc = tl.dot(weights.to(tl.float16), value, acc * scale[:, None])
        highest = higher
    at = (first + tl.arange(0, M))[:, None] * D + tl.arange(0, D)[None, :]
    tl.store(out + at, acc / total[:, None])


@tilewright.jit
def in_tasks_and_stages(a, b, c, k, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    """A product whose loads have a task and a stage."""
    left = tl.make_tensor_descriptor(a, [M, k], [k, 1], [M, K])
    right = tl.make_tensor_descriptor(b, [k, N], [N, 1], [K, N])
    acc = tl.zeros((M, N), tl.float32)
    for start in range(0, k, K):
        with tl.async_task([0]), tl.stage(0):
            x, y = left.load([0, start]), right.load([start, 0])
        with tl.stage(1):
            acc = tl.dot(x, y, acc)
    tl.store(c + tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :], acc)


@tilewright.jit
def in_tasks_until(a, b, c, k, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    """A product in tasks, in a loop that ends by what it computes."""
    left = tl.make_tensor_descriptor(a, [M, k], [k, 1], [M, K])
    right = tl.make_tensor_descriptor(b, [k, N], [N, 1], [K, N])
    acc = tl.zeros((M, N), tl.float32)
    start, size = 0, 0.0
    while start < k and size < 100.0:
        with tl.async_task([0]):
            x, y = left.load([0, start]), right.load([start, 0])
        with tl.async_task([1, 2]):
            acc = tl.dot(x, y, acc)
        size = tl.max(acc)
        start += K
    tl.store(c + tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :], acc)
