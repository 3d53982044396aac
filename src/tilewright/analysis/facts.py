"""Axis facts of every value of a function, and what they say about memory accesses.

A forward dataflow: each op's rule gives the facts of its results from those of its operands;
loops start from their initial values and go down to what all iterations agree on. Hints and
assumptions of the author count. `analysis.axis` says what the facts mean.

    facts = AxisFacts(module)
    facts.of(pointer).contiguity          # elements in a row, per dimension
    facts.vector_width(load, 8, 1)        # elements that one access may take
"""

from __future__ import annotations

from collections.abc import Iterable
from math import gcd

from xdsl.dialects.builtin import IntegerAttr
from xdsl.ir import Operation, SSAValue

from tilewright.analysis import axis_casts, axis_comparisons, axis_rules
from tilewright.analysis.axis import Facts, Run, in_equal_groups, meet, power_of_two, unknown
from tilewright.analysis.axis_casts import same_numbers
from tilewright.analysis.axis_shapes import SHAPE_RULES, viewed
from tilewright.analysis.axis_table import Rule, same_inputs
from tilewright.analysis.dataflow import ValueFlow, run
from tilewright.analysis.promises import Promise, assumed, hinted
from tilewright.ir.op import ElementwiseOp, ViewOp
from tilewright.ir.regions import Counter, blocks_of, counter_of, is_control_flow
from tilewright.ir.types import PointerType, element_of, shape_of, storage_bytes
from tilewright.ops.debug.ir import HintOp
from tilewright.ops.function import FuncOp
from tilewright.ops.staging import ConvertLayoutOp
from tilewright.support.dataclass import replace
from tilewright.support.rules import RuleTable

MAX_ACCESS_BYTES = 16
"""The widest access of one lane to global memory."""
# Imported for the rules that they register.
REGISTERED = (axis_casts, axis_comparisons, axis_rules)
_RULES: RuleTable[Rule] = RuleTable("axis facts and promises", SHAPE_RULES)
_RULES.register(HintOp)(hinted)
_RULES.register(ConvertLayoutOp)(same_numbers)


class AxisFacts(ValueFlow[Facts]):
    """The axis facts of the values inside an op: a module, a function or a loop."""

    def __init__(self, top: Operation, nonnegative: Iterable[SSAValue] = ()) -> None:
        """With `nonnegative` scalars, what holds wherever these are not negative."""
        super().__init__()
        self._promises = dict(assumed(top))
        for scalar in nonnegative:
            known = self._promises.get(scalar, Promise())
            self._promises[scalar] = known | Promise(is_nonnegative=True)
        self._inside(top)

    def unknown(self, value: SSAValue) -> Facts:
        """What holds of any value of its type."""
        return unknown(value.type)

    def meet(self, left: Facts, right: Facts) -> Facts:
        """What both say."""
        return meet(left, right)

    def put(self, value: SSAValue, fact: Facts) -> None:
        """Note what is known of a value, and what the author promises of it."""
        promise = self._promises.get(value)
        super().put(value, fact if promise is None else promise.refine(fact))

    def mask_alignment(self, value: SSAValue, dim: int) -> int:
        """How many consecutive elements along `dim` share one value of a mask."""
        return self.of(value).runs[dim].equal()

    def vector_width(self, op: Operation, layout_contiguous_elems: int, order_dim: int) -> int:
        """How many elements along `order_dim` one access of a load or store may take.

        *Units*: a power of two, at most MAX_ACCESS_BYTES and `layout_contiguous_elems`, which
        is how many consecutive elements a lane holds. All of them lie in a row in memory at an
        aligned address and share one value of the mask. *Constraints*: the first operand is a
        pointer; a `mask` is an operand of i1.
        """
        pointer = op.operands[0]
        element = element_of(pointer.type)
        assert isinstance(element, PointerType)
        most = MAX_ACCESS_BYTES // storage_bytes(element.pointee)
        width = min(power_of_two(layout_contiguous_elems), max(1, most))
        if not shape_of(pointer.type):
            return 1
        width = min(width, self.of(pointer).aligned_run(order_dim))
        mask: SSAValue | None = getattr(op, "mask", None)
        if mask is not None:
            width = gcd(width, self.mask_alignment(mask, order_dim))
        return width

    def coalesce_order(self, pointer: SSAValue) -> tuple[int, ...]:
        """The dimensions of a pointer tile, the one with the longest runs first.

        Of equal ones the last dimension comes first, as in row-major order.
        """
        contiguity = self.of(pointer).contiguity
        rank = len(shape_of(pointer.type))
        return tuple(sorted(range(rank), key=lambda dim: (-contiguity[dim], -dim)))

    def _arguments(self, function: FuncOp) -> None:
        for index, argument in enumerate(function.body.block.args):
            facts = unknown(argument.type)
            given = function.argument_facts(index).get("tt.divisibility")
            if isinstance(given, IntegerAttr) and len(facts.extents) == 1:
                divisor = power_of_two(given.value.data)
                facts = replace(facts, runs=(Run(0, 1, divisor),))
            self.put(argument, facts)

    def _inside(self, op: Operation) -> None:
        if isinstance(op, FuncOp):
            self._arguments(op)
        for block in blocks_of(op):
            run(self, block)

    def visit(self, op: Operation) -> None:
        """Find the facts of what an op makes: results, or the counter of a loop."""
        counter = counter_of(op) if op.regions else None
        if not op.regions:
            self._results(op)
        elif counter is not None:
            self._counter(counter)
        elif not is_control_flow(op):
            self._inside(op)

    def _results(self, op: Operation) -> None:
        """One rule speaks of all results, which differ in no fact that it knows."""
        rule = _RULES.find(type(op))
        if rule is None and isinstance(op, ElementwiseOp) and op.operands:
            rule = same_inputs
        elif rule is None and isinstance(op, ViewOp):
            rule = viewed
        facts = None if rule is None else rule(op, tuple(map(self.of, op.operands)))
        for result in op.results:
            self.put(result, unknown(result.type) if facts is None else facts)

    def _counter(self, counter: Counter) -> None:
        low, step = self.of(counter.start), self.of(counter.step)
        divisor = min(low.divisor(), step.divisor())
        # A step is positive, so the counter never falls below its first value.
        index = in_equal_groups((1,), (1,), divisor, is_nonnegative=low.is_nonnegative)
        self.put(counter.value, index)
