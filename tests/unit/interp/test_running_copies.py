"""A copy reads at any time until it is waited for: what is overwritten meanwhile is found."""

from __future__ import annotations

import numpy as np
import pytest
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation

import tilewright
import tilewright.language as tl
from tests.corpus.case import Case
from tests.corpus.run import run_module
from tests.corpus.threads import gpu_request
from tests.passes.laid_out import named
from tilewright.compiler.compile import to_schedule, to_tiles
from tilewright.interp.simt.faults import UnfinishedOperation
from tilewright.targets.nvidia.interpret import NVIDIA_INTERPRETATION
from tilewright.targets.target import load_target


@tilewright.jit
def copied(x, y, B: tl.constexpr, BLOCKS: tl.constexpr):
    """y = x @ x; then x is overwritten."""
    if BLOCKS:
        source = tl.make_tensor_descriptor(x, [B, B], [B, 1], [B, B])
        a = source.load([0, 0])
    at = tl.arange(0, B)[:, None] * B + tl.arange(0, B)[None, :]
    if not BLOCKS:
        a = tl.load(x + at)
    tl.store(y + at, tl.dot(a, a))
    tl.store(x + at, tl.full((B, B), 2.0, tl.float16))


def scheduled(*, blocks: bool) -> tuple[Case, ModuleOp]:
    def inputs(rng: np.random.Generator) -> dict[str, object]:
        x = rng.integers(0, 2, (64, 64)).astype(np.float16)
        return {"x": x, "y": np.zeros((64, 64), np.float32), "B": 64, "BLOCKS": blocks}

    case = Case("copied", copied, (1,), inputs, lambda values: None)
    request, target = gpu_request(case), load_target("nvidia")
    return case, to_schedule(request, target, to_tiles(request, target)).module


def overwrite_before(module: ModuleOp, wait: Operation) -> None:
    """Move the store that overwrites `x` before the wait, behind what it takes."""
    block = wait.parent
    assert block is not None

    def move(op: Operation) -> None:
        for operand in op.operands:
            maker = operand.owner
            if isinstance(maker, Operation) and maker in list(block.ops)[place:]:
                move(maker)
        op.detach()
        block.insert_op_before(op, wait)

    place = list(block.ops).index(wait)
    move(named(module, "tt.store")[-1])


@pytest.mark.parametrize("blocks", [False, True])
@pytest.mark.parametrize("is_overwritten", [False, True])
def test_a_store_before_the_wait_of_a_copy_is_a_fault(
    *, blocks: bool, is_overwritten: bool
) -> None:
    case, module = scheduled(blocks=blocks)
    wait = named(module, "ttng.tma_wait" if blocks else "ttg.async_wait")[0]
    if not is_overwritten:
        run_module(case, module, NVIDIA_INTERPRETATION)
        return
    overwrite_before(module, wait)
    with pytest.raises(UnfinishedOperation, match="overwritten before anyone waited for it"):
        run_module(case, module, NVIDIA_INTERPRETATION)
