"""Kernels of the corpus in code for AArch64 machines, run under qemu, agree with NumPy."""

from __future__ import annotations

import re
import signal
from pathlib import Path

import pytest

from tests.aarch64.emulator import (
    EmulationFailed,
    Image,
    compile_case,
    emitted_assembly,
    link,
    run_emulated,
    run_image,
)
from tests.aarch64.machines import APPLE_M1, MACHINES, NEOVERSE_N1, NEOVERSE_V2, TRIPLE, Emulated
from tests.corpus.case import Case, check
from tests.corpus.everything import CASES, every_case
from tilewright.codegen.optimize import compile_module

pytestmark = pytest.mark.aarch64

every_machine = pytest.mark.parametrize("machine", MACHINES.values(), ids=MACHINES)


@every_machine
@every_case()
def test_the_kernel_agrees_with_numpy(case: Case, machine: Emulated) -> None:
    got = run_emulated(case, machine)
    check(case, got, case.expected(), f"{machine.machine.name} against NumPy")


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


@pytest.mark.parametrize("other", [NEOVERSE_N1, APPLE_M1], ids=["neoverse-n1", "apple-m1"])
def test_a_core_without_scalable_vectors_refuses_their_code(other: Emulated) -> None:
    (case,) = (case for case in CASES if case.name == "two-dots")
    prepared, _ = compile_case(case, NEOVERSE_V2)
    assert re.search(r"\bz[0-9]+\.", emitted_assembly(prepared))
    with pytest.raises(EmulationFailed) as caught:
        run_emulated(case, NEOVERSE_V2, other.cpu)
    assert caught.value.status == -signal.SIGILL
