"""The builder: where the next op goes, from which source line, with which options.

User functions (`ops/<family>.py`) take a `Builder` first and compose ops through it; they see
`tensor` values and never touch blocks.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache, lru_cache

from xdsl.dialects.builtin import (
    AnyFloat,
    DenseIntOrFPElementsAttr,
    FloatAttr,
    IntegerAttr,
    LocationAttr,
    TensorType,
)
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue

from tilewright.ir import types as ir
from tilewright.ir.op import UNKNOWN_LOCATION
from tilewright.language.core import (
    MAX_TILE_ELEMS,
    block_type,
    dtype,
    pointer_type,
    tensor,
    tensor_descriptor_type,
)
from tilewright.machine.model import ABSTRACT, MachineModel
from tilewright.ops.arguments import shown
from tilewright.ops.creation.ir import ConstantOp
from tilewright.support.errors import CompileError, InternalError, TileTooLarge, TilewrightError

_ELEMENTS: dict[str, Attribute] = {
    "int1": ir.i1,
    "int8": ir.i8,
    "int16": ir.i16,
    "int32": ir.i32,
    "int64": ir.i64,
    "uint8": ir.i8,
    "uint16": ir.i16,
    "uint32": ir.i32,
    "uint64": ir.i64,
    "fp8e4nv": ir.f8e4m3fn,
    "fp8e5": ir.f8e5m2,
    "fp8e4b8": ir.f8e4m3fnuz,
    "fp8e5b16": ir.f8e5m2fnuz,
    "fp8e4b15": ir.f8e4m3b11fnuz,
    "fp16": ir.f16,
    "bf16": ir.bf16,
    "fp32": ir.f32,
    "fp64": ir.f64,
}


@cache
def ir_type(type_: dtype) -> Attribute:
    """The IR type of a language type (signedness is dropped: it lives in the ops)."""
    if isinstance(type_, block_type):
        return ir.tile_of(ir_type(type_.element_ty), type_.extents)
    if isinstance(type_, pointer_type):
        return ir.pointer_to(ir_type(type_.element_ty))
    if isinstance(type_, tensor_descriptor_type):
        return ir.DescriptorType(ir_type(type_.block_type))
    if type_.name not in _ELEMENTS:
        raise InternalError(f"type {type_} has no IR type")
    return _ELEMENTS[type_.name]


@lru_cache(maxsize=4096)
def integer_property(value: int, width: int = 32) -> IntegerAttr:
    """The interned `value : iN` attribute for op properties."""
    return IntegerAttr(value, width)


def shaped(element: dtype, shape: Sequence[int]) -> dtype:
    """The language type of `shape` and `element`: a scalar type for ()."""
    return block_type(element, shape) if len(shape) else element


def ssa(x: tensor) -> SSAValue:
    """The SSA value of a tensor."""
    assert isinstance(x.handle, SSAValue), x
    return x.handle


class Builder:
    """An insertion point (the end of a block) with the current source location.

    `call_function` inlines a jit function value on tensors: `call_function(fn, args)`; the
    frontend provides it, so that reductions can take user combine functions. `options` are
    the compile options as a mapping (`enable_fp_fusion`, `debug`, …).

    `target` names what the code is for, `machine` has the features of it.

    While a function of scalars maps over tiles, `lanes` is their shape: a tile of that shape
    stands for one scalar in each lane, and a branch that depends on it is taken by some lanes.
    `active` is the tile that tells which lanes are on the path being built; None is all.
    `is_combining` while a combine function is built, of which nobody knows how often it runs.
    """

    def __init__(
        self,
        block: Block,
        options: Mapping[str, object],
        call_function: Callable[[object, Sequence[object]], object] | None = None,
    ) -> None:
        self.block = block
        self.options = options
        self.location: LocationAttr = UNKNOWN_LOCATION
        self._annotations: Mapping[str, Attribute] = {}
        self.target = ""
        self.machine: MachineModel = ABSTRACT
        self.lanes: tuple[int, ...] | None = None
        self.active: tensor | None = None
        self.is_combining = False
        self._call_function = call_function

    @property
    def groups(self) -> int:
        """The groups of warps that share the rows of tiles; 0 where there are no roles."""
        groups = self.options.get("num_consumer_groups")
        return groups if isinstance(groups, int) and self.target != "cpu" else 0

    def emit(
        self,
        cls: type[Operation],
        operands: Sequence[SSAValue] = (),
        result_types: Sequence[Attribute] = (),
        properties: Mapping[str, Attribute] | None = None,
        regions: Sequence[Region] = (),
    ) -> Operation:
        """Append one op at the insertion point, at the current location."""
        op = cls.create(
            operands=operands,
            result_types=result_types,
            properties=properties or {},
            regions=regions,
            location=self.location,
        )
        if self._annotations:
            op.attributes.update(self._annotations)
        self.block.add_op(op)
        return op

    def tensor(
        self,
        cls: type[Operation],
        operands: Sequence[tensor],
        type_: dtype,
        properties: Mapping[str, Attribute] | None = None,
    ) -> tensor:
        """Append an op with one result and wrap the result as a tensor of `type_`.

        Raises: TileTooLarge.
        """
        if isinstance(type_, block_type) and type_.numel > MAX_TILE_ELEMS:
            raise TileTooLarge(
                f"a tile of shape {list(type_.extents)} has {type_.numel} elements; "
                f"the limit is {MAX_TILE_ELEMS}",
                known_as=f"numel ({type_.numel}) exceeds triton maximum tensor numel "
                f"({MAX_TILE_ELEMS})",
            )
        op = self.emit(cls, [ssa(x) for x in operands], [ir_type(type_)], properties)
        return tensor(op.results[0], type_)

    def constant(self, value: int | float | bool, type_: dtype) -> tensor:
        """A constant of a scalar or tile type; integers wrap to the type's width."""
        attribute = ir_type(type_)
        op = self.emit(ConstantOp, (), [attribute], {"value": constant_attribute(value, attribute)})
        return tensor(op.results[0], type_)

    def call_function(self, function: object, arguments: Sequence[object]) -> object:
        """Inline a jit function at the insertion point and return its value."""
        if self._call_function is None:
            raise InternalError("this builder cannot inline functions")
        return self._call_function(function, arguments)

    @contextmanager
    def mapping(self, lanes: tuple[int, ...] | None, active: tensor | None) -> Generator[None]:
        """Build a function of scalars for all `lanes`, on the path of the `active` ones."""
        saved = self.lanes, self.active
        self.lanes, self.active = lanes, active
        try:
            yield
        finally:
            self.lanes, self.active = saved

    @contextmanager
    def combining(self, block: Block) -> Generator[None]:
        """Append the body of a combine function to `block`."""
        saved, self.is_combining = self.is_combining, True
        try:
            with self.inside(block):
                yield
        finally:
            self.is_combining = saved

    @contextmanager
    def annotating(self, annotations: Mapping[str, Attribute]) -> Generator[None]:
        """Write attributes on every op that is appended meanwhile; the innermost one wins."""
        saved = self._annotations
        self._annotations = {**saved, **annotations}
        try:
            yield
        finally:
            self._annotations = saved

    @contextmanager
    def inside(self, block: Block) -> Generator[None]:
        """Append to `block` for the duration."""
        saved, self.block = self.block, block
        try:
            yield
        finally:
            self.block = saved


