"""Kernels of the corpus in code for AArch64 machines, run under qemu, agree with NumPy."""

from __future__ import annotations

import signal
from pathlib import Path

import numpy as np
import pytest

from tests.aarch64.emulator import (
    EmulationFailed,
    Image,
    compile_case,
    link,
    run_emulated,
    run_image,
)
from tests.aarch64.machines import APPLE_M1, MACHINES, TRIPLE, Emulated
from tests.corpus.case import Case, check
from tests.corpus.everything import CASES, every_case
from tilewright.codegen.optimize import compile_module
from tilewright.compiler.compile import compile_request

pytestmark = pytest.mark.aarch64

every_machine = pytest.mark.parametrize("machine", MACHINES.values(), ids=MACHINES)
BYTES = "matmul-int8-nn-50x37x70x16x32x32"
# A core of Armv8.0-A: floats and NEON, no products of bytes.
BASE_CPU = "cortex-a72"


def case_named(name: str) -> Case:
    (found,) = (case for case in CASES if case.name == name)
    return found


@every_machine
@every_case()
def test_the_kernel_agrees_with_numpy(case: Case, machine: Emulated) -> None:
    got = run_emulated(case, machine)
    check(case, got, case.expected(), f"{machine.machine.name} against NumPy")


@every_machine
def test_a_core_without_products_of_bytes_refuses_their_code(machine: Emulated) -> None:
    case = case_named(BYTES)
    with pytest.raises(EmulationFailed) as caught:
        run_emulated(case, machine, BASE_CPU)
    assert caught.value.status == -signal.SIGILL
    floats = case_named("dot-float32-nn-128x64x32")
    check(floats, run_emulated(floats, APPLE_M1, BASE_CPU), floats.expected())


@every_machine
def test_products_of_bytes_are_the_instruction_for_them(machine: Emulated) -> None:
    prepared, _ = compile_case(case_named(BYTES), machine)
    texts: list[str] = []
    compile_request(
        prepared.request,
        observe=lambda stage, result: texts.append(str(result)) if stage == "llir" else None,
    )
    model = machine.machine
    done = compile_module(texts[0], model.arch, model.features, TRIPLE, emit_assembly=True)
    assert done.assembly is not None
    assert "\tsdot\t" in done.assembly
    assert "\tsmull" not in done.assembly


def test_a_call_that_no_library_holds_is_named(tmp_path: Path) -> None:
    text = (
        "declare void @nobody_has_this()\n"
        "define void @tilewright_kernel() {\n  call void @nobody_has_this()\n  ret void\n}\n"
    )
    compiled = compile_module(text, "neoverse-n1", ("+neon",), TRIPLE)
    image = Image()
    image.start(0, 0, 0, 0)
    with pytest.raises(EmulationFailed, match="nobody_has_this"):
        run_image(image, link(compiled.object, tmp_path), APPLE_M1.cpu)


def test_what_a_kernel_does_not_write_stays() -> None:
    case = case_named("dot-float32-nn-1x1x1")
    prepared, _ = compile_case(case, APPLE_M1)
    before = {name: array.copy() for name, array in prepared.memory.arrays().items()}
    got, expected = run_emulated(case, APPLE_M1), case.expected()
    changed = [name for name in got if not np.array_equal(got[name], before[name])]
    assert changed == [n for n in expected if not np.array_equal(expected[n], before[n])] != []
