"""Reductions and scans: the combine region runs on whole slices at a time.

A reduction folds neighbours pairwise in log2(n) steps; a scan folds all runs of its innermost
blocks side by side, then their totals, in the tree that compiled code has on the CPU. Both keep
the order of the elements, so any associative function may be combined.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field

import numpy as np
from xdsl.ir import Operation

from tilewright.interp.code import Code, ControlFunction, Preparation, Running, run_now
from tilewright.interp.program import Program
from tilewright.interp.rules.tables import TILE_RULES
from tilewright.ir.op import Array
from tilewright.ops.reduction.ir import ReduceOp, ScanOp
from tilewright.support.dataclass import dataclass


@dataclass(frozen=True)
class Slices:
    """Operands of a fold with their axis in front, and the masks of undefined elements."""

    values: tuple[Array, ...]
    masks: tuple[Array | None, ...]

    def __len__(self) -> int:
        return len(self.values[0])

    def __getitem__(self, key: slice | int) -> Slices:
        masks = tuple(None if mask is None else mask[key] for mask in self.masks)
        return Slices(tuple(value[key] for value in self.values), masks)

    def repeated(self, times: int) -> Slices:
        """Every slice `times` times."""
        values = tuple(np.repeat(value, times, 0) for value in self.values)
        masks = tuple(None if mask is None else np.repeat(mask, times, 0) for mask in self.masks)
        return Slices(values, masks)

    def taken(self, places: Array) -> Slices:
        """The slices at `places`."""
        masks = tuple(None if mask is None else mask[places] for mask in self.masks)
        return Slices(tuple(value[places] for value in self.values), masks)

    def then(self, other: Slices) -> Slices:
        """These slices followed by others."""
        values = tuple(map(_concatenate, self.values, other.values))
        masks = tuple(
            _joined_masks(*parts)
            for parts in zip(self.masks, self.values, other.masks, other.values, strict=True)
        )
        return Slices(values, masks)


def _concatenate(first: Array, second: Array) -> Array:
    return np.concatenate([first, second])


def _joined_masks(
    first: Array | None, first_value: Array, second: Array | None, second_value: Array
) -> Array | None:
    if first is None and second is None:
        return None
    plain = np.zeros(first_value.shape, np.bool_) if first is None else first
    other = np.zeros(second_value.shape, np.bool_) if second is None else second
    return np.concatenate([plain, other])


def take_slices(program: Program, slots: Sequence[int], axis: int) -> Slices:
    """The values of `slots` with `axis` in front."""
    values, masks = [], []
    for slot in slots:
        value = np.asarray(program.values[slot])
        mask = program.poison[slot]
        values.append(np.moveaxis(value, axis, 0))
        full = None if mask is None else np.broadcast_to(mask, value.shape)
        masks.append(None if full is None else np.moveaxis(full, axis, 0))
    return Slices(tuple(values), tuple(masks))


def combine(program: Program, code: Code, left: Slices, right: Slices) -> Slices:
    """The combine region on arrays: `left` accumulated, `right` new."""
    values = (*left.values, *right.values)
    masks = (*left.masks, *right.masks)
    for slot, value, mask in zip(code.arguments, values, masks, strict=True):
        program.values[slot] = value
        program.poison[slot] = mask
    run_now(code, program)
    outputs, undefined = [], []
    for slot, like in zip(code.outputs, left.values, strict=True):
        outputs.append(np.broadcast_to(np.asarray(program.values[slot]), like.shape))
        mask = program.poison[slot]
        undefined.append(None if mask is None else np.broadcast_to(mask, like.shape))
    return Slices(tuple(outputs), tuple(undefined))


def put_results(program: Program, slots: Sequence[int], results: Slices) -> None:
    """Store the outcome of a fold in the slots of the op's results."""
    for slot, value, mask in zip(slots, results.values, results.masks, strict=True):
        program.values[slot] = value
        program.poison[slot] = mask


@TILE_RULES.control.register(ReduceOp)
def reduce(operation: Operation, preparation: Preparation) -> ControlFunction:
    """tt.reduce: neighbours folded pairwise."""
    assert isinstance(operation, ReduceOp)
    axis = operation.axis.value.data
    sources = preparation.slots(operation.srcs)
    results = preparation.slots(operation.outputs)
    code = preparation.region(operation.combine)

    def run(program: Program) -> Running:
        slices = take_slices(program, sources, axis)
        while len(slices) > 1:
            even = len(slices) // 2 * 2
            folded = combine(program, code, slices[0:even:2], slices[1:even:2])
            slices = folded if even == len(slices) else folded.then(slices[even:])
        put_results(program, results, slices[0])
        program.operation = operation
        return
        yield

    return run