def constant_attribute(value: int | float | bool, type_: Attribute) -> Attribute:
    """The `value` property of a constant of `type_`, dense for a tile."""
    element = ir.element_of(type_)
    if ir.is_integer(element):
        width = ir.width_bits(element)
        wrapped = int(value) & ((1 << width) - 1)
        signed = wrapped - (1 << width) if width > 1 and wrapped >> (width - 1) else wrapped
        scalar: Attribute = IntegerAttr(signed, width) if width > 1 else _boolean(bool(wrapped))
        plain: int | float = signed
    else:
        scalar = _float_attribute(float(value), element)
        plain = scalar.value.data
    if not isinstance(type_, TensorType):
        return scalar
    return DenseIntOrFPElementsAttr.from_list(type_, [plain])


def _float_attribute(value: float, element: Attribute) -> FloatAttr:
    """`value` rounded to the float type; too great a number becomes an infinity."""
    assert isinstance(element, AnyFloat)
    try:
        return FloatAttr(value, element)
    except OverflowError:
        return FloatAttr(math.copysign(math.inf, value), element)


def _boolean(value: bool) -> Attribute:
    return IntegerAttr.from_bool(value)


def require(condition: bool, error: type[TilewrightError], message: str, **details: object) -> None:
    """Raise `error(message, **details)` unless `condition` holds."""
    if not condition:
        raise error(message, **details)  # type: ignore[arg-type]


def require_tensor(value: object, function: str, argument: str) -> tensor:
    """`value` as a tensor, or an error that names function and argument."""
    if not isinstance(value, tensor):
        raise CompileError(
            f"{function}(): `{argument}` must be a tile or scalar, got {shown(value)}",
            argument=argument,
        )
    return value
