"""What kernels say while they run: the calls of printf and of failed assertions."""

from __future__ import annotations

import re

import numpy as np
import pytest

import tilewright
import tilewright.language as tl
from tests.unit.codegen.simt.launching import (
    interpreted,
    llvm_text,
    ptx_text,
    random_array,
    simulated,
)
from tilewright.support.errors import KernelFault


@tilewright.jit
def prints(x, N: tl.constexpr, HEX: tl.constexpr):
    tl.device_print("values", tl.load(x + tl.arange(0, N)), tl.program_id(0), hex=HEX)


@tilewright.jit
def prints_everything(x, y):
    rows = tl.arange(0, 4)[:, None]
    columns = tl.arange(0, 16)[None, :]
    tile = tl.load(x + rows * 16 + columns)
    tl.device_print("tile 100%", tile)
    tl.device_print("several", tile > 0, tl.program_id(0), tl.load(y + tl.arange(0, 4)))
    tl.device_print("bits", tile, hex=True)
    tl.device_print("nothing")
    tl.device_print("", tl.load(y))


@pytest.mark.parametrize("num_warps", [1, 4])
@pytest.mark.parametrize("dtype", ["float32", "float16", "int8", "uint32", "int64"])
def test_the_lines_are_those_of_the_interpreter(
    dtype: str, num_warps: int, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = (random_array((4, 16), dtype), np.arange(4, dtype=np.float64) / 3)
    _, report = simulated(prints_everything, (2,), arguments, num_warps=num_warps)
    capsys.readouterr()
    interpreted(prints_everything, (2,), arguments)
    expected = capsys.readouterr().out.splitlines()
    assert sorted("".join(report.printed).splitlines()) == sorted(expected)


def _formats(text: str) -> list[str]:
    return re.findall(r'c"(pid[^"]*)"', text)


@pytest.mark.parametrize(
    ("dtype", "is_hex", "form"),
    [
        ("float32", False, "%f"),
        ("float16", False, "%f"),
        ("float64", True, "%a"),
        ("int32", False, "%lld"),
        ("uint8", False, "%llu"),
        ("int16", True, "0x%04llx"),
    ],
)
def test_a_line_names_program_index_and_operand(dtype: str, is_hex: bool, form: str) -> None:
    text = llvm_text(prints, (np.zeros(128, dtype),), N=128, HEX=is_hex)
    first, second = _formats(text)
    assert first == f"pid (%d, %d, %d) idx (%3d) values: (operand 0) {form}\\0A\\00"
    assert second.startswith("pid (%d, %d, %d) idx () values: (operand 1) ")


def test_a_scalar_is_printed_by_one_thread() -> None:
    text = llvm_text(prints, (np.zeros(128, np.int32),), N=128, HEX=False)
    last = text.rpartition("call void @tw_print")[0].rpartition("br i1")[2]
    assert "@tw_print" not in last
    assert re.search(r"icmp eq i32 %v\d+, 0", text)


@tilewright.jit
def asserts(x, N: tl.constexpr):
    values = tl.load(x + tl.arange(0, N))
    tl.device_assert(values < 7, "seven is too much", mask=values > 0)


def test_a_failed_assertion_names_message_line_and_kernel() -> None:
    text = llvm_text(asserts, (np.zeros(64, np.int32),), N=64, debug=True)
    assert 'c"seven is too much\\00"' in text
    assert 'test_reports.py\\00"' in text
    assert 'c"asserts\\00"' in text
    assert len(re.findall("call void @__assertfail", text)) == 1


@pytest.mark.parametrize(("value", "does_fail"), [(6, False), (7, True), (-9, False)])
def test_an_assertion_fails_where_its_mask_holds(value: int, does_fail: bool) -> None:
    x = np.zeros(64, np.int32)
    x[41] = value
    if not does_fail:
        simulated(asserts, (1,), (x,), N=64, debug=True)
        return
    with pytest.raises(KernelFault, match="seven is too much"):
        simulated(asserts, (1,), (x,), N=64, debug=True)


@tilewright.jit
def waits(x):
    tl.store(x, 1)
    tl.debug_barrier()


def test_a_barrier_of_the_author_is_one_of_all_warps() -> None:
    assert "bar.sync" in ptx_text(waits, (np.zeros(1, np.int32),), num_warps=4)
