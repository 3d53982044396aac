"""Layouts that are annotated on ops: obeyed, with the same results, or refused with the reason."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from xdsl.dialects.builtin import ModuleOp

from tests.corpus.case import Case, check
from tests.corpus.everything import FAMILIES, over
from tests.corpus.threads import gpu_request, lower_for_gpu, run_threads
from tests.passes.laid_out import named
from tests.unit.schedule.test_given_plans import case as averaged
from tilewright.compiler.compile import to_tiles
from tilewright.compiler.named_passes import full_context
from tilewright.compiler.stages import stage_text
from tilewright.ir.annotations import annotate, annotated
from tilewright.ir.regions import ControlFlowOp
from tilewright.ir.text import parse_module, print_module
from tilewright.ir.types import shape_of
from tilewright.layout.build import coalesced
from tilewright.layout.linear import LinearLayout
from tilewright.machine.gpus import SM_90A
from tilewright.schedule.layout.annotations import LayoutPlan, LayoutPlanAttr
from tilewright.schedule.layout.assign import DecideLayouts
from tilewright.schedule.plan.accesses import DecideAccesses
from tilewright.schedule.plan.products import DecideProducts
from tilewright.support.errors import PlanRefused
from tilewright.targets.target import load_target

_FAMILIES = ("reductions", "shapes", "matmul", "indexing", "control", "memory", "atomics", "blocks")
_CASES = [one for name in _FAMILIES for one in FAMILIES[name] if not one.is_slow]


def decide(module: ModuleOp) -> None:
    """Annotate all that is decided on T0."""
    for item in (DecideProducts(), DecideAccesses(), DecideLayouts()):
        item.apply(module)


@over(_CASES[::23])
def test_what_is_decided_is_obeyed_when_it_is_given(case: Case) -> None:
    assert lower_for_gpu(case, decide).text == lower_for_gpu(case).text


@over(_CASES[5::61])
def test_decided_layouts_are_text(case: Case) -> None:
    module = to_tiles(gpu_request(case), load_target("nvidia"))
    decide(module)
    text = print_module(module)
    assert print_module(parse_module(text, full_context())) == text


def given_at_random(rng: np.random.Generator, taken: list[str]) -> Callable[[ModuleOp], None]:
    """Gives every other op that has layouts of its own another one; what is refused is left."""

    def write(module: ModuleOp) -> None:
        shown = module.clone()
        decide(shown)
        for op, decided in zip(tuple(module.walk()), tuple(shown.walk()), strict=True):
            if annotated(decided, LayoutPlanAttr) is None or rng.integers(2):
                continue
            tile = next(v for v in (*op.operands, *op.results) if shape_of(v.type))
            shape = shape_of(tile.type)
            order = tuple(int(dim) for dim in rng.permutation(len(shape)))
            layout = coalesced(shape, order, 1 << int(rng.integers(3)), 4, 32)
            annotate(op, LayoutPlanAttr(LayoutPlan((layout,))))
            try:
                decide(module.clone())
                taken.append(op.name)
            except PlanRefused:
                del op.attributes[LayoutPlanAttr.name]

    return write


@over(_CASES[3::37])
def test_any_layout_that_is_obeyed_agrees_with_numpy(case: Case, rng: np.random.Generator) -> None:
    taken: list[str] = []
    got = run_threads(case, given_at_random(rng, taken))
    check(case, got, case.expected(), f"layouts of {taken} against NumPy")


def carried_at_random(rng: np.random.Generator, changed: list[str]) -> Callable[[ModuleOp], None]:
    """Gives what loops and branches hand on other layouts, and all else the decided ones."""

    def write(module: ModuleOp) -> None:
        decide(module)
        for op in module.walk():
            plan = annotated(op, LayoutPlanAttr)
            if plan is None or not isinstance(op, ControlFlowOp):
                continue
            layouts = {at: at and anew(rng, at) for at in (*plan.operands, *(plan.results or ()))}
            given = LayoutPlan(
                tuple(layouts[at] for at in plan.operands),
                tuple(layouts[at] for at in plan.results or ()),
            )
            annotate(op, LayoutPlanAttr(given))
            changed.append(op.name)

    return write


def anew(rng: np.random.Generator, layout: LinearLayout) -> LinearLayout:
    """A layout of the same tile for the same warps."""
    order = tuple(int(dim) for dim in rng.permutation(layout.rank))
    width = 1 << int(rng.integers(3))
    return coalesced(layout.shape, order, width, layout.num_warps, layout.num_lanes)


_CARRYING = [one for name in ("control", "matmul") for one in FAMILIES[name] if not one.is_slow]


@over(_CARRYING[2::17])
def test_loops_carry_tiles_in_any_layout(case: Case, rng: np.random.Generator) -> None:
    changed: list[str] = []
    got = run_threads(case, carried_at_random(rng, changed))
    check(case, got, case.expected(), f"tiles carried by {changed} against NumPy")


def one_changed(rng: np.random.Generator) -> Callable[[ModuleOp], None]:
    """Gives one tile of one op another layout than was decided, and nothing else."""

    def write(module: ModuleOp) -> None:
        decide(module)
        plans = [(op, plan) for op in module.walk() if (plan := annotated(op, LayoutPlanAttr))]
        if not plans:
            return
        op, plan = plans[int(rng.integers(len(plans)))]
        layouts = [*plan.operands, *(plan.results or ())]
        places = [place for place, layout in enumerate(layouts) if layout is not None]
        place = places[int(rng.integers(len(places)))]
        chosen = layouts[place]
        assert chosen is not None
        layouts[place] = anew(rng, chosen)
        count = len(plan.operands)
        annotate(op, LayoutPlanAttr(LayoutPlan(tuple(layouts[:count]), tuple(layouts[count:]))))

    return write


@over(_CASES[7::29])
def test_a_changed_decision_is_refused_or_right(case: Case, rng: np.random.Generator) -> None:
    try:
        got = run_threads(case, one_changed(rng))
    except PlanRefused:
        return
    check(case, got, case.expected(), "one layout changed, against NumPy")


ROWS = "register(0:1 0:2 0:4 0:8 16:0 32:0) lane(0:16 0:32 1:0 2:0 4:0) warp(8:0 0:0) atom(64x64)"
WRONG = {
    ("load#0", ROWS.replace("8:0", "0:0")): "it does not hold every element",
    ("load#0", "register(1) lane(2 4 8 16 32) warp(64 128) atom(256)"): (
        "it is of shape 256, and the tiles are 64x64"
    ),
    ("load#0", ROWS.replace("warp(8:0 0:0)", "warp(8:0)")): "it has 2 warps, and the program has 4",
    ("load#0", ROWS.replace(" 4:0) warp", ") warp")): "it has 16 lanes, and a warp has 32",
    ("load#0", f"{ROWS.replace('8:0 0:0', '8:0 4:0').replace('2:0 4:0', '2:0 0:0')} -> _"): (
        "1 layouts are not those of its operands"
    ),
}


@pytest.mark.parametrize(("anchor", "text"), WRONG)
def test_a_layout_that_does_not_fit_is_refused(anchor: str, text: str) -> None:
    with pytest.raises(PlanRefused) as caught:
        lower_for_gpu(averaged(), plan=f"{anchor} layout {text}")
    assert WRONG[anchor, text] in caught.value.summary
    assert caught.value.span is not None


def test_layouts_that_do_not_go_together_are_refused() -> None:
    source = coalesced((64, 64), (1, 0), 4, 4, 32)
    wrong = coalesced((64,), (0,), 1, 4, 32)

    def write(module: ModuleOp) -> None:
        (op,) = named(module, "tt.reduce")
        annotate(op, LayoutPlanAttr(LayoutPlan((source,), (wrong,))))

    with pytest.raises(PlanRefused, match="they do not go together; with its operands', it has"):
        lower_for_gpu(averaged(), write)


def test_a_product_has_the_layouts_of_its_plan() -> None:
    def write(module: ModuleOp) -> None:
        (op,) = named(module, "tt.dot")
        layout = coalesced((64, 64), (1, 0), 4, 4, 32)
        annotate(op, LayoutPlanAttr(LayoutPlan((layout,))))

    with pytest.raises(PlanRefused, match=r"annotate `tw\.product`"):
        lower_for_gpu(averaged(), write)


def test_control_flow_hands_tiles_on() -> None:
    def write(module: ModuleOp) -> None:
        layout = coalesced((64, 64), (1, 0), 4, 4, 32)
        annotate(named(module, "tt.return")[0], LayoutPlanAttr(LayoutPlan((layout,))))

    with pytest.raises(PlanRefused, match="it hands tiles on"):
        lower_for_gpu(averaged(), write)


def test_the_plan_that_is_shown_has_the_layouts() -> None:
    given = coalesced((64, 64), (0, 1), 2, 4, SM_90A.lanes)
    request = gpu_request(averaged(), plan=f"load#1 layout {given.text()}")
    shown = stage_text(request, "plan")
    assert "tw.layout" in shown and f'"{given.text()} -> {given.text()}"' in shown
    assert shown == stage_text(request, "verify-layouts")
    assert "tw.layout" not in stage_text(request, "assign-layouts")