@TILE_RULES.control.register(ScanOp)
def scan(operation: Operation, preparation: Preparation) -> ControlFunction:
    """tt.scan: prefixes within blocks, combined with what stands before each block."""
    assert isinstance(operation, ScanOp)
    axis = operation.axis.value.data
    sources = preparation.slots(operation.srcs)
    results = preparation.slots(operation.outputs)
    code = preparation.region(operation.combine)
    way = slice(None, None, -1) if operation.is_reverse() else slice(None)
    sizes = operation.block_sizes()[:-1]

    def run(program: Program) -> Running:
        slices = take_slices(program, sources, axis)[way]
        if operation.rounds():
            slices = _in_blocks(program, code, slices, sizes)
        else:
            slices = _doubling(program, code, slices)
        ordered = slices[way]
        values = tuple(np.moveaxis(value, 0, axis) for value in ordered.values)
        masks = tuple(m if m is None else np.moveaxis(m, 0, axis) for m in ordered.masks)
        put_results(program, results, Slices(values, masks))
        program.operation = operation
        return
        yield

    return run


def _doubling(program: Program, code: Code, slices: Slices) -> Slices:
    """The prefixes where their tree does not matter: the stride doubles in each step."""
    stride = 1
    while stride < len(slices):
        folded = combine(program, code, slices[:-stride], slices[stride:])
        slices = slices[:stride].then(folded)
        stride *= 2
    return slices


def _in_blocks(program: Program, code: Code, slices: Slices, sizes: Sequence[int]) -> Slices:
    """The prefixes in the tree of `ScanOp.block_sizes`, `sizes` being all but the last of them."""
    run = sizes[0] if sizes else len(slices)
    # Step by step through the runs, all of them at once; the last one may end early.
    steps = [slices[0::run]]
    for step in range(1, min(run, len(slices))):
        new = slices[step::run]
        steps.append(combine(program, code, steps[-1][: len(new)], new))
    prefixes = _interleaved(steps)
    if len(steps[0]) == 1:
        return prefixes
    # Every run but the last is whole: its total is its last prefix.
    carries = _Carries(program, code, prefixes[run - 1 :: run])
    carries.visit(0, len(steps[0]), [size // run for size in sizes[1:]], None)
    spread = carries.found[0]
    for carry in carries.found[1:]:
        spread = spread.then(carry)
    repeated = spread.repeated(run)[: len(slices) - run]
    return prefixes[:run].then(combine(program, code, repeated, prefixes[run:]))


def _interleaved(steps: Sequence[Slices]) -> Slices:
    """Runs side by side, step by step, as elements in a row; the last run may be shorter."""
    joined = steps[0]
    for step in steps[1:]:
        joined = joined.then(step)
    # Elements lie by step, then by run: their places in the order of the axis.
    places = np.concatenate([
        np.arange(len(step)) * len(steps) + number for number, step in enumerate(steps)
    ])  # fmt: skip
    return joined.taken(np.argsort(places))


@dataclass
class _Carries:
    """What stands before each run but the first, as the blocks of runs pass it on."""

    program: Program
    code: Code
    totals: Slices
    found: list[Slices] = field(default_factory=list)

    def visit(
        self, first: int, count: int, sizes: Sequence[int], carry: Slices | None
    ) -> Slices | None:
        """Go through `count` runs in blocks of `sizes` runs; the total of those that are whole."""
        part = sizes[-1] if sizes else 1
        total: Slices | None = None
        for start in range(first, first + count, part):
            passed = self._joined(carry, total)
            if sizes:
                inner = min(part, first + count - start)
                new = self.visit(start, inner, sizes[:-1], passed)
            else:
                if passed is not None:
                    self.found.append(passed)
                new = self.totals[start : start + 1] if start < len(self.totals) else None
            total = self._joined(total, new)
        return total

    def _joined(self, left: Slices | None, right: Slices | None) -> Slices | None:
        if left is None or right is None:
            return right if left is None else left
        return combine(self.program, self.code, left, right)
