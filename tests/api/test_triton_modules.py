"""The modules and names of `triton`: what is there, where it says it is from, what is refused."""

from __future__ import annotations

import importlib
import pickle
from pathlib import Path

import pytest

from tests.api.alias import run_script
from tilewright.support.errors import SharedMemoryExceeded, TilewrightError, UnsupportedError
from tilewright.support.source import Span
from tilewright.targets.nvidia.errors import ResourcesExceeded

import triton  # isort: skip - `alias` has put it on the path
import triton.language as tl  # isort: skip

MODULES = (
    *("triton", "triton.runtime", "triton.runtime.jit", "triton.runtime.autotuner"),
    *("triton.runtime.cache", "triton.runtime.driver", "triton.runtime.errors"),
    *("triton.runtime.interpreter", "triton.compiler", "triton.compiler.compiler"),
    *("triton.compiler.errors", "triton.backends", "triton.backends.compiler"),
    *("triton.backends.driver", "triton.testing", "triton.tools", "triton.tools.disasm"),
    *("triton.tools.tensor_descriptor", "triton.knobs", "triton._utils", "triton.profiler"),
    *("triton.language", "triton.language.core", "triton.language.standard"),
    *("triton.language.random", "triton.language.math", "triton.language.extra"),
    *("triton.language.extra.cuda", "triton.language.extra.libdevice", "triton.errors"),
    *("triton.language.extra.cuda.libdevice", "triton.language.target_info"),
    *("triton._internal_testing", "triton._C", "triton._C.libtriton", "triton._C.libtriton.ir"),
)


@pytest.mark.parametrize("name", MODULES)
def test_every_module_of_the_layout_can_be_imported(name: str) -> None:
    assert importlib.import_module(name).__name__ == name


def test_functions_and_types_of_the_language_say_that_they_are_from_triton() -> None:
    named = [value for name, value in vars(tl).items() if callable(value) and name[0] != "_"]
    elsewhere = {"constexpr_function", "PropagateNan", "range", "static_range", "condition"}
    elsewhere |= {"str_to_ty", "tuple_type", "must_use_result", "aggregate_replace"}
    strange = {
        value.__name__
        for value in named
        if not str(getattr(value, "__module__", "")).startswith("triton")
    }
    assert strange <= elsewhere | {"static_assert", "static_print", "slice", "aggregate"}
    assert tl.float32.__module__ == "triton.language.core"
    assert tl.extra.libdevice.exp.__module__ == "triton.language.extra.libdevice"
    assert tl.math.exp.__module__ == "triton.language.math"


def test_the_types_of_the_language_are_equal_to_tilewrights_own() -> None:
    own = importlib.import_module("tilewright.language")
    assert tl.float32 == own.float32
    assert own.float32 == tl.float32
    assert hash(tl.float32) == hash(own.float32)
    assert repr(tl.int8) == "triton.language.int8"
    assert isinstance(tl.constexpr(3), own.constexpr)
    assert own.float32.__class__.__module__ == "tilewright.language.dtypes"


def test_names_of_the_language_survive_pickling() -> None:
    for value in (tl.float8e4nv, tl.load, tl.math.exp, tl.extra.libdevice.pow):
        assert pickle.loads(pickle.dumps(value)) == value


def test_a_name_that_is_not_served_says_what_would_work() -> None:
    with pytest.raises(UnsupportedError, match=r"triton\.testing\.cublas is not served") as caught:
        _ = triton.testing.cublas
    assert "torch.matmul" in str(caught.value)
    assert not hasattr(triton, "experimental")
    with pytest.raises(ImportError):
        importlib.import_module("triton.experimental")


def test_a_function_of_the_language_refuses_to_be_called_by_the_host() -> None:
    with pytest.raises(ValueError, match=r"tl\.load is called outside of a kernel"):
        tl.load(None)


def test_a_builtin_of_another_package_becomes_part_of_a_kernel() -> None:
    import numpy as np

    out = np.zeros(4, np.float32)
    extended_kernel[(1,)](out, N=4)
    assert out.tolist() == [6.0, 6.0, 6.0, 6.0]


@tl.core.builtin
def doubled(x, *, _semantic=None):
    return x * 2


@triton.jit
def extended_kernel(out_ptr, N: tl.constexpr):
    tl.store(out_ptr + tl.arange(0, N), doubled(tl.full((N,), 3.0, tl.float32)))


