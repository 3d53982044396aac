"""What authors may write of roles, stages and slots: it runs, or the catalogue says why not."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.corpus.partitioned import gemm, gemm_case
from tests.corpus.threads import lower_for_gpu
from tests.fuzz.loading import module_at
from tilewright import JITFunction
from tilewright.support.errors import InternalError, TilewrightError

M, N, K, DEPTH = 64, 64, 16, 96
_HEAD = """import tilewright
import tilewright.language as tl


@tilewright.jit
def kernel(a, b, out, n, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    x = tl.make_tensor_descriptor(a, [M, n], [n, 1], [M, K])
    y = tl.make_tensor_descriptor(b, [n, N], [N, 1], [K, N])
    i, j = tl.arange(0, M), tl.arange(0, N)
    acc = tl.zeros((M, N), tl.float32)
"""
_TAIL = "    tl.store(out + i[:, None] * N + j[None, :], acc)\n"
_PRODUCT = "acc = tl.dot(x.load([0, k]), y.load([k, 0]), acc)"
_COUNTS = ("-1", "0", "1", "5", "99", "10**9", "2**31", "2**70", "1.5", "True", "'0'", "None", "n")


def in_loop(*lines: str, of: str = "range(0, n, K)") -> str:
    """A loop with a body."""
    return f"    for k in {of}:\n" + "".join(f"        {line}\n" for line in lines)


BODIES = {
    **{f"stage {e}": in_loop(f"with tl.stage({e}):", f"    {_PRODUCT}") for e in _COUNTS},
    **{
        f"cluster {e}": in_loop(f"with tl.stage(0, cluster={e}):", f"    {_PRODUCT}")
        for e in _COUNTS
    },
    **{f"task {e}": in_loop(f"with tl.async_task([{e}]):", f"    {_PRODUCT}") for e in _COUNTS},
    **{
        f"{hint} {e}": in_loop(_PRODUCT, of=f"tl.range(0, n, K, {hint}={e})")
        for e in _COUNTS
        for hint in ("num_stages", "warp_specialize", "schedule")
    },
    "tasks in a task": in_loop(
        "with tl.async_task([0]):", "    with tl.async_task([1]):", f"        {_PRODUCT}"
    ),
    "stages in a stage": in_loop(
        "with tl.stage(0):", "    with tl.stage(1):", f"        {_PRODUCT}"
    ),
    "a stage in a task": in_loop(
        "with tl.async_task([0]):", "    with tl.stage(1):", f"        {_PRODUCT}"
    ),
    "a stage in a branch": in_loop("if k > 16:", "    with tl.stage(1):", f"        {_PRODUCT}"),
    "a task in a branch": in_loop(
        "if k > 16:", "    with tl.async_task([0]):", f"        {_PRODUCT}"
    ),
    "a stage around a loop": "    with tl.stage(1):\n"
    + "".join(f"    {line}\n" for line in in_loop(_PRODUCT).splitlines()),
    "a task around a loop": "    with tl.async_task([0]):\n"
    + "".join(f"    {line}\n" for line in in_loop(_PRODUCT).splitlines()),
    "a load behind its product": in_loop(
        "with tl.stage(2):",
        "    u = x.load([0, k])",
        "with tl.stage(0):",
        "    acc = tl.dot(u, y.load([k, 0]), acc)",
    ),
    "two tasks write one tile": in_loop(
        "with tl.async_task([0]):",
        f"    {_PRODUCT}",
        "with tl.async_task([1]):",
        f"    {_PRODUCT}",
    ),
    "a stage that leaves the loop": in_loop("with tl.stage(1):", "    break"),
    "a stage with other arguments": in_loop("with tl.stage(1, 2, 3):", f"    {_PRODUCT}"),
    "a stage without a head": in_loop("tl.stage(1)", _PRODUCT),
    "a text of roles for a loop": in_loop(
        _PRODUCT, of="tl.range(0, n, K, schedule='roles load | math')"
    ),
    "a text of another loop": in_loop(
        _PRODUCT, of="tl.range(0, n, K, schedule='loop for#7 dot#0 @0.0')"
    ),
}
TEXTS = (
    "roles",
    "roles load | load",
    "roles load | math x0",
    "roles load | math x99999999999",
    "roles load | math regs 17",
    "roles load | math; ring a tiles load#0 load#1 slots 0",
    "roles load | math; ring a tiles load#0 load#1 slots -1",
    "roles load | math; ring a tiles load#0 load#1 slots 99999999999999999999",
    "roles load | math; ring a tiles load#0 load#0 slots 2",
    "roles load | math; ring a tiles load#0 slots 2; ring b tiles load#0 slots 2",
    "roles load | math; ring a tiles dot#0 slots 2",
    "roles load | math; ring a tiles load#99999999999999999 slots 2",
    "roles load | math; ring a tiles load#0 slots 2 shares b; ring b tiles load#1 slots 2 shares a",
    "roles load | math; ring a tiles load#0 load#1 slots 2 shares a",
    "loop for#0 load#0 @0.0 dot#0 @-1.0",
    "loop for#0 load#0 @0.0 dot#0 @999999999.0",
    "loop for#0 dot#0 @0.0 dot#0 @1.0",
    "cluster 0",
    "cluster 99999999999",
    "epilogue tma columns 0",
    "epilogue tma columns 64 buffers 9999999",
    "turns nobody lock dot#0 pass done",
    "\x00",
    "🙂",
    "ring " * 5000,
    "roles " + "load | " * 2000 + "math",
    "loop for#0 " + "dot#0 @0.0 " * 3000,
)
OPTIONS: tuple[dict[str, object], ...] = (
    *({"num_stages": count} for count in (0, -1, 1.5, True, "3")),
    *({"num_consumer_groups": count} for count in (-1, 4, 7, 10**6, 1.5, True, "2")),
    *({"num_consumer_groups": 2, "num_buffers_warp_spec": n} for n in (-1, 100, 10**9, 2.5, "x")),
    *({"num_consumer_groups": 2, "reg_inc_consumer": n} for n in (17, -8, 8, 240, 256, 10**6)),
    *({"num_consumer_groups": 2, "reg_dec_producer": n} for n in (17, -8, 8, 240, 256, 10**6)),
    *({"num_consumer_groups": 2, "loop_schedule": text} for text in ("FA_thirdDot", "", 3)),
    {"schedule": 3},
    {"schedule": b"x"},
)


def load(body: str, folder: Path) -> JITFunction:
    """The kernel with a body."""
    path = folder / "hostile_schedule.py"
    path.write_text(_HEAD + body + _TAIL)
    return module_at(path).kernel


@pytest.mark.parametrize("groups", [0, 1])
@pytest.mark.parametrize("name", BODIES)
def test_a_kernel_runs_or_its_line_is_named(name: str, groups: int, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    a, b = (rng.integers(-2, 3, shape).astype(np.float16) for shape in ((M, DEPTH), (DEPTH, N)))
    kernel, tile = load(BODIES[name], tmp_path), {"M": M, "N": N, "K": K}
    found, expected = np.zeros((M, N), np.float32), np.zeros((M, N), np.float32)
    options = {"num_consumer_groups": groups} if groups else {}
    try:
        kernel.simulate[(1,)](a, b, found, DEPTH, **tile, **options)
    except InternalError as error:
        pytest.fail(error.summary)
    except TilewrightError as error:
        assert error.span is not None and error.hint, error.summary
        return
    kernel.interpret[(1,)](a, b, expected, DEPTH, **tile)
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("number", range(len(TEXTS)))
def test_a_broken_text_is_refused_at_its_line(number: int) -> None:
    with pytest.raises(TilewrightError) as caught:
        lower_for_gpu(gemm_case(gemm, 128, 64, 256, "broken"), schedule=TEXTS[number])
    assert not isinstance(caught.value, InternalError)
    assert caught.value.span is not None and caught.value.hint


@pytest.mark.parametrize("number", range(len(OPTIONS)))
def test_a_broken_option_is_refused_by_name(number: int) -> None:
    with pytest.raises(TilewrightError) as caught:
        lower_for_gpu(gemm_case(gemm, 128, 64, 256, "broken"), **OPTIONS[number])
    assert not isinstance(caught.value, InternalError) and caught.value.hint
    assert list(OPTIONS[number])[-1] in str(caught.value) or "registers" in str(caught.value)


def test_far_more_stages_than_are_useful_are_cut() -> None:
    """54 slots fit: their prologue took half a minute to compile."""
    case = gemm_case(gemm, 64, 64, 96, "many-stages", M=64, N=64, K=16)
    threads = lower_for_gpu(case, None, num_stages=99, num_consumer_groups=0)
    assert len(threads.text.splitlines()) < 1500
