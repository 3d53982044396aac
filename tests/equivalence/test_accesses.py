"""What the affine analysis says of accesses is what the interpreter accesses, kernel by kernel."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Operation, SSAValue

from tests.corpus.case import Array
from tests.corpus.everything import FAMILIES
from tests.corpus.run import prepare, run_module, tile_module
from tilewright.analysis.affine.access import Accesses, TileAccess
from tilewright.analysis.affine.box import as_box
from tilewright.analysis.affine.expression import Expression
from tilewright.analysis.affine.guards import Demand, Guard
from tilewright.analysis.affine.memref import MemrefView, as_reinterpret_cast
from tilewright.analysis.affine.tensor_box import TensorBox
from tilewright.analysis.facts import AxisFacts
from tilewright.ir.op import build
from tilewright.ir.types import is_integer, is_pointer, shape_of
from tilewright.machine.gpus import SM_90A
from tilewright.ops.debug.ir import HintOp
from tilewright.ops.memory.ir import LoadOp, StoreOp

_FAMILIES = ("memory", "control", "blocks", "matmul", "indexing", "shapes")
_STEP = 3
_KINDS = ("accesses", "views", "boxes")


def show_arguments(module: ModuleOp) -> None:
    """Have every scalar argument of a region made by an op, which observers see."""
    for op in tuple(module.walk()):
        for region in op.regions:
            for block in region.blocks:
                _show_arguments(block)


def _show_arguments(block: Block) -> None:
    first = block.first_op
    for argument in block.args:
        is_scalar = not shape_of(argument.type)
        if (
            first is not None
            and is_scalar
            and (is_integer(argument.type) or is_pointer(argument.type))
        ):
            block.insert_op_before(build(HintOp, (argument,), (argument.type,)), first)


class Unseen(Exception):
    """A scalar whose value no op has shown."""


class Observer:
    """Compares every load and store with its form, its box and its view."""

    def __init__(self, module: ModuleOp, checked: Counter[str]) -> None:
        self.checked = checked
        self.accesses, self.facts = Accesses(), AxisFacts(module)
        self.seen: dict[SSAValue, Array] = {}

    def after_op(
        self, operation: Operation, program: tuple[int, int, int], results: tuple[object, ...]
    ) -> None:
        """Remember what an op makes; check what it accesses."""
        for result, value in zip(operation.results, results, strict=True):
            self.seen[result] = np.asarray(value)
        if isinstance(operation, HintOp):
            self.seen[operation.src] = self.seen[operation.result]
        if isinstance(operation, LoadOp | StoreOp):
            found = self.accesses.of(operation)
            self.checked["reasons" if isinstance(found, str) else "accesses"] += 1
            if isinstance(found, TileAccess):
                self.check(operation, found)

    def check(self, op: LoadOp | StoreOp, access: TileAccess) -> None:
        """Check one execution of an access."""
        shape = shape_of(op.ptr.type)
        if op.ptr not in self.seen or (op.mask is not None and op.mask not in self.seen):
            return
        addresses = self.seen[op.ptr].astype(np.int64)
        holds = np.ones(shape, bool)
        if op.mask is not None:
            holds &= self.seen[op.mask].astype(bool)
        base = int(self.seen[access.base]) if access.base in self.seen else None
        if base is None:
            return
        self.check_form(access, addresses, holds, base)
        view = as_reinterpret_cast(access, isinstance(op, StoreOp))
        if isinstance(view, MemrefView):
            self.check_view(view, access.element_bytes, addresses, base)
        box = as_box(op, self.accesses, self.facts, SM_90A)
        if isinstance(box, TensorBox):
            self.check_box(box, access.element_bytes, addresses, holds, base)

    def number(self, expression: Expression) -> int:
        """The value of an expression."""
        total = 0
        for coefficient, factors in expression.terms:
            for factor in factors:
                if factor not in self.seen:
                    raise Unseen(factor)
                coefficient *= int(self.seen[factor])
            total += coefficient
        return total

    def check_form(self, access: TileAccess, addresses: Array, holds: Array, base: int) -> None:
        """Every element lies where its form says; the mask is what the bounds say."""
        place = np.full(addresses.shape, self.number(access.offset), np.int64)
        said = np.ones(addresses.shape, bool)
        for number, dim in enumerate(access.dims):
            index = np.arange(dim.extent).reshape(_along(number, addresses.ndim))
            at: Array = self.number(dim.start) + index
            if dim.indices is not None:
                at = at - index + self.seen[dim.indices].astype(np.int64).reshape(index.shape)
            if dim.modulus is not None:
                at = np.fmod(at, self.number(dim.modulus))
            place = place + at * self.number(dim.stride)
            for limit in dim.lower:
                said &= index >= self.number(limit)
            for limit in dim.upper:
                said &= index < self.number(limit)
        for positive in access.mask.positive:
            said &= self.number(positive) > 0
        for condition in access.mask.conditions:
            said &= bool(self.seen[condition])
        assert (addresses == base + place * access.element_bytes).all(), access
        for choice in access.mask.choices:
            chosen = self.seen[choice.value].astype(bool) ^ choice.is_negated
            said &= chosen.reshape(_along(choice.dim, addresses.ndim))
        if len(access.mask.opaque) > len(access.mask.choices):
            assert (said | ~holds).all(), access
        else:
            assert (said == holds).all(), access

    def check_view(self, view: MemrefView, size: int, addresses: Array, base: int) -> None:
        """The view's elements, in pieces where it wraps or is looked up, are those accessed."""
        place = np.full(addresses.shape, self.number(view.offset), np.int64)
        for number, dim in enumerate(view.dims):
            index = np.arange(dim.size).reshape(_along(number, addresses.ndim))
            if dim.modulus is not None:
                start = self.number(dim.start)
                if start < 0:
                    return
                index = (start + index) % self.number(dim.modulus)
            if view.looked_up is not None and view.looked_up[0] == number:
                index = self.seen[view.looked_up[1]].astype(np.int64).reshape(index.shape)
            place = place + index * self.number(dim.stride)
        assert (addresses == base + place * size).all(), view
        self.checked["views"] += 1

    def check_box(
        self, box: TensorBox, size: int, addresses: Array, holds: Array, base: int
    ) -> None:
        """What of the box lies inside of the tensor is what the mask lets through, and no more.

        But for what wraps and nothing looks at.
        """
        if not all(self.keeps(guard) for guard in box.guards):
            self.checked["boxes that a launch refuses"] += 1
            return
        ends = ((w.start, w.extent, w.limit) for w in box.within)
        if any(self.number(s) + extent > self.number(limit) for s, extent, limit in ends):
            return
        place = np.full(addresses.shape, self.number(box.offset), np.int64)
        inside, cut = np.ones(addresses.shape, bool), np.zeros(addresses.shape, bool)
        num_chosen = len(box.dims) - len(box.order)
        for dim in box.dims[:num_chosen]:
            assert dim.extent == 1 and self.number(dim.start) >= 0
            place = place + self.number(dim.start) * self.number(dim.stride)
        for number, dim in zip(box.order, box.dims[num_chosen:], strict=True):
            start = self.number(dim.start)
            start = start if dim.modulus is None else start % self.number(dim.modulus)
            at = start + np.arange(dim.extent).reshape(_along(number, addresses.ndim))
            place = place + at * self.number(dim.stride)
            inside &= at >= 0
            for end in dim.sizes:
                inside &= at < self.number(end)
                cut |= dim.is_cut & (at >= self.number(end))
        assert (inside == (holds & ~cut)).all(), box
        assert (addresses == base + place * size)[inside].all(), box
        self.checked["boxes"] += 1

    def keeps(self, guard: Guard) -> bool:
        """Whether a launch passes a guard."""
        number = self.number(guard.number)
        if guard.demand is Demand.MULTIPLE:
            return number % guard.bound == 0
        return number >= guard.bound if guard.demand is Demand.AT_LEAST else number <= guard.bound


def _along(dim: int, rank: int) -> tuple[int, ...]:
    return tuple(-1 if d == dim else 1 for d in range(rank))


@pytest.mark.parametrize("family", _FAMILIES)
def test_accesses_are_what_the_analysis_says(family: str) -> None:
    checked: Counter[str] = Counter()
    for case in [case for case in FAMILIES[family] if not case.is_slow][::_STEP]:
        module = tile_module(prepare(case).request)
        show_arguments(module)
        try:
            run_module(case, module, observers=[Observer(module, checked)])
        except AssertionError as error:
            raise AssertionError(case.name) from error
    assert all(checked[kind] > 10 for kind in _KINDS), checked
