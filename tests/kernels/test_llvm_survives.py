"""Kernels on which LLVM once ended the process, compiled in a worker and run."""

from __future__ import annotations

import numpy as np

import tilewright
import tilewright.language as tl
from tilewright.compiler.build import make_request
from tilewright.compiler.worker import compile_in_worker


@tilewright.jit
def leave_nested_loops(p, a, n):
    v0 = tl.arange(0, 4)
    s = tl.argmax(v0 & 1, -1)
    w = tl.load(p + 793 + tl.arange(0, 2)[:, None] * 0 + tl.arange(0, 4)[None, :] * -2)
    v = tl.load(p + (w & 2047))
    for _ in tl.static_range(5):
        for _ in range(n):
            if (s & 3) == 3:
                continue
            v += w
            return
    tl.atomic_add(a + v0, v0)


def test_value_numbering_of_stores_over_several_exits_does_not_end_the_process():
    values = (np.zeros(4096, np.uint32), np.zeros(64, np.int32), 3)
    call = leave_nested_loops.specialize_call(values, {})
    request = make_request(leave_nested_loops.source, call.specialization, call.options)
    assert compile_in_worker(request, keeps_reproducer=False).sections["object"]


def test_a_kernel_that_leaves_nested_loops_adds_only_where_no_iteration_runs():
    cells = np.zeros(64, np.int32)
    leave_nested_loops[(1,)](np.zeros(4096, np.uint32), cells, 3)
    assert not cells.any()
    leave_nested_loops[(1,)](np.zeros(4096, np.uint32), cells, 0)
    assert cells[:5].tolist() == [0, 1, 2, 3, 0]
