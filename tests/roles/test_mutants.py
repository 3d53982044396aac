"""Programs with roles, each broken in every way: somebody notices, without a GPU, and says where.

First come the checks of T2 and the run of its protocol, which computes no tile; what passes both
is run with data in the interpreter, whose clocks find races and missing fences.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from tests.roles.attention import Attention
from tests.roles.catching import BF16, Caught, Subject, attention, catch, gemm
from tests.roles.gemm import Gemm
from tests.roles.mutants import mutants_of
from tests.roles.running import emitted, placed, simulated
from tilewright.support.errors import KernelFault

TURNS = Gemm(rows=64, columns=64, slots=3, split="tiles", late=True, group=2)
SUBJECTS = {
    "rows shared": gemm(Gemm(columns=64, slots=2, group=2)),
    "released late": gemm(Gemm(columns=128, slots=3, group=2, late=True)),
    "tiles by turns": gemm(TURNS),
    "attention by turns": attention(Attention(keys=32, depth=64, turns=True)),
    "attention ahead": attention(Attention(keys=32, depth=64, order="ahead")),
}
FEWEST = {
    "rows shared": 75,
    "released late": 90,
    "tiles by turns": 95,
    "attention by turns": 145,
    "attention ahead": 170,
}
"""So many mutants there are of each: more than 150 in all."""
_PLACE = re.compile(r"^  (gemm|attention)\.py:\d+", re.MULTILINE)


@pytest.mark.parametrize("name", SUBJECTS)
def test_nothing_is_wrong_with_the_program_itself(name: str) -> None:
    subject = SUBJECTS[name]
    assert catch(subject, placed(subject.program.module())) is None


@pytest.mark.parametrize("name", SUBJECTS)
def test_every_mutant_is_caught_and_its_place_is_said(name: str) -> None:
    subject = SUBJECTS[name]
    stages: Counter[str] = Counter()
    for mutant in mutants_of(placed(subject.program.module())):
        module = placed(subject.program.module())
        mutant.apply(module)
        caught = catch(subject, module)
        assert caught is not None, f"nobody notices: {mutant.name}"
        stages[caught.stage] += 1
        _require_place(caught, mutant.name)
    assert stages.total() >= FEWEST[name]
    # Tiles need not be computed to find nine out of ten.
    assert stages["data"] < stages.total() / 5


def _require_place(caught: Caught, mutant: str) -> None:
    if caught.stage == "data":
        return  # a fault of the kernel names its line, and wrong elements have none
    assert re.search(r"role (load|math)|ring \w+", caught.message), (mutant, caught)
    assert _PLACE.search(caught.message), (mutant, caught)
    subjects = ("ring ", "turn", "registers", "barrier", "lies in", "product", "a bound")
    assert any(subject in caught.message for subject in subjects), (mutant, caught)


def told(subject: Subject) -> str:
    """What the checks and the run say of a program that is wrong as a whole."""
    caught = catch(subject, placed(subject.program.module()))
    assert caught is not None and caught.stage != "data"
    return caught.message


def test_one_slot_is_too_few_where_a_product_runs_on() -> None:
    message = told(gemm(Gemm(columns=64, slots=1, late=True)))
    assert "every role that is left waits: load waits for phase 0 of empty[0] of ring ab" in message


def test_products_by_turns_without_their_turns() -> None:
    """Parity would let a replica take fills of the other one; on a device that hangs or not."""
    message = told(gemm(replace(TURNS, takes_turns=False)))
    assert re.search(r"role math 1: ring ab: waits for phase \d while it is in phase", message)
    assert "by parity it takes that for another one" in message


@pytest.mark.parametrize("seed", [None, 1, 2, 3])
def test_the_simulator_finds_missing_turns_too(seed: int | None) -> None:
    program = emitted(placed(replace(TURNS, takes_turns=False).module()))
    a, b = np.zeros((128, 448), BF16), np.zeros((448, 64), BF16)
    arguments = [a, b, np.zeros((128, 64), BF16), 128, 64, 448]
    with pytest.raises(KernelFault, match="of a slot of ring ab comes while the slot is in phase"):
        simulated(program, arguments, 1, seed)


@pytest.mark.parametrize("registers", [(40, 240), (56, 232), (24, 256), (40, 236), (16, 232)])
def test_grants_that_an_sm_does_not_have(registers: tuple[int, int]) -> None:
    message = told(gemm(Gemm(columns=64, registers=registers)))
    assert "registers" in message and "role " in message
