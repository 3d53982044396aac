"""The arguments of a kernel: block arguments for what a launch passes, else constants."""

from __future__ import annotations

import re
from collections.abc import Sequence

from xdsl.dialects.builtin import DictionaryAttr, StringAttr
from xdsl.ir import Attribute, Block

from tilewright.frontend.constants import AggregateRef, NamedTupleClass
from tilewright.frontend.frame import Frame
from tilewright.frontend.program import ArgumentPath, Specialization, TypeTree
from tilewright.frontend.type_text import DescriptorText, parse_descriptor, parse_scalar
from tilewright.frontend.values import value_of
from tilewright.language.core import constexpr, dtype, int32, int64, pointer_type, tensor, tuple_
from tilewright.ops.builder import integer_property, ir_type
from tilewright.ops.library import SURFACE
from tilewright.support.errors import InternalError

# xDSL takes numbers off the end of a name: nothing would be left.
_NUMBERED = re.compile(r"(_\d+)+")


class KernelArguments:
    """Builds the block arguments of a kernel and binds its parameters to them."""

    def __init__(self, frame: Frame, block: Block) -> None:
        self._frame = frame
        self._block = block
        self.attributes: list[DictionaryAttr] = []

    def bind(self, specialization: Specialization) -> None:
        """Give every parameter of the kernel its value."""
        for name, type_ in specialization.signature:
            value = self._value(specialization, (name,), type_)
            self._frame.assign(name, value, self._frame.code.node)

    def _value(self, specialization: Specialization, path: ArgumentPath, type_: TypeTree) -> object:
        if not isinstance(type_, str):
            items = [
                self._value(specialization, (*path, index), item)
                for index, item in enumerate(type_.items)
            ]
            return tuple_(items, self._fields(type_.cls), type_.cls)
        if type_ == "constexpr":
            return value_of(specialization.constants[path])
        descriptor = parse_descriptor(type_)
        if descriptor is not None:
            return self._descriptor(path, descriptor)
        scalar = parse_scalar(type_)
        if scalar is None:
            raise InternalError(f"no type {type_!r} in a signature")
        return self._argument(_name(path), scalar, specialization.divisibility.get(path, 1))

    def _fields(self, cls: NamedTupleClass | AggregateRef | None) -> Sequence[str] | None:
        if isinstance(cls, AggregateRef):
            record = self._frame.lowering.request.functions[cls.key]
            return [p.name for p in record.parameters]
        return None if cls is None else cls.fields

    def _argument(self, name: str, type_: dtype, divisibility: int = 1) -> tensor:
        attribute = ir_type(type_)
        value = self._block.insert_arg(attribute, len(self._block.args))
        hint = name.replace(".", "_")
        # A name of the IR is for people only: Python allows more of them than the IR does.
        value.name_hint = hint if hint.isascii() and not _NUMBERED.fullmatch(hint) else None
        facts: dict[str, Attribute] = {"tt.name": StringAttr(name)}
        if divisibility > 1:
            facts["tt.divisibility"] = integer_property(divisibility)
        self.attributes.append(DictionaryAttr(facts))
        return tensor(value, type_)

    def _descriptor(self, path: ArgumentPath, descriptor: DescriptorText) -> object:
        """A host descriptor: base, shape and strides are passed, the descriptor is made here."""
        name, rank = _name(path), len(descriptor.block_shape)
        base = self._argument(f"{name}.base", pointer_type(descriptor.element), 16)
        shape = [self._argument(f"{name}.shape.{i}", int32) for i in range(rank)]
        passed = [self._argument(f"{name}.strides.{i}", int64) for i in range(rank)]
        strides: list[object] = [*passed[:-1], constexpr(1)]
        block = [constexpr(extent) for extent in descriptor.block_shape]
        make = SURFACE["make_tensor_descriptor"].function
        return make(
            self._frame.at(self._frame.code.node),
            base,
            tuple_(shape),
            tuple_(strides),
            tuple_(block),
            padding_option=constexpr(descriptor.padding),
        )


def _name(path: ArgumentPath) -> str:
    return ".".join(str(part) for part in path)
