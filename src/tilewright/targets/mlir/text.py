"""Text of MLIR functions: lines of core-dialect ops, and constants that stand at the start."""

from __future__ import annotations

import math
import struct
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import field

from xdsl.dialects.builtin import IndexType, IntegerType
from xdsl.ir import Attribute

from tilewright.codegen.llvm_types import constant_text
from tilewright.ir.types import FLOAT8, PointerType, bf16, element_of, f16, f32, f64
from tilewright.support.dataclass import dataclass
from tilewright.support.errors import InternalError

INDEX = "index"
_FLOAT_NAMES: dict[Attribute, str] = {f16: "f16", bf16: "bf16", f32: "f32", f64: "f64"}
# Packing of a float's bits; bfloat16 is the upper half of a float.
_BITS = {"f16": ("<e", "<H", 4), "f32": ("<f", "<I", 8), "f64": ("<d", "<Q", 16)}


def type_text(type_: Attribute) -> str:
    """The MLIR type that holds one element: floats of 8 bits are their bits, pointers numbers."""
    element = element_of(type_)
    if isinstance(element, PointerType):
        return "i64"
    if isinstance(element, IndexType):
        return INDEX
    if isinstance(element, IntegerType):
        return f"i{element.width.data}"
    if element in FLOAT8:
        return "i8"
    if element in _FLOAT_NAMES:
        return _FLOAT_NAMES[element]
    raise InternalError(f"{element} has no type among MLIR's core dialects")


def memory_text(pointee: Attribute) -> str:
    """The MLIR type of an element in memory: i1 takes a byte."""
    text = type_text(pointee)
    return "i8" if text == "i1" else text


def tensor_text(shape: Sequence[int], element: str) -> str:
    """A ranked tensor type."""
    return f"tensor<{_dims(shape)}{element}>"


def memref_text(shape: Sequence[int], element: str) -> str:
    """A contiguous memref type."""
    return f"memref<{_dims(shape)}{element}>"


def _dims(shape: Sequence[int]) -> str:
    return "".join(f"{extent}x" for extent in shape)


def is_float_text(element: str) -> bool:
    """Whether an MLIR type is a float."""
    return element in _BITS or element == "bf16"


def width_text(element: str) -> int:
    """The bits of an MLIR scalar type."""
    return 64 if element == INDEX else int(element.lstrip("bif"))


def literal(element: str, number: int | float | bool) -> str:
    """A constant as `arith.constant` spells it, exactly."""
    if element == "i1":
        return "true" if int(number) else "false"
    if not is_float_text(element):
        bits = width_text(element)
        whole = int(number) & ((1 << bits) - 1)
        return str(whole - (1 << bits) if whole >> (bits - 1) else whole)
    number = float(number)
    if math.isfinite(number):
        shown = repr(number)
        if "e" in shown and "." not in shown:
            shown = shown.replace("e", ".0e")
        return shown
    if element == "bf16":
        return "0x{:04X}".format(struct.unpack("<I", struct.pack("<f", number))[0] >> 16)
    pack, unpack, digits = _BITS[element]
    return f"0x{struct.unpack(unpack, struct.pack(pack, number))[0]:0{digits}X}"


@dataclass
class ModuleText:
    """A module under construction: functions by name, in the order of their first mention."""

    functions: dict[str, str] = field(default_factory=dict)
    globals: dict[str, str] = field(default_factory=dict)
    # The number of entries of each global that is a table.
    tables: dict[str, int] = field(default_factory=dict)

    def text(self) -> str:
        """The module as MLIR parses it."""
        body = "\n".join((*self.globals.values(), *self.functions.values()))
        return f"module {{\n{body}\n}}\n"


@dataclass
class Code:
    """The lines of one function. Values are `%N`; constants stand before all else, once each."""

    module: ModuleText
    lines: list[str] = field(default_factory=list)
    constants: dict[tuple[str, str], str] = field(default_factory=dict)
    depth: int = 2
    counter: int = 0
    # The source line that is being lowered, as MLIR writes a location.
    location: str = ""

    def new_name(self) -> str:
        """A name that nothing has."""
        self.counter += 1
        return f"%{self.counter - 1}"

    def emit(self, text: str) -> None:
        """Append one op that gives nothing."""
        self.lines.append("  " * self.depth + text + self.location)

    def value(self, text: str) -> str:
        """Append one op and return the name of its result."""
        name = self.new_name()
        self.emit(f"{name} = {text}")
        return name

    def values(self, count: int, text: str) -> list[str]:
        """Append one op with several results and return their names."""
        if count == 1:
            return [self.value(text)]
        name = self.new_name()
        self.emit(f"{name}:{count} = {text}" if count else text)
        return [f"{name}#{index}" for index in range(count)]

    def constant(self, element: str, number: int | float | bool) -> str:
        """The name of a constant."""
        shown = literal(element, number)
        key = (element, shown)
        if key not in self.constants:
            self.constants[key] = f"%c{len(self.constants)}"
        return self.constants[key]

    def number(self, type_: Attribute, number: int | float | bool) -> str:
        """The name of a constant of an element type of the IR; a float of 8 bits is its bits."""
        element = element_of(type_)
        if element in FLOAT8:
            return self.constant("i8", int(constant_text(number, element)))
        return self.constant(type_text(element), number)

    def index(self, number: int) -> str:
        """The name of a constant index."""
        return self.constant(INDEX, number)

    @contextmanager
    def capture(self, deeper: int = 1) -> Generator[list[str]]:
        """Lines that go elsewhere than to the end of the function."""
        outer, self.lines = self.lines, list[str]()
        self.depth += deeper
        try:
            yield self.lines
        finally:
            self.lines = outer
            self.depth -= deeper

    def close(self, text: str) -> None:
        """Append the line that ends a region: `}` and what follows it."""
        self.lines.append("  " * self.depth + text)

    def constant_lines(self) -> list[str]:
        """The definitions of the constants."""
        return [
            f"    {name} = arith.constant {shown}" + ("" if element == "i1" else f" : {element}")
            for (element, shown), name in self.constants.items()
        ]

    def function(self, header: str) -> str:
        """The whole function; `header` is all before the brace."""
        return "\n".join((f"  {header} {{", *self.constant_lines(), *self.lines, "  }"))
