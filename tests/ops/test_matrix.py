"""Every registered op × every facet that the interpreter and the text form need."""

from __future__ import annotations

import pytest
from xdsl.ir import Operation
from xdsl.traits import IsTerminator

from tests.ops.examples import ALL_OPS, EXAMPLES, module_text
from tilewright.interp.evaluate import prepare_kernel
from tilewright.ir.levels import C2, T0
from tilewright.ir.text import parse_module, print_module
from tilewright.ir.verify_level import verify_level
from tilewright.ops.dialects import TILE_OPS, make_dialects, tile_context
from tilewright.support.errors import InternalError
from tilewright.targets.cpu.interpret import CPU_INTERPRETATION
from tilewright.targets.cpu.ops import CPU_OPS

NOT_EVALUATED = {
    "tt.func": "a function is entered, not evaluated",
}

every_op = pytest.mark.parametrize("op", ALL_OPS, ids=lambda op: op.name)


def context():
    return tile_context(tuple(make_dialects(CPU_OPS, ())))


@every_op
def test_op_has_a_docstring(op: type[Operation]) -> None:
    assert (op.__doc__ or "").strip().endswith((".", ")"))


@every_op
def test_op_has_an_example(op: type[Operation]) -> None:
    assert op.name in EXAMPLES, f"add {op.name} to tests/ops/examples.py"


def test_examples_name_registered_ops_only() -> None:
    assert set(EXAMPLES) == {op.name for op in ALL_OPS}


@every_op
def test_op_prints_and_parses_to_the_same_text(op: type[Operation]) -> None:
    module = parse_module(module_text(op.name), context())
    assert any(isinstance(found, op) for found in module.walk())
    for locations in (False, True):
        text = print_module(module, locations=locations)
        again = parse_module(text, context())
        assert print_module(again, locations=locations) == text
    assert parse_module(text, context()).is_structurally_equivalent(module)


@every_op
def test_op_keeps_its_location_through_text(op: type[Operation]) -> None:
    module = parse_module(module_text(op.name), context())
    again = parse_module(print_module(module, locations=True), context())
    before = [found.location for found in module.walk()]
    assert [found.location for found in again.walk()] == before


@every_op
def test_op_can_be_interpreted(op: type[Operation]) -> None:
    if op.name in NOT_EVALUATED or op.has_trait(IsTerminator):
        assert not CPU_INTERPRETATION.covers(op)
        return
    assert CPU_INTERPRETATION.covers(op)


@every_op
def test_op_prepares_for_interpretation(op: type[Operation]) -> None:
    module = parse_module(module_text(op.name), context())
    if op.name == "tt.call":
        with pytest.raises(InternalError, match="no function"):
            prepare_kernel(module, rules=CPU_INTERPRETATION)
        return
    assert prepare_kernel(module, rules=CPU_INTERPRETATION).num_slots >= 0


@every_op
def test_op_is_legal_at_its_level(op: type[Operation]) -> None:
    module = parse_module(module_text(op.name), context())
    verify_level(module, T0 if op in TILE_OPS else C2)
