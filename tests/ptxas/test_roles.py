"""What ptxas makes of roles: their registers, their products unserialized, copies without loops."""

from __future__ import annotations

import re

import pytest

from tests.roles.attention import Attention
from tests.roles.gemm import Gemm
from tests.roles.running import emitted, placed
from tilewright.machine.gpus import SM_90A
from tilewright.targets.nvidia.assembler import Assembled, assemble_ptx, disassemble_cubin
from tilewright.targets.nvidia.ptx import to_ptx

pytestmark = pytest.mark.ptxas

GEMMS = {
    "two groups": (Gemm(), 4),
    "one tile a program": (Gemm(persistent=False), 4),
    "late": (Gemm(late=True), 4),
    "by turns": (Gemm(columns=128, slots=6, split="tiles", late=True), 8),
    "three groups": (Gemm(rows=192, columns=128, replicas=3, registers=(32, 160)), 4),
}


def assembled(program: Gemm | Attention) -> Assembled:
    """What ptxas makes of a program."""
    return assemble_ptx(to_ptx(emitted(placed(program.module())).text, SM_90A), "sm_90a")


@pytest.mark.parametrize("name", GEMMS)
def test_nothing_spills_and_nothing_is_serialized(name: str) -> None:
    """setmaxnreg is heard (no C7508), and products run on (no C7510 to C7518)."""
    made = assembled(GEMMS[name][0])
    assert not made.resources.has_spills
    assert [str(message) for message in made.messages] == []
    sizes = {"three groups": 128}
    assert made.resources.registers == sizes.get(name, 168)
    assert made.ptx.count("setmaxnreg") == 2


@pytest.mark.parametrize("name", GEMMS)
def test_one_thread_starts_the_copies_and_products_follow_each_other(name: str) -> None:
    program, products = GEMMS[name]
    sass = disassemble_cubin(assembled(program).cubin)
    assert sass is not None, "`make ptxas-test` installs a disassembler"
    copying, multiplying = shortest_loop(sass, "UTMALDG"), shortest_loop(sass, "HGMMA")
    assert count(copying, "UTMALDG") == 1 + program.columns // 64
    assert count(multiplying, "HGMMA") == products
    # Who starts a copy or an arrival is known: no loop over lanes, no vote, no uniform register
    # that is read out of a lane's.
    for what in ("BRA.U.ANY", "ELECT", "WARPSYNC", "R2UR", "VOTE"):
        assert count(copying, what) == count(multiplying, what) == 0


def count(lines: list[str], what: str) -> int:
    return sum(what in line for line in lines)


def shortest_loop(sass: str, what: str) -> list[str]:
    """The loop around an instruction; the code of waits that go on lies apart and jumps back."""
    lines = [re.sub(r"/\*.*?\*/", "", line).strip() for line in sass.splitlines()]
    starts = {m[1]: at for at, line in enumerate(lines) if (m := re.match(r"\.(L_x_\d+):", line))}
    bodies: list[list[str]] = []
    for at, line in enumerate(lines):
        jump = re.search(r"BRA.*`\(\.(L_x_\d+)\)", line)
        if jump and starts.get(jump[1], at) < at:
            bodies.append(lines[starts[jump[1]] : at])
    return min((body for body in bodies if count(body, what)), key=len)


ATTENTIONS = {
    "straight": Attention(),
    "turns": Attention(turns=True),
    "ahead": Attention(order="ahead"),
    "three groups by turns": Attention(replicas=3, registers=(32, 160), turns=True),
}


@pytest.mark.parametrize("name", ATTENTIONS)
def test_attention_spills_nothing_and_its_products_run_on(name: str) -> None:
    made = assembled(ATTENTIONS[name])
    assert not made.resources.has_spills
    assert [str(message) for message in made.messages] == []


@pytest.mark.parametrize("name", ATTENTIONS)
def test_a_turn_is_passed_before_the_softmax(name: str) -> None:
    """Sixteen products and one exponential a score, and none of them before the next turn."""
    program = ATTENTIONS[name]
    sass = disassemble_cubin(assembled(program).cubin)
    assert sass is not None, "`make ptxas-test` installs a disassembler"
    loop = shortest_loop(sass, "MUFU.EX2")
    assert count(loop, "HGMMA") == 16
    assert count(loop, "MUFU.EX2") == 66  # of 64 scores and two rows
    assert count(loop, "SHFL") == 4  # maxima alone: lanes keep their sums
    for what in ("R2UR", "WARPSYNC", "VOTE", "STL", "LDL"):
        assert count(loop, what) == 0
    if program.turns:
        (passed,) = [at for at, line in enumerate(loop) if "BAR.ARV" in line]
        assert count(loop[:passed], "MUFU.EX2") == 0
