"""What is known of every value of a function, and what that says about memory accesses.

A forward dataflow by the rules of `analysis.affine`: loops start from their initial values and go
down to what all iterations agree on. Hints and assumptions of the author count.

    facts = AxisFacts(module)
    facts.of(pointer).contiguity          # elements in a row, per dimension
    facts.vector_width(load, 8, 1)        # elements that one access may take
"""

from __future__ import annotations

from collections.abc import Iterable
from math import gcd

from xdsl.dialects.builtin import IntegerAttr
from xdsl.ir import Operation, SSAValue

from tilewright.analysis.affine.along import GENERAL, Along
from tilewright.analysis.affine.rules.table import RULES, Rule, of_both, shared_dims
from tilewright.analysis.affine.tile import (
    AffineTile,
    divided,
    kind_of,
    made,
    power_of_two,
    uniform_tile,
    unknown,
)
from tilewright.analysis.affine.tiles import computed, named
from tilewright.analysis.dataflow import ValueFlow, run
from tilewright.analysis.promises import Promise, assumed, hinted
from tilewright.analysis.trusted_runs import TrustedRuns
from tilewright.ir.regions import Counter, blocks_of, counter_of, is_control_flow
from tilewright.ir.types import PointerType, element_of, shape_of, storage_bytes
from tilewright.ops.debug.ir import HintOp
from tilewright.ops.function import FuncOp
from tilewright.support.rules import RuleTable

MAX_ACCESS_BYTES = 16
"""The widest access of one lane to global memory."""


_RULES: RuleTable[Rule] = RuleTable("tiles and promises", RULES)
_RULES.register(HintOp)(hinted)


class AxisFacts(ValueFlow[AffineTile]):
    """The axis facts of the values inside an op: a module, a function or a loop.

    *Constraints*: the program does not change while it is asked.
    """

    def __init__(self, top: Operation, nonnegative: Iterable[SSAValue] = ()) -> None:
        """With `nonnegative` scalars, what holds wherever these are not negative."""
        super().__init__()
        self._top: Operation | None = top
        self._trusted = TrustedRuns()
        self._promises = {scalar: Promise(is_nonnegative=True) for scalar in nonnegative}

    def of(self, value: SSAValue) -> AffineTile:
        """What is known of a value; whoever asks first has it found of all values."""
        top, self._top = self._top, None
        if top is not None:
            for scalar, promise in assumed(top).items():
                self._promises[scalar] = promise | self._promises.get(scalar, Promise())
            self._inside(top)
        return super().of(value)

    def unknown(self, value: SSAValue) -> AffineTile:
        """What holds of any value of its type."""
        return named(value, unknown(kind_of(value.type)))

    def meet(self, left: AffineTile, right: AffineTile) -> AffineTile:
        """The groups and divisors that both have; of forms, the same integer."""
        if left == right:
            return left
        number = left.constant
        if number is not None and number == right.constant:
            return left
        return of_both(left.kind, left, right, shared_dims(left, right))

    def put(self, value: SSAValue, fact: AffineTile) -> None:
        """Note what is known of a value, and what the author promises of it."""
        promise = self._promises.get(value)
        fact = fact if promise is None else promise.refine(fact)
        super().put(value, fact if fact.dims else named(value, fact))

    def handed_on(self, fact: AffineTile) -> AffineTile:
        """Groups and divisors: a form may speak of what is inside of a loop, or goes on."""
        if fact.constant is not None:
            return fact
        kept = [along if along.step.as_int() is not None else GENERAL for along in fact.dims]
        dims = [Along(None, None, None, along.step, along.length) for along in kept]
        nonnegative = fact.is_nonnegative
        return made(fact.kind, dims, None, fact.divisor_at, is_nonnegative=nonnegative)

    def mask_alignment(self, value: SSAValue, dim: int) -> int:
        """How many consecutive elements along `dim` share one value of a mask."""
        return self.of(value).dims[dim].equal()

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
        if mask is not None and width > 1:
            is_trusted = self._trusted.of_mask(mask, pointer, order_dim)
            width = gcd(width, self.mask_alignment(mask, order_dim)) if is_trusted else 1
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
            known = self.unknown(argument)
            given = function.argument_facts(index).get("tt.divisibility")
            if isinstance(given, IntegerAttr) and not known.dims:
                known = divided(known, power_of_two(given.value.data))
            self.put(argument, known)

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
        for result in op.results:
            self.put(result, computed(self.of, result, _RULES))

    def _counter(self, counter: Counter) -> None:
        low, step = self.of(counter.start), self.of(counter.step)
        divisor = min(low.divisor, step.divisor)
        # A step is positive, so the counter never falls below its first value.
        kind, nonnegative = kind_of(counter.value.type), low.is_nonnegative
        index = uniform_tile(kind, None, divisor, is_nonnegative=nonnegative)
        self.put(counter.value, named(counter.value, index))
