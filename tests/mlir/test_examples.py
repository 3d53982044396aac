"""The tests of the examples and of attention as tutorials teach it, by stock MLIR."""

from __future__ import annotations

import importlib

import pytest

from tests.api import alias as _alias  # noqa: F401 - puts `triton` on the path
from tests.api.test_triton_idioms import (  # noqa: F401
    test_a_persistent_product_in_a_scope_tells_what_it_costs,
    test_attention_in_one_or_two_phases,
    test_groups_of_products_through_pointers_in_memory,
)
from tests.examples.test_examples import (  # noqa: F401
    NAMES,
    test_attention_is_right_at_the_edges_of_tiles,
    test_dropout_scales_what_it_keeps,
    test_grouped_gemm_shares_its_tiles_among_any_number_of_programs,
    test_layer_norm_gradients_do_not_depend_on_the_number_of_locks,
    test_matmul_is_right_where_a_tile_is_larger_than_the_matrix,
    test_softmax_of_huge_scores_is_finite_and_sums_to_one,
    test_vector_add_writes_every_element_and_none_beyond,
)
from tests.unit.targets.nvidia.attention_cases import (
    ARGUMENTS,
    EXPECTED,
    KERNELS,
    LISTED,
    Attention,
    require_close,
)

pytestmark = pytest.mark.mlir


@pytest.fixture(autouse=True)
def on_mlir(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEWRIGHT_TARGET", "mlir")


@pytest.mark.parametrize("name", NAMES)
def test_an_example_runs_and_says_that_it_is_right(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    importlib.import_module(f"examples.{name}").main()
    assert capsys.readouterr().out.startswith(f"{name}: ")


@pytest.mark.parametrize(("name", "case"), LISTED, ids=str)
def test_attention_in_every_form_is_what_numpy_computes(name: str, case: Attention) -> None:
    arguments = ARGUMENTS[name](case)
    KERNELS[name][case.grid](*arguments, **case.options())
    require_close(name, case, arguments, EXPECTED[name](case))
