"""Control flow as edges, and the dataflow drivers, on small programs with made-up regions."""

from __future__ import annotations

from math import gcd

import pytest
from xdsl.dialects.builtin import IntegerAttr, i32
from xdsl.ir import Block, BlockArgument, Operation, OpResult, Region, SSAValue
from xdsl.irdl import (
    irdl_op_definition,
    opt_prop_def,
    var_operand_def,
    var_region_def,
    var_result_def,
)

from tilewright.analysis.dataflow import MAX_VISITS, StateFlow, ValueFlow, run
from tilewright.ir.op import TileOp, build
from tilewright.ir.regions import (
    OUTSIDE,
    ControlFlowOp,
    Edge,
    Trips,
    is_control_flow,
    loops_around,
    possible_edges,
    receivers_of,
    sources_of,
)
from tilewright.ops.control_flow import ConditionOp, ForOp, IfOp, WhileOp, YieldOp
from tilewright.ops.creation.ir import ConstantOp
from tilewright.support.errors import InternalError


@irdl_op_definition
class MarkOp(TileOp):
    """A place in a program, with a name; its results are made of its operands."""

    name = "test.mark"
    inputs = var_operand_def()
    outputs = var_result_def()
    label = opt_prop_def()


@irdl_op_definition
class RingOp(ControlFlowOp):
    """Regions one after the other, round and round; out from the end of any of them."""

    name = "test.ring"
    inputs = var_operand_def()
    outputs = var_result_def()
    parts = var_region_def("single_block")

    def is_loop(self) -> bool:
        """The regions run again and again."""
        return True

    def edges(self) -> tuple[Edge, ...]:
        """In at the first region, on to the next one, out of each."""
        count = len(self.regions)
        edges = [Edge(OUTSIDE, 0, self, 0, self.regions[0].block.args)]
        for index, region in enumerate(self.regions):
            following = (index + 1) % count
            end = region.block.last_op
            assert end is not None
            edges.append(Edge(index, following, end, 0, self.regions[following].block.args))
            edges.append(Edge(index, OUTSIDE, end, 0, self.results))
        return tuple(edges)


class Builder:
    """Appends ops to a block."""

    def __init__(self, num_arguments: int = 0) -> None:
        self.block = Block(arg_types=[i32] * num_arguments)

    def add(
        self,
        cls: type[Operation],
        operands: list[SSAValue] | None = None,
        num_results: int = 0,
        regions: list[Region] | None = None,
    ) -> Operation:
        """Append an op on i32 values."""
        op = build(cls, operands or [], [i32] * num_results, None, regions or [])
        self.block.add_op(op)
        return op

    def mark(self, label: str, *operands: SSAValue, num_results: int = 0) -> Operation:
        """Append a mark."""
        op = self.add(MarkOp, list(operands), num_results)
        op.attributes["label"] = IntegerAttr(0, i32)
        op.attributes[label] = IntegerAttr(0, i32)
        return op

    def constant(self, value: int) -> SSAValue:
        """Append a constant."""
        op = build(ConstantOp, [], [i32], {"value": IntegerAttr(value, i32)})
        self.block.add_op(op)
        return op.results[0]

    def end(self, *values: SSAValue) -> Region:
        """The block as a region that yields values."""
        self.add(YieldOp, list(values))
        return Region(self.block)


def label_of(op: Operation) -> str:
    return next((name for name in op.attributes if name != "label"), "")


def loop(out: Builder, bounds: list[SSAValue], initial: list[SSAValue], region: Region) -> ForOp:
    op = out.add(ForOp, [*bounds, *initial], len(initial), [region])
    assert isinstance(op, ForOp)
    return op


def body_of(num_carried: int) -> Builder:
    return Builder(1 + num_carried)


class Trace(StateFlow[frozenset[str]]):
    """The labels that may have been passed on some way to a point."""

    def __init__(self, *, is_backward: bool = False, kill: str = "") -> None:
        super().__init__(frozenset())
        self.is_backward = is_backward
        self.at: dict[str, frozenset[str]] = {}
        self.visits: dict[str, int] = {}
        self._kill = kill

    def step(self, op: Operation, state: frozenset[str]) -> frozenset[str]:
        label = label_of(op)
        if not label:
            return state
        self.visits[label] = self.visits.get(label, 0) + 1
        self.at[label] = state
        return frozenset((label,)) if label == self._kill else state | {label}

    def join(self, left: frozenset[str], right: frozenset[str]) -> frozenset[str]:
        return left | right


