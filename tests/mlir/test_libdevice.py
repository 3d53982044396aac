"""Every function of libdevice, lowered by stock MLIR and run, agrees with the interpreter."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterable
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from tests.mlir.texts import text_of
from tilewright.ops.extern.ir import EXTERNS, Extern
from tilewright.targets.mlir.tools import find_tools
from tilewright.testing import assert_close

NUMPY = {
    **{"fp32": np.float32, "fp64": np.float64, "int32": np.int32, "uint32": np.uint32},
    **{"int64": np.int64, "uint64": np.uint64},
}
LANGUAGE = {"fp32": "float32", "fp64": "float64"}
HUGE = (1e7, -3e9, 2.5e22, 1e300)
# Where integers end.
ENDS = (-(2.0**31), 2.0**31, 2.0**32, -(2.0**63), 2.0**63, 2.0**64, 2.0**31 - 0.5)
SPECIAL = (0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, -1.0, 0.5, 2.5, 7.9999, 8.0, *HUGE, *ENDS)
# Functions of one form whose kernels are one: compiling is nearly all the time this takes.
PER_KERNEL = 8
TOLERANCE = {4: 2e-5, 8: 1e-11}
BLOCK = 64

Form = tuple[tuple[str, ...], str]


def forms() -> dict[Form, list[Extern]]:
    found: dict[Form, list[Extern]] = {}
    for row in EXTERNS.values():
        found.setdefault((row.operands, row.result), []).append(row)
    return found


def groups() -> list[tuple[Extern, ...]]:
    """The functions, those of one kernel together."""
    return [
        tuple(rows[start : start + PER_KERNEL])
        for rows in forms().values()
        for start in range(0, len(rows), PER_KERNEL)
    ]


def _type(name: str) -> str:
    return f"tl.{LANGUAGE.get(name, name)}"


def source(rows: tuple[Extern, ...]) -> str:
    """A kernel that stores what each function gives, one behind the other."""
    numbers = range(len(rows[0].operands))
    parameters = ", ".join(f"x{i}" for i in numbers)
    lines = ["import tilewright", "import tilewright.language as tl", "", "", "@tilewright.jit"]
    lines += [f"def kernel({parameters}, out, B: tl.constexpr):", "    at = tl.arange(0, B)"]
    lines += [f"    v{i} = tl.load(x{i} + at)" for i in numbers]
    values = ", ".join(f"v{i}" for i in numbers)
    key = "".join(f"{_type(name)}, " for name in rows[0].operands)
    for place, row in enumerate(rows):
        table = f"{{({key}): ({row.symbol!r}, {_type(row.result)})}}"
        call = f'tl.extern_elementwise("", "", [{values}], {table}, is_pure=True)'
        lines.append(f"    tl.store(out + {place} * B + at, {call})")
    return "\n".join(lines) + "\n"


def module_of(rows: tuple[Extern, ...], folder: Path) -> ModuleType:
    path = folder / "kernel_module.py"
    path.write_text(source(rows), encoding="utf-8")
    spec = importlib.util.spec_from_file_location(f"libdevice_{rows[0].symbol}", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def inputs(rows: tuple[Extern, ...]) -> list[np.ndarray]:
    """Numbers of each operand's type: special ones, and random ones."""
    rng = np.random.default_rng(len(rows[0].symbol))
    operands = rows[0].operands
    is_whole = not any(name.startswith("fp") for name in operands)
    found: list[np.ndarray] = []
    for name in operands:
        dtype = np.dtype(NUMPY[name])
        if dtype.kind == "f":
            values = rng.normal(size=BLOCK) * np.repeat((0.5, 3.0, 12.0, 1e3), BLOCK // 4)
            values[: len(SPECIAL)] = rng.permutation(SPECIAL)
            with np.errstate(over="ignore"):
                found.append(values.astype(dtype))
        elif is_whole:
            bounds = np.iinfo(dtype)
            values = rng.integers(bounds.min, bounds.max, BLOCK, dtype, endpoint=True)
            values[:4] = bounds.min, bounds.max, 0, 1
            found.append(values)
        else:
            found.append(rng.integers(-9, 12, BLOCK).astype(dtype))
    return found


def names(groups: Iterable[tuple[Extern, ...]]) -> list[str]:
    return [f"{rows[0].symbol}-and-{len(rows) - 1}" for rows in groups]


def test_the_groups_hold_every_function_once() -> None:
    symbols = [row.symbol for rows in groups() for row in rows]
    assert sorted(symbols) == sorted(EXTERNS)


@pytest.mark.mlir
@pytest.mark.parametrize("rows", groups(), ids=names(groups()))
def test_functions_agree_with_the_interpreter(
    rows: tuple[Extern, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TILEWRIGHT_TARGET", "mlir")
    kernel, given = module_of(rows, tmp_path).kernel, inputs(rows)
    expected, got = (np.zeros((len(rows), BLOCK), NUMPY[rows[0].result]) for _ in range(2))
    kernel.interpret[(1,)](*given, expected, B=BLOCK)
    kernel[(1,)](*given, got, B=BLOCK)
    for row, right, result in zip(rows, expected, got, strict=True):
        if right.dtype.kind == "f":
            tolerance = TOLERANCE[right.dtype.itemsize]
            assert_close(result, right, tolerance, tolerance, row.symbol)
        else:
            np.testing.assert_array_equal(result, right, row.symbol)


def test_the_table_of_a_reduction_stands_once_beside_the_functions(tmp_path: Path) -> None:
    rows = tuple(EXTERNS[name] for name in ("__nv_j0f", "__nv_y1f"))
    module = module_of(rows, tmp_path)
    floats = np.zeros(BLOCK * len(rows), np.float32)
    text = text_of(module.kernel, floats, floats, B=BLOCK)
    assert text.count('memref.global "private" constant @tw_two_over_pi : memref<21xi64>') == 1
    assert text.count("memref.get_global @tw_two_over_pi") > 1


@pytest.mark.mlir
def test_the_table_is_kept_through_every_form(tmp_path: Path) -> None:
    module = module_of((EXTERNS["__nv_j0"],), tmp_path)
    doubles = np.zeros(BLOCK)
    tools = find_tools()
    buffers = tools.to_buffers(text_of(module.kernel, doubles, doubles, B=BLOCK))
    assert buffers.count("memref.alloc") == buffers.count("memref.dealloc")
    assert "@tw_two_over_pi = private constant [21 x i64]" in tools.to_llvm(buffers)
