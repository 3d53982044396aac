"""Waits that name their ring: the simulator knows the phase that they mean, not just its parity.

Two consumers take turns at one ring, a tile of several fills each. A consumer that does not wait
for its turn waits for a phase that is still far off, and passes when another one of the same
parity ends.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

from tests.unit.interp.simt.programs import SHARED, validated
from tilewright.interp.simt.simulate import simulate
from tilewright.support.errors import KernelFault, MalformedText

SLOTS, TILE, TILES = 2, 4, 6
FILLS = TILE * TILES
VALUES, FULL, EMPTY, TURN = 0, 64, 128, 192


@dataclass(frozen=True)
class PingPong:
    """A correct program by default; each field can spoil it."""

    takes_turns: bool = True
    names_ring: bool = True
    first_of_producer: int = -1
    parity: str = "and i32 %{tag}phase, 1"


def at(name: str, base: int, index: str, size: int = 8) -> str:
    return f"""  %{name}o = mul i32 {index}, {size}
  %{name}b = add i32 %{name}o, {base}
  %{name} = getelementptr i8, ptr addrspace(3) @shared, i32 %{name}b
"""


def wait(program: PingPong, tag: str, barrier: str, ring: bool = True) -> str:
    """Wait at a barrier for phase `%{tag}phase`."""
    call = "call i1 @llvm.nvvm.mbarrier.try.wait.parity.scope.cta.space.cta"
    named = ", !tw.ring !0" if ring and program.names_ring else ""
    return f"""  %{tag}parity = {program.parity.format(tag=tag)}
  br label %{tag}again
{tag}again:
  %{tag}ok = {call}(ptr addrspace(3) {barrier}, i32 %{tag}parity){named}
  br i1 %{tag}ok, label %{tag}done, label %{tag}again
{tag}done:
"""


def arrive(name: str, barrier: str) -> str:
    return f"  %{name} = call i64 @llvm.nvvm.mbarrier.arrive.shared(ptr addrspace(3) {barrier})\n"


def producer(program: PingPong) -> str:
    return f"""producer:
  br label %fill
fill:
  %pc = phi i32 [0, %producer], [%pnext, %pwdone]
  %ps = urem i32 %pc, {SLOTS}
  %pround = udiv i32 %pc, {SLOTS}
  %pwphase = add i32 %pround, {program.first_of_producer}
{at("pempty", EMPTY, "%ps")}{at("pfull", FULL, "%ps")}{at("pvalue", VALUES, "%ps", 4)}\
{wait(program, "pw", "%pempty")}  store i32 %pc, ptr addrspace(3) %pvalue
{arrive("pstate", "%pfull")}  %pnext = add i32 %pc, 1
  %pmore = icmp ult i32 %pnext, {FILLS}
  br i1 %pmore, label %fill, label %end
"""


def consumer(program: PingPong) -> str:
    turn = wait(program, "tw", "%mine", ring=False) if program.takes_turns else ""
    tile = "twdone" if program.takes_turns else "tile"
    return f"""consumer:
  %me = sub i32 %warp, 1
  %other = sub i32 1, %me
{at("mine", TURN, "%me")}{at("theirs", TURN, "%other")}  br label %tile
tile:
  %t = phi i32 [%me, %consumer], [%tnext, %passed]
  %half = lshr i32 %t, 1
  %before = sub i32 %half, 1
  %twphase = add i32 %before, %me
  %first = mul i32 %t, {TILE}
{turn}  br label %take
take:
  %i = phi i32 [0, %{tile}], [%inext, %cwdone]
  %c = add i32 %first, %i
  %s = urem i32 %c, {SLOTS}
  %cwphase = udiv i32 %c, {SLOTS}
{at("cfull", FULL, "%s")}{at("cempty", EMPTY, "%s")}{at("cvalue", VALUES, "%s", 4)}\
{wait(program, "cw", "%cfull")}  %value = load i32, ptr addrspace(3) %cvalue
  %place = getelementptr i32, ptr addrspace(1) %out, i32 %c
  store i32 %value, ptr addrspace(1) %place
{arrive("cstate", "%cempty")}  %inext = add i32 %i, 1
  %more = icmp ult i32 %inext, {TILE}
  br i1 %more, label %take, label %passed
passed:
{arrive("tstate", "%theirs")}  %tnext = add i32 %t, 2
  %again = icmp ult i32 %tnext, {TILES}
  br i1 %again, label %tile, label %end
"""


def text(program: PingPong) -> str:
    places = [base + 8 * i for base in (FULL, EMPTY, TURN) for i in range(2)]
    inits = "".join(
        f"  %bar{place} = getelementptr i8, ptr addrspace(3) @shared, i32 {place}\n"
        f"  call void @llvm.nvvm.mbarrier.init.shared(ptr addrspace(3) %bar{place}, i32 1)\n"
        for place in places
    )
    return f"""{SHARED}define ptx_kernel void @k(ptr addrspace(1) %out) {{
entry:
  %tid = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %warp = lshr i32 %tid, 5
  %lane = and i32 %tid, 31
  %zero = icmp eq i32 %tid, 0
  br i1 %zero, label %init, label %ready
init:
{inits}  br label %ready
ready:
  call void @llvm.nvvm.barrier.cta.sync.aligned.all(i32 0)
  %acts = icmp eq i32 %lane, 0
  br i1 %acts, label %roles, label %end
roles:
  %loads = icmp eq i32 %warp, 0
  br i1 %loads, label %producer, label %consumer
{producer(program)}{consumer(program)}end:
  ret void
}}

!0 = !{{!"k"}}
"""


def run(program: PingPong, seed: int | None = None) -> np.ndarray:
    out = np.full(FILLS, -1, np.int32)
    simulate(validated(text(program)), "k", (1, 1, 1), 96, [out], 256, seed=seed)
    return out


@pytest.mark.parametrize("seed", [None, 1, 2, 3, 4])
def test_consumers_that_take_turns_get_every_fill(seed: int | None) -> None:
    np.testing.assert_array_equal(run(PingPong(), seed), np.arange(FILLS))


@pytest.mark.parametrize("seed", [None, 1, 2, 3, 4])
def test_a_wait_that_is_two_phases_off_is_a_fault(seed: int | None) -> None:
    with pytest.raises(KernelFault, match="of a slot of ring k comes while the slot is in phase"):
        run(PingPong(takes_turns=False), seed)


def test_parity_alone_lets_it_pass_and_shows_what_comes_of_it() -> None:
    with pytest.raises(KernelFault, match="more threads arrive at the mbarrier"):
        run(PingPong(takes_turns=False, names_ring=False))


def test_a_producer_that_waits_for_the_wrong_phase_first_is_a_fault() -> None:
    with pytest.raises(KernelFault, match=r"phase -2 of a slot of ring k comes .* in phase 0"):
        run(PingPong(first_of_producer=-2))


def test_a_named_wait_takes_its_parity_off_a_counter() -> None:
    with pytest.raises(MalformedText, match="off a counter of phases, by `and i32 %phase, 1`"):
        run(PingPong(parity="xor i32 %{tag}phase, 1"))


def test_a_wait_names_a_ring_that_there_is() -> None:
    with pytest.raises(MalformedText, match="!0 names no ring"):
        simulate(
            text(PingPong()).replace('!0 = !{!"k"}', "!0 = !{}"),
            "k",
            (1, 1, 1),
            96,
            [np.zeros(FILLS, np.int32)],
            256,
        )
