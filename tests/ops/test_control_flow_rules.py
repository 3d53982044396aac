"""What structured control flow demands of its regions, and that it is ours alone."""

from __future__ import annotations

from pathlib import Path

import pytest

import tilewright
from tilewright.ir.text import parse_module, print_module
from tilewright.ops.dialects import tile_context
from tilewright.support.errors import MalformedText

MODULE = """"builtin.module"() ({
  %0 = "arith.constant"() <{value = 1 : i32}> : () -> i32
  %1 = "arith.constant"() <{value = 1 : i64}> : () -> i64
  %2 = "arith.constant"() <{value = true}> : () -> i1
  %3 = "scf.for"(%0, %0, %0, %1) ({
  ^bb0(%4 : i32, %5 : i64):
    "scf.yield"(%5) : (i64) -> ()
  }) : (i32, i32, i32, i64) -> i64
  %6 = "scf.if"(%2) ({
    "scf.yield"(%3) : (i64) -> ()
  }, {
    "scf.yield"(%1) : (i64) -> ()
  }) : (i1) -> i64
  %7 = "scf.while"(%1) ({
  ^bb1(%8 : i64):
    "scf.condition"(%2, %0) : (i1, i32) -> ()
  }, {
  ^bb2(%9 : i32):
    "scf.yield"(%1) : (i64) -> ()
  }) : (i64) -> i32
}) : () -> ()
"""
WRONG = {
    "bounds": ('"scf.for"(%0, %0, %0, %1)', '"scf.for"(%0, %1, %0, %1)', "bounds"),
    "body arguments": ("%4 : i32, %5", "%4 : i64, %5", "arguments of the body"),
    "loop yields": ('"scf.yield"(%5) : (i64)', '"scf.yield"(%4) : (i32)', "values yielded"),
    "if yields": ('"scf.yield"(%3) : (i64)', '"scf.yield"(%0) : (i32)', "values yielded"),
    "test arguments": ("%8 : i64", "%8 : i32", "arguments of the test"),
    "handed on": ("(%2, %0) : (i1, i32)", "(%2, %1) : (i1, i64)", "values handed on"),
    "while body": ("%9 : i32", "%9 : i64", "arguments of the body"),
}


def test_control_flow_is_read_back_as_it_was_written() -> None:
    module = parse_module(MODULE, tile_context())
    assert print_module(parse_module(print_module(module), tile_context())) == print_module(module)


@pytest.mark.parametrize("case", WRONG)
def test_regions_that_do_not_fit_are_refused(case: str) -> None:
    old, new, says = WRONG[case]
    text = MODULE.replace(old, new, 1)
    if case == "bounds":
        text = text.replace("(i32, i32, i32, i64) -> i64", "(i32, i64, i32, i64) -> i64")
    assert text != MODULE
    with pytest.raises(MalformedText, match=says):
        parse_module(text, tile_context())


def test_a_region_with_results_ends_in_a_yield() -> None:
    text = MODULE.replace('    "scf.yield"(%1) : (i64) -> ()\n  }) : (i1)', "  }) : (i1)")
    with pytest.raises(MalformedText, match=r"a region ends without scf\.yield"):
        parse_module(text, tile_context())


def test_a_test_region_ends_in_a_condition() -> None:
    text = MODULE.replace('"scf.condition"(%2, %0) : (i1, i32)', '"scf.yield"(%0) : (i32)')
    with pytest.raises(MalformedText, match=r"the first region ends without scf\.condition"):
        parse_module(text, tile_context())


def test_no_module_uses_the_classes_of_xdsl() -> None:
    root = Path(tilewright.__file__).parent
    users = [p for p in root.rglob("*.py") if "xdsl.dialects.scf" in p.read_text()]
    users += [p for p in root.rglob("*.py") if "from xdsl.dialects import scf" in p.read_text()]
    assert users == []
