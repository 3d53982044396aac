"""Rings that threads fill, broken in every way: somebody notices, without a GPU.

Ops are changed at T2, where the checks, the run of the protocol and the interpreter look for it.
What only the text of a thread says is changed there, and the simulator looks.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from xdsl.dialects.builtin import ModuleOp

from tests.corpus.copied import COPIED, gathered, gathered_case
from tests.corpus.partitioned import Partitioned
from tests.equivalence.test_rings import lowered
from tests.roles.catching import Subject, catch
from tests.roles.gemm import Gemm
from tests.roles.mutants import mutants_of
from tests.roles.running import emitted, simulated
from tilewright.ir.edits import erase
from tilewright.ops.rings import RingCommitOp
from tilewright.ops.staging import AsyncCopyOp
from tilewright.schedule.protocol.scalars import Launch
from tilewright.support.errors import KernelFault
from tilewright.targets.nvidia.ops import FenceAsyncSharedOp

M, N, K, SLOTS = 128, 64, 64, 2
FEWEST = 80
CASE = Partitioned(gathered_case(gathered, M, N, K * (SLOTS + 1), "mutants"), COPIED[0].schedule)
STEPS = (0, 1, SLOTS - 1, SLOTS, SLOTS + 1, 2 * SLOTS + 1)


@pytest.fixture(scope="module")
def module() -> ModuleOp:
    """The program at T2: one ring that threads fill, and one that the copy engine fills."""
    return lowered(CASE, CASE.text(2, slots=SLOTS), "T2")


def subject() -> Subject:
    """Launches around the number of slots; data of one program."""
    values = SimpleNamespace(**CASE.case.inputs(np.random.default_rng(3)))
    expected = values.a.astype(np.float32)[values.rows] @ values.b.astype(np.float32)
    launches = tuple(Launch({4: M, 5: N, 6: K * steps}) for steps in STEPS)

    def arguments() -> list[object]:
        out = np.full((M, N), np.nan, np.float32)
        return [values.a, values.rows, values.b, out, M, N, K * (SLOTS + 1)]

    return Subject(Gemm(), launches, arguments, expected, 3, 0.0)


def test_nothing_is_wrong_with_the_program(module: ModuleOp) -> None:
    assert catch(subject(), module.clone()) is None


def test_every_mutant_is_caught(module: ModuleOp) -> None:
    stages, unnoticed = Counter[str](), list[str]()
    for mutant in mutants_of(module):
        changed = module.clone()
        mutant.apply(changed)
        caught = catch(subject(), changed)
        if caught is None:
            unnoticed.append(mutant.name)
        else:
            stages[caught.stage] += 1
    assert not unnoticed
    assert stages.total() >= FEWEST
    assert stages["data"] < stages.total() / 3


def committed(module: ModuleOp) -> RingCommitOp:
    """The commit of the ring that threads fill."""
    return next(op for op in module.walk() if isinstance(op, RingCommitOp) and op.by_copies)


def shown(module: ModuleOp) -> FenceAsyncSharedOp:
    """The fence behind the wait for the ring that threads fill."""
    return next(op for op in module.walk() if isinstance(op, FenceAsyncSharedOp))


def drop_by_copies(module: ModuleOp) -> None:
    del committed(module).properties["by_copies"]


def wait_for_copies_elsewhere(module: ModuleOp) -> None:
    others = [op for op in module.walk() if isinstance(op, RingCommitOp) and not op.by_copies]
    others[0].properties["by_copies"] = committed(module).properties["by_copies"]


def drop_copies(module: ModuleOp) -> None:
    erase(next(op for op in module.walk() if isinstance(op, AsyncCopyOp)))


def copy_behind_the_commit(module: ModuleOp) -> None:
    copy = next(op for op in module.walk() if isinstance(op, AsyncCopyOp))
    copy.detach()
    commit = committed(module)
    assert commit.parent is not None
    commit.parent.insert_op_after(copy, commit)


def drop_the_fence(module: ModuleOp) -> None:
    erase(shown(module))


CHANGES = {
    "checks": (drop_by_copies, wait_for_copies_elsewhere, drop_copies, copy_behind_the_commit),
    "data": (drop_the_fence,),
}
"""What stands at T2 for threads that copy, by who notices that it is not there."""


@pytest.mark.parametrize("stage", CHANGES)
def test_what_stands_for_copies_is_needed(stage: str, module: ModuleOp) -> None:
    for change in CHANGES[stage]:
        changed = module.clone()
        change(changed)
        caught = catch(subject(), changed)
        assert caught is not None and caught.stage == stage


# --- what only the text says --------------------------------------------------------------------

ARRIVAL = "cp.async.mbarrier.arrive.noinc.shared::cta.b64 [$0];"
FENCE = "  call void @llvm.nvvm.fence.proxy.async.shared_cta()"
TEXTS = {
    "each arrival counted twice": (".noinc", ""),
    "threads arrive before their copies are there": (
        ARRIVAL,
        "mbarrier.arrive.shared::cta.b64 _, [$0];",
    ),
    "one arrival less than there are": (", i32 128)", ", i32 127)"),
    "one arrival more than there are": (", i32 128)", ", i32 129)"),
    "arrivals of warps": (", i32 128)", ", i32 4)"),
    "no fence before products read": (FENCE, "  ;"),
}


def with_text(module: ModuleOp, before: str, after: str, seed: int | None) -> bool:
    """Whether a launch of the program with a part of its text changed leaves what is right."""
    made, found = subject(), subject().arguments()
    program = emitted(module.clone())
    assert before in program.text
    simulated(replace(program, text=program.text.replace(before, after)), found, 1, seed)
    return np.array_equal(np.asarray(found[made.output]), made.expected)


@pytest.mark.parametrize("seed", [None, 1, 2])
def test_the_text_itself_is_right(seed: int | None, module: ModuleOp) -> None:
    assert with_text(module, "noinc", "noinc", seed)


@pytest.mark.parametrize("name", TEXTS)
def test_a_changed_text_is_noticed(name: str, module: ModuleOp) -> None:
    with pytest.raises((KernelFault, AssertionError)):
        assert with_text(module, *TEXTS[name], None)
