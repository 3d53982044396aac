"""`triton._internal_testing` and hooks, as suites of tests written for Triton use them."""

from __future__ import annotations

import os

import numpy as np
import pytest

from tests.api.alias import ALIAS  # noqa: F401  # puts `triton` on the path

import triton  # isort: skip
import triton.language as tl  # isort: skip
from triton import _internal_testing as suites  # isort: skip


@pytest.mark.parametrize("name", suites.integral_dtypes)
def test_random_integers_divide_and_keep_their_bounds(name: str) -> None:
    values = suites.numpy_random((9, 17), name, low=-3, high=3)
    limits = np.iinfo(name)
    assert values.shape == (9, 17) and values.dtype == name
    assert values.min() >= max(limits.min, -3) and values.max() < 3
    assert np.count_nonzero(values) == values.size


@pytest.mark.parametrize("name", suites.float_dtypes_with_bfloat16)
def test_random_floats_are_values_of_their_type(name: str) -> None:
    values = suites.numpy_random(1000, name)
    assert np.isfinite(values).all() and 0.8 < values.astype(np.float64).std() < 1.2
    if name == "bfloat16":
        assert values.dtype == np.float32 and not (values.view(np.uint32) & 0xFFFF).any()


def test_random_values_follow_their_generator() -> None:
    first = suites.numpy_random(8, "float32", np.random.RandomState(3))
    assert np.array_equal(first, suites.numpy_random(8, "float32", np.random.RandomState(3)))
    assert suites.numpy_random(64, "bool").dtype == np.bool_
    assert suites.numpy_random((2, 2), "float8e5").dtype == np.int8


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("bool", tl.int1),
        ("float8_e4m3fn", tl.float8e4nv),
        ("bfloat16", tl.bfloat16),
        ("*int32", tl.pointer_type(tl.int32)),
    ],
)
def test_names_of_types(name: str, expected: object) -> None:
    assert suites.str_to_triton_dtype(name) == expected


def test_questions_about_the_machine() -> None:
    assert not suites.is_interpreter() and not suites.is_cuda() and not suites.is_hopper()
    assert not suites.is_hip() and not suites.is_xpu()
    assert suites.get_arch()
    target = suites.get_current_target()
    assert target is not None and target.backend == "cpu"


def test_fresh_settings_are_put_back(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("TRITON_PRINT_AUTOTUNING", "TRITON_ALWAYS_COMPILE", "TILEWRIGHT_ALWAYS_COMPILE"):
        monkeypatch.setenv(name, "1")
    triton.knobs.compilation.always_compile = True
    fresh, reset = suites._fresh_knobs_impl(skipped_attr={"nvidia"})
    try:
        knobs = fresh()
        assert not knobs.autotuning.print and not knobs.compilation.always_compile
        knobs.autotuning.print = False
    finally:
        reset()
    try:
        assert os.environ["TRITON_PRINT_AUTOTUNING"] == "1" and triton.knobs.autotuning.print
        assert triton.knobs.compilation.always_compile
    finally:
        del triton.knobs.compilation.always_compile


def test_hooks_learn_of_all_options_and_of_warmups() -> None:
    @triton.jit
    def kernel(x, N: tl.constexpr):
        tl.store(x, N)

    seen: list[dict[str, object]] = []
    with triton.knobs.runtime.scope():
        triton.knobs.runtime.jit_cache_hook = lambda **info: seen.append(info) and None
        kernel.warmup(np.zeros(1, np.int32), 3, grid=(1,), enable_fp_fusion=False)
        kernel[(1,)](np.zeros(1, np.int32), 4)
    compiled = [info["compile"] for info in seen]
    assert [info["is_warmup"] for info in compiled] == [True, False]
    assert [info["is_manual_warmup"] for info in seen] == [True, False]
    assert [info["enable_fp_fusion"] for info in compiled] == [False, True]


def test_types_that_are_constants_are_preloaded() -> None:
    @triton.jit
    def kernel(x, kind: tl.constexpr):
        tl.store(x, tl.full((), 3, kind).to(tl.int32))

    data: list[str] = []

    def keep(**info: dict[str, object]) -> None:
        data.append(str(info["compile"]["specialization_data"]))

    with triton.knobs.runtime.scope():
        triton.knobs.runtime.jit_cache_hook = keep
        compiled = kernel.warmup(np.zeros(1, np.int32), tl.float16, grid=(1,))
    assert kernel.preload(data[0]).hash == compiled.hash


@triton.jit
def copy_kernel(src, dst, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(dst + offsets, tl.load(src + offsets, mask=offsets < n), mask=offsets < n)


def test_pruning_gets_arguments_by_place_apart_from_those_by_name() -> None:
    seen: list[tuple[set[str], set[str]]] = []

    def early(
        configs: list[triton.Config], named_args: dict[str, object], **kwargs: object
    ) -> list[triton.Config]:
        seen.append((set(named_args), set(kwargs)))
        return configs[:6]

    estimated: list[int] = []

    def model(**kwargs: int) -> int:
        estimated.append(kwargs["BLOCK"])
        return kwargs["BLOCK"] + kwargs["n"]

    configs = [triton.Config({"BLOCK": 1 << i}) for i in range(1, 11)]
    pruning = {"early_config_prune": early, "perf_model": model, "top_k": 0.5}
    tuned = triton.autotune(configs, key=["n"], prune_configs_by=pruning, cache_results=False)
    kernel = tuned(copy_kernel)
    src, dst = np.arange(17, dtype=np.float32), np.zeros(17, np.float32)
    kernel[lambda meta: (triton.cdiv(17, meta["BLOCK"]),)](src, dst, n=17)
    assert seen == [({"src", "dst"}, {"n"})]
    assert estimated == [2, 4, 8, 16, 32, 64]
    assert {config.kwargs["BLOCK"] for config in kernel.configs_timings} == {2, 4, 8}
    np.testing.assert_array_equal(dst, src)


def test_listeners_hear_of_comparisons_only() -> None:
    heard: list[object] = []
    configs = [triton.Config({"BLOCK": 32}), triton.Config({"BLOCK": 64})]
    pruning = {"early_config_prune": lambda configs, named_args, **kwargs: configs[1:]}
    tuned = triton.autotune(configs, key=["n"], prune_configs_by=pruning, cache_results=False)
    kernel = tuned(copy_kernel)
    src, dst = np.arange(17, dtype=np.float32), np.zeros(17, np.float32)
    with triton.knobs.autotuning.scope():
        triton.knobs.autotuning.listener = lambda **info: heard.append(info)
        kernel[(1,)](src, dst, 17)
    assert heard == [] and kernel.best_config == configs[1]


def test_configurations_of_other_ir_have_other_names() -> None:
    texts = {str(triton.Config({"BLOCK": 32}, ir_override=ir)) for ir in (None, "a.ttir", "b.ttir")}
    assert len(texts) == 3


def test_views_under_another_type_are_simulated() -> None:
    @triton.jit
    def kernel(x, out):
        tl.store(out + tl.arange(0, 8), tl.load(x + tl.arange(0, 8)).to(tl.float32))

    halves = np.arange(8, dtype=np.float16)
    out = np.zeros(8, np.float32)
    kernel.simulate[(1,)](triton.reinterpret(halves.view(np.int16), tl.float16), out)
    np.testing.assert_array_equal(out, halves.astype(np.float32))


def test_descriptors_move_types_of_at_most_32_bits() -> None:
    sizes = {suites.str_to_triton_dtype(name).primitive_bitwidth for name in suites.tma_dtypes}
    assert sizes == {8, 16, 32} and "bfloat16" in suites.tma_dtypes
