"""Which arguments of a kernel point to memory that it reads, and which to memory that it writes.

A launch asks: a tuner saves the arrays that its trials would change for good, and an array that
must not be written is refused where a kernel stores through it.

Addresses are followed through arithmetic, selects, loops, descriptors and 64-bit integers. An
address that comes from elsewhere, such as one that was loaded, may be that of any argument.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import reduce
from operator import or_

from xdsl.dialects.builtin import IntegerType, ModuleOp
from xdsl.ir import Attribute, Operation, SSAValue

from tilewright.analysis.dataflow import MAX_VISITS, ValueFlow, run
from tilewright.ir.effects import Access, Resource, own_effects
from tilewright.ir.regions import blocks_of, is_control_flow
from tilewright.ir.types import DescriptorType, element_of, is_pointer
from tilewright.ops.function import FuncOp, find_kernel
from tilewright.support.dataclass import dataclass

_ADDRESS_BITS = 64


@dataclass(frozen=True)
class ArgumentEffects:
    """The indices of the kernel's arguments whose memory it reads, and whose it writes.

    `read` and `written` hold every argument that may be meant; `stored`, a part of `written`,
    those that the kernel's own text stores through, whatever it does with loaded addresses.
    """

    read: frozenset[int]
    written: frozenset[int]
    stored: frozenset[int]


def argument_effects(module: ModuleOp) -> ArgumentEffects:
    """The effects of the one kernel of a T0 module, through each of its arguments."""
    kernel = find_kernel(module)
    origins = _Origins(kernel)
    read = written = stored = 0
    for op in kernel.walk():
        for access in _global_accesses(op):
            through = 0 if access.value is None else origins.of(access.value)
            # An address among the other operands gets out of sight.
            others = 0
            for operand in op.operands:
                if operand is not access.value:
                    others |= origins.of(operand)
            read |= through * access.reads | others
            written |= through * access.writes | others
            stored |= through * access.writes
    return ArgumentEffects(
        origins.indices(read), origins.indices(written), origins.known_indices(stored)
    )


def touched_arguments(kernel: FuncOp) -> dict[Operation, frozenset[int]]:
    """For every op that reads or writes global memory, the arguments that it may do so through."""
    origins = _Origins(kernel)
    touched: dict[Operation, frozenset[int]] = {}
    for op in kernel.walk():
        for access in _global_accesses(op):
            bits = origins.everything if access.value is None else origins.of(access.value)
            found = origins.indices(bits or origins.everything)
            touched[op] = touched.get(op, frozenset()) | found
    return touched


def _global_accesses(op: Operation) -> list[Access]:
    effects = own_effects(op)
    return [e for e in effects if isinstance(e, Access) and e.is_on(Resource.GLOBAL)]


class _Origins(ValueFlow[int]):
    """The arguments that each address may come from, as bits of an integer."""

    rounds = MAX_VISITS

    def __init__(self, kernel: FuncOp) -> None:
        super().__init__()
        entry = kernel.body.block
        self._pointers = [i for i, a in enumerate(entry.args) if is_pointer(a.type)]
        self._unknown = 1 << len(entry.args)
        for i in self._pointers:
            self.put(entry.args[i], 1 << i)
        # What is made here and comes from no argument is known when every loop has settled.
        self._unrelated: set[SSAValue] = set()
        run(self, entry)
        self._unrelated.update(v for v in _made_pointers(kernel) if not self.of(v))
        if self._unrelated:
            run(self, entry)

    @property
    def everything(self) -> int:
        """The origins of what may be the memory of any argument."""
        return self._unknown

    def unknown(self, value: SSAValue) -> int:
        """No origin: the value is no address."""
        return 0

    def meet(self, left: int, right: int) -> int:
        """The origins of a value that is one of two."""
        return left | right

    def visit(self, op: Operation) -> None:
        """Hand origins on from operands to results, and to what describes an op."""
        if is_control_flow(op):
            return
        bits = reduce(or_, map(self.of, op.operands), 0)
        for block in blocks_of(op):
            for argument in block.args:
                self._hand_on(argument, bits)
            run(self, block)
        accesses = _global_accesses(op)
        # What is loaded has nothing to do with where it was.
        is_load = bool(accesses) and not any(access.writes for access in accesses)
        for result in op.results:
            self._hand_on(result, 0 if is_load else bits)

    def _hand_on(self, value: SSAValue, bits: int) -> None:
        if _may_hold_address(value.type):
            self.put(value, self._unknown if value in self._unrelated else bits)

    def indices(self, bits: int) -> frozenset[int]:
        """The arguments that a set of origins stands for."""
        if bits & self._unknown:
            return frozenset(self._pointers)
        return self.known_indices(bits)

    def known_indices(self, bits: int) -> frozenset[int]:
        """The arguments that a set of origins names."""
        return frozenset(i for i in self._pointers if bits >> i & 1)


def _made_pointers(kernel: FuncOp) -> Iterator[SSAValue]:
    """The pointers that are results of ops, and not handed on by a loop or a branch."""
    for op in kernel.walk():
        if not op.regions:
            yield from (result for result in op.results if is_pointer(result.type))


def _may_hold_address(type_: Attribute) -> bool:
    if isinstance(type_, DescriptorType) or is_pointer(type_):
        return True
    element = element_of(type_)
    return isinstance(element, IntegerType) and element.width.data >= _ADDRESS_BITS
