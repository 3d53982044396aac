"""The text of a schedule: what is written is what is read back, alone and as an attribute."""

from __future__ import annotations

import pytest
from hypothesis import given, settings

from tests.unit import schedule_texts as texts
from tests.unit.schedule_texts import schedules
from tilewright.compiler.named_passes import run_passes_on_text
from tilewright.ir.schedule import Anchor, Place, Schedule
from tilewright.ir.schedule_attributes import SCHEDULE, ScheduleAttr, schedule_of
from tilewright.ir.schedule_text import parse_schedule
from tilewright.ir.text import parse_module, print_module
from tilewright.ops.dialects import tile_context
from tilewright.ops.function import find_kernel
from tilewright.schedule.plan.anchors import anchors_of, require_anchors
from tilewright.support.dataclass import replace
from tilewright.support.errors import MalformedSchedule, MalformedText
from tilewright.support.source import Span

KERNEL = """
!t = tensor<16x16xf32>
!p = tensor<16x16x!tt.ptr<f32, 1>>
"builtin.module"() ({
  "tt.func"() <{sym_name = "k", function_type = (!p, i32) -> ()}> ({
  ^bb0(%p: !p, %n: i32):
    %zero = "arith.constant"() <{value = dense<0.0> : !t}> : () -> !t
    %a = "tt.load"(%p) <{operandSegmentSizes = array<i32: 1, 0, 0>}> : (!p) -> !t
    %c = "scf.for"(%n, %n, %n, %zero) ({
    ^bb1(%i: i32, %acc: !t):
      %b = "tt.load"(%p) <{operandSegmentSizes = array<i32: 1, 0, 0>}> : (!p) -> !t
      %d = "tt.dot"(%a, %b, %acc) : (!t, !t, !t) -> !t
      "scf.yield"(%d) : (!t) -> ()
    }) : (i32, i32, i32, !t) -> !t
    "tt.store"(%p, %c) : (!p, !t) -> ()
    "tt.return"() : () -> ()
  }) ATTRIBUTES : () -> ()
}) : () -> ()
"""


@given(schedules())
@settings(max_examples=150, deadline=None)
def test_what_is_written_is_read_back(schedule: Schedule) -> None:
    assert parse_schedule(str(schedule)) == schedule
    assert str(parse_schedule("\n".join(schedule.clauses()))) == str(schedule)


@given(schedules())
@settings(max_examples=30, deadline=None)
def test_an_attribute_is_read_back_with_its_reasons(schedule: Schedule) -> None:
    module = parse_module(KERNEL.replace("ATTRIBUTES", ""), tile_context())
    find_kernel(module).attributes[SCHEDULE] = ScheduleAttr(schedule)
    again = schedule_of(find_kernel(parse_module(print_module(module), tile_context())))
    assert again == schedule
    assert again is not None and again.reasons == schedule.reasons


@pytest.mark.parametrize("text", texts.EXAMPLES)
def test_the_examples_of_the_design_are_read(text: str) -> None:
    schedule = parse_schedule(text)
    assert parse_schedule(str(schedule)) == schedule


def test_a_schedule_says_what_the_text_says() -> None:
    schedule = parse_schedule(texts.ATTENTION_STRAIGHT)
    load, math = schedule.roles
    assert (load.kind, load.registers) == ("load", 24)
    assert (math.replicas, math.warps, math.split) == (2, 4, "m")
    assert [(c.name, c.slots) for c in schedule.channels] == [("k", 2), ("v", 2), ("q", 1)]
    loop = schedule.loop_of(Anchor("for", 0))
    assert loop is not None and loop.num_stages == 2
    assert dict(loop.places)[Anchor("dot", 1)] == Place(1, 1)
    assert [str(step) for step in loop.order][2:4] == ["wait(dot#0)", "release(k)"]


def test_reasons_do_not_make_another_schedule() -> None:
    schedule = parse_schedule(texts.GEMM)
    assert replace(schedule, reasons=("it fits",)) == schedule


def test_anchors_count_in_text_order() -> None:
    kernel = find_kernel(parse_module(KERNEL.replace("ATTRIBUTES", ""), tile_context()))
    anchors = anchors_of(kernel)
    assert anchors[Anchor("load", 0)] is anchors[Anchor("load", hint="a")]
    assert anchors[Anchor("load", 1)].parent is anchors[Anchor("dot", 0)].parent
    assert anchors[Anchor("op", hint="zero")].name == "arith.constant"
    assert {str(anchor) for anchor in anchors if anchor.index >= 0} == {
        *("load#0", "load#1", "dot#0", "store#0", "for#0"),
    }


def test_an_anchor_that_is_not_there_is_named() -> None:
    kernel = find_kernel(parse_module(KERNEL.replace("ATTRIBUTES", ""), tile_context()))
    with pytest.raises(MalformedSchedule, match="names `dot#7`, which `k` does not have") as caught:
        require_anchors(parse_schedule("loop for#0 dot#7 @0.0"), kernel)
    assert caught.value.hint == "there are dot#0, dot:d"


def test_a_wrong_attribute_is_refused_where_it_stands() -> None:
    wrong = KERNEL.replace("ATTRIBUTES", '{tw.schedule = #tw.schedule<"loop for#0 dot#0">}')
    with pytest.raises(MalformedText, match=r"no place of `dot#0`.*write `dot#0 @0.1`"):
        run_passes_on_text(wrong, "verify-plan")


def test_an_error_of_an_author_stands_at_the_authors_line() -> None:
    span = Span("kernel.py", 12, 5, 9)
    with pytest.raises(MalformedSchedule) as caught:
        parse_schedule("ring ab tiles load#0\nslots none", span)
    assert caught.value.span == span
    assert "(line 1, column 21)" in caught.value.summary
