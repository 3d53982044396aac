"""Checked mode: test every memory access for bounds and for int32 overflow of its offset."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import (
    ArrayAttr,
    DictionaryAttr,
    FunctionType,
    IntegerAttr,
    ModuleOp,
    StringAttr,
)
from xdsl.ir import Attribute, BlockArgument, Operation, SSAValue

from tilewright.analysis.provenance import base_argument
from tilewright.ir import types as ir
from tilewright.ir.attributes import integer_array
from tilewright.ir.effects import global_access
from tilewright.ir.op import build
from tilewright.ir.passes import Pass
from tilewright.ops.builder import constant_attribute
from tilewright.ops.creation.ir import ConstantOp, SplatOp
from tilewright.ops.debug.ir import AssertOp
from tilewright.ops.elementwise.comparisons import CmpIOp
from tilewright.ops.elementwise.ir import ELEMENTWISE, ExtSIOp, PtrToIntOp
from tilewright.ops.function import FuncOp, functions_of
from tilewright.ops.memory.ir import AddPtrOp, LoadOp
from tilewright.ops.shape.ir import BroadcastOp, ExpandDimsOp, ReshapeOp, TransOp
from tilewright.support.dataclass import dataclass
from tilewright.support.worklist import needed_first

BOUNDS_SUFFIXES = (".low", ".high")
_AND, _ADD, _SUB, _MUL = (ELEMENTWISE[f"arith.{n}"] for n in ("andi", "addi", "subi", "muli"))
_EQUAL, _AT_LEAST, _AT_MOST = 0, 9, 7
_VIEWS = (SplatOp, BroadcastOp, ExpandDimsOp, ReshapeOp, TransOp)
_ARITHMETIC = (_ADD, _SUB, _MUL)


@dataclass(frozen=True)
class InsertChecks(Pass):
    """Guard each access by its argument's bounds and by exact 64-bit address arithmetic.

    *Contract* every pointer parameter gains two i64 parameters at the end, its first byte and
    the byte behind its last. Each load, store and masked atomic whose base argument is known
    asserts (kind `overflow`) that its address is what 64-bit arithmetic gives and (kind
    `bounds`) that it lies within the argument, and is masked off where either fails, so that
    nothing outside is touched.
    *Why here* on T0, so that every target has the mode; before anything fuses.
    """

    name = "insert-checks"
    after = ("lower-block-pointers", "lower-descriptors")

    def apply(self, module: ModuleOp) -> None:
        """Rewrite every function of the module in place."""
        for function in functions_of(module):
            bounds = _add_bounds(function)
            for op in [op for op in function.walk() if _is_access(op)]:
                _Guarded(op, bounds).insert()


def _is_access(op: Operation) -> bool:
    access = global_access(op)
    if access is None or access.value is not op.operands[0]:
        return False
    pointer = ir.element_of(op.operands[0].type)
    return isinstance(pointer, ir.PointerType) and not ir.shape_of(pointer.pointee)


def _verb(op: Operation) -> str:
    access = global_access(op)
    assert access is not None
    if access.atomic is not None:
        return "atomic access to"
    return "store to" if access.writes else "load from"


def _add_bounds(function: FuncOp) -> dict[SSAValue, tuple[SSAValue, SSAValue]]:
    """Append the bounds parameters; pointer argument → (low, high)."""
    block = function.body.block
    pointers = [(i, a) for i, a in enumerate(block.args) if ir.is_pointer(a.type)]
    facts: list[Attribute] = []
    if function.arg_attrs is not None:
        assert isinstance(function.arg_attrs, ArrayAttr)
        facts = list(function.arg_attrs.data)
    facts += [DictionaryAttr({})] * (len(block.args) - len(facts))
    bounds: dict[SSAValue, tuple[SSAValue, SSAValue]] = {}
    for index, argument in pointers:
        name = _argument_name(facts[index], index)
        low, high = (block.insert_arg(ir.i64, len(block.args)) for _ in BOUNDS_SUFFIXES)
        bounds[argument] = (low, high)
        facts += [
            DictionaryAttr({"tt.name": StringAttr(name + suffix)}) for suffix in BOUNDS_SUFFIXES
        ]
    inputs = [argument.type for argument in block.args]
    function.properties["function_type"] = FunctionType.from_lists(
        inputs, list(function.function_type.outputs.data)
    )
    function.properties["arg_attrs"] = ArrayAttr(facts)
    return bounds


def _argument_name(facts: Attribute, index: int) -> str:
    entry = facts.data.get("tt.name") if isinstance(facts, DictionaryAttr) else None
    return entry.data if isinstance(entry, StringAttr) else f"argument {index}"


class _Guarded:
    """One access being guarded: ops go right before it, at its location."""

    def __init__(self, op: Operation, bounds: dict[SSAValue, tuple[SSAValue, SSAValue]]) -> None:
        self.op = op
        self.bounds = bounds
        self.pointer = op.operands[0]
        self.shape = ir.shape_of(self.pointer.type)
        self.flag = ir.tile_of(ir.i1, self.shape)
        self.word = ir.tile_of(ir.i64, self.shape)
        self.addresses: dict[SSAValue, SSAValue] = {}
        self.integers: dict[SSAValue, SSAValue] = {}

    def insert(self) -> None:
        """Insert the checks and narrow the access's mask."""
        base = base_argument(self.pointer)
        if base is None or base not in self.bounds:
            return
        pointer_type = ir.element_of(self.pointer.type)
        assert isinstance(pointer_type, ir.PointerType)
        size = ir.storage_bytes(pointer_type.pointee)
        name = _name_of(base)
        address = self.emit(PtrToIntOp, [self.pointer], self.word)
        exact = self.compare(_EQUAL, address, self.wide_address(self.pointer))
        self.check(exact, "overflow", name)
        low, high = self.bounds[base]
        last = self.emit(_SUB, [high, self.constant(size, ir.i64)], ir.i64)
        above = self.compare(_AT_LEAST, address, self.splat(low))
        below = self.compare(_AT_MOST, address, self.splat(last))
        inside = self.emit(_AND, [above, below], self.flag)
        self.check(inside, "bounds", name)
        self.narrow(self.emit(_AND, [exact, inside], self.flag))

    def emit(
        self,
        cls: type[Operation],
        operands: Sequence[SSAValue],
        type_: Attribute,
        properties: dict[str, Attribute] | None = None,
    ) -> SSAValue:
        """Insert an op before the access and return its result."""
        op = build(cls, operands, [type_], properties, location=self.op.location)
        block = self.op.parent_block()
        assert block is not None
        block.insert_op_before(op, self.op)
        return op.results[0]

    def constant(self, value: int, type_: Attribute) -> SSAValue:
        """A constant before the access."""
        return self.emit(ConstantOp, [], type_, {"value": constant_attribute(value, type_)})

    def splat(self, scalar: SSAValue) -> SSAValue:
        """A scalar spread over the access's shape."""
        return self.emit(SplatOp, [scalar], self.word) if self.shape else scalar

    def compare(self, predicate: int, lhs: SSAValue, rhs: SSAValue) -> SSAValue:
        """An integer comparison over the access's shape."""
        return self.emit(CmpIOp, [lhs, rhs], self.flag, {"predicate": IntegerAttr(predicate, 64)})

    def check(self, condition: SSAValue, kind: str, name: str) -> None:
        """Assert `condition` where the access's mask holds."""
        mask = self.mask()
        operands = [condition] if mask is None else [condition, mask]
        properties = {
            "message": StringAttr(f"{_verb(self.op)} `{name}`"),
            "kind": StringAttr(kind),
        }
        op = build(AssertOp, operands, [], properties, location=self.op.location)
        block = self.op.parent_block()
        assert block is not None
        block.insert_op_before(op, self.op)

    def mask(self) -> SSAValue | None:
        """The access's own mask, or None."""
        mask = getattr(self.op, "mask", None)
        return mask if isinstance(mask, SSAValue) else None

    def narrow(self, condition: SSAValue) -> None:
        """Let the access touch only what passed; an access without masks stays as it is."""
        mask = self.mask()
        if mask is not None:
            condition = self.emit(_AND, [mask, condition], self.flag)
            self.op.operands[list(self.op.operands).index(mask)] = condition
            return
        position = {"tt.load": 1, "tt.store": 2, "tt.atomic_rmw": 2}.get(self.op.name)
        if position is None:
            return
        operands = list(self.op.operands)
        operands.insert(position, condition)
        self.op.operands = operands
        if isinstance(self.op, LoadOp):
            other = int(self.op.other is not None)
            self.op.properties["operandSegmentSizes"] = integer_array((1, 1, other))

    def wide_address(self, pointer: SSAValue) -> SSAValue:
        """The address in bytes by 64-bit arithmetic, as i64 of the pointer's shape."""
        for needed in needed_first(pointer, _pointer_before, self.addresses.__contains__):
            self.addresses[needed] = self._wide_address(needed)
        return self.addresses[pointer]

    def _wide_address(self, pointer: SSAValue) -> SSAValue:
        op = pointer.owner
        word = ir.with_element(pointer.type, ir.i64)
        if isinstance(op, AddPtrOp):
            pointer_type = ir.element_of(pointer.type)
            assert isinstance(pointer_type, ir.PointerType)
            size = self.constant(ir.storage_bytes(pointer_type.pointee), word)
            distance = self.emit(_MUL, [self.wide(op.offset), size], word)
            return self.emit(_ADD, [self.addresses[op.ptr], distance], word)
        if isinstance(op, _VIEWS):
            return self.emit(type(op), [self.addresses[op.src]], word, dict(op.properties))
        return self.emit(PtrToIntOp, [pointer], word)

    def wide(self, value: SSAValue) -> SSAValue:
        """An integer recomputed in 64 bits as far as sums and products go back."""
        for needed in needed_first(value, _terms, self.integers.__contains__):
            self.integers[needed] = self._wide(needed)
        return self.integers[value]

    def _wide(self, value: SSAValue) -> SSAValue:
        word = ir.with_element(value.type, ir.i64)
        op = value.owner
        if ir.width_bits(value.type) == 64:
            return value
        if isinstance(op, _ARITHMETIC):
            return self.emit(type(op), [self.integers[v] for v in op.operands], word)
        if isinstance(op, _VIEWS):
            return self.emit(type(op), [self.integers[op.src]], word, dict(op.properties))
        return self.emit(ExtSIOp, [value], word)


def _pointer_before(pointer: SSAValue) -> Sequence[SSAValue]:
    op = pointer.owner
    return op.operands[:1] if isinstance(op, (AddPtrOp, *_VIEWS)) else ()


def _terms(value: SSAValue) -> Sequence[SSAValue]:
    op = value.owner
    is_narrow = ir.width_bits(value.type) < 64
    return op.operands if is_narrow and isinstance(op, (*_ARITHMETIC, *_VIEWS)) else ()


def _name_of(argument: SSAValue) -> str:
    assert isinstance(argument, BlockArgument)
    function = argument.block.parent_op()
    assert isinstance(function, FuncOp)
    name = function.argument_facts(argument.index).get("tt.name")
    return name.data if isinstance(name, StringAttr) else f"argument {argument.index}"
