"""Kernels compiled for fewer vector features, without optimisation and on other thread counts.

The features that are left out run on this host too, so the results can be compared.
"""

from __future__ import annotations

import functools
import platform

import numpy as np
import pytest

import tilewright
import tilewright.language as tl
from tests.corpus.case import Case, check
from tests.corpus.everything import CASES, every_case, over
from tests.corpus.run import launch, prepare, reduced_machine
from tilewright.runtime.drivers import load_driver
from tilewright.support.dataclass import replace
from tilewright.targets.cpu.runtime.native import native_runtime
from tilewright.targets.cpu.runtime.pool import ThreadPool

REDUCED = {
    "avx2": ("avx512", "avx10", "amx", "evex512", "prefer-256-bit", "avxvnni", "avxneconvert"),
    "sse2": ("avx", "amx", "evex512", "f16c", "fma", "xop", "vaes", "vpclmulqdq", "sse3", "ssse3",
             "sse4", "gfni"),
}  # fmt: skip
# One of each way to compile something: vectors, masks, gathers, folds, dots, casts, branches.
CHOSEN = (
    "add-float32", "mul-int8", "floordiv-int8", "exp-float32", "sin-float32", "erf-float64",
    "chain", "low-precision-chain-bfloat16", "low-precision-chain-float16", "mixed-types",
    "shifts-int8", "umulhi-uint64", "convert-float32-bfloat16", "convert-float16-float32",
    "convert-int8-float32", "convert-float32-float8_e4m3fn", "convert-float32-uint8",
    "convert-toward-zero-float16", "transpose-37x53-float32", "permute", "interleave", "flips",
    "row-sum-float16", "row-max-int64", "tile-sum-axis-0", "tile-sum-axis-1", "cube-max-axis-1",
    "argmax-left-float32", "welford", "softmax", "scan-sum-float32", "linear-recurrence",
    "matmul-float32-nn-70x45x33x32x32x16", "matmul-int8-nt-50x37x70x16x32x32",
    "matmul-bfloat16-nn-50x37x70x16x32x32", "matmul-float16-nn-50x37x70x16x32x32",
    "matmul-float64-nn-50x37x70x16x32x32", "attention-75-causal", "batched-dot-int8",
    "masked-other", "reversed-copy", "two-strides-1-41", "embedding", "gather-rows", "scatter",
    "shift-up", "overlap-0-8-0-int32", "transpose-in-place", "bool-memory", "branch-on-data",
    "carried-pointers", "collatz", "gather-lanes-float32", "sort-float32", "histogram",
    "philox-floats", "atomic-add-float32-5", "atomic-max-float32-5", "locked-sum", "block-matmul",
    "descriptor-copy",
)  # fmt: skip
needs_x86 = pytest.mark.skipif(platform.machine() != "x86_64", reason="features of x86")


def chosen() -> list[Case]:
    by_name = {case.name: case for case in CASES}
    return [by_name[name] for name in CHOSEN]


@functools.cache
def pool_of(num_threads: int) -> ThreadPool:
    native_runtime()
    return native_runtime().make_pool(num_threads)


@needs_x86
@pytest.mark.parametrize("features", REDUCED)
@over(chosen()[::2])
def test_narrower_vectors_agree_with_numpy(case: Case, features: str) -> None:
    machine = reduced_machine(without=REDUCED[features])
    got = launch(prepare(case, machine))
    check(case, got, case.expected(), f"compiled for {features} against NumPy")


@over(CASES[::3])
def test_stores_that_bypass_the_cache_agree_with_numpy(case: Case) -> None:
    """On a machine whose cache holds nothing, all launches are larger than it."""
    machine = replace(load_driver("cpu").machine(), l3_bytes=1)
    got = launch(prepare(case, machine))
    check(case, got, case.expected(), "with stores that bypass the cache against NumPy")


@tilewright.jit
def partly_outside(x, out, row, N: tl.constexpr, MISSING: tl.constexpr):
    """A row of a matrix from column -MISSING on: the first ones are out of bounds."""
    block = tl.make_tensor_descriptor(x, [16, 64], [64, 1], [1, N]).load([row, -MISSING])
    tl.store(out + tl.arange(0, N)[None, :], block)


@needs_x86
@pytest.mark.parametrize("dtype", [np.uint64, np.float32, np.float16, np.int8])
@pytest.mark.parametrize("quarters", [1, 2, 3])
@pytest.mark.parametrize("features", REDUCED)
def test_a_part_of_a_mask_that_is_known_to_be_false_is_not_loaded(
    features: str, quarters: int, dtype: type[np.generic]
) -> None:
    x, size = np.arange(1, 1025).astype(dtype), 64 // dtype().itemsize
    missing = size * quarters // 4
    case = Case(
        "partly-outside",
        partly_outside,
        (1,),
        lambda _: {
            "x": x,
            "out": np.ones(size, dtype),
            "row": 6,
            "N": size,
            "MISSING": missing,
        },
        lambda _: None,
    )
    got = launch(prepare(case, reduced_machine(without=REDUCED[features])))["out"]
    assert not got[:missing].any()
    assert np.array_equal(got[missing:], x[6 * 64 :][: size - missing])


@needs_x86
@pytest.mark.slow
@pytest.mark.parametrize("features", REDUCED)
@every_case()
def test_narrower_vectors_agree_with_numpy_everywhere(case: Case, features: str) -> None:
    machine = reduced_machine(without=REDUCED[features])
    got = launch(prepare(case, machine))
    check(case, got, case.expected(), f"compiled for {features} against NumPy")


@over(chosen()[1::2])
def test_code_without_optimisation_agrees_with_numpy(case: Case) -> None:
    got = launch(prepare(case), optimize=False)
    check(case, got, case.expected(), "compiled without optimisation against NumPy")


@pytest.mark.parametrize("num_threads", [1, 2, 5])
@over([case for case in chosen()[::3] if len(case.grid) > 1 or case.grid[0] > 2])
def test_every_number_of_threads_gives_the_same_result(case: Case, num_threads: int) -> None:
    got = launch(prepare(case), pool=pool_of(num_threads))
    check(case, got, case.expected(), f"on {num_threads} threads against NumPy")
