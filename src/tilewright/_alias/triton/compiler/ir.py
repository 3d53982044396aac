"""The tile IR of a kernel as clients walk it, to learn which arguments it writes.

Names of operations are those of the published dialects; what only Tilewright has appears under
the name of what it does to memory.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from xdsl.dialects.builtin import IntegerAttr, ModuleOp, StringAttr, SymbolRefAttr
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.utils.exceptions import VerifyException

from tilewright.compiler.build import make_request
from tilewright.frontend.kernel_source import KernelSource
from tilewright.frontend.lower import lower_kernel
from tilewright.frontend.program import Specialization
from tilewright.ir.text import print_module
from tilewright.support.options import CompileOptions

_PUBLISHED_NAMES = {
    "tw.atomic_load": "tt.load",
    "tw.atomic_store": "tt.store",
    "tt.descriptor_reduce": "tt.descriptor_store",
    "tt.descriptor_scatter": "tt.descriptor_store",
    "tt.descriptor_gather": "tt.descriptor_load",
}


class Value:
    """A value of the IR, known by its number."""

    def __init__(self, value: SSAValue) -> None:
        self._value = value

    def id(self) -> int:
        """A number that no other value of the module has."""
        return id(self._value)


class RegionView:
    """A region of an operation."""

    def __init__(self, region: Region) -> None:
        self._region = region

    def id(self) -> int:
        """A number that no other region of the module has."""
        return id(self._region)


class BlockView:
    """A block of operations with its arguments."""

    def __init__(self, block: Block) -> None:
        self._block = block

    def id(self) -> int:
        """A number that no other block of the module has."""
        return id(self._block)

    def get_num_arguments(self) -> int:
        """How many arguments the block has."""
        return len(self._block.args)

    def get_argument(self, index: int) -> Value:
        """An argument of the block."""
        return Value(self._block.args[index])

    def get_parent(self) -> RegionView | None:
        """The region that the block is in."""
        region = self._block.parent
        return None if region is None else RegionView(region)


class OperationView:
    """An operation with its operands, results, regions and attributes."""

    def __init__(self, op: Operation) -> None:
        self._op = op

    def get_name(self) -> str:
        """The name in the published dialect."""
        return _PUBLISHED_NAMES.get(self._op.name, self._op.name)

    def get_num_operands(self) -> int:
        """How many operands there are."""
        return len(self._op.operands)

    def get_operand(self, index: int) -> Value:
        """An operand."""
        return Value(self._op.operands[index])

    def get_num_results(self) -> int:
        """How many results there are."""
        return len(self._op.results)

    def get_result(self, index: int) -> Value:
        """A result."""
        return Value(self._op.results[index])

    def get_num_regions(self) -> int:
        """How many regions there are."""
        return len(self._op.regions)

    def get_region(self, index: int) -> RegionView:
        """A region."""
        return RegionView(self._op.regions[index])

    def get_block(self) -> BlockView | None:
        """The block that the operation is in."""
        block = self._op.parent
        return None if block is None else BlockView(block)

    def get_str_attr(self, name: str) -> str | None:
        """The text of an attribute, or None."""
        value = self._attribute(name)
        return value.data if isinstance(value, StringAttr) else None

    def get_flat_symbol_ref_attr(self, name: str) -> str | None:
        """The symbol that an attribute names, or None."""
        value = self._attribute(name)
        return value.root_reference.data if isinstance(value, SymbolRefAttr) else None

    def get_bool_attr(self, name: str) -> bool | None:
        """The truth of an attribute, or None."""
        value = self._attribute(name)
        return bool(value.value.data) if isinstance(value, IntegerAttr) else None

    def _attribute(self, name: str) -> Attribute | None:
        return self._op.properties.get(name) or self._op.attributes.get(name)


class Module:
    """The tile IR of a kernel."""

    def __init__(self, module: ModuleOp) -> None:
        self._module = module

    def __str__(self) -> str:
        return print_module(self._module)

    def verify(self) -> bool:
        """Whether the IR holds what its operations demand."""
        try:
            self._module.verify()
        except VerifyException:
            return False
        return True

    def walk(self, visit: Callable[[OperationView], object]) -> None:
        """Visit every operation after those inside it, in order."""
        for op in _inside_first(self._module):
            visit(OperationView(op))


def _inside_first(op: Operation) -> Iterator[Operation]:
    for region in op.regions:
        for block in region.blocks:
            for inner in block.ops:
                yield from _inside_first(inner)
    yield op


def module_of(source: KernelSource, specialization: Specialization) -> Module:
    """The IR of a kernel as the frontend gives it, before any pass. Raises: `CompilationError`."""
    return Module(lower_kernel(make_request(source, specialization, CompileOptions())))
