"""The schedule of a kernel, and the places of its ops, as attributes.

tt.func … {tw.schedule = #tw.schedule<"ring ab tiles load#0 load#1 slots 3 cp_async …">}
tt.dot … {tw.place = #tw.place<"@1.0">}
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from xdsl.dialects.builtin import ArrayAttr, IntegerAttr, StringAttr
from xdsl.ir import Data, Operation
from xdsl.irdl import irdl_attr_definition

from tilewright.ir.schedule import Anchor, Place, Schedule
from tilewright.ir.schedule_text import parse_schedule
from tilewright.support.dataclass import replace
from tilewright.support.errors import MalformedSchedule

if TYPE_CHECKING:  # a compile neither parses nor prints
    from xdsl.parser import AttrParser
    from xdsl.printer import Printer

SCHEDULE = "tw.schedule"
"""The attribute of a `tt.func` that holds its schedule."""
PLACE = "tw.place"
"""The attribute of an op that holds the stage and cluster in which its author has it run."""
TASKS = "tw.async_task"
"""The attribute of an op that holds the numbers of the tasks which its author has it run in."""
HINT = "tt.schedule"
"""The attribute of a loop that holds the text of the schedule which its author gave it."""
PARTIAL = "tw.partial_schedule"
"""The attribute of a `tt.func` whose schedule is of some of its loops; the rest is decided."""
_PLACE_TEXT = re.compile(r"(?P<role>\w*)@(?P<stage>\d+)\.(?P<cluster>\d+)")


@irdl_attr_definition
class ScheduleAttr(Data[Schedule]):
    """A schedule, as `#tw.schedule<"…">`; further strings are its reasons."""

    name = "tw.schedule"

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> Schedule:
        """Read what stands behind the name."""
        with parser.in_angle_brackets():
            texts = parser.parse_comma_separated_list(
                parser.Delimiter.NONE, parser.parse_str_literal
            )
        try:
            return replace(parse_schedule(texts[0]), reasons=tuple(texts[1:]))
        except MalformedSchedule as error:
            parser.raise_error(f"{error.summary}; {error.hint}")

    def print_parameter(self, printer: Printer) -> None:
        """Write what stands behind the name."""
        texts = (str(self.data), *self.data.reasons)
        with printer.in_angle_brackets():
            printer.print_list(texts, printer.print_string_literal)


@irdl_attr_definition
class PlaceAttr(Data[Place]):
    """Where an op runs, as `#tw.place<"@1.0">`, or `#tw.place<"math@1.0">` with its role."""

    name = "tw.place"

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> Place:
        """Read what stands behind the name."""
        with parser.in_angle_brackets():
            text = parser.parse_str_literal()
        match = _PLACE_TEXT.fullmatch(text)
        if match is None:
            parser.raise_error(f"`{text}` is no place, such as `@1.0` or `math@0.2`")
        return Place(int(match["stage"]), int(match["cluster"]), match["role"])

    def print_parameter(self, printer: Printer) -> None:
        """Write what stands behind the name."""
        with printer.in_angle_brackets():
            printer.print_string_literal(str(self.data))


def schedule_of(kernel: Operation) -> Schedule | None:
    """The schedule that is annotated on a kernel; None before it is decided."""
    attribute = kernel.attributes.get(SCHEDULE)
    return attribute.data if isinstance(attribute, ScheduleAttr) else None


def annotate_schedule(kernel: Operation, schedule: Schedule) -> None:
    """Write the schedule of a kernel on it."""
    kernel.attributes[SCHEDULE] = ScheduleAttr(schedule)


def place_of(op: Operation) -> Place | None:
    """Where an author has an op run; None for one that has no place of its own."""
    attribute = op.attributes.get(PLACE)
    return attribute.data if isinstance(attribute, PlaceAttr) else None


def tasks_of(op: Operation) -> tuple[int, ...]:
    """The tasks that an author has an op run in; () where nothing is said."""
    tasks = op.attributes.get(TASKS)
    if not isinstance(tasks, ArrayAttr):
        return ()
    return tuple(task.value.data for task in tasks.data if isinstance(task, IntegerAttr))


def hint_of(loop: Operation) -> str:
    """The text of the schedule that an author gave a loop; '' where there is none."""
    text = loop.attributes.get(HINT)
    return text.data if isinstance(text, StringAttr) else ""


COMMON = "tw.common"
"""Of a read whose value all roles see alike: they meet before it could change."""
ANCHOR = "tw.anchor"
"""The attribute that names an op which the schedule has a place for."""
_PIPELINED = "tw.pipelined"


def anchor_of(op: Operation) -> Anchor | None:
    """What the schedule calls an op; None where it does not name it."""
    attribute = op.attributes.get(ANCHOR)
    if not isinstance(attribute, StringAttr):
        return None
    kind, _, number = attribute.data.partition("#")
    return Anchor(kind, int(number))


def name_anchor(op: Operation, anchor: Anchor) -> None:
    """Let an op be found by what the schedule calls it, whatever level it is lowered to."""
    op.attributes[ANCHOR] = StringAttr(str(anchor))


def note_pipelining(loop: Operation, account: str) -> None:
    """Note on a loop how it was pipelined, or why it was not."""
    loop.attributes[_PIPELINED] = StringAttr(account)


def pipelining_of(loop: Operation) -> str:
    """What `note_pipelining` noted; '' where nothing was planned."""
    attribute = loop.attributes.get(_PIPELINED)
    return attribute.data if isinstance(attribute, StringAttr) else ""
