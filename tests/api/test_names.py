"""Names that Python allows and the IR, LLVM or PTX does not: kernels and parameters have them."""

from __future__ import annotations

import importlib.util
import linecache
import sys
from pathlib import Path

import numpy as np
import pytest

import tilewright
import tilewright.language as tl
from tests.corpus.case import Case
from tests.corpus.threads import gpu_request, run_threads
from tilewright.compiler.compile import compile_request
from tilewright.jit import JITFunction
from tilewright.support.errors import ResultNotUsed
from tilewright.targets.nvidia.symbols import entry_symbol

KERNELS = ("_", "größe", "shared", "vprintf", "tw_text_0", "WARP_SZ", "add", "__init__", "ﬁ")
PARAMETERS = (("_0", "ø"), ("_", "__"), ("entry", "bb1"), ("v1", "a0"), ("x_1_2", "_1_2"))


def made(kernel: str, x: str, y: str, folder: Path) -> JITFunction:
    text = (
        "import tilewright\nimport tilewright.language as tl\n\n"
        f"@tilewright.jit\ndef {kernel}({x}, {y}):\n"
        f"    r = tl.arange(0, 32)\n    tl.store({y} + r, tl.load({x} + r) + 1)\n"
    )
    path = folder / "named.py"
    path.write_text(text, encoding="utf-8")
    linecache.checkcache(str(path))
    spec = importlib.util.spec_from_file_location("named", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["named"] = module
    spec.loader.exec_module(module)
    (found,) = (v for v in vars(module).values() if isinstance(v, JITFunction))
    return found


def require_runs(kernel: JITFunction) -> None:
    expected = list(range(1, 33))
    for run in (kernel[(1,)], kernel.interpret[(1,)]):
        y = np.zeros(32, np.int32)
        run(np.arange(32, dtype=np.int32), y)
        assert y.tolist() == expected
    x, y = (p.name for p in kernel.source.parameters)
    values = {x: np.arange(32, dtype=np.int32), y: np.zeros(32, np.int32)}
    got = run_threads(Case("named", kernel, (1,), lambda _: dict(values), lambda _: None))
    assert got[y].tolist() == expected


@pytest.mark.parametrize("name", KERNELS)
def test_a_kernel_may_have_any_name(name: str, tmp_path: Path):
    require_runs(made(name, "x", "y", tmp_path))


@pytest.mark.parametrize("names", PARAMETERS)
def test_parameters_may_have_any_name(names: tuple[str, str], tmp_path: Path):
    require_runs(made("kernel", *names, tmp_path))


@pytest.mark.ptxas
@pytest.mark.parametrize("name", KERNELS)
def test_ptxas_takes_the_symbol_of_any_kernel(name: str, tmp_path: Path):
    kernel = made(name, "x", "y", tmp_path)
    array = np.zeros(32, np.int32)
    case = Case("named", kernel, (1,), lambda _: {"x": array, "y": array}, lambda _: None)
    artifact = compile_request(gpu_request(case))
    symbol = entry_symbol(artifact.metadata["name"])
    assert artifact.metadata["symbol"] == symbol
    assert f".entry {symbol}(".encode() in artifact.sections["ptx"]


@tilewright.must_use_result("the neighbour is returned, not stored")
@tilewright.jit
def neighbour(x):
    return x + 1


@tilewright.jit
def drop(x, B: tl.constexpr):
    neighbour(tl.load(x + tl.arange(0, B)))


def test_must_use_result_says_its_own_reason():
    with pytest.raises(ResultNotUsed, match="help: the neighbour is returned, not stored"):
        drop[(1,)](np.zeros(8, np.int32), 8)
