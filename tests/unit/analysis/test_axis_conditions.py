"""Differences that a branch or loop around them says not to be negative."""

from __future__ import annotations

import numpy as np
import pytest

import tilewright
import tilewright.language as tl
from tilewright.analysis.facts import AxisFacts
from tilewright.compiler.build import make_request
from tilewright.frontend.devices import DevicePlacement
from tilewright.frontend.lower import lower_kernel
from tilewright.ops.elementwise.ir import ELEMENTWISE
from tilewright.ops.function import find_kernel
from tilewright.targets.nvidia.host import named_machine


@tilewright.jit
def in_branch(x, a, b):
    if a >= b and a < 100:
        tl.store(x, a - b)


@tilewright.jit
def in_other_branch(x, a, b):
    if b >= a:
        tl.store(x, a - b)


@tilewright.jit
def in_else(x, a, b):
    if a >= b:
        tl.store(x, 0)
    else:
        tl.store(x, a - b)


@tilewright.jit
def in_loop(x, a, b):
    while b <= a and a < 100:
        tl.store(x, a - b)
        a += 7


@tilewright.jit
def behind_step(x, a, b):
    while b <= a:
        a -= 7
        tl.store(x, a - b)


@pytest.mark.parametrize(
    ("kernel", "is_known"),
    [
        (in_branch, True),
        (in_other_branch, False),
        (in_else, False),
        (in_loop, True),
        (behind_step, False),
    ],
)
def test_a_difference_is_not_negative_where_a_condition_says_so(kernel, is_known: bool) -> None:
    call = kernel.specialize_call((np.zeros(4, np.int32), 50, 30), {})
    placement, machine = DevicePlacement("nvidia"), named_machine("sm_90a")
    request = make_request(call.source, call.specialization, call.options, placement, machine)
    function = find_kernel(lower_kernel(request))
    facts = AxisFacts(function)
    differences = [op for op in function.walk() if isinstance(op, ELEMENTWISE["arith.subi"])]
    stored = [op for op in differences if op.results[0].first_use is not None]
    found = [
        facts.of(op.results[0]).is_nonnegative
        for op in stored
        if any(use.operation.name == "tt.store" for use in op.results[0].uses)
    ]
    assert found == [is_known]
