"""Which arguments of a kernel point to memory that it reads, and which to memory that it writes.

A launch asks: a tuner saves the arrays that its trials would change for good, and an array that
must not be written is refused where a kernel stores through it.

Addresses are followed through arithmetic, selects, loops, descriptors and 64-bit integers. An
address that comes from elsewhere, such as one that was loaded, may be that of any argument.
"""

from __future__ import annotations

from collections.abc import Iterator

from xdsl.dialects.builtin import IntegerType, ModuleOp
from xdsl.ir import Attribute, Block, BlockArgument, Operation, OpResult, SSAValue

from tilewright.ir.effects import Access, Resource, own_effects
from tilewright.ir.types import DescriptorType, element_of, is_pointer
from tilewright.ops.control_flow import ForOp, IfOp, WhileOp
from tilewright.ops.function import FuncOp
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
    kernel = next(op for op in module.ops if isinstance(op, FuncOp))
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


def _global_accesses(op: Operation) -> list[Access]:
    effects = own_effects(op)
    return [e for e in effects if isinstance(e, Access) and e.is_on(Resource.GLOBAL)]


class _Origins:
    """The arguments that each address may come from, as bits of an integer."""

    def __init__(self, kernel: FuncOp) -> None:
        entry = kernel.body.block
        self._pointers = [i for i, a in enumerate(entry.args) if is_pointer(a.type)]
        self._unknown = 1 << len(entry.args)
        self._bits: dict[SSAValue, int] = {entry.args[i]: 1 << i for i in self._pointers}
        addresses = [value for value in _values(kernel, entry) if _may_hold_address(value.type)]
        self._spread(addresses)
        for value in addresses:
            if _is_made_here(value) and not self.of(value):
                self._bits[value] = self._unknown
        self._spread(addresses)

    def of(self, value: SSAValue) -> int:
        """The origins of a value; 0 for one that is no address."""
        return self._bits.get(value, 0)

    def indices(self, bits: int) -> frozenset[int]:
        """The arguments that a set of origins stands for."""
        if bits & self._unknown:
            return frozenset(self._pointers)
        return self.known_indices(bits)

    def known_indices(self, bits: int) -> frozenset[int]:
        """The arguments that a set of origins names."""
        return frozenset(i for i in self._pointers if bits >> i & 1)

    def _spread(self, addresses: list[SSAValue]) -> None:
        """Hand origins on from operands to results until nothing is new.

        Loops hand addresses back to their start: one more round for each that does.
        """
        is_changed = True
        while is_changed:
            is_changed = False
            for value in addresses:
                before = bits = self.of(value)
                for source in _sources(value):
                    bits |= self.of(source)
                if bits != before:
                    self._bits[value] = bits
                    is_changed = True


def _values(kernel: FuncOp, entry: Block) -> Iterator[SSAValue]:
    """Every value of a kernel but its arguments, operands before what is made of them."""
    for op in kernel.walk():
        for region in op.regions:
            for block in region.blocks:
                if block is not entry:
                    yield from block.args
        yield from op.results


def _may_hold_address(type_: Attribute) -> bool:
    if isinstance(type_, DescriptorType) or is_pointer(type_):
        return True
    element = element_of(type_)
    return isinstance(element, IntegerType) and element.width.data >= _ADDRESS_BITS


def _is_made_here(value: SSAValue) -> bool:
    """Whether a pointer is the result of an op, and not handed on by a loop or a branch."""
    return is_pointer(value.type) and isinstance(value, OpResult) and not value.op.regions


def _sources(value: SSAValue) -> tuple[SSAValue, ...]:
    """The values that `value` is computed from, or is handed on from."""
    if isinstance(value, OpResult):
        return _result_sources(value.op, value.index)
    assert isinstance(value, BlockArgument)
    parent = value.block.parent_op()
    if isinstance(parent, ForOp):
        if value.index == 0:
            return ()
        return (parent.iter_args[value.index - 1], _handed_on(parent.body.block)[value.index - 1])
    if isinstance(parent, WhileOp) and value.block is parent.before_region.block:
        return (parent.arguments[value.index], _handed_on(parent.after_region.block)[value.index])
    if isinstance(parent, WhileOp):
        return (_handed_on(parent.before_region.block)[1 + value.index],)
    return () if parent is None else tuple(parent.operands)


def _result_sources(op: Operation, index: int) -> tuple[SSAValue, ...]:
    if isinstance(op, ForOp):
        return (op.iter_args[index], _handed_on(op.body.block)[index])
    if isinstance(op, IfOp):
        return tuple(_handed_on(region.block)[index] for region in op.regions)
    if isinstance(op, WhileOp):
        return (_handed_on(op.before_region.block)[1 + index],)
    accesses = _global_accesses(op)
    only_reads = bool(accesses) and not any(access.writes for access in accesses)
    # What is loaded has nothing to do with where it was.
    return () if only_reads else tuple(op.operands)


def _handed_on(block: Block) -> tuple[SSAValue, ...]:
    last = block.last_op
    assert last is not None
    return tuple(last.operands)
