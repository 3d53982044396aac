"""schedule.global_barriers: what is pending is kept by groups, and decides as pair by pair."""

from __future__ import annotations

import random
from collections.abc import Sequence

import pytest
from xdsl.dialects.builtin import ModuleOp

from tilewright.analysis.dataflow import run
from tilewright.ir.text import parse_module
from tilewright.ops.dialects import tile_context
from tilewright.ops.function import find_kernel
from tilewright.schedule import global_barriers
from tilewright.schedule.global_barriers import GlobalAccess, global_accesses

ARGUMENTS = ("x", "y", "z")
HEAD = """"builtin.module"() ({
  "tt.func"() <{sym_name = "k", function_type = (T, T, T, i32, f32, i1) -> ()}> ({
  ^bb0(%x: T, %y: T, %z: T, %n: i32, %v: f32, %c: i1):
""".replace("T", "!tt.ptr<f32>")
TAIL = """
    "tt.return"() : () -> ()
  }) : () -> ()
}) : () -> ()
"""
P = "!tt.ptr<f32>"


def pointer(name: str, of: str) -> str:
    if of == "any":
        return f'%{name} = "arith.select"(%c, %x, %y) : (i1, {P}, {P}) -> {P}'
    return f'%{name} = "tt.addptr"(%{of}, %n) : ({P}, i32) -> {P}'


def load(name: str, at: str) -> str:
    segments = "<{operandSegmentSizes = array<i32: 1, 0, 0>}>"
    return f'%{name} = "tt.load"(%{at}) {segments} : ({P}) -> f32'


def store(at: str) -> str:
    return f'"tt.store"(%{at}, %v) : ({P}, f32) -> ()'


def module_of(lines: Sequence[str]) -> ModuleOp:
    return parse_module(HEAD + "\n".join(lines) + TAIL, tile_context())


def pair_by_pair(module: ModuleOp) -> int:
    """How many barriers a straight line needs, each access held against each before it."""
    pending: list[GlobalAccess] = []
    count = 0
    for op in find_kernel(module).body.block.ops:
        accesses = global_accesses(op)
        if any(one.conflicts({two.group(): two.pointers}) for one in accesses for two in pending):
            count, pending = count + 1, []
        pending += accesses
    return count


@pytest.mark.parametrize("seed", range(40))
def test_groups_decide_as_pairs_do(seed: int) -> None:
    rng = random.Random(seed)
    lines = [pointer(f"p{n}", rng.choice((*ARGUMENTS, "any"))) for n in range(6)]
    for n in range(rng.randrange(2, 40)):
        at = f"p{rng.randrange(6)}"
        lines.append(store(at) if rng.random() < 0.3 else load(f"l{n}", at))
    expected = pair_by_pair(module_of(lines))
    module = module_of(lines)
    assert global_barriers.insert_global_barriers(find_kernel(module)) == expected
    placed = [op for op in module.walk() if op.name == "ttg.barrier"]
    assert len(placed) == expected


def test_what_is_pending_does_not_grow_with_the_accesses() -> None:
    lines = [pointer("q", "y")]
    for n in range(300):
        lines += [pointer(f"p{n}", "x"), load(f"l{n}", f"p{n}"), load(f"m{n}", "q")]
    walk = global_barriers.BarrierWalk()
    run(walk, find_kernel(module_of(lines)).body.block)
    assert len(walk.state) == 2 and walk.count == 0


def test_a_store_behind_many_loads_waits_once() -> None:
    lines = [pointer("q", "x")]
    for n in range(100):
        lines += [pointer(f"p{n}", "x"), load(f"l{n}", f"p{n}")]
    kernel = find_kernel(module_of([*lines, store("q"), store("q")]))
    # A scalar pointer is in every thread: the second store may be by another one.
    assert global_barriers.insert_global_barriers(kernel) == 2