def traced(block: Block, *, is_backward: bool = False, kill: str = "") -> Trace:
    trace = Trace(is_backward=is_backward, kill=kill)
    run(trace, block)
    return trace


def shown(labels: frozenset[str]) -> str:
    return "".join(sorted(labels))


def for_program(bounds: tuple[int, int] | None = None) -> Block:
    """a; for { b; c }; d."""
    out = Builder(3)
    out.mark("a")
    low, high, step = out.block.args
    limits: list[SSAValue] = [low, high, step]
    if bounds is not None:
        limits = [out.constant(bounds[0]), out.constant(bounds[1]), step]
    body = body_of(0)
    body.mark("b")
    body.mark("c")
    loop(out, limits, [], body.end())
    out.mark("d")
    return out.block


def test_a_loop_sees_what_its_last_iteration_left():
    trace = traced(for_program(), kill="b")
    assert {k: shown(v) for k, v in trace.at.items()} == {"a": "", "b": "abc", "c": "b", "d": "abc"}


def test_a_loop_that_runs_leaves_what_its_body_leaves():
    assert shown(traced(for_program((0, 4)), kill="b").at["d"]) == "bc"
    assert shown(traced(for_program((4, 4)), kill="b").at["d"]) == "abc"


def test_backward_a_loop_sees_what_its_next_iteration_begins_with():
    trace = traced(for_program(), is_backward=True, kill="c")
    assert {k: shown(v) for k, v in trace.at.items()} == {"d": "", "c": "bcd", "b": "c", "a": "bcd"}


def branch_program(*, has_else: bool) -> Block:
    """a; if { b } else { c }; d."""
    out = Builder(1)
    out.mark("a")
    then, otherwise = Builder(), Builder()
    then.mark("b")
    otherwise.mark("c")
    out.add(IfOp, [out.block.args[0]], 0, [then.end(), otherwise.end() if has_else else Region()])
    out.mark("d")
    return out.block


@pytest.mark.parametrize(("has_else", "after"), [(True, "bc"), (False, "ab")])
def test_behind_a_branch_is_what_either_side_leaves(has_else: bool, after: str):
    class Last(Trace):
        def step(self, op: Operation, state: frozenset[str]) -> frozenset[str]:
            super().step(op, state)
            return frozenset((label_of(op),)) if label_of(op) else state

    trace = Last()
    run(trace, branch_program(has_else=has_else))
    assert shown(trace.at["d"]) == after


def test_backward_a_branch_is_entered_from_behind_it():
    trace = traced(branch_program(has_else=False), is_backward=True)
    assert {k: shown(v) for k, v in trace.at.items()} == {"d": "", "b": "d", "a": "bd"}


def while_program() -> Block:
    """a; while { t } do { b }; d."""
    out = Builder(2)
    out.mark("a")
    test, body = Builder(1), Builder(1)
    test.mark("t")
    test.add(ConditionOp, [out.block.args[1], test.block.args[0]])
    body.mark("b")
    region = body.end(body.block.args[0])
    out.add(WhileOp, [out.block.args[0]], 1, [Region(test.block), region])
    out.mark("d")
    return out.block


def test_the_test_of_a_loop_comes_before_its_body_and_after_it():
    trace = traced(while_program(), kill="t")
    assert {k: shown(v) for k, v in trace.at.items()} == {"a": "", "t": "abt", "b": "t", "d": "t"}


def ring_program(num_parts: int) -> tuple[Block, RingOp]:
    """a; ring { 0 } { 1 } …; d: each part hands on what it is given."""
    out = Builder(1)
    out.mark("a")
    regions: list[Region] = []
    for index in range(num_parts):
        part = Builder(1)
        part.mark(str(index))
        regions.append(part.end(part.block.args[0]))
    op = out.add(RingOp, [out.block.args[0]], 1, regions)
    out.mark("d")
    assert isinstance(op, RingOp)
    return out.block, op


