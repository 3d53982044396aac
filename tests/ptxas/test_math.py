"""Every math function, library function and conversion assembles for Hopper, without calls."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from tests.asm.test_libdevice import LLVM, ROWS, elements
from tests.unit.targets.nvidia.test_convert import PAIRS, carrier
from tilewright.codegen.llvm_builder import FunctionBuilder, ModuleBuilder
from tilewright.codegen.math import ULP_BOUND
from tilewright.codegen.whitelist import NVPTX_WHITELIST, check_module
from tilewright.machine.gpus import SM_90A
from tilewright.targets.nvidia.convert import convert_floats
from tilewright.targets.nvidia.math import NvidiaMath
from tilewright.targets.nvidia.ptx import to_ptx
from tilewright.targets.nvidia.toolchain import find_assembler

pytestmark = pytest.mark.ptxas

MATH = NvidiaMath()
Body = Callable[[FunctionBuilder, list[str]], Sequence[str]]


def add_kernel(
    module: ModuleBuilder, name: str, sources: Sequence[str], targets: Sequence[str], body: Body
) -> None:
    """A kernel that applies `body` to values in memory."""
    fn = FunctionBuilder(module, f"define ptx_kernel void @{name}(ptr addrspace(1) %data)")
    values = [fn.value(f"load volatile {kind}, ptr addrspace(1) %data") for kind in sources]
    for kind, result in zip(targets, body(fn, values), strict=True):
        fn.emit(f"store volatile {kind} {result}, ptr addrspace(1) %data")
    fn.emit("ret void")
    module.add_function(name, fn.text())


def assert_assembles(module: ModuleBuilder, folder: Path) -> None:
    """No call is left in the PTX, and ptxas takes it without a stack or spills."""
    check_module(module.text(), NVPTX_WHITELIST, ("+ptx88",))
    ptx = to_ptx(module.text(), SM_90A)
    assert ptx.count(".entry") == len(module.functions)
    assert re.findall(r"\bcall\b", ptx) == []
    path = folder / "kernels.ptx"
    path.write_text(ptx)
    command = [str(find_assembler().path), "-v", "-arch=sm_90a", str(path), "-o", "/dev/null"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    assert set(re.findall(r"(\d+) bytes stack frame", done.stderr)) == {"0"}


def test_every_math_function_assembles(tmp_path: Path) -> None:
    module = ModuleBuilder()
    for name, element in (*ULP_BOUND, ("div", "float"), ("div", "double")):
        kinds = [element] * (2 if name in ("atan2", "pow", "div") else 1)
        add_kernel(
            module,
            f"{name}_{element}",
            kinds,
            [element],
            lambda fn, values, name=name, element=element: [MATH.emit(fn, name, element, values)],
        )
    assert_assembles(module, tmp_path)


def test_every_function_of_libdevice_assembles(tmp_path: Path) -> None:
    module = ModuleBuilder()
    for row in ROWS:
        selector = elements(row)[row.selector]
        add_kernel(
            module,
            row.symbol,
            elements(row),
            [LLVM[row.result]],
            lambda fn, values, row=row, selector=selector: [
                MATH.emit(fn, row.routine, selector, values)
            ],
        )
    assert_assembles(module, tmp_path)


@pytest.mark.parametrize("rounding", ["rtne", "rtz"])
def test_every_conversion_assembles(rounding: str, tmp_path: Path) -> None:
    module = ModuleBuilder()
    for index, (source, target) in enumerate(PAIRS):
        add_kernel(
            module,
            f"convert{index}",
            [carrier(source)[0]] * 2,
            [carrier(target)[0]] * 2,
            lambda fn, values, pair=(source, target): convert_floats(fn, *pair, values, rounding),
        )
    assert_assembles(module, tmp_path)
