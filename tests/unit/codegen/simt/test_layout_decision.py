"""Layouts of what loops carry: they settle, in walks that grow with the depth of a nest."""

from __future__ import annotations

from collections import Counter

import pytest
from xdsl.ir import Operation

import tilewright
import tilewright.language as tl
from tests.passes.lowered import written
from tests.unit.codegen.simt.launching import MACHINE, check, random_array
from tilewright.jit import JITFunction
from tilewright.ops.function import find_kernel
from tilewright.ops.memory.ir import LoadOp, StoreOp
from tilewright.schedule.layout.decide import _Walk, decide_layouts
from tilewright.schedule.layout.decided import Layouts
from tilewright.schedule.plan.accesses import DecideAccesses
from tilewright.schedule.plan.products import DecideProducts

SIZE = 32


def decided(kernel: JITFunction, **values: object) -> tuple[list[Operation], Layouts]:
    """The ops of a kernel at T0, and the decision about them."""
    module = written(kernel, **values)
    for decide in (DecideProducts(MACHINE, 4), DecideAccesses(MACHINE, 4)):
        decide.apply(module)
    function = find_kernel(module)
    return list(function.walk()), decide_layouts(function, MACHINE, 4)


@tilewright.jit
def nest2(x, n, A: tl.constexpr):
    i = tl.arange(0, A)[:, None] * A + tl.arange(0, A)[None, :]
    total = tl.zeros((A, A), tl.float32)
    for a in range(n):
        for b in range(n):
            total = total + tl.load(x + i + a + b)
    tl.store(x + i, total)


@tilewright.jit
def nest5(x, n, A: tl.constexpr):
    i = tl.arange(0, A)[:, None] * A + tl.arange(0, A)[None, :]
    total = tl.zeros((A, A), tl.float32)
    for a in range(n):
        for b in range(n):
            for c in range(n):
                for d in range(n):
                    for e in range(n):
                        total = total + tl.load(x + i + a + b + c + d + e)
                        total = total.T
    tl.store(x + i, total)


@pytest.mark.parametrize(("kernel", "depth"), [(nest2, 2), (nest5, 5)])
def test_a_nest_is_walked_as_often_as_it_is_deep(
    kernel: JITFunction, depth: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    visits: Counter[Operation] = Counter()
    visit = _Walk.visit

    def counted(walk: _Walk, op: Operation) -> None:
        visits[op] += 1
        visit(walk, op)

    monkeypatch.setattr(_Walk, "visit", counted)
    x = random_array((4096,), "float32")
    ops, layouts = decided(kernel, x=x, n=3, A=SIZE)
    inner = max(visits[op] for op in ops)
    assert 2 <= inner <= 3 * depth
    assert all(op in layouts.of_ops for op in ops if isinstance(op, LoadOp | StoreOp))


@tilewright.jit
def swap(x, n, A: tl.constexpr):
    r, c = tl.arange(0, A)[:, None], tl.arange(0, A)[None, :]
    a, b = tl.load(x + r * A + c), tl.load(x + A * A + c * A + r)
    for _ in range(n):
        a, b = b, a
    tl.store(x + r * A + c, a - b)


@tilewright.jit
def rotate(x, n, A: tl.constexpr):
    """Seven tiles, some of them loaded along the other dim, move on by one place."""
    r, c = tl.arange(0, A)[:, None], tl.arange(0, A)[None, :]
    rows, columns = r * A + c, c * A + r
    t0, t1 = tl.load(x + rows), tl.load(x + rows + 1)
    t2, t3 = tl.load(x + columns + 2), tl.load(x + rows + 3)
    t4, t5 = tl.load(x + columns + 4), tl.load(x + columns + 5)
    t6 = tl.full((A, A), 3.0, tl.float32)
    for k in range(n):
        for _ in range(2):
            t0, t1, t2, t3, t4, t5, t6 = t1, t2, t3, t4, t5, t6, t0 + k
    tl.store(x + rows, t0 + 2 * t1 - t2)
    tl.store(x + 2 * A * A + columns, t3 * t4 + t5 - t6)


@tilewright.jit
def start_again(x, n, A: tl.constexpr):
    """What a loop carries is made anew in some iterations, and turned in others."""
    r, c = tl.arange(0, A)[:, None], tl.arange(0, A)[None, :]
    total = tl.zeros((A, A), tl.float32)
    k = 0
    while k < n:
        if k % 3 == 0:
            total = tl.full((A, A), 2.0, tl.float32)
        elif k % 3 == 1:
            total = total + tl.load(x + c * A + r)
        else:
            total = total.T
        k += 1
    tl.store(x + r * A + c, total)


@pytest.mark.parametrize("kernel", [swap, rotate, start_again], ids=lambda k: k.__name__)
@pytest.mark.parametrize("trips", [0, 1, 5])
def test_tiles_that_change_places_settle(kernel: JITFunction, trips: int) -> None:
    x = random_array((4 * SIZE * SIZE,), "float32")
    check(kernel, (1,), x, trips, SIZE, num_warps=4)


def test_each_value_that_a_loop_carries_has_one_layout() -> None:
    x = random_array((4 * SIZE * SIZE,), "float32")
    _, layouts = decided(rotate, x=x, n=3, A=SIZE)
    carried = [taken for taken in layouts.carried.values() if taken]
    assert len(carried) == 4
    assert all(layout is not None for taken in carried for layout in taken[-7:])