def test_the_driver_follows_the_edges_of_any_op():
    block, _ = ring_program(3)
    trace = traced(block, kill="1")
    found = {k: shown(v) for k, v in trace.at.items()}
    assert found == {"a": "", "0": "12a", "1": "012a", "2": "1", "d": "012a"}
    backward = traced(block, is_backward=True, kill="1")
    assert {k: shown(v) for k, v in backward.at.items()} == {
        "d": "", "2": "01d", "1": "012d", "0": "1d", "a": "01d"
    }  # fmt: skip


def nest(depth: int) -> Block:
    """Loops in loops, with a mark before and behind the inner one of each."""
    out = Builder(3)
    bounds: list[SSAValue] = list(out.block.args)
    region: Region | None = None
    for level in range(depth):
        body = body_of(0)
        body.mark(f"in{level}")
        if region is not None:
            loop(body, bounds, [], region)
        body.mark(f"out{level}")
        region = body.end()
    assert region is not None
    loop(out, bounds, [], region)
    return out.block


@pytest.mark.parametrize("is_backward", [False, True])
def test_a_nest_takes_walks_that_grow_with_its_depth(is_backward: bool):
    for depth in (2, 8, 16):
        trace = traced(nest(depth), is_backward=is_backward)
        assert max(trace.visits.values()) <= 2 * depth
        everything = {f"{side}{level}" for level in range(depth) for side in ("in", "out")}
        assert trace.at["in0"] == everything


class Residues(ValueFlow[int]):
    """What numbers are a multiple of: 0 of everything; a mark adds its operands."""

    def unknown(self, value: SSAValue) -> int:
        return 1

    def meet(self, left: int, right: int) -> int:
        return gcd(left, right)

    def visit(self, op: Operation) -> None:
        if isinstance(op, ConstantOp):
            self.put(op.result, int(op.splat_value()))
        elif isinstance(op, MarkOp):
            total = 0
            for operand in op.operands:
                total = self.meet(total, self.of(operand))
            for result in op.results:
                self.put(result, total)


def test_what_a_loop_carries_is_what_all_iterations_agree_on():
    out = Builder(3)
    start, step = out.constant(48), out.constant(32)
    body = body_of(1)
    moved = body.mark("m", body.block.args[1], step, num_results=1)
    op = loop(out, list(out.block.args), [start], body.end(moved.results[0]))
    flow = Residues()
    run(flow, out.block)
    assert (flow.of(body.block.args[1]), flow.of(op.results[0])) == (16, 16)


def test_a_chain_of_carried_values_settles_whatever_its_length():
    """Each walk hands the weak fact one value further: more walks than any fixed number."""
    count = 7
    out = Builder(3)
    initial = [out.constant(64) for _ in range(count)]
    weak = out.constant(24)
    body = body_of(count)
    carried = list(body.block.args[1:])
    op = loop(out, list(out.block.args), initial, body.end(*carried[1:], weak))
    flow = Residues()
    run(flow, out.block)
    assert [flow.of(result) for result in op.results] == [8] * count


