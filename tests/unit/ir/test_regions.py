"""ir.regions: what control flow hands on, as phis, and its removal; ops.carried_values."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Operation, SSAValue

from tests.equivalence.other_control_flow import RepeatOp
from tilewright.ir.op import build
from tilewright.ir.regions import ControlFlowOp, phis_of, without_phis
from tilewright.ir.text import parse_module
from tilewright.ir.types import i32
from tilewright.ops.carried_values import carry
from tilewright.ops.dialects import tile_context
from tilewright.ops.elementwise.ir import ELEMENTWISE

HEAD = """
"builtin.module"() ({
  "tt.func"() <{sym_name = "k", function_type = (i32, i1) -> ()}> ({
  ^bb0(%n: i32, %c: i1):
    %zero = "arith.constant"() <{value = 0 : i32}> : () -> i32
    %one = "arith.constant"() <{value = 1 : i32}> : () -> i32
"""
TAIL = """
    "tt.print"(%r) <{prefix = "r", hex = false, isSigned = array<i32: 1>}> : (i32) -> ()
    "tt.return"() : () -> ()
  }) : () -> ()
}) : () -> ()
"""
FOR = """
    %q, %r = "scf.for"(%zero, %n, %one, %zero, %n) ({
    ^bb1(%i: i32, %a: i32, %b: i32):
      %next = "arith.addi"(%b, %i) : (i32, i32) -> i32
      "scf.yield"(%a, %next) : (i32, i32) -> ()
    }) : (i32, i32, i32, i32, i32) -> (i32, i32)
"""
WHILE = """
    %r = "scf.while"(%n, %one) ({
    ^bb1(%a: i32, %b: i32):
      "scf.condition"(%c, %a) : (i1, i32) -> ()
    }, {
    ^bb2(%d: i32):
      "scf.yield"(%d, %one) : (i32, i32) -> ()
    }) : (i32, i32) -> i32
"""
REPEAT = """
    %r = "REPEAT"(%n) <{times = 3 : i32}> ({
    ^bb1(%a: i32, %i: i32):
      %next = "arith.addi"(%a, %i) : (i32, i32) -> i32
      "scf.yield"(%next) : (i32) -> ()
    }) : (i32) -> i32
""".replace("REPEAT", RepeatOp.name)
IF = """
    %q, %r = "scf.if"(%c) ({
      "scf.yield"(%zero, %one) : (i32, i32) -> ()
    }, {
      "scf.yield"(%n, %n) : (i32, i32) -> ()
    }) : (i1) -> (i32, i32)
"""


def of(text: str) -> tuple[ModuleOp, ControlFlowOp]:
    module = parse_module(HEAD + text + TAIL, tile_context())
    (op,) = [op for op in module.walk() if isinstance(op, ControlFlowOp)]
    return module, op


def shown(op: ControlFlowOp) -> list[tuple[list[str], list[str]]]:
    """The phis of an op as names: of what is handed on, and of what it is then."""
    return [
        ([v.name_hint or "" for v in phi.sources()], [v.name_hint or "" for v in phi.values])
        for phi in phis_of(op)
    ]


def test_a_for_hands_on_each_carried_value_from_outside_and_from_its_end() -> None:
    _, op = of(FOR)
    assert shown(op) == [(["zero", "a"], ["a", "q"]), (["n", "next"], ["b", "r"])]


def test_a_while_hands_on_other_values_to_its_test_than_out_of_it() -> None:
    _, op = of(WHILE)
    assert shown(op) == [(["n", "d"], ["a"]), (["one", "one"], ["b"]), (["a"], ["d", "r"])]


def test_an_if_hands_on_one_value_of_each_side() -> None:
    _, op = of(IF)
    assert shown(op) == [(["zero", "n"], ["q"]), (["one", "n"], ["r"])]


def test_a_plug_ins_loop_has_phis_wherever_its_operands_and_arguments_stand() -> None:
    _, op = of(REPEAT)
    assert shown(op) == [(["n", "next"], ["a", "r"])]


def test_a_value_that_is_dropped_goes_from_every_op_that_has_it() -> None:
    module, op = of(FOR)
    unused, _ = phis_of(op)
    first = op.regions[0].block.args[1]
    first.replace_all_uses_with(op.operands[0])
    smaller = without_phis(op, [unused])
    module.verify()
    assert isinstance(smaller, ControlFlowOp)
    assert shown(smaller) == [(["n", "next"], ["b", "r"])]


def _counted(op: ControlFlowOp) -> Sequence[SSAValue]:
    """Carry a number that goes up by 1 in every region."""
    one = op.prev_op
    while one is not None and one.results[0].name_hint != "one":
        one = one.prev_op
    assert one is not None

    def through(block: Block, values: Sequence[SSAValue]) -> list[SSAValue]:
        (value,) = values
        add = build(ELEMENTWISE["arith.addi"], [value, one.results[0]], [i32])
        assert block.last_op is not None
        block.insert_op_before(add, block.last_op)
        return [add.results[0]]

    return carry(op, [one.results[0]], through)


def test_every_control_flow_op_carries_more_values_through_all_its_regions() -> None:
    for text, regions in ((FOR, 1), (WHILE, 2), (IF, 2), (REPEAT, 1)):
        module, op = of(text)
        (result,) = _counted(op)
        module.verify()
        new = result.owner
        assert isinstance(new, ControlFlowOp) and list(new.results)[-1] is result
        added = [inner for inner in new.walk() if _adds_one(inner)]
        assert len(added) == regions
        (phi,) = [phi for phi in phis_of(new) if result in phi.values]
        ends = {v for phi in phis_of(new) for v in phi.sources()}
        assert added[-1].results[0] in ends
        assert phi in phis_of(new)[-2:]


def _adds_one(op: Operation) -> bool:
    return op.name == "arith.addi" and op.operands[1].name_hint == "one"
