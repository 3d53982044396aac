"""Kernels in roles with pauses in every role, over and over: the same bits, and no hang.

    python -m tests.gpu.soak --seconds 1200

Every round compiles the kernels with another seed of pauses. A program that hangs says what each
of its roles waits for and ends the run, and so does a launch with other bits.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count

import torch
from tests.corpus.case import Case
from tests.corpus.copied import gathered, gathered_case, paged_case
from tests.corpus.partitioned import RINGS, Partitioned, attention_case, gemm, gemm_case, persistent
from tests.corpus.scheduled import CLUSTERS, TURNS
from tests.gpu.test_corpus import DeviceMemory
from tilewright.support.dataclass import replace

ROUND_SECONDS = 10.0
BATCH = 20


@dataclass(frozen=True)
class Subject:
    """A case of the corpus with options that make roles."""

    case: Case
    options: dict[str, object]

    def run(self, jitter: int, until: float, expected: list[torch.Tensor]) -> int:
        """Launch batches until a time; how many launches. The first one fills `expected`."""
        memory = DeviceMemory(self.case)
        outputs = [memory.tensors[name] for name in ("c", "out", "sums") if name in memory.tensors]
        options = {**self.case.options, **self.options, "deadlock_seconds": 20, "jitter": jitter}
        launches = 0
        while launches == 0 or time.perf_counter() < until:
            for _ in range(BATCH):
                for output in outputs:
                    output.fill_(7.0)
                self.case.kernel[self.case.grid](**memory.arguments, **options)
                launches += 1
                expected[:] = expected or [output.clone() for output in outputs]
                if not all(map(torch.equal, outputs, expected)):
                    sys.exit(f"{self.case.name}: other bits with jitter {jitter} in {launches}")
            memory.arrays()  # nothing around the arrays has changed
        return launches


def subjects() -> Iterator[Subject]:
    """Products in one tile a program, in persistent tiles and in turns; attention in each order."""
    product = gemm_case(gemm, 2048, 1024, 1000, "gemm")
    tiles = gemm_case(persistent, 2048, 1024, 456, "persistent", GROUP=4)
    yield Subject(product, {"num_consumer_groups": 2, "num_buffers_warp_spec": 2})
    yield Subject(product, {"num_consumer_groups": 1})
    yield Subject(tiles, {"num_consumer_groups": 2})
    yield Subject(tiles, {"schedule": TURNS.format(2, "late")})
    yield Subject(replace(tiles, grid=(16,)), {"schedule": CLUSTERS.format(3)})
    for is_causal in (False, True):
        case = attention_case(1000, is_causal)
        yield Subject(case, {"schedule": Partitioned(case, RINGS).text(2)})
        for order in ("FA_firstDot", "FA_secondDot"):
            yield Subject(case, {"num_consumer_groups": 2, "loop_schedule": order})
    rows = gathered_case(gathered, 2048, 1024, 1000, "gathered", N=128)
    for case in (rows, paged_case(1000)):
        yield Subject(case, {"num_consumer_groups": 2})


def main() -> None:
    """Run for the seconds that were asked for and say how much that was."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=1200.0)
    end = time.perf_counter() + parser.parse_args().seconds
    every = list(subjects())
    expected: list[list[torch.Tensor]] = [[] for _ in every]
    launches, seeds = 0, 0
    for seed in count(0):  # the first without pauses: what the others are held to
        if seed and time.perf_counter() >= end:
            break
        for subject, bits in zip(every, expected, strict=True):
            until = min(end, time.perf_counter() + ROUND_SECONDS / len(every)) if seed else 0.0
            launches += subject.run(seed, until, bits)
        seeds = seed
    print(f"soak: {launches} launches of {len(every)} kernels, {seeds} seeds: the same bits")


if __name__ == "__main__":
    main()
