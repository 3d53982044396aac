"""Any plan that is not refused computes the same: plans at random, simulated against NumPy."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product as pairs

import numpy as np
import pytest
from xdsl.dialects.builtin import ModuleOp

import tilewright.language as tl
from tests.corpus.case import Case, check
from tests.corpus.everything import FAMILIES, over
from tests.corpus.threads import Annotate, run_threads
from tests.unit.targets.nvidia.test_products import HALVES, check_product, product
from tilewright.ir.annotations import annotate, decided
from tilewright.ir.plans import (
    AccessAttr,
    AccessPlan,
    CopyAttr,
    CopyPlan,
    ExchangePlan,
    ProductAttr,
    ProductPlan,
)
from tilewright.machine.gpus import SM_90A
from tilewright.ops.matmul.ir import DotOp
from tilewright.ops.memory.ir import LoadOp
from tilewright.schedule.exchanges import CHOICES, ChoiceRule
from tilewright.schedule.plan.accesses import DecideAccesses, is_planned
from tilewright.schedule.plan.verify_products import refusal

_PLACES = ("registers", "shared")
_FAMILIES = ("memory", "blocks", "atomics", "indexing", "matmul", "reductions")
_CASES = [case for name in _FAMILIES for case in FAMILIES[name] if not case.is_slow]


def any_plans(rng: np.random.Generator, num_warps: int) -> Annotate:
    """Annotates the products and accesses of a module with plans drawn from those that may be."""

    def write(module: ModuleOp) -> None:
        DecideAccesses(num_warps=num_warps).apply(module)
        for op in module.walk():
            if isinstance(op, DotOp):
                may = [p for p in _products(num_warps) if not refusal(op, p, SM_90A, num_warps)]
                annotate(op, ProductAttr(may[rng.integers(len(may))]))
            elif is_planned(op):
                if isinstance(op, LoadOp) and rng.integers(3) == 0:
                    annotate(op, CopyAttr(CopyPlan("registers")))
                annotate(op, AccessAttr(_narrower(decided(op, AccessAttr), rng)))

    return write


def _narrower(plan: AccessPlan, rng: np.random.Generator) -> AccessPlan:
    """Shorter vectors, or none along the dims in any order."""
    if rng.integers(2):
        return AccessPlan(1, tuple(int(dim) for dim in rng.permutation(plan.order)))
    return AccessPlan(1 << int(rng.integers(plan.vector.bit_length())), plan.order)


def _products(num_warps: int) -> Iterator[ProductPlan]:
    """Plans of products, most of which cannot be."""
    across = [1 << bit for bit in range(num_warps.bit_length()) if num_warps % (1 << bit) == 0]
    for n, k, count, a in pairs((8, 16, 24, 32, 64, 128), (8, 16, 32), across, _PLACES):
        warps = (num_warps // count, count)
        yield ProductPlan("wgmma", (64, n, k), warps, a, "shared")
        if n == 8:
            yield ProductPlan("mma", (16, n, k), warps, a, "registers")
    yield ProductPlan("fma", (1, 1, 1), (num_warps, 1), "shared", "shared")


@pytest.mark.parametrize("num_warps", [1, 4])
@over(_CASES[::11])
def test_any_plan_of_a_case_agrees_with_numpy(
    case: Case, num_warps: int, rng: np.random.Generator
) -> None:
    got = run_threads(case, any_plans(rng, num_warps), num_warps=num_warps)
    check(case, got, case.expected(), "a random plan against NumPy")


@pytest.mark.parametrize("orders", ["nn", "tt"])
@pytest.mark.parametrize("num_warps", [4, 8])
@pytest.mark.parametrize("dtype", [*HALVES, np.int8])
def test_any_plan_of_a_product_agrees_with_numpy(
    dtype: type[np.generic], num_warps: int, orders: str, rng: np.random.Generator
) -> None:
    out = tl.int32 if dtype is np.int8 else tl.float32
    for _ in range(2):
        m, n, k = (int(size) for size in rng.choice((32, 64, 128), 3))
        case = product(dtype, (m, n, k), orders, out=out)
        check_product(case, annotate=any_plans(rng, num_warps), num_warps=num_warps)


@pytest.fixture
def any_exchanges(rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Elements change threads in any way that there is; the plans that were taken."""
    find, taken = CHOICES.find, list[str]()

    def any_choice(cls: type) -> ChoiceRule | None:
        rule = find(cls)
        return None if rule is None else lambda op: chosen(list(rule(op)))

    def chosen(plans: list[ExchangePlan]) -> Iterator[ExchangePlan]:
        plan = plans[rng.integers(len(plans))]
        taken.append(str(plan))
        yield plan

    monkeypatch.setattr(CHOICES, "find", any_choice)
    return taken


_MOVING = ("reductions", "indexing", "shapes", "conversions", "matmul", "narrow_scans")
_MOVING_CASES = [case for name in _MOVING for case in FAMILIES[name] if not case.is_slow]


@pytest.mark.parametrize("num_warps", [1, 4])
@over(_MOVING_CASES[::9])
def test_any_exchange_of_a_case_agrees_with_numpy(
    case: Case, num_warps: int, any_exchanges: list[str]
) -> None:
    got = run_threads(case, num_warps=num_warps)
    check(case, got, case.expected(), f"{any_exchanges} against NumPy")
