"""Blocks that roles store in chunks, while they go on: the bits of one program."""

from __future__ import annotations

import pytest

from tests.corpus.case import check
from tests.corpus.forming import run_tiles
from tests.corpus.partitioned import AB, GEMMS, Partitioned, gemm, gemm_case, two_outputs_case
from tests.corpus.run import run_module
from tests.corpus.threads import run_plain_threads, run_threads
from tests.equivalence.test_rings import lowered, over, require_same
from tilewright.ir.schedule_attributes import annotate_schedule, schedule_of
from tilewright.ir.schedule_text import parse_schedule
from tilewright.ops.descriptors.ir import DescriptorStoreOp
from tilewright.ops.function import find_kernel
from tilewright.targets.nvidia.interpret import NVIDIA_INTERPRETATION
from tilewright.targets.nvidia.tma_ops import TmaStoreOp

WIDE = Partitioned(gemm_case(gemm, 200, 264, 192, "gemm-four-chunks", N=256), AB)
STORED = [
    *(case for case in GEMMS if "pointers" not in case.name and "no-step" not in case.name),
    Partitioned(two_outputs_case(300, 200, 136, 2), AB),
    Partitioned(two_outputs_case(500, 72, 64, 3), AB),
]
EPILOGUES = ["columns 32 buffers 2", "columns 64 buffers 1", "columns 16 buffers 3"]


def text_of(case: Partitioned, replicas: int, epilogue: str) -> str:
    return f"{case.text(replicas)}; epilogue tma {epilogue}"


@over([*STORED, WIDE])
@pytest.mark.parametrize("epilogue", EPILOGUES)
@pytest.mark.parametrize("replicas", [1, 2])
def test_chunks_are_what_the_block_was(case: Partitioned, replicas: int, epilogue: str) -> None:
    if case is WIDE and epilogue == EPILOGUES[2]:
        epilogue = "columns 64 buffers 4"
    expected = run_tiles(case.case)
    check(case.case, expected, case.case.expected(), "T0 against NumPy")
    for level in ("T1", "T2"):
        module = lowered(case, text_of(case, replicas, epilogue), level)
        stores = [op for op in module.walk() if isinstance(op, TmaStoreOp)]
        assert len(stores) > 1 or epilogue == EPILOGUES[1]
        require_same(run_module(case.case, module, NVIDIA_INTERPRETATION), expected)


@over([*STORED, WIDE])
@pytest.mark.parametrize("replicas", [1, 2])
def test_threads_store_the_chunks_of_one_program(case: Partitioned, replicas: int) -> None:
    schedule = parse_schedule(text_of(case, replicas, EPILOGUES[0]))
    found = run_threads(case.case, lambda m: annotate_schedule(find_kernel(m), schedule))
    require_same(found, run_plain_threads(case.case))


def test_blocks_of_two_types_have_stages_of_their_own() -> None:
    module = lowered(STORED[-1], text_of(STORED[-1], 2, EPILOGUES[0]), "T1")
    assert not any(isinstance(op, DescriptorStoreOp) for op in module.walk())
    stages = {op.src for op in module.walk() if isinstance(op, TmaStoreOp)}
    assert len(stages) == 4


@pytest.mark.parametrize("groups", [1, 2])
def test_an_option_stores_in_chunks(groups: int) -> None:
    case = STORED[-2].case
    require_same(run_threads(case, None, num_consumer_groups=groups), run_threads(case))


def test_a_block_without_such_chunks_is_stored_whole() -> None:
    module = lowered(STORED[0], text_of(STORED[0], 2, "columns 128 buffers 2"), "T1")
    schedule = schedule_of(find_kernel(module))
    assert schedule is not None
    assert "is made whole: (64, 64) has no chunks of 128 columns" in schedule.reasons[-1]
    assert sum(isinstance(op, TmaStoreOp) for op in module.walk()) == 1