def test_host_helpers_agree_with_tritons() -> None:
    assert triton.cdiv(10, 4) == 3
    assert triton.next_power_of_2(9) == 16
    assert tl.core.get_int_dtype(16, signed=False) == tl.uint16
    assert triton.__version__.startswith("3.9")
    assert set(triton.backends.backends) == {"cpu", "nvidia"}
    assert not hasattr(triton.backends.compiler, "AttrsDescriptor")


def test_errors_form_tritons_tree() -> None:
    from triton.compiler.errors import CompileTimeAssertionFailure, UnsupportedLanguageConstruct

    assert issubclass(triton.CompilationError, triton.TritonError)
    assert issubclass(CompileTimeAssertionFailure, triton.CompilationError)
    assert issubclass(UnsupportedLanguageConstruct, triton.CompilationError)
    for error in (
        triton.OutOfResources(3, 2, "shared memory"),
        triton.runtime.errors.PTXASError("bad"),
        triton.runtime.errors.AutotunerError("none"),
        triton.InterpreterError("oops"),
    ):
        assert isinstance(error, triton.TritonError)
        assert isinstance(error, TilewrightError)
    needs = triton.OutOfResources(3, 2, "shared memory")
    copy = pickle.loads(pickle.dumps(needs))
    assert (copy.required, copy.limit, copy.name) == (3, 2, "shared memory")
    assert str(copy) == str(needs)


def test_what_does_not_fit_the_machine_is_out_of_resources() -> None:
    """Tuning loops of programs catch that class, and read its numbers."""
    from triton.runtime.raising import as_triton_raises

    small = SharedMemoryExceeded("too much", span=Span("k.py", 3, 1))
    small.required_bytes, small.limit_bytes = 300_000, 232_448
    raised = as_triton_raises(small)
    assert isinstance(raised, triton.OutOfResources) and isinstance(raised, SharedMemoryExceeded)
    assert (raised.required, raised.limit, raised.name) == (300_000, 232_448, "shared memory")
    assert str(raised) == str(small) and raised.is_of_configuration
    copy = pickle.loads(pickle.dumps(raised))
    assert isinstance(copy, triton.OutOfResources) and copy.required == 300_000
    others = as_triton_raises(ResourcesExceeded("33 warps are too many"))
    assert isinstance(others, triton.OutOfResources) and "registers" in others.name
    assert as_triton_raises(others) is others


def test_the_distribution_serves_the_same_modules(tmp_path: Path) -> None:
    package = Path(__file__).parents[2] / "compat/triton/src"
    text = "import triton, triton.language as tl\nprint(tl.load.__module__, triton.__name__)\n"
    result = run_script(tmp_path / "script.py", text, {}, first=package)
    assert result.stdout.split() == ["triton.language.core", "triton"], result.stderr


def test_the_distribution_refuses_to_stand_in_front_of_triton_itself(tmp_path: Path) -> None:
    package = Path(__file__).parents[2] / "compat/triton/src/triton/__init__.py"
    target = tmp_path / "site/triton"
    (target / "_C").mkdir(parents=True)
    (target / "_C/libtriton.so").touch()
    (target / "__init__.py").write_text(package.read_text(encoding="utf-8"), encoding="utf-8")
    result = run_script(tmp_path / "script.py", "import triton\n", {}, first=tmp_path / "site")
    assert result.returncode == 1
    assert "pip uninstall tilewright-triton" in result.stderr


def test_importing_triton_loads_neither_the_compiler_nor_array_packages(tmp_path: Path) -> None:
    text = """
import sys, triton, triton.language
names = ("numpy", "xdsl", "llvmlite", "rich", "click", "subprocess", "concurrent.futures")
print(*(name for name in names if name in sys.modules))
"""
    result = run_script(tmp_path / "script.py", text, {})
    assert result.stdout.split() == [], result.stderr


def test_what_the_compiler_makes_is_of_tritons_classes() -> None:
    @triton.aggregate
    class Pair:
        first: tl.constexpr
        second: tl.tuple

    pair = Pair(3, (1, tl.constexpr(2)))
    assert isinstance(pair.first, tl.constexpr) and not isinstance(3, tl.constexpr)
    assert isinstance(pair.second, tl.tuple) and isinstance(pair.second[1], tl.constexpr)
    assert isinstance(tl.pointer_type(tl.int32), tl.dtype)
    assert not isinstance(tl.int32, tl.pointer_type)

    class Marked(tl.constexpr):
        pass

    assert isinstance(Marked(3), Marked) and not isinstance(tl.constexpr(3), Marked)
