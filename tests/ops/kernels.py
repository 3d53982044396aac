"""A whole kernel around one instance of an op: what it takes is loaded, what it gives is stored.

The arguments of the kernel are scalars and pointers, as those of every kernel, so that the module
goes the whole way to each target.
"""

from __future__ import annotations

import re
from itertools import count
from math import prod

from tests.ops.examples import EXAMPLES, Example

_TILE = re.compile(r"tensor<((?:\d+x)+)(.*)>")
_WHERE = 'loc("k.py":8:2)'


class KernelText:
    """The lines of a kernel under construction."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.arguments: list[str] = []
        self._numbers = count()

    def emit(self, op: str, operands: str, types: str, properties: str = "") -> str:
        """Append an op of one result, whose name is given back."""
        name = f"%v{next(self._numbers)}"
        given = f" <{{{properties}}}>" if properties else ""
        self.lines.append(f'{name} = "{op}"({operands}){given} : {types} {_WHERE}')
        return name

    def argument(self, type_: str) -> str:
        """A new argument of the kernel."""
        self.arguments.append(type_)
        return f"%a{len(self.arguments) - 1}"

    def addresses(self, shape: tuple[int, ...], element: str) -> str:
        """A tile of pointers to the elements of an array of its own."""
        pointer = f"!tt.ptr<{element}>"
        size = prod(shape)
        flat, index = f"tensor<{size}x{pointer}>", f"tensor<{size}xi32>"
        base = self.emit("tt.splat", self.argument(pointer), f"({pointer}) -> {flat}")
        numbers = self.emit(
            "tt.make_range", "", f"() -> {index}", f"start = 0 : i32, end = {size} : i32"
        )
        moved = self.emit("tt.addptr", f"{base}, {numbers}", f"({flat}, {index}) -> {flat}")
        return self.emit("tt.reshape", moved, f"({flat}) -> {_tile(shape, pointer)}")

    def value(self, type_: str) -> str:
        """A value of a type, which nothing is known of."""
        found = _TILE.fullmatch(type_)
        if found is not None:
            shape = tuple(map(int, found[1].rstrip("x").split("x")))
            if found[2].startswith("!tt.ptr<"):
                return self.addresses(shape, found[2].removeprefix("!tt.ptr<").removesuffix(">"))
            pointers = f"tensor<{found[1]}!tt.ptr<{found[2]}>>"
            none = "operandSegmentSizes = array<i32: 1, 0, 0>"
            return self.emit(
                "tt.load", self.addresses(shape, found[2]), f"({pointers}) -> {type_}", none
            )
        if type_.startswith("!tt.ptr<tensor"):
            return self._made("tt.make_tensor_ptr", type_)
        if type_.startswith("!tt.tensordesc"):
            return self._made("tt.make_tensor_descriptor", type_)
        if type_ == "index":
            return self.emit("arith.constant", "", "() -> index", "value = 3 : index")
        return self.argument(type_)

    def _made(self, op: str, type_: str) -> str:
        example = EXAMPLES[op]
        operands = ", ".join(self.value(operand) for operand in example.operands)
        return self.emit(
            op, operands, f"({', '.join(example.operands)}) -> {type_}", example.properties
        )

    def keep(self, name: str, type_: str) -> None:
        """Use a value: it is stored, or what it points to is."""
        found = _TILE.fullmatch(type_)
        if type_.startswith("!tt.ptr<tensor"):
            tile = type_.removeprefix("!tt.ptr<").removesuffix(">")
            none = "operandSegmentSizes = array<i32: 1, 0, 0>, boundaryCheck = array<i32: 0, 1>"
            self.keep(self.emit("tt.load", name, f"({type_}) -> {tile}", none), tile)
        elif type_.startswith("!tt.tensordesc"):
            tile = type_.removeprefix("!tt.tensordesc<").removesuffix(">")
            zero = self.argument("i32")
            self.keep(
                self.emit(
                    "tt.descriptor_load",
                    f"{name}, {zero}, {zero}",
                    f"({type_}, i32, i32) -> {tile}",
                ),
                tile,
            )
        elif found is not None and found[2].startswith("!tt.ptr<"):
            tile = f"tensor<{found[1]}{found[2].removeprefix('!tt.ptr<').removesuffix('>')}>"
            none = "operandSegmentSizes = array<i32: 1, 0, 0>"
            self.keep(self.emit("tt.load", name, f"({type_}) -> {tile}", none), tile)
        elif found is not None:
            shape = tuple(map(int, found[1].rstrip("x").split("x")))
            self._store(
                self.addresses(shape, found[2]),
                f"tensor<{found[1]}!tt.ptr<{found[2]}>>",
                name,
                type_,
            )
        elif type_.startswith("!tt.ptr<"):
            word = type_.removeprefix("!tt.ptr<").removesuffix(">")
            none = "operandSegmentSizes = array<i32: 1, 0, 0>"
            self.keep(self.emit("tt.load", name, f"({type_}) -> {word}", none), word)
        else:
            self._store(self.argument(f"!tt.ptr<{type_}>"), f"!tt.ptr<{type_}>", name, type_)

    def _store(self, pointer: str, pointers: str, name: str, type_: str) -> None:
        self.lines.append(f'"tt.store"({pointer}, {name}) : ({pointers}, {type_}) -> () {_WHERE}')

    def text(self) -> str:
        """The module."""
        arguments = ", ".join(
            f'%a{i}: {t} loc("k.py":2:{i + 1})' for i, t in enumerate(self.arguments)
        )
        types = f"({', '.join(self.arguments)}) -> ()"
        body = "\n    ".join(self.lines)
        return f"""
"builtin.module"() ({{
  "tt.func"() <{{sym_name = "k", function_type = {types}, sym_visibility = "public"}}> ({{
  ^bb0({arguments}):
    {body}
    "tt.return"() : () -> () loc("k.py":9:1)
  }}) : () -> () loc("k.py":1:1)
}}) : () -> () loc("k.py":1:1)
"""


def kernel_text(name: str) -> str:
    """A module whose kernel computes one instance of the op and stores its results."""
    example = EXAMPLES[name]
    while example.wrap:
        name, example = example.wrap, EXAMPLES[example.wrap]
    kernel = KernelText()
    if name not in ("tt.func", "tt.return"):
        _place(kernel, name, example)
    return kernel.text()


def _place(kernel: KernelText, name: str, example: Example) -> None:
    operands = ", ".join(kernel.value(type_) for type_ in example.operands)
    results = [f"%r{i}" for i in range(len(example.results))]
    left = f"{', '.join(results)} = " if results else ""
    given = f" <{{{example.properties}}}>" if example.properties else ""
    types = f"({', '.join(example.operands)}) -> ({', '.join(example.results)})"
    regions = f" {example.regions}" if example.regions else ""
    where = 'loc(callsite("f.py":3:4 at "k.py":8:2))'
    kernel.lines.append(f'{left}"{name}"({operands}){given}{regions} : {types} {where}')
    for result, type_ in zip(results, example.results, strict=True):
        kernel.keep(result, type_)


def _tile(shape: tuple[int, ...], element: str) -> str:
    return f"tensor<{'x'.join(map(str, shape))}x{element}>"
