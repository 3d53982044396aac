"""Rings that take turns with one memory, and loops that take turns with one ring: each broken.

Launches go around the number of slots on both sides, and to tiles in a row. What shares memory
without a wait, starts its counters anew, waits for another ring or for another fill is noticed
without a GPU; threads run what is not broken in several orders.
"""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from xdsl.dialects.builtin import ModuleOp

from tests.corpus.partitioned import Partitioned
from tests.corpus.sharing import (
    HELD,
    ONE_MEMORY,
    ONE_RING,
    SIZES,
    held_tiles_case,
    two_products_case,
)
from tests.equivalence.test_rings import lowered
from tests.roles.catching import Subject, catch, require_all_caught
from tests.roles.gemm import Gemm
from tests.roles.running import emitted, interpret, simulated
from tilewright.ops.function import find_kernel
from tilewright.ops.rings import RingDrainedOp
from tilewright.schedule.protocol.run import run_protocol
from tilewright.schedule.protocol.scalars import Launch
from tilewright.support.errors import KernelFault, ProtocolBroken

SLOTS = 2
STEPS = (0, 1, SLOTS - 1, SLOTS, SLOTS + 1, 2 * SLOTS + 1)
# As many steps as slots: with more, a ring orders what barriers around stores order as well.
TWICE = (SLOTS, SLOTS)
FORMS = {
    "one memory": Partitioned(two_products_case("memory", TWICE), ONE_MEMORY),
    "one ring": Partitioned(two_products_case("ring", TWICE, (64, 64, 64, 64)), ONE_RING),
    "tiles that stay": Partitioned(held_tiles_case("stay", TWICE), HELD),
}
FEWEST = {"one memory": 120, "one ring": 75, "tiles that stay": 150}


def launches_of(form: str) -> tuple[Launch, ...]:
    """Both trip counts around the number of slots, for up to three tiles in a row."""
    if form == "tiles that stay":
        sizes = {5: 128, 6: 1024}
        return tuple(Launch({**sizes, 7: 64 * k, 8: 64 * h}) for k in STEPS for h in STEPS)
    depth, other = (64, 64) if form == "one ring" else SIZES[2:]
    return tuple(
        Launch({6: 64 * tiles, 7: 64, 8: 1024, 9: 1024, 10: depth * k, 11: other * h})
        for tiles in (1, 3)
        for k in STEPS
        for h in STEPS
    )


def arguments_of(form: str) -> list[object]:
    case = FORMS[form].case
    values = case.inputs(np.random.default_rng(3))
    values["x"] = np.zeros_like(values["x"])  # not all programs run
    names = [n for n in values if not n.isupper()]
    return [values[name] for name in names]


def subject_of(form: str, replicas: int = 1) -> tuple[Subject, ModuleOp]:
    """The program of a form."""
    program = FORMS[form]
    module = lowered(program, program.text(replicas, slots=SLOTS), "T2")
    output = 4 if form == "tiles that stay" else 5
    values = SimpleNamespace(**program.case.inputs(np.random.default_rng(3)))
    program.case.reference(values)
    expected = np.asarray(values.x if output == 4 else values.y)
    if output == 4:  # one program computes its rows alone
        expected = np.where(np.arange(len(expected))[:, None] < 64, expected, 0)
    return Subject(
        Gemm(), launches_of(form), lambda: arguments_of(form), expected, output, 0.0
    ), module


@pytest.mark.parametrize("form", FORMS)
def test_nothing_is_wrong_with_what_is_formed(form: str) -> None:
    subject, module = subject_of(form)
    assert catch(subject, module) is None


@pytest.mark.parametrize("form", FORMS)
def test_every_mutant_is_caught(form: str) -> None:
    subject, module = subject_of(form)
    require_all_caught(subject, module, FEWEST[form])


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("seed", [None, 1, 2, 3])
def test_threads_run_it_in_any_order(form: str, seed: int | None) -> None:
    subject, module = subject_of(form)
    values = SimpleNamespace(**FORMS[form].case.inputs(np.random.default_rng(3)))
    FORMS[form].case.reference(values)
    given = subject.arguments()
    simulated(emitted(module), given, 2, seed)
    np.testing.assert_array_equal(given[subject.output], vars(values)["xy"[subject.output - 4]])


@pytest.mark.parametrize("number", [0, 1])
def test_the_run_of_the_protocol_and_the_interpreter_see_the_wait(number: int) -> None:
    """Without the check of the text, too: a ring is filled while the other one is in use."""
    subject, module = subject_of("one memory")
    drained = [op for op in module.walk() if isinstance(op, RingDrainedOp)]
    assert len(drained) == 2  # between the two, and before the next tile
    drained[number].detach()
    with pytest.raises(ProtocolBroken, match="whose memory it has, uses"):
        for launch in subject.launches:
            run_protocol(find_kernel(module), launch)
    with pytest.raises(KernelFault):
        interpret(module, subject.arguments(), 1)
    with pytest.raises(KernelFault):
        simulated(emitted(module), subject.arguments(), 2)