def test_facts_that_still_change_are_given_up():
    class Falling(Residues):
        def visit(self, op: Operation) -> None:
            if isinstance(op, MarkOp):
                self.put(op.results[0], max(1, self.of(op.operands[0]) // 2))
            else:
                super().visit(op)

    out = Builder(3)
    body = body_of(1)
    half = body.mark("m", body.block.args[1], num_results=1)
    op = loop(out, list(out.block.args), [out.constant(1 << 20)], body.end(half.results[0]))
    flow = Falling()
    run(flow, out.block)
    assert flow.of(op.results[0]) == 1


def test_an_inner_loop_is_walked_again_for_what_it_takes_from_outside():
    """The inner body uses a value that only the second walk of the outer one weakens."""
    out = Builder(3)
    bounds: list[SSAValue] = list(out.block.args)
    outer, inner = body_of(1), body_of(0)
    used = inner.mark("m", outer.block.args[1], num_results=1)
    loop(outer, bounds, [], inner.end())
    step = out.constant(6)
    moved = outer.mark("n", outer.block.args[1], step, num_results=1)
    loop(out, bounds, [out.constant(64)], outer.end(moved.results[0]))
    flow = Residues()
    run(flow, out.block)
    assert flow.of(used.results[0]) == 2


def test_a_flow_that_never_settles_names_its_values():
    class Endless(StateFlow[int]):
        def step(self, op: Operation, state: int) -> int:
            return state + 1

        def join(self, left: int, right: int) -> int:
            return max(left, right)

    out = Builder(4)
    body = body_of(1)
    body.block.args[1].name_hint = "total"
    bounds: list[SSAValue] = list(out.block.args[:3])
    loop(out, bounds, [out.block.args[3]], body.end(body.block.args[1]))
    with pytest.raises(InternalError, match=r"`total` of type i32 does not settle in scf\.for"):
        run(Endless(0), out.block)
    assert MAX_VISITS < 10_000


# --- the edges of an op, value by value ---


def test_values_come_from_what_every_edge_hands_on():
    out = Builder(4)
    bounds: list[SSAValue] = list(out.block.args[:3])
    body = body_of(1)
    op = loop(out, bounds, [out.block.args[3]], body.end(body.block.args[0]))
    counter, carried = body.block.args
    assert sources_of(op.results[0]) == [out.block.args[3], counter]
    assert sources_of(carried) == [out.block.args[3], counter]
    assert sources_of(counter) == []
    assert sources_of(out.block.args[3]) is None


def test_a_test_hands_on_to_the_body_and_out():
    block = while_program()
    op = next(op for op in block.ops if isinstance(op, WhileOp))
    tested, taken = (region.block.args[0] for region in op.regions)
    assert sources_of(op.results[0]) == [tested]
    assert sources_of(taken) == [tested]
    assert sources_of(tested) == [op.arguments[0], taken]
    (condition_use,) = (use for use in tested.uses)
    assert receivers_of(condition_use) == [taken, op.results[0]]


def test_a_use_by_another_op_hands_nothing_on():
    block, op = ring_program(2)
    first = op.regions[0].block.args[0]
    (use,) = first.uses
    assert receivers_of(use) == [op.regions[1].block.args[0], op.results[0]]
    mark = block.first_op
    assert mark is not None
    plain = Builder(1)
    plain.mark("x", plain.block.args[0])
    (use,) = plain.block.args[0].uses
    assert receivers_of(use) == []


def every_use_and_source(block: Block) -> None:
    """What sources and receivers say of each other, for every value of a block."""
    for op in block.walk():
        for value in op.operands:
            for use in value.uses:
                for receiver in receivers_of(use):
                    assert isinstance(receiver, OpResult | BlockArgument)
                    assert value in (sources_of(receiver) or [])


@pytest.mark.parametrize("program", [while_program, for_program, lambda: ring_program(4)[0]])
def test_receivers_have_what_they_receive_as_a_source(program: object):
    assert callable(program)
    block = program()
    assert isinstance(block, Block)
    every_use_and_source(block)


@pytest.mark.parametrize(
    ("bounds", "trips"),
    [
        ((0, 4, 1), Trips(4, 4)),
        ((0, 5, 2), Trips(3, 3)),
        ((4, 4, 1), Trips(0, 0)),
        ((5, 0, 3), Trips(0, 0)),
        ((0, 1, 0), Trips(1, None)),
    ],
)
def test_constant_bounds_say_how_often_a_loop_runs(bounds: tuple[int, int, int], trips: Trips):
    out = Builder()
    op = loop(out, [out.constant(bound) for bound in bounds], [], body_of(0).end())
    assert op.trips() == trips
    around = [e for e in possible_edges(op) if e.source is OUTSIDE and e.target is OUTSIDE]
    assert bool(around) == (trips.fewest == 0)


def test_only_regions_of_the_program_are_control_flow():
    block, ring = ring_program(1)
    assert [is_control_flow(op) for op in block.ops] == [False, True, False]
    mark = ring.regions[0].block.first_op
    assert mark is not None
    assert list(loops_around(mark)) == [ring]
    (branch,) = (op for op in branch_program(has_else=True).ops if isinstance(op, IfOp))
    inside = branch.true_region.block.first_op
    assert inside is not None
    assert list(loops_around(inside)) == []
