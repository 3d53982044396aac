"""Reductions, scans, sorts, look-ups, atomics and reports: ptxas takes what is emitted for them."""

from __future__ import annotations

from collections.abc import Sequence

import ml_dtypes
import numpy as np
import pytest

import tilewright
import tilewright.language as tl
from tests.unit.codegen.simt.launching import MACHINE, ptx_text
from tests.unit.codegen.simt.test_scopes import sums_and_transpose
from tests.unit.codegen.simt.two_roles import Role, emit_roles
from tilewright.jit import JITFunction
from tilewright.targets.nvidia.assembler import Assembled, assemble_ptx
from tilewright.targets.nvidia.ptx import to_ptx

pytestmark = pytest.mark.ptxas


def assembled(
    kernel: JITFunction, arguments: Sequence[object], **options: object
) -> tuple[str, Assembled]:
    """The PTX of a kernel, and what ptxas makes of it."""
    text = ptx_text(kernel, arguments, **options)
    return text, assemble_ptx(text, "sm_90a")


@tilewright.jit
def softmax(x, y, rows, columns, BLOCK: tl.constexpr):
    for row in range(tl.program_id(0), rows, tl.num_programs(0)):
        places = tl.arange(0, BLOCK)
        values = tl.load(x + row * columns + places, mask=places < columns, other=-float("inf"))
        values = tl.exp(values - tl.max(values, 0))
        total = tl.sum(values, 0)
        tl.store(y + row * columns + places, values / total, mask=places < columns)


@pytest.mark.parametrize("num_warps", [4, 8, 16])
def test_a_row_in_a_loop_takes_two_barriers_and_ten_shuffles(num_warps: int) -> None:
    x = np.zeros((4, 4096), np.float32)
    text, made = assembled(softmax, (x, x, 4, 4096), BLOCK=4096, num_warps=num_warps)
    assert text.count("bar.sync") == 2
    assert text.count("shfl.sync.bfly") == 10
    assert not made.resources.has_spills
    assert made.resources.registers <= 80


@tilewright.jit
def orders(x, y, z, N: tl.constexpr):
    places = tl.arange(0, N)
    values, positions = tl.sort(tl.load(x + places), return_indices=True)
    tl.store(y + places, tl.cumsum(values, 0))
    tl.store(z + places, positions)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64, np.int8])
def test_sorts_and_scans_have_no_spills(dtype: type[np.generic]) -> None:
    x, z = np.zeros(512, dtype), np.zeros(512, np.int32)
    assert not assembled(orders, (x, x, z), N=512)[1].resources.has_spills


@tilewright.jit
def looks_up(x, y, z, N: tl.constexpr):
    places = tl.arange(0, N)
    values = tl.load(z + places)
    found = tl.gather(tl.flip(tl.load(x + places)), values & (N - 1), 0)
    counted = tl.histogram(values, N)
    tl.store(y + places, found)
    tl.store(z + places, counted)


@pytest.mark.parametrize("num_warps", [1, 4])
def test_look_ups_and_histograms(num_warps: int) -> None:
    x, z = np.zeros(256, np.float16), np.zeros(256, np.int32)
    text, made = assembled(looks_up, (x, x, z), N=256, num_warps=num_warps)
    assert "red.shared.add.u32" in text or "atom.shared.add.u32" in text
    assert not made.resources.has_spills


@tilewright.jit
def atomics(x, y, N: tl.constexpr, ORDER: tl.constexpr, SCOPE: tl.constexpr, KIND: tl.constexpr):
    places = tl.arange(0, N)
    value = tl.load(x + places)
    if KIND == "float":
        old = tl.atomic_add(y + places, value, value > 0, sem=ORDER, scope=SCOPE)
    else:
        old = tl.atomic_add(y + places, value, sem=ORDER, scope=SCOPE)
        old += tl.atomic_and(y + places, value, value > 3, sem=ORDER, scope=SCOPE)
        old += tl.atomic_or(y + places, value, sem=ORDER, scope=SCOPE)
        old += tl.atomic_xor(y + places, value, sem=ORDER, scope=SCOPE)
        old += tl.atomic_max(y + places, value, sem=ORDER, scope=SCOPE)
        old += tl.atomic_min(y + places, value, sem=ORDER, scope=SCOPE)
        old += tl.atomic_xchg(y + places, value, sem=ORDER, scope=SCOPE)
        old += tl.atomic_cas(y + places, value, old, sem=ORDER, scope=SCOPE)
    tl.store(x + places, old)


@pytest.mark.parametrize(
    ("order", "scope"),
    [("relaxed", "cta"), ("acquire", "gpu"), ("release", "sys"), ("acq_rel", "gpu")],
)
@pytest.mark.parametrize("dtype", ["int32", "uint32", "int64", "uint64"])
def test_atomics_on_integers(dtype: str, order: str, scope: str) -> None:
    x = np.zeros(512, dtype)
    options = {"ORDER": order, "SCOPE": scope, "KIND": "integer"}
    assembled(atomics, (x, x), N=512, **options)


@pytest.mark.parametrize("n", [64, 1024])
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_additions_of_floats_narrow_and_wide(dtype: str, n: int) -> None:
    x = np.zeros(n, ml_dtypes.bfloat16 if dtype == "bfloat16" else dtype)
    for order in ("relaxed", "acq_rel"):
        assembled(atomics, (x, x), N=n, ORDER=order, SCOPE="gpu", KIND="float")


@tilewright.jit
def small_atomics(x, y):
    places = tl.arange(0, 64)
    seen = tl.atomic_load(x + places, sem="acquire")
    tl.atomic_store(y + places, seen, sem="release", scope="sys")


@pytest.mark.parametrize("dtype", ["int8", "int16", "float16", "int32", "float64"])
def test_atomic_loads_and_stores_of_every_width(dtype: str) -> None:
    x = np.zeros(64, dtype)
    assembled(small_atomics, (x, x))


@tilewright.jit
def talks(x):
    values = tl.load(x + tl.arange(0, 64))
    tl.device_print("values", values, tl.program_id(0))
    tl.device_assert(values < 3, "three is too much")


def test_prints_and_assertions() -> None:
    text, _ = assembled(talks, (np.zeros(64, np.float16),), debug=True)
    assert "vprintf" in text
    assert "__assertfail" in text


@pytest.mark.parametrize("registers", [(0, 0), (24, 240), (40, 232)])
def test_roles_assemble_with_barriers_and_registers_of_their_own(
    registers: tuple[int, int],
) -> None:
    sums, transpose = sums_and_transpose()
    roles = (
        Role(sums.kernel, sums.arrays, registers=registers[0]),
        Role(transpose.kernel, transpose.arrays, replicas=2, registers=registers[1]),
    )
    text, _ = emit_roles(roles)
    ptx = to_ptx(text, MACHINE)
    assert "bar.sync \t1, 128;" in ptx and "bar.sync \t0" not in ptx
    assert ptx.count("setmaxnreg") == 2 * bool(registers[0])
    made = assemble_ptx(ptx, "sm_90a")
    assert not made.messages  # as that setmaxnreg is ignored
    assert not made.resources.has_spills
    # The replicas' barrier is in a register, so that all sixteen are the program's.
    assert made.resources.barriers == 16
