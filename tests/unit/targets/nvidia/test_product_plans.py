"""The plan of a matrix product: decided once, overridden by annotating, refused with a reason."""

from __future__ import annotations

from collections.abc import Callable

import ml_dtypes
import numpy as np
import pytest
from xdsl.dialects.builtin import ModuleOp

import tilewright
import tilewright.language as tl
from tests.corpus.partitioned import persistent
from tests.corpus.threads import lower_for_gpu
from tests.passes.laid_out import named, steps
from tests.unit.targets.nvidia.persistent_kernels import run_on
from tests.unit.targets.nvidia.test_products import check_product, product
from tilewright.compiler.named_passes import full_context
from tilewright.ir.annotations import annotate, decided
from tilewright.ir.plans import ProductAttr, ProductPlan
from tilewright.ir.text import parse_module, print_module
from tilewright.ops.function import FuncOp
from tilewright.schedule.plan.verify_products import refusal
from tilewright.support.errors import MalformedText, PlanRefused
from tilewright.targets.nvidia.host import named_machine

WGMMA = "wgmma 64x64x16, warps 4x1, a shared, b shared"
TEXT = """
"builtin.module"() ({{
  "tt.func"() <{{function_type = () -> (), sym_name = "k"}}> ({{
    "tt.return"() {{tw.product = {attribute}}} : () -> ()
  }}) : () -> ()
}}) : () -> ()
"""


def parsed(attribute: str) -> ProductPlan:
    module = parse_module(TEXT.format(attribute=attribute), full_context())
    (end,) = named(module, "tt.return")
    return decided(end, ProductAttr)


def planning(text: str) -> Callable[[ModuleOp], None]:
    """Annotates every product of a module."""
    plan = ProductAttr(parsed(f'#tw.product<"{text}">'))

    def write(module: ModuleOp) -> None:
        for op in named(module, "tt.dot"):
            annotate(op, plan)

    return write


def plans(kernel: FuncOp, name: str = "tt.dot") -> list[str]:
    return [str(decided(op, ProductAttr)) for op in named(kernel, name)]


def final_plans(module: ModuleOp) -> list[str]:
    return [str(op.properties["product"].data) for op in named(module, "ttg.dot")]


@tilewright.jit
def chained(x, w, y, n, B: tl.constexpr, HOW: tl.constexpr):
    """A product of what was computed from a product, straight or handed on by control flow."""
    i = tl.arange(0, B)
    at = i[:, None] * B + i[None, :]
    c = tl.load(w + at)
    h = tl.dot(tl.load(x + at), c).to(tl.float16)
    if HOW == "loop":
        for _ in range(n):
            h = tl.dot(h, c).to(tl.float16)
    elif HOW == "branch":
        if n > 3:
            h = h * 2
        h = tl.dot(h, c).to(tl.float16)
    elif HOW == "straight":
        h = tl.dot(h * 2, c).to(tl.float16)
    elif HOW == "narrow":
        h = tl.dot(h.to(tl.float8e5), c.to(tl.float8e5)).to(tl.float16)
    tl.store(y + at, h)


HALVES = np.zeros(1 << 14, np.float16)


@pytest.mark.parametrize("text", [
    '#tw.product<"wgmma 64x64x16, warps 4x1, a registers, b shared">',
    '#tw.product<"mma 16x8x16, warps 2x2, a registers, b registers", "32 rows">',
])  # fmt: skip
def test_a_plan_is_read_back_as_it_was_printed(text: str) -> None:
    module = parse_module(TEXT.format(attribute=text), full_context())
    assert text in print_module(module)
    assert print_module(parse_module(print_module(module), full_context())) == print_module(module)


@pytest.mark.parametrize("text", ["wgmma", "wgmma 64x64, warps 4x1, a shared, b shared",
                                  "wgmma 64x64x16, warps 4x1, a nowhere, b shared"])  # fmt: skip
def test_text_that_is_no_plan_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(MalformedText, match=f"`{text}` is no plan of a product, such as"):
        parsed(f'#tw.product<"{text}">')


def test_the_plan_is_a_stage_and_the_laid_out_product_has_it() -> None:
    stages = steps(chained, (HALVES, HALVES, HALVES, 5), B=64, HOW="none")
    assert plans(stages["verify-plan"]) == [WGMMA]
    assert (
        final_plans(stages["assign-layouts"])
        == final_plans(stages["insert-shared-barriers"])
        == [WGMMA]
    )


@pytest.mark.parametrize("how", ["straight", "branch", "loop"])
def test_what_was_computed_by_a_product_stays_in_registers_whatever_hands_it_on(how: str) -> None:
    stages = steps(chained, (HALVES, HALVES, HALVES, 5), B=64, HOW=how)
    assert plans(stages["verify-plan"])[1] == WGMMA.replace("a shared", "a registers")
    assert (
        len(named(stages["assign-layouts"], "ttg.convert_layout")) <= 1
    )  # the result, for its store


