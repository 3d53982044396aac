"""Calls user functions through a builder, without a frontend."""

from __future__ import annotations

from collections.abc import Mapping

from xdsl.ir import Block, Operation

from tilewright.language.core import block_type, dtype, pointer_type, tensor
from tilewright.ops.builder import Builder, ir_type
from tilewright.ops.library import SURFACE


class Emission:
    """A block under construction: `value` makes operands, `call` calls a user function."""

    def __init__(self, options: Mapping[str, object] | None = None) -> None:
        self.block = Block()
        self.builder = Builder(self.block, options or {})

    def value(self, element: dtype, *shape: int) -> tensor:
        """A block argument of the type."""
        type_ = block_type(element, shape) if shape else element
        return tensor(self.block.insert_arg(ir_type(type_), len(self.block.args)), type_)

    def pointer(self, element: dtype, *shape: int, const: bool = False) -> tensor:
        """A pointer or a tile of pointers."""
        return self.value(pointer_type(element, const=const), *shape)

    def call(self, key: str, *arguments: object, **named: object) -> object:
        """The result of the user function `key`; every op emitted verifies."""
        result = SURFACE[key].function(self.builder, *arguments, **named)
        for op in self.ops():
            op.verify()
        return result

    def ops(self) -> list[Operation]:
        """All ops so far, those in regions included."""
        return [inner for op in self.block.ops for inner in op.walk()]

    def names(self) -> list[str]:
        """The names of all ops so far."""
        return [op.name for op in self.ops()]
