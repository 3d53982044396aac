"""schedule.partition.lifted_reads: what comes in front of a branch, behind which mask."""

from __future__ import annotations

import pytest

from tests.unit.schedule.test_global_barriers import HEAD, TAIL
from tilewright.ir.text import parse_module, print_module
from tilewright.ops.control_flow import IfOp
from tilewright.ops.creation.ir import constant_of
from tilewright.ops.dialects import tile_context
from tilewright.ops.function import FuncOp, find_kernel
from tilewright.ops.memory.ir import LoadOp
from tilewright.schedule.partition.lifted_reads import lift_reads

INTS = "!tt.ptr<i32>"
YIELD = '"scf.yield"() : () -> ()'


def read(name: str, at: str = "p", more: str = "") -> list[str]:
    """A number read at `at` elements behind %y, masked by `more`."""
    operands = f"%{name}_at{more and ', ' + more}"
    types = INTS + (", i1" if more else "")
    segments = f"<{{operandSegmentSizes = array<i32: 1, {int(bool(more))}, 0>}}>"
    return [
        f'%{name}_at = "tt.addptr"(%y, %{at}) : ({INTS}, i32) -> {INTS}',
        f'%{name} = "tt.load"({operands}) {segments} : ({types}) -> i32',
    ]


def branch(then: list[str], other: list[str], cond: str = "c") -> list[str]:
    return [f'"scf.if"(%{cond}) ({{', *then, YIELD, "}, {", *other, YIELD, "}) : (i1) -> ()"]


def lifted(lines: list[str]) -> FuncOp:
    """A kernel in front of whose branches all reads came that may."""
    start = '%p = "tt.get_program_id"() <{axis = 0 : i32}> : () -> i32'
    head = HEAD.replace("%y: !tt.ptr<f32>", f"%y: {INTS}")
    text = head.replace("!tt.ptr<f32>, !tt.ptr<f32>, !tt", f"!tt.ptr<f32>, {INTS}, !tt", 1)
    module = parse_module(text + "\n".join([start, *lines]) + TAIL, tile_context())
    kernel = find_kernel(module)
    lift_reads(kernel.body.block, {op for op in kernel.walk() if isinstance(op, LoadOp)})
    parse_module(print_module(module), tile_context()).verify()
    return kernel


def reads(kernel: FuncOp, *, in_front: bool) -> list[LoadOp]:
    found = [op for op in kernel.walk() if isinstance(op, LoadOp)]
    return [op for op in found if (op.parent is kernel.body.block) is in_front]


def test_the_first_side_is_read_where_the_condition_holds() -> None:
    kernel = lifted(branch(read("a"), []))
    (load,) = reads(kernel, in_front=True)
    (taken,) = (op for op in kernel.walk() if isinstance(op, IfOp))
    assert load.mask is taken.cond and load.other is not None and constant_of(load.other) == 0
    assert load.is_before_in_block(taken)


def test_the_other_side_is_read_where_it_does_not_and_inner_sides_where_both_hold() -> None:
    kernel = lifted(branch([], [*read("a"), *branch(read("b"), [], "c")]))
    outer, inner = reads(kernel, in_front=True)
    assert outer.mask is not None and outer.mask.owner.name == "arith.xori"
    assert inner.mask is not None and inner.mask.owner.name == "arith.andi"
    assert set(inner.mask.owner.operands) == {outer.mask, kernel.body.block.args[5]}


def test_a_mask_of_its_own_stays() -> None:
    (load,) = reads(lifted(branch(read("a", more="%c"), [])), in_front=True)
    assert load.mask is not None and load.mask.owner.name == "arith.andi"


def test_a_number_that_another_one_leads_to_follows_it() -> None:
    kernel = lifted(branch([*read("a"), *read("b", at="a")], []))
    first, second = reads(kernel, in_front=True)
    assert second.ptr.owner.operands[1] is first.result


def test_what_stands_behind_a_branch_comes_in_front_without_a_mask() -> None:
    (load,) = reads(lifted([*branch([], []), *read("a")]), in_front=True)
    assert load.mask is None and isinstance(load.next_op, IfOp)


STORE = '"tt.store"(%x, %v) : (!tt.ptr<f32>, f32) -> ()'
DIVISION = '%d = "arith.divsi"(%p, %{}) : (i32, i32) -> i32'
SEVEN = '%seven = "arith.constant"() <{value = 7 : i32}> : () -> i32'


LOOP = ['"scf.for"(%p, %n, %p) ({', "^bb0(%i: i32):", *read("a"), YIELD]
STAYING = {
    "behind a store": [STORE, *branch(read("a"), [])],
    "behind a store of its side": branch([STORE, *read("a")], []),
    "behind a branch that stores": [*branch([STORE], []), *read("a")],
    "at a quotient": branch([DIVISION.format("n"), *read("a", at="d")], []),
    "in a loop": [*LOOP, "}) : (i32, i32, i32) -> ()"],
}


@pytest.mark.parametrize("lines", STAYING.values(), ids=STAYING)
def test_what_may_not_be_read_before_stays(lines: list[str]) -> None:
    kernel = lifted(lines)
    loads = [op for op in kernel.walk() if isinstance(op, LoadOp)]
    assert loads and all(load.mask is None for load in loads)
    assert not [op for op in loads if isinstance(op.next_op, IfOp)]


def test_a_store_of_the_other_side_is_no_matter_and_a_division_by_seven_neither() -> None:
    of_seven = [SEVEN, DIVISION.format("seven"), *read("a", at="d")]
    kernel = lifted(branch([STORE], of_seven))
    assert len(reads(kernel, in_front=True)) == 1