@pytest.mark.parametrize(("how", "num_warps"), [("straight", 8), ("loop", 8), ("narrow", 4)])
def test_an_operand_that_would_change_threads_goes_to_shared_memory(
    how: str, num_warps: int
) -> None:
    stages = steps(chained, (HALVES, HALVES, HALVES, 5), B=64, HOW=how, num_warps=num_warps)
    assert "a shared" in plans(stages["verify-plan"])[1]


@pytest.mark.parametrize(
    ("dtype", "shape", "text"),
    [
        (np.float16, (128, 64, 32), "wgmma 64x32x16, warps 4x1, a shared, b shared"),
        (np.float16, (128, 64, 32), "wgmma 64x64x16, warps 4x1, a registers, b shared"),
        (ml_dtypes.float8_e5m2, (64, 32, 64), "wgmma 64x32x32, warps 4x1, a registers, b shared"),
        (np.int8, (64, 32, 64), "wgmma 64x32x32, warps 4x1, a registers, b shared"),
        (np.float16, (64, 64, 32), "mma 16x8x16, warps 4x1, a registers, b registers"),
        (np.float16, (64, 64, 32), "mma 16x8x16, warps 1x4, a registers, b registers"),
        (np.float16, (64, 64, 32), "mma 16x8x16, warps 2x2, a registers, b registers"),
        (np.float16, (64, 64, 32), "fma 1x1x1, warps 4x1, a shared, b shared"),
    ],
)
def test_an_annotation_before_the_decision_is_obeyed(
    dtype: type[np.generic], shape: tuple[int, int, int], text: str
) -> None:
    out = tl.int32 if dtype is np.int8 else tl.float32
    case = product(dtype, shape, "nn", out=out)
    assert final_plans(lower_for_gpu(case, planning(text)).scheduled.module) == [text]
    check_product(case, annotate=planning(text))


def test_warp_groups_side_by_side_take_a_from_registers_when_told_to() -> None:
    text = "wgmma 64x32x16, warps 4x2, a registers, b shared"
    case = product(np.float16, (64, 64, 32), "nn")
    check_product(case, annotate=planning(text), num_warps=8)


def test_rows_that_a_warp_group_would_not_find_are_refused() -> None:
    case = product(np.float16, (64, 64, 32), "nn")
    with pytest.raises(PlanRefused, match="64 rows of the product are no multiple of 128"):
        lower_for_gpu(case, planning("wgmma 64x64x16, warps 8x1, a shared, b shared"), num_warps=8)


SIZES = (16, 32, 64, 128, 256)


@pytest.mark.parametrize("num_warps", [1, 2, 4, 8, 16])
@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.float8_e5m2, np.int8, np.float64])
def test_every_plan_that_is_decided_can_be_carried_out(
    dtype: type[np.generic], num_warps: int, rng: np.random.Generator
) -> None:
    machine = named_machine("sm_90a")
    out = {np.int8: tl.int32, np.float64: tl.float64}.get(dtype, tl.float32)
    for m, n, k in rng.choice(SIZES, (6, 3)):
        case = product(dtype, (int(m), int(n), int(k)), "nn", out=out, steps=1)
        seen: list[str] = []

        def look(module: ModuleOp, seen: list[str] = seen) -> None:
            from tilewright.schedule.plan.products import plan_product

            for op in named(module, "tt.dot"):
                for is_computed in (False, True):
                    plan = plan_product(op, machine, num_warps, is_computed)
                    seen.append(refusal(op, plan, machine, num_warps))
            raise _Enough

        with pytest.raises(_Enough):
            lower_for_gpu(case, look, num_warps=num_warps)
        assert seen and not any(seen), (m, n, k)


class _Enough(Exception):
    """Nothing after the decision is of interest."""


@pytest.mark.parametrize(
    ("rows", "columns", "groups", "instruction"),
    [
        (192, 256, 3, "wgmma 64x128x16"),  # four groups begin with 128 registers a thread
        (192, 128, 3, "wgmma 64x128x16"),
        (128, 256, 2, "wgmma 64x256x16"),
    ],
)
def test_an_instruction_fits_the_registers_that_roles_begin_with(
    rows: int, columns: int, groups: int, instruction: str
) -> None:
    rng = np.random.default_rng(rows + columns)
    a, b = (rng.integers(-3, 4, shape).astype(np.float16) for shape in ((392, 136), (136, 264)))
    c = np.full((392, 264), np.nan, np.float16)
    sizes = {"M": rows, "N": columns, "K": 64, "GROUP": 2, "num_consumer_groups": groups}
    made = run_on(132, persistent, (2, 1, 1), (a, b, c, 392, 264, 136), **sizes)
    np.testing.assert_array_equal(c, a.astype(np.float64) @ b.astype(np.float64))
    assert [plan.split(",")[0] for plan in final_plans(made.module)] == [instruction]
