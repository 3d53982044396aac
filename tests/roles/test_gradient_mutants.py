"""Attention's backward, whose products start early and whose sums are added by the copy engine.

Every way to break it at T2 is noticed; what nobody notices must be what other things order as
well, and threads then run it without a race. What only the text of a thread says is changed there.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from xdsl.dialects.builtin import ModuleOp

from tests.corpus.gathered import GRADIENTS
from tests.equivalence.test_rings import lowered
from tests.roles.mutants import Mutant, mutants_of
from tests.roles.running import emitted, interpret, simulated
from tilewright.machine.gpus import SM_90A
from tilewright.ops.function import find_kernel
from tilewright.schedule.protocol.check import check_protocol
from tilewright.schedule.protocol.run import run_protocol
from tilewright.schedule.protocol.scalars import Launch
from tilewright.support.errors import KernelFault, ProtocolBroken

CASE = GRADIENTS[0]
FEWEST = 230
SPARE = {"dropped ttng.fence_async_shared": 1}
"""What other things order as well.

The fence shows the bytes that conversions exchange; the engine reads them only as sums, which
threads write later and another fence shows.
"""
LAUNCHES = [
    Launch({9: 64 * steps, 10: 64 * steps}, (program, 0, 0), (2, 1, 1))
    for steps in (0, 1, 2, 3, 5)
    for program in (0, 1)
]
GRADIENT_ARGUMENTS = (6, 7, 8)


@pytest.fixture(scope="module")
def module() -> ModuleOp:
    """The program at T2, two slots for what moves."""
    return lowered(CASE, CASE.text(2), "T2")


def arguments() -> list[object]:
    """Those of a launch; gradients that are added to hold ones."""
    v = SimpleNamespace(**CASE.case.inputs(np.random.default_rng(3)))
    stored = [np.full_like(array, np.nan) for array in (v.dk, v.dv)]
    inputs = [v.q, v.k, v.v, v.g, v.sums, v.deltas]
    return [*inputs, np.ones_like(v.dq), *stored, v.length, v.all_rows]


def gradients(given: list[object]) -> list[np.ndarray]:
    """The arrays that a program adds and stores to."""
    return [np.asarray(given[number]) for number in GRADIENT_ARGUMENTS]


def are_close(found: list[np.ndarray], expected: list[np.ndarray]) -> bool:
    """Whether two programs agree; sums of one are added in another order."""
    pairs = zip(found, expected, strict=True)
    return all(np.allclose(left, right, 1e-3, 1e-3, equal_nan=True) for left, right in pairs)


def catch(module: ModuleOp, expected: list[np.ndarray]) -> str | None:
    """Who notices that something is wrong; None where nobody does."""
    kernel = find_kernel(module)
    try:
        check_protocol(kernel, SM_90A)
        for launch in LAUNCHES:
            run_protocol(kernel, launch)
    except ProtocolBroken:
        return "protocol"
    given = arguments()
    try:
        interpret(module, given, 1)
    except KernelFault:
        return "data"
    return None if are_close(gradients(given), expected) else "elements"


def test_every_mutant_of_gradients_is_caught(module: ModuleOp) -> None:
    given = arguments()
    interpret(module, given, 1)
    expected, stages = gradients(given), Counter[str]()
    spared: list[tuple[str, Mutant, ModuleOp]] = []
    for mutant in mutants_of(module):
        changed = module.clone()
        mutant.apply(changed)
        stage = catch(changed, expected)
        if stage is None:
            spared.append((mutant.name.rsplit(" ", 1)[0], mutant, changed))
        else:
            stages[stage] += 1
    assert Counter(name for name, *_ in spared) == SPARE
    for *_, changed in spared:
        found = arguments()
        simulated(emitted(changed), found, 1)
        assert are_close(gradients(found), expected)
    require_both_spared(module, [mutant for _, mutant, _ in spared], expected)
    assert stages.total() >= FEWEST
    assert stages["data"] + stages["elements"] < stages.total() / 10


def require_both_spared(module: ModuleOp, spared: list[Mutant], expected: list[np.ndarray]) -> None:
    """What is spared is spared together, too, in several orders of threads."""
    changed = module.clone()
    for mutant in sorted(spared, key=lambda mutant: -mutant.number):
        mutant.apply(changed)
    program = emitted(changed)
    for seed in (None, 1, 2):
        found = arguments()
        simulated(program, found, 1, seed)
        assert are_close(gradients(found), expected)


# --- what only the text says --------------------------------------------------------------------

COMMIT = "  call void @llvm.nvvm.cp.async.bulk.commit.group()"
WAIT = "  call void @llvm.nvvm.cp.async.bulk.wait.group.read(i32 {})"
FENCE = "  call void @llvm.nvvm.fence.proxy.async.shared_cta()"
ADD = "cp.async.bulk.tensor.reduce.add"
CHANGES = {
    "sums that are no group": (COMMIT, "  ;", 0),
    "no wait for what is added": (WAIT.format(0), "  ;", 0),
    "a wait for all but the last": (WAIT.format(0), WAIT.format(1), 0),
    "sums that threads wrote, and no fence": (FENCE, "  ;", 2),
    "parts that threads wrote, and no fence": (FENCE, "  ;", 1),
    "the larger instead of the sum": (ADD, ADD.replace("add", "max"), 0),
    "half of the bytes of queries": ("i32 16384)", "i32 8192)", 0),
    "more bytes than queries have": ("i32 16384)", "i32 16400)", 0),
}


def with_change(text: str, before: str, after: str, number: int) -> str:
    """The text with the occurrence of a number changed."""
    parts = text.split(before)
    assert len(parts) > number + 1
    head, tail = before.join(parts[: number + 1]), before.join(parts[number + 1 :])
    return head + after + tail


def test_the_text_itself_is_right(module: ModuleOp) -> None:
    given, found = arguments(), arguments()
    interpret(module, given, 1)
    simulated(emitted(module.clone()), found, 1)
    assert are_close(gradients(found), gradients(given))


@pytest.mark.parametrize("name", CHANGES)
def test_a_changed_text_is_noticed(name: str, module: ModuleOp) -> None:
    given, found = arguments(), arguments()
    interpret(module, given, 1)
    program = emitted(module.clone())
    text = with_change(program.text, *CHANGES[name])
    try:
        simulated(replace(program, text=text), found, 1)
    except KernelFault:
        return
    assert not are_close(gradients(found), gradients(given))
