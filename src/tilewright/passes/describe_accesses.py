"""Writes on every load and store what the affine analysis says of it, for people and tests.

`ask` is what is asked: `access` (base, dimensions, mask), `box` (how the copy engine of `machine`
would move it), `memref` (the view that it is) or `nest` (its strides in a loop nest). What it is
not comes with the reason. Requires and produces T0; only attributes change. In no target's
pipeline.
"""

from __future__ import annotations

from collections.abc import Callable

from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.ir import Operation

from tilewright.analysis.affine.access import Accesses
from tilewright.analysis.affine.box import as_box
from tilewright.analysis.affine.describe import (
    describe_access,
    describe_box,
    describe_nest,
    describe_view,
)
from tilewright.analysis.affine.memref import as_reinterpret_cast
from tilewright.analysis.affine.nest import as_nest_access
from tilewright.analysis.facts import AxisFacts
from tilewright.ir.passes import Pass
from tilewright.machine.gpus import SM_90A
from tilewright.machine.model import MachineModel
from tilewright.ops.memory.ir import LoadOp, StoreOp
from tilewright.support.dataclass import dataclass
from tilewright.support.errors import InvalidOption

ATTRIBUTE = "tw.access"


@dataclass(frozen=True)
class DescribeAccesses(Pass):
    """The pass; see the module. Raises: InvalidOption for another question."""

    ask: str = "access"
    machine: MachineModel = SM_90A
    name = "describe-accesses"
    after = ("lower-block-pointers", "lower-descriptors", "split-carried-pointers")

    def apply(self, module: ModuleOp) -> None:
        """Annotate every load and store of a module."""
        describer = _Describer(module, self.machine)
        questions: dict[str, Callable[[Operation], str]] = {
            "access": describer.access,
            "box": describer.box,
            "memref": describer.memref,
            "nest": describer.nest,
        }
        question = questions.get(self.ask)
        if question is None:
            raise InvalidOption(f"describe-accesses answers {', '.join(questions)}, not {self.ask}")
        for op in module.walk():
            if isinstance(op, LoadOp | StoreOp):
                op.attributes[ATTRIBUTE] = StringAttr(question(op))


class _Describer:
    """The answers for one module."""

    def __init__(self, module: ModuleOp, machine: MachineModel) -> None:
        self._accesses, self._facts, self._machine = Accesses(), AxisFacts(module), machine

    def access(self, op: Operation) -> str:
        found = self._accesses.of(op)
        return found if isinstance(found, str) else describe_access(found)

    def box(self, op: Operation) -> str:
        box = as_box(op, self._accesses, self._facts, self._machine)
        return f"no box: {box}" if isinstance(box, str) else describe_box(box)

    def memref(self, op: Operation) -> str:
        found = self._accesses.of(op)
        is_store = isinstance(op, StoreOp)
        view = found if isinstance(found, str) else as_reinterpret_cast(found, is_store)
        return f"no view: {view}" if isinstance(view, str) else describe_view(view)

    def nest(self, op: Operation) -> str:
        found = as_nest_access(self._accesses.tiles.of(op.operands[0]))
        return f"no nest: {found}" if isinstance(found, str) else describe_nest(found)
