"""Rings that take turns with one memory: the bits of one program, on every level."""

from __future__ import annotations

import pytest

from tests.corpus.forming import run_tiles
from tests.corpus.partitioned import Partitioned
from tests.corpus.run import run_module
from tests.corpus.sharing import SHARING
from tests.corpus.threads import run_plain_threads, run_threads
from tests.equivalence.test_rings import lowered, over, require_same
from tilewright.ir.schedule_attributes import annotate_schedule
from tilewright.ir.schedule_text import parse_schedule
from tilewright.ops.function import find_kernel
from tilewright.targets.nvidia.interpret import NVIDIA_INTERPRETATION


@over(SHARING)
@pytest.mark.parametrize("level", ["T1", "T2"])
@pytest.mark.parametrize("slots", [1, 2, 3])
def test_rings_that_share_memory_bring_what_channels_bring(
    case: Partitioned, level: str, slots: int
) -> None:
    module = lowered(case, case.text(1, slots=slots), level)
    require_same(run_module(case.case, module, NVIDIA_INTERPRETATION), run_tiles(case.case))


@over(SHARING)
@pytest.mark.parametrize("slots", [1, 3])
def test_threads_compute_the_bits_of_one_program(case: Partitioned, slots: int) -> None:
    schedule = parse_schedule(case.text(1, slots=slots))
    found = run_threads(case.case, lambda m: annotate_schedule(find_kernel(m), schedule))
    require_same(found, run_plain_threads(case.case))
    require_same(found, case.case.expected())
