"""Every affine form that the analysis claims holds of the values that the interpreter computes."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest
from xdsl.dialects.builtin import DenseIntOrFPElementsAttr
from xdsl.ir import BlockArgument, Operation, SSAValue

from tests.unit.analysis.test_axis_facts_hold import OddWriter, Writer
from tilewright.analysis.affine.access import Accesses
from tilewright.analysis.affine.along import Along, Lookup, Wrap
from tilewright.analysis.affine.expression import Expression
from tilewright.analysis.affine.mask import mask_form
from tilewright.interp.evaluate import run_kernel
from tilewright.ir.op import Array
from tilewright.ir.types import i1, is_integer, is_pointer, shape_of, tile_of, width_bits
from tilewright.ops.creation.ir import ConstantOp, SplatOp
from tilewright.ops.elementwise.ir import ELEMENTWISE

COUNTED = ("start", "stride", "wrap", "lookup", "scalar", "mask", "choice")


class MaskWriter(Writer):
    """Writes index arithmetic as for axis facts, and puts masks together."""

    def step(self) -> None:
        """Add one random op."""
        if self.masks and self.random.random() < 0.2:
            self.combined()
        else:
            super().step()

    def combined(self) -> None:
        """Two masks in one, or one negated."""
        type_ = tile_of(i1, self.shape)
        name = self.choose(("andi", "andi", "ori", "xori"))
        other = self.choose(self.masks)
        if name == "xori":
            true = DenseIntOrFPElementsAttr.from_list(type_, [1])  # pyright: ignore[reportCallIssue]
            other = self.emit(ConstantOp, [], type_, value=true)
        operands = [self.choose(self.masks), other]
        self.masks.append(self.emit(ELEMENTWISE[f"arith.{name}"], operands, type_))


class OddMaskWriter(MaskWriter, OddWriter):
    """The same on odd sizes, by odd numbers, and next to the ends of 32 bits."""


def ends_tell(off: Array) -> bool:
    """Whether no run with a jump inside has its first two and last two elements on the line.

    `off` is what each step is more than the stride.
    """
    place = np.concatenate(([0], np.cumsum(off)))
    for first in range(len(off)):
        if off[first]:
            continue
        for last in range(first + 1, len(off)):
            if off[last] or place[last] != place[first]:
                continue
            if off[first : last + 1].any():
                return False
    return True


class Unknown(Exception):
    """A scalar whose value nobody has seen."""


class Checker:
    """An observer that compares each value with what is claimed of it."""

    def __init__(self, arguments: list[object], block_arguments: tuple[BlockArgument, ...]) -> None:
        self.accesses = Accesses()
        self.seen: dict[SSAValue, Array] = {}
        for argument, value in zip(block_arguments, arguments, strict=True):
            if isinstance(value, int):
                self.seen[argument] = np.asarray(value)
        self.checked = dict.fromkeys(COUNTED, 0)

    def after_op(
        self, operation: Operation, program: tuple[int, int, int], results: tuple[object, ...]
    ) -> None:
        """Check the results of an op."""
        for result, value in zip(operation.results, results, strict=True):
            array = np.asarray(value)
            self.seen[result] = array
            if isinstance(operation, SplatOp):
                self.seen[operation.operands[0]] = array.reshape(-1)[0]
            try:
                self.check(result, array)
            except Unknown:
                continue

    def check(self, result: SSAValue, value: Array) -> None:
        """Check what is claimed of one value."""
        is_number = is_integer(result.type) and width_bits(result.type) > 1
        if not shape_of(result.type):
            if is_number:
                known = self.accesses.scalars.of(result)
                assert self.number(known) == int(value), (result, known)
                self.checked["scalar"] += 1
        elif is_number or is_pointer(result.type):
            self.check_strides(result, value)
            self.check_elements(result, value)
        elif is_integer(result.type):
            self.check_mask(result, value)

    def number(self, expression: Expression) -> int:
        """The value of an expression."""
        total = 0
        for coefficient, factors in expression.terms:
            for factor in factors:
                if factor not in self.seen:
                    raise Unknown
                coefficient *= int(self.seen[factor])
            total += coefficient
        return total

    def check_strides(self, result: SSAValue, value: Array) -> None:
        """Neighbours lie one stride apart, or, where it jumps, the ends of a run tell."""
        size, modulus = (4, 0) if is_pointer(result.type) else (1, width_bits(result.type))
        for dim, stride in enumerate(self.accesses.tiles.strides(result)):
            if stride is None:
                continue
            expected = self.number(stride.value) * size
            off = np.diff(value.astype(np.int64), axis=dim) - expected
            if modulus and modulus < 64:
                off = off % (1 << modulus)
                assert stride.jumps or (off == 0).all(), (result, stride)
            elif stride.jumps:
                for line in np.moveaxis(off, dim, -1).reshape(-1, off.shape[dim]):
                    assert ends_tell(line), (result, stride)
            else:
                assert (off == 0).all(), (result, stride, value)
            self.checked["stride"] += 1

    def check_elements(self, result: SSAValue, value: Array) -> None:
        """All elements are what start, strides, wraps and look-ups say."""
        tile = self.accesses.tiles.of(result)
        if tile.rest is None:
            return
        total = np.full(value.shape, self.number(tile.rest), np.int64)
        for dim, along in enumerate(tile.dims):
            if along.start is None or (along.form is None and not along.is_linear()):
                return
            shape = [1] * value.ndim
            shape[dim] = value.shape[dim]
            total = total + self.along(along, value.shape[dim]).reshape(shape)
        value = value.astype(np.int64)
        if is_pointer(result.type):
            assert tile.base is not None
            base = int(self.seen[tile.base])
            assert (value == base + 4 * total).all(), (result, tile)
        else:
            bits = width_bits(result.type)
            off = value - total if bits == 64 else (value - total) % (1 << bits)
            assert (off == 0).all(), (result, tile, value, total)
        kinds = {"wrap": Wrap, "lookup": Lookup}
        for name, kind in kinds.items():
            self.checked[name] += any(isinstance(along.form, kind) for along in tile.dims)
        self.checked["start"] += 1

    def along(self, along: Along, size: int) -> Array:
        """What a dimension adds at each of its indices."""
        index = np.arange(size)
        assert along.start is not None
        start = self.number(along.start)
        if isinstance(along.form, Wrap):
            form = along.form
            inner = self.number(form.start) + self.number(form.step) * index
            wrapped = np.fmod(inner, self.number(form.modulus))
            return np.asarray(start + self.number(form.scale) * wrapped)
        if isinstance(along.form, Lookup):
            if along.form.indices not in self.seen:
                raise Unknown
            indices = self.seen[along.form.indices].astype(np.int64)
            return np.asarray(start + self.number(along.form.scale) * indices)
        assert along.stride is not None
        return np.asarray(start + self.number(along.stride.value) * index)

    def check_mask(self, result: SSAValue, value: Array) -> None:
        """A mask is what its parts say; with parts that are not known, no more than that."""
        form = mask_form(self.accesses.tiles, self.accesses.scalars, result)
        said = np.ones(value.shape, bool)
        for number in form.positive:
            said &= self.number(number) > 0
        for condition in form.conditions:
            said &= bool(self.seen[condition])
        for bound in form.bounds:
            shape = [1] * value.ndim
            shape[bound.dim] = value.shape[bound.dim]
            index = np.arange(value.shape[bound.dim]).reshape(shape)
            limit = self.number(bound.limit)
            said &= index < limit if bound.is_upper else index >= limit
        for choice in form.choices:
            shape = [1] * value.ndim
            shape[choice.dim] = value.shape[choice.dim]
            said &= (self.seen[choice.value].astype(bool) ^ choice.is_negated).reshape(shape)
            self.checked["choice"] += 1
        holds = value.astype(bool)
        if len(form.opaque) > len(form.choices):
            assert (said | ~holds).all(), result
        else:
            assert (said == holds).all(), (result, form, value)
            self.checked["mask"] += bool(form.bounds)


def checked(writer_class: type[MaskWriter], seeds: range, most_steps: int) -> dict[str, int]:
    """How many claims of each kind hold, of the programs of some seeds."""
    total = dict.fromkeys(COUNTED, 0)
    for seed in seeds:
        random = Random(seed)
        writer = writer_class(random)
        module = writer.module(random.randint(1, most_steps), 8)
        arguments = [np.zeros(64, np.float32), 8 * random.choice((1, 3, 5)), random.choice((1, 7))]
        checker = Checker(arguments, writer.block_arguments)
        try:
            run_kernel(module, arguments, (3,), observers=[checker])
        except AssertionError as error:
            raise AssertionError(f"seed {seed}") from error
        for name, count in checker.checked.items():
            total[name] += count
    return total


@pytest.mark.parametrize("first_seed", range(0, 400, 100))
def test_claimed_forms_hold_of_computed_values(first_seed: int) -> None:
    total = checked(MaskWriter, range(first_seed, first_seed + 100), 12)
    assert all(total.values()), total


@pytest.mark.parametrize("first_seed", range(0, 200, 100))
def test_claimed_forms_hold_of_odd_sizes_and_of_the_last_numbers(first_seed: int) -> None:
    total = checked(OddMaskWriter, range(first_seed, first_seed + 100), 4)
    assert total["start"] and total["stride"] and total["lookup"], total
