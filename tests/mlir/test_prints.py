"""`device_print` is a call of the host's `printf`, line for line what the interpreter prints."""

from __future__ import annotations

import io
import re

import ml_dtypes
import numpy as np
import pytest

import tilewright
import tilewright.language as tl
from tests.mlir.texts import scheduled, text_of
from tests.ops.harness import interpret
from tilewright.jit import JITFunction

BOTH = ("float64", "float32", "float16", "bfloat16", "float8_e4m3fn")


@tilewright.jit
def shows(x, M: tl.constexpr, N: tl.constexpr, HEX: tl.constexpr):
    rows, columns = tl.arange(0, M)[:, None], tl.arange(0, N)[None, :]
    tile = tl.load(x + rows * N + columns)
    tl.device_print("tile", tile, hex=HEX)
    tl.device_print("100 % of", tl.program_id(1), tile == tile)
    tl.device_print("done")


@tilewright.jit
def shows_in_a_loop(x, n, B: tl.constexpr):
    for step in range(n):
        if step % 2 == 0:
            tl.device_print("step", step)
    tl.device_print("sum", tl.sum(tl.load(x + tl.arange(0, B)), axis=0))


@tilewright.jit
def shows_addresses(x):
    tl.device_print("at", x + 3)


def interpreted(
    kernel: JITFunction, grid: tuple[int, ...], *arguments: object, **constants: object
):
    output = io.StringIO()
    interpret(kernel, grid, *arguments, settings={"output": output}, **constants)
    return sorted(output.getvalue().splitlines())


def test_a_line_is_one_call_of_a_function_of_the_host() -> None:
    text = text_of(shows, np.zeros(64, np.float32), M=2, N=16, HEX=False)
    declared = re.findall(r"func\.func private @(tw_printf\w*)\(", text)
    assert "tw_printf_i32_i32_i32_i32_i32_f64" in declared and "tw_printf_i32_i32_i32" in declared
    for name in declared:
        assert text.count(f"func.call @{name}(") >= 1
    assert "memref.global" in text


def test_a_kernel_says_whether_it_prints() -> None:
    result = scheduled(shows_addresses, np.zeros(4, np.float32))
    assert result.metadata["has_prints"]


@pytest.mark.mlir
@pytest.mark.parametrize("is_hex", [False, True], ids=["plain", "hex"])
@pytest.mark.parametrize("dtype", [*BOTH, "int8", "uint8", "int16", "int32", "uint32", "int64"])
def test_every_line_is_what_the_interpreter_prints(
    dtype: str, is_hex: bool, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    x = np.arange(-16, 16).astype(getattr(ml_dtypes, dtype, dtype)).reshape(2, 16)
    constants = {"M": 2, "N": 16, "HEX": is_hex}
    expected = interpreted(shows, (2, 3), x, **constants)
    monkeypatch.setenv("TILEWRIGHT_TARGET", "mlir")
    capfd.readouterr()
    shows[(2, 3)](x, **constants)
    assert sorted(capfd.readouterr().out.splitlines()) == expected
    assert len(expected) == 6 * (32 + 1 + 32 + 1)


@pytest.mark.mlir
@pytest.mark.parametrize("n", [0, 5])
def test_prints_of_loops_come_as_often_as_they_are_run(
    n: int, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    x = np.arange(16, dtype=np.int32)
    expected = interpreted(shows_in_a_loop, (3,), x, n, B=16)
    monkeypatch.setenv("TILEWRIGHT_TARGET", "mlir")
    capfd.readouterr()
    shows_in_a_loop[(3,)](x, n, B=16)
    assert sorted(capfd.readouterr().out.splitlines()) == expected


@pytest.mark.mlir
def test_an_address_is_printed_in_full(
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TILEWRIGHT_TARGET", "mlir")
    x = np.zeros(4, np.float32)
    shows_addresses[(1,)](x)
    place = x.ctypes.data + 12
    assert capfd.readouterr().out == f"pid (0, 0, 0) idx () at: 0x{place:016x}\n"
