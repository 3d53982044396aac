"""What an author says and a kernel has no use for: it is said, with the reason."""

from __future__ import annotations

import numpy as np
import pytest

import tilewright
import tilewright.language as tl
from tests.corpus.partitioned import gemm, persistent
from tests.ptxas.kernels import request_of
from tilewright import JITFunction
from tilewright.compiler.compile import to_schedule, to_tiles
from tilewright.ops.function import find_kernel
from tilewright.targets.nvidia.explain.without_effect import without_effect
from tilewright.targets.target import load_target


@tilewright.jit
def add(a, b, out, n, B: tl.constexpr):
    """No loop, no product."""
    i = tl.program_id(0) * B + tl.arange(0, B)
    inside = i < n
    tl.store(out + i, tl.load(a + i, mask=inside) + tl.load(b + i, mask=inside), mask=inside)


@tilewright.jit
def looped(a, out, n, B: tl.constexpr, HINT: tl.constexpr):
    """A loop with a hint."""
    i, acc = tl.arange(0, B), tl.zeros((B,), tl.float32)
    if HINT == 0:
        for k in tl.range(0, n, B, loop_unroll_factor=4):
            acc += tl.load(a + k + i)
    elif HINT == 1:
        for k in tl.range(0, n, B, flatten=True, disable_licm=False):
            acc += tl.load(a + k + i)
    elif HINT == 2:
        for k in tl.range(0, n, B, disallow_acc_multi_buffer=True):
            acc += tl.load(a + k + i)
    elif HINT == 3:
        for k in tl.range(0, n, B, disable_licm=True):
            acc += tl.load(a + k + i)
    elif HINT == 4:
        for _k in tl.range(0, n, B, num_stages=3):
            acc += tl.atomic_add(out + i, 1.0)
    else:
        for k in tl.range(0, n, B, num_stages=3):
            acc += tl.load(a + k + i)
    tl.store(out + i, acc)


F32, F16 = np.zeros(4096, np.float32), np.zeros((256, 256), np.float16)
KERNELS: dict[str, tuple[JITFunction, tuple[object, ...], dict[str, object]]] = {
    "add": (add, (F32, F32, F32, 1000), {"B": 256}),
    "gemm": (gemm, (F16, F16, F16, 256, 256, 256), {"M": 128, "N": 64, "K": 64}),
    "tiles": (
        persistent,
        (F16, F16, F16, 256, 256, 256),
        {"M": 128, "N": 64, "K": 64, "GROUP": 2},
    ),
}
KERNELS |= {f"hint {n}": (looped, (F32, F32, 1024), {"B": 128, "HINT": n}) for n in range(6)}
ONE = "roles load | math; ring ab tiles load#0 load#1 slots 2"
TWO = "roles load | math x2 split m; ring ab tiles load#0 load#1 slots 2"
TURNS = "; turns math lock dot#0 pass done"
CHUNKS = "; epilogue tma columns 32 buffers 2"
SAID = [
    ("add", {"num_stages": 3}, "`num_stages=3` has no effect: no loop has loads that run ahead"),
    ("add", {"num_buffers_warp_spec": 3}, "does not run as roles"),
    ("add", {"reg_dec_producer": 40}, "does not run as roles"),
    ("gemm", {"reg_inc_consumer": 232}, "does not run as roles"),
    ("gemm", {"jitter": 7}, "`jitter=7` has no effect: the kernel does not run as roles"),
    ("gemm", {"loop_schedule": "straight"}, "does not run as roles"),
    (
        "gemm",
        {"num_consumer_groups": 2, "loop_schedule": "FA_firstDot"},
        "`loop_schedule='FA_firstDot'` has no effect: no loop has two products",
    ),
    ("gemm", {"num_consumer_groups": 2, "num_stages": 3}, "`num_buffers_warp_spec` is the number"),
    ("gemm", {"num_consumer_groups": 2, "num_warps": 8}, "roles have warps of their own"),
    ("gemm", {"num_consumer_groups": 2, "maxnreg": 128}, "roles have registers of their own"),
    *(
        ("gemm", {"schedule": TWO, name: value}, "`schedule` is said, which takes its place")
        for name, value in (
            ("num_consumer_groups", 1),
            ("num_buffers_warp_spec", 3),
            ("reg_dec_producer", 40),
            ("reg_inc_consumer", 232),
            ("loop_schedule", "straight"),
            ("num_stages", 3),
        )
    ),
    ("hint 0", {}, "`loop_unroll_factor` of the loop at"),
    ("hint 1", {}, "`flatten` of the loop at"),
    ("hint 2", {}, "`disallow_acc_multi_buffer` of the loop at"),
    ("hint 3", {}, "`disable_licm` of the loop at"),
    ("hint 4", {}, "`num_stages` of the loop at"),
    ("add", {"deadlock_seconds": 5}, "nothing waits for a ring or a copy"),
    ("gemm", {"schedule": ONE + TURNS}, "no effect: math has one replica"),
    ("add", {"schedule": "mask branch"}, "no loop has a mask that scalars tell to be whole"),
    ("add", {"schedule": "cluster 2"}, "`cluster 2` has no effect: the kernel does not run as"),
    ("add", {"schedule": CHUNKS[2:]}, "has no effect: the copy engine stores nothing"),
]
USED = [
    ("gemm", {"num_stages": 3}),
    ("gemm", {"num_stages": 1}),
    ("gemm", {"num_consumer_groups": 2, "num_buffers_warp_spec": 3, "reg_inc_consumer": 200}),
    ("gemm", {"num_consumer_groups": 2, "jitter": 7, "deadlock_seconds": 5}),
    ("gemm", {"schedule": TWO + TURNS}),
    ("gemm", {"schedule": TWO, "maxnreg": 128}),
    ("hint 5", {}),
    ("tiles", {"schedule": TWO + CHUNKS}),
    ("add", {}),
]


def said_of(name: str, options: dict[str, object]) -> tuple[str, ...]:
    """What does nothing to a kernel that is compiled with some options."""
    kernel, arguments, sizes = KERNELS[name]
    request, target = request_of(kernel, arguments, {**sizes, **options}), load_target("nvidia")
    tiles = to_tiles(request, target, None)
    scheduled = to_schedule(request, target, tiles.clone(), None)
    return without_effect(
        request.compile_options, find_kernel(tiles), find_kernel(scheduled.module)
    )


@pytest.mark.parametrize(("name", "options", "text"), SAID, ids=str)
def test_what_has_no_effect_is_said(name: str, options: dict[str, object], text: str) -> None:
    (found,) = said_of(name, options)
    assert text in found


@pytest.mark.parametrize(("name", "options"), USED, ids=str)
def test_what_has_an_effect_is_not_said(name: str, options: dict[str, object]) -> None:
    assert said_of(name, options) == ()
