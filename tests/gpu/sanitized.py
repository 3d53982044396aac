"""Small launches of kernels of every kind, to be run under compute-sanitizer.

    compute-sanitizer --tool racecheck python -m tests.gpu.sanitized

Results are held to NumPy, so that a tool that changes what a kernel does shows as well.
"""

from __future__ import annotations

from collections.abc import Iterator

import torch
from benchmarks.gpu_peers import ours
from tests.corpus import atomics
from tests.corpus.case import Case, check
from tests.corpus.gathered import gradients_case
from tests.corpus.grouped import GROUPED, WRAPPED
from tests.corpus.partitioned import attention_case, gemm, gemm_case, persistent
from tests.corpus.scheduled import CLUSTERS, PERSISTENT, TURNS
from tests.gpu.test_corpus import DeviceMemory
from tilewright.support.dataclass import replace

Launch = tuple[Case, dict[str, object]]


def launches() -> Iterator[Launch]:
    """Cases with their options: each way in which loads, products and roles are carried out."""
    product, odd = gemm_case(gemm, 256, 128, 200, "gemm"), WRAPPED[0]
    tiles = gemm_case(persistent, 256, 192, 200, "persistent", GROUP=2)
    for case in (product, odd):
        yield case, {"num_stages": 1, "bulk_access": "never", "descriptors": "pointers"}
        yield case, {"num_stages": 3, "bulk_access": "never"}  # cp.async
        yield case, {"num_stages": 3}  # the copy engine
        yield case, {"num_consumer_groups": 1}
        yield case, {"num_consumer_groups": 2}
    yield tiles, {"num_consumer_groups": 2}
    yield tiles, {"schedule": TURNS.format(2, "late")}
    yield product, {"schedule": _persistent()}
    yield replace(tiles, grid=(4,)), {"schedule": CLUSTERS.format(2)}
    for is_causal in (False, True):
        case = attention_case(200, is_causal)
        yield case, {"num_stages": 1, "num_consumer_groups": 0}
        yield case, {"num_stages": 2, "num_consumer_groups": 0}
        yield case, {"num_consumer_groups": 2, "loop_schedule": "FA_secondDot"}
    yield gradients_case(128, 64, True), {"num_consumer_groups": 2}
    for case in GROUPED:
        yield case, {"num_stages": 3}
    for case in atomics.CASES:
        if case.name in ("atomic-add-float32-5", "count-by-cas", "last-one-sums", "old-values"):
            yield case, {}


def _persistent() -> str:
    rings = "ring ab tiles load#0 load#1 slots 3"
    return PERSISTENT.format(2, "m", rings, "wait")


def rows() -> None:
    """Kernels of rows, whose sums threads exchange."""
    kernels = ours()
    x, y = torch.randn(3001, device="cuda"), torch.randn(3001, device="cuda")
    kernels.add[(3,)](x, y, torch.empty_like(x), x.numel(), BLOCK=1024)
    values = torch.randn(5, 781, device="cuda")
    kernels.softmax[(5,)](values, torch.empty_like(values), 781, 781, BLOCK=1024)
    x = torch.randn(6, 1000, device="cuda", dtype=torch.bfloat16)
    weight = torch.randn(1000, device="cuda", dtype=torch.bfloat16)
    mean, rstd = torch.zeros(6, device="cuda"), torch.ones(6, device="cuda")
    out = torch.empty_like(x)
    kernels.layer_norm[(6,)](
        x, out, weight, weight, mean, rstd, 1000, 1000, 1e-5, BLOCK=1024
    )  # fmt: skip


def main() -> None:
    """Launch each kernel once."""
    rows()
    count = 0
    for case, options in launches():
        memory = DeviceMemory(case)
        given = {**case.options, **options}
        case.kernel[case.grid](**memory.arguments, enable_fp_fusion=False, **given)
        torch.cuda.synchronize()
        check(case, memory.arrays(), case.expected(), str(options))
        count += 1
    print(f"sanitized: every kernel was launched, {count} cases in their ways")


if __name__ == "__main__":
    main()
