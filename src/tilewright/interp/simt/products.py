"""Asynchronous products of a warp group (wgmma)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tilewright.interp.simt.faults import DivergentCollective, Fault
from tilewright.interp.simt.fragments import (
    OPERAND_DTYPES,
    a_matrix,
    accumulator_matrix,
    accumulator_registers,
    multiply_add,
    widen,
)
from tilewright.interp.simt.in_flight import WARP_GROUP, InFlight, ProductGroups
from tilewright.interp.simt.matrix_descriptor import MatrixDescriptor
from tilewright.interp.simt.shared import SharedMemory
from tilewright.interp.simt.synchronization import Synchronization
from tilewright.interp.simt.syntax import Site
from tilewright.interp.simt.types import CTA_WINDOW
from tilewright.ir.op import Array
from tilewright.support.dataclass import dataclass
from tilewright.support.errors import KernelFault

_ROWS = 64
_DEPTH_BYTES = 32


@dataclass(frozen=True)
class ProductForm:
    """What a `wgmma.mma_async` multiplies: PTX types, N, signs and transposes."""

    columns: int
    accumulator: str
    a: str
    b: str
    scale_a: int = 1
    scale_b: int = 1
    transposes_a: bool = False
    transposes_b: bool = False


class Products:
    """The products that the warp groups of a cta have started."""

    def __init__(
        self, threads: int, shared: SharedMemory, synchronization: Synchronization
    ) -> None:
        self._threads = threads
        self._shared = shared
        self._synchronization = synchronization
        self.reset()

    def reset(self) -> None:
        """Begin another cta."""
        self.groups = ProductGroups.fresh(self._threads)
        self._clocks: list[dict[int, int]] = [{} for _ in range(self.groups.warp_groups)]

    def warp_groups(self, threads: Array) -> list[int]:
        """The warp groups that execute; raise when a part of one does."""
        numbers, counts = np.unique(threads // WARP_GROUP, return_counts=True)
        if (counts != WARP_GROUP).any():
            raise Fault(
                DivergentCollective,
                f"{int(counts.min())} threads of warp group {int(numbers[counts.argmin()])} "
                "execute an instruction of the whole group",
            )
        return [int(number) for number in numbers]

    def start(
        self,
        form: ProductForm,
        accumulators: Sequence[Array | InFlight],
        a: Array | Sequence[Array],
        b: Array,
        adds: Array,
        threads: Array,
        site: Site,
    ) -> list[InFlight]:
        """Start a product; `a` is a descriptor or the registers of a fragment."""
        block = _block_of(accumulators).copy()
        group = _group_of(accumulators, self.groups)
        for number in self.warp_groups(threads):
            lanes = slice(number * WARP_GROUP, (number + 1) * WARP_GROUP)
            left = self._left(form, a, lanes, number, site)
            right = self._operand(
                _uniform(b[lanes]), form.columns, form.b, number, site, form.transposes_b
            )
            old = _accumulators(block[:, lanes], form)
            base = old if _uniform(adds[lanes]) else np.zeros_like(old)
            sign = form.scale_a * form.scale_b
            new = multiply_add(left * sign, np.broadcast_to(right.T, (4, *right.T.shape)), base)
            block[:, lanes] = _registers(new, form, len(block), block.dtype)
            if self._synchronization.timeline is not None:
                self._synchronization.timeline.start_product(number, form.columns, site)
            group[number] = self.groups.committed[number] + 1
        return [InFlight(block, row, group, self.groups) for row in range(len(block))]

    def _left(
        self, form: ProductForm, a: Array | Sequence[Array], lanes: slice, number: int, site: Site
    ) -> Array:
        """The A operand of one warp group, shape [4 warps, 16, K]."""
        if not isinstance(a, np.ndarray):
            return a_matrix([register[lanes] for register in a], form.a)
        rows = self._operand(_uniform(a[lanes]), _ROWS, form.a, number, site, form.transposes_a)
        return rows.reshape(4, 16, -1)

    def _operand(
        self, bits: int, outer: int, kind: str, number: int, site: Site, is_transposed: bool
    ) -> Array:
        """An operand in shared memory, shape [outer, K], widened."""
        descriptor = MatrixDescriptor.decode(bits)
        chunks = descriptor.chunk_addresses(outer, _DEPTH_BYTES, is_transposed=is_transposed)
        rank = number * WARP_GROUP // self._synchronization.cta_threads
        chunks = chunks + np.uint64(rank * CTA_WINDOW)
        issuers = np.arange(number * WARP_GROUP, (number + 1) * WARP_GROUP)
        data = self._shared.read_tile(chunks.ravel(), 16, issuers, self._agent(number), site)
        elements = widen(np.ascontiguousarray(data).view(OPERAND_DTYPES[kind]), kind)
        if is_transposed:
            return elements.reshape(*chunks.shape, -1).transpose(0, 2, 1).reshape(outer, -1)
        return elements.reshape(outer, -1)

    def _agent(self, number: int) -> tuple[int, int]:
        clocks = self._synchronization.clocks
        column = clocks.agent(f"wgmma of warp group {number}")
        clock = int(self.groups.committed[number]) + 1
        self._clocks[number][clock] = column
        return column, clock

    def commit(self, threads: Array) -> None:
        """Close the group of the products started so far."""
        for number in self.warp_groups(threads):
            self.groups.committed[number] += 1
            if self._synchronization.timeline is not None:
                self._synchronization.timeline.commit_products(number)

    def wait(self, threads: Array, pending: int) -> None:
        """Wait until at most `pending` groups run."""
        for number in self.warp_groups(threads):
            done = int(self.groups.committed[number]) - pending
            if self._synchronization.timeline is not None:
                self._synchronization.timeline.wait_for_products(number, pending)
            if done <= int(self.groups.completed[number]):
                continue
            self.groups.completed[number] = done
            clocks = self._synchronization.clocks
            column = clocks.agent(f"wgmma of warp group {number}")
            members = np.arange(number * WARP_GROUP, (number + 1) * WARP_GROUP)
            clocks.complete(members, column, done)


def _uniform(values: Array) -> int:
    if (values != values[0]).any():
        raise Fault(KernelFault, "a warp group does not agree on an operand of wgmma")
    return int(values[0])


def _block_of(accumulators: Sequence[Array | InFlight]) -> Array:
    """The accumulators as one array [registers, threads]."""
    first = accumulators[0]
    if isinstance(first, InFlight) and len(first.block) == len(accumulators):
        block = first.block
        same = all(
            isinstance(x, InFlight) and x.block is block and x.row == row
            for row, x in enumerate(accumulators)
        )
        if same:
            return block
    return np.stack([x.array if isinstance(x, InFlight) else x for x in accumulators])


def _group_of(accumulators: Sequence[Array | InFlight], groups: ProductGroups) -> Array:
    """The last group that any of the accumulators waits for."""
    known = [x.group for x in accumulators if isinstance(x, InFlight)]
    return np.max(known, axis=0) if known else np.zeros(groups.warp_groups, np.int64)


def _accumulators(registers: Array, form: ProductForm) -> Array:
    """Registers [count, 128] as the matrices of the four warps, [4, 16, N]."""
    if form.accumulator == "f16":
        pairs = np.ascontiguousarray(registers.T).view(np.float16)
        return accumulator_matrix(pairs.T, form.columns)
    dtype = np.int32 if form.accumulator == "s32" else np.float32
    return accumulator_matrix(registers.view(dtype), form.columns)


def _registers(matrix: Array, form: ProductForm, count: int, dtype: np.dtype) -> Array:
    """The inverse of `_accumulators`, as the dtype of the registers."""
    if form.accumulator == "f16":
        pairs = accumulator_registers(matrix, 2 * count)
        return np.ascontiguousarray(pairs.T).view(np.uint32).T.view(dtype)
    return np.ascontiguousarray(accumulator_registers(matrix, count)).view(dtype)
