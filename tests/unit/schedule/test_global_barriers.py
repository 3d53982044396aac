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
from tilewright.schedule.global_barriers import (
    BarrierWalk,
    GlobalAccess,
    global_accesses,
    touches_of,
)
from tilewright.schedule.met_places import met_places

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
BINARY = "(i32, i32) -> i32"


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
    kernel = find_kernel(module)
    walk = BarrierWalk(met_places(touches_of(kernel)))
    for op in kernel.body.block.ops:
        accesses = tuple(map(walk.placed, global_accesses(op)))
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
    walk = BarrierWalk()
    run(walk, find_kernel(module_of(lines)).body.block)
    assert len(walk.state) == 2 and walk.count == 0


def test_a_store_behind_many_loads_waits_once() -> None:
    lines = [pointer("q", "x")]
    for n in range(100):
        lines += [pointer(f"p{n}", "x"), load(f"l{n}", f"p{n}")]
    kernel = find_kernel(module_of([*lines, store("q"), store("q")]))
    # A scalar pointer is in every thread: the second store may be by another one.
    assert global_barriers.insert_global_barriers(kernel) == 2


@pytest.mark.parametrize(
    ("of_load", "of_store", "count"), [("n", "n", 1), ("n", "m", 0), ("m", "n", 0)]
)
def test_a_scalar_that_all_threads_load_is_stored_behind_them(
    of_load: str, of_store: str, count: int
) -> None:
    lines = [
        f'%m = "arith.addi"(%n, %n) <{{overflowFlags = #arith.overflow<none>}}> : {BINARY}',
        f'%p = "tt.addptr"(%x, %{of_load}) : ({P}, i32) -> {P}',
        f'%q = "tt.addptr"(%y, %{of_store}) : ({P}, i32) -> {P}',
        load("l", "p"),
        store("q"),
    ]
    kernel = find_kernel(module_of(lines))
    assert global_barriers.insert_global_barriers(kernel) == count


def test_one_thread_stores_a_scalar_through_both_arguments() -> None:
    lines = [
        f'%p = "tt.addptr"(%x, %n) : ({P}, i32) -> {P}',
        f'%q = "tt.addptr"(%y, %n) : ({P}, i32) -> {P}',
        store("p"),
        store("q"),
    ]
    assert global_barriers.insert_global_barriers(find_kernel(module_of(lines))) == 0


def test_places_are_the_same_in_any_order_of_their_sums() -> None:
    lines = [
        f'%i = "arith.addi"(%n, %m) <{{overflowFlags = #arith.overflow<none>}}> : {BINARY}',
        f'%j = "arith.addi"(%m, %n) <{{overflowFlags = #arith.overflow<none>}}> : {BINARY}',
        f'%p = "tt.addptr"(%x, %i) : ({P}, i32) -> {P}',
        f'%q = "tt.addptr"(%y, %j) : ({P}, i32) -> {P}',
        load("l", "p"),
        store("q"),
    ]
    more = '%m = "tt.get_program_id"() <{axis = 0 : i32}> : () -> i32'
    kernel = find_kernel(module_of([more, *lines]))
    assert global_barriers.insert_global_barriers(kernel) == 1


@pytest.mark.parametrize(
    ("of_load", "of_store", "count"),
    [("i", "n", 1), ("i", "m", 1), ("n", "n", 1), ("n", "m", 0)],
)
def test_what_moves_along_a_loop_may_meet_what_is_stored_at_any_place(
    of_load: str, of_store: str, count: int
) -> None:
    lines = [
        f'%m = "arith.addi"(%n, %n) <{{overflowFlags = #arith.overflow<none>}}> : {BINARY}',
        '%zero = "arith.constant"() <{value = 0 : i32}> : () -> i32',
        '%one = "arith.constant"() <{value = 1 : i32}> : () -> i32',
        '"scf.for"(%zero, %n, %one) ({',
        "^bb0(%i: i32):",
        f'%p = "tt.addptr"(%x, %{of_load}) : ({P}, i32) -> {P}',
        load("l", "p"),
        '"scf.yield"() : () -> ()',
        "}) : (i32, i32, i32) -> ()",
        f'%q = "tt.addptr"(%y, %{of_store}) : ({P}, i32) -> {P}',
        store("q"),
    ]
    assert global_barriers.insert_global_barriers(find_kernel(module_of(lines))) == count
