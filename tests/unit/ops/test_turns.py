"""Turns of replicas, and rings of which each replica takes its own fills, in the interpreter."""

from __future__ import annotations

import numpy as np
import pytest

from tests.unit.role_programs import located, parsed
from tilewright.interp.evaluate import run_kernel
from tilewright.ir.encoding import shared_tile
from tilewright.ir.levels import T2
from tilewright.ir.types import i32
from tilewright.ir.verify_level import verify_level
from tilewright.layout.build import shared_linear
from tilewright.support.errors import Deadlock, KernelFault, MalformedText
from tilewright.targets.nvidia.interpret import NVIDIA_INTERPRETATION

WAIT = '"ttg.turn_wait"() <{turns = "dots"}> : () -> ()'
PASS = '"ttg.turn_pass"() <{turns = "dots"}> : () -> ()'


def program(body: str, replicas: int = 2) -> str:
    """A role of some replicas that each runs `body` n times, `%i` and `%r` known."""
    return f"""
"builtin.module"() ({{
"tt.func"() <{{sym_name = "k", sym_visibility = "public",
  function_type = (!tt.ptr<i32>, i32) -> ()}}> ({{
^bb0(%out: !tt.ptr<i32>, %n: i32):
  %zero = "arith.constant"() <{{value = 0 : i32}}> : () -> i32
  %one = "arith.constant"() <{{value = 1 : i32}}> : () -> i32
  "tw.roles"() <{{roles = ["math"], warps = array<i32: 4>, replicas = array<i32: {replicas}>,
    registers = array<i32: 0>}}> ({{
  ^bb0(%r: i32):
    "scf.for"(%zero, %n, %one) ({{
    ^bb0(%i: i32):
      {body}
      "scf.yield"() : () -> ()
    }}) : (i32, i32, i32) -> ()
    "scf.yield"() : () -> ()
  }}) : () -> ()
  "tt.return"() : () -> ()
}}) : () -> ()
}}) : () -> ()
"""


# Writes the number of its replica to the place that a counter in memory says, and counts on.
NOTE = """
      %count = "tt.load"(%out) <{cache = 1 : i32, evict = 1 : i32, isVolatile = false,
        operandSegmentSizes = array<i32: 1, 0, 0>, boundaryCheck = array<i32>}>
        : (!tt.ptr<i32>) -> i32
      %next = "arith.addi"(%count, %one) : (i32, i32) -> i32
      %place = "tt.addptr"(%out, %next) : (!tt.ptr<i32>, i32) -> !tt.ptr<i32>
      "tt.store"(%place, %r) <{cache = 1 : i32, evict = 1 : i32, boundaryCheck = array<i32>}>
        : (!tt.ptr<i32>, i32) -> ()
      "tt.store"(%out, %next) <{cache = 1 : i32, evict = 1 : i32, boundaryCheck = array<i32>}>
        : (!tt.ptr<i32>, i32) -> ()
"""


def order(body: str, count: int, replicas: int = 2) -> list[int]:
    """The replicas in the order in which they came to NOTE."""
    module = located(parsed(program(body, replicas)))
    verify_level(module, T2)
    out = np.zeros(1 + count * replicas, np.int32)
    run_kernel(module, [out, count], (1,), rules=NVIDIA_INTERPRETATION)
    assert out[0] == count * replicas
    return out[1:].tolist()


@pytest.mark.parametrize("replicas", [1, 2, 3])
@pytest.mark.parametrize("count", [0, 1, 4])
def test_replicas_take_turns_and_the_first_begins(replicas: int, count: int) -> None:
    assert order(WAIT + NOTE + PASS, count, replicas) == list(range(replicas)) * count


def test_without_turns_a_replica_runs_on() -> None:
    assert order(NOTE, 3) == [0, 0, 0, 1, 1, 1]


def test_a_turn_that_is_never_passed_is_a_deadlock_that_says_who_waits() -> None:
    with pytest.raises(Deadlock, match="math 1 waits for its turn at dots"):
        order(WAIT + NOTE, 2)


def test_a_turn_that_is_waited_for_twice_is_a_deadlock() -> None:
    with pytest.raises(Deadlock, match="math 0 waits for its turn at dots; math 1 waits"):
        order(WAIT + WAIT + NOTE + PASS, 2)


@pytest.mark.parametrize("body", [PASS + NOTE, WAIT + NOTE + PASS + PASS])
def test_a_turn_that_a_replica_has_not_is_not_passed(body: str) -> None:
    with pytest.raises(KernelFault, match="replica 0 passes a turn at dots it has not"):
        order(body, 2)


SEEK = """
      %t = "ttg.local_alloc"() <{offset_bytes = 0 : i32}> : () -> TILE
      %ring = "ttg.ring"(%t) <{ring_name = "ab", producers = 1 : i32, consumers = 1 : i32}>
        : (TILE) -> !ttg.ring
      %s, %f = "ttg.ring_seek"(%ring, COUNT, %one, %i)
        : (!ttg.ring, i32, i32, i32) -> (i32, i32)
      %p = "tt.addptr"(%out, %i) : (!tt.ptr<i32>, i32) -> !tt.ptr<i32>
      %three = "arith.constant"() <{value = 1000 : i32}> : () -> i32
      %m = "arith.muli"(%f, %three) : (i32, i32) -> i32
      %both = "arith.addi"(%m, %s) : (i32, i32) -> i32
      "tt.store"(%p, %both) <{cache = 1 : i32, evict = 1 : i32, boundaryCheck = array<i32>}>
        : (!tt.ptr<i32>, i32) -> ()
"""


def seek(slots: int, count: str) -> str:
    """A program that stores 1000 * fill + slot of a seek from slot 1 of fill i, for each i."""
    tile = str(shared_tile(i32, shared_linear((1,), (0,)), slots))
    return program(SEEK.replace("TILE", tile).replace("COUNT", count), replicas=1)


@pytest.mark.parametrize("slots", [2, 3, 4])
@pytest.mark.parametrize("by", [0, 1, 2, 7])
def test_a_seek_counts_slots_and_fills(slots: int, by: int) -> None:
    source = seek(slots, "%by").replace(
        "  %one = ", f'  %by = "arith.constant"() <{{value = {by} : i32}}> : () -> i32\n  %one = '
    )
    out = np.zeros(4, np.int32)
    run_kernel(located(parsed(source)), [out, 4], (1,), rules=NVIDIA_INTERPRETATION)
    places = [i * slots + 1 + by for i in range(4)]
    assert out.tolist() == [1000 * (place // slots) + place % slots for place in places]


def test_a_seek_backwards_is_a_fault() -> None:
    source = seek(2, "%back").replace(
        "  %one = ", '  %back = "arith.constant"() <{value = -1 : i32}> : () -> i32\n  %one = '
    )
    with pytest.raises(KernelFault, match="a seek of ring ab by -1"):
        run_kernel(
            located(parsed(source)), [np.zeros(4, np.int32), 4], (1,), rules=NVIDIA_INTERPRETATION
        )


def test_a_seek_without_a_fill_is_refused() -> None:
    source = seek(2, "%one").replace("(%ring, %one, %one, %i)", "(%ring, %one, %one)")
    source = source.replace("(!ttg.ring, i32, i32, i32)", "(!ttg.ring, i32, i32)")
    with pytest.raises(MalformedText, match="slot and fill come and go together"):
        parsed(source)
