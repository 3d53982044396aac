"""Functions of the CPU target that no kernel asks for as they are, called under qemu."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from tests.aarch64.emulator import Image, link, run_image
from tests.aarch64.machines import TRIPLE, Emulated
from tests.corpus.case import Array
from tilewright.codegen.llvm_builder import ModuleBuilder
from tilewright.codegen.optimize import compile_module


@dataclass(frozen=True)
class Call:
    """A call of a function with arrays, of which it gets the addresses, and i64 numbers."""

    name: str
    arguments: tuple[Array | int, ...]


def call_functions(
    module: ModuleBuilder, calls: Sequence[Call], emulated: Emulated, folder: Path
) -> None:
    """Make the calls, one after the other, in one process of qemu; arrays hold the results."""
    image, addresses = Image(), dict[int, int]()
    arrays = {id(x): x for call in calls for x in call.arguments if not isinstance(x, int)}
    for key, array in arrays.items():
        image.move(array)
        addresses[key] = image.moved(array.ctypes.data)
    lines = ["define void @tilewright_kernel(ptr, ptr, i64, i64, ptr) {"]
    for call in calls:
        words = [
            f"i64 {x}" if isinstance(x, int) else f"ptr inttoptr (i64 {addresses[id(x)]} to ptr)"
            for x in call.arguments
        ]
        lines.append(f"  call void {call.name}({', '.join(words)})")
    module.add_function("tilewright_kernel", "\n".join([*lines, "  ret void", "}"]))
    machine = emulated.machine
    compiled = compile_module(module.text(), machine.arch, machine.features, TRIPLE)
    image.start(0, 0, 0, 1)
    run_image(image, link(compiled.object, folder), emulated.cpu)
    for key, array in arrays.items():
        content = image.read(addresses[key], array.nbytes)
        array[...] = np.frombuffer(content, array.dtype).reshape(array.shape)
