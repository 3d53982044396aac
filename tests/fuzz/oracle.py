"""Running a generated kernel in several ways and comparing what memory holds afterwards."""

from __future__ import annotations

import importlib.util
import linecache
import sys
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import TypeVar

import numpy as np

from tests.corpus.case import EXACT, Array, Case, is_float
from tests.corpus.run import (
    launch,
    prepare,
    reduced_machine,
    run_compiled,
    run_interpreted,
    run_module,
)
from tests.corpus.text import run_as_text
from tests.corpus.threads import run_threads
from tests.fuzz.program import Program
from tilewright.compiler.pipeline import tile_pipeline
from tilewright.frontend.lower import lower_kernel
from tilewright.jit import JITFunction
from tilewright.machine.model import MachineModel
from tilewright.support.errors import TilewrightError
from tilewright.targets.target import load_target

# What is compared with the interpreter, beside the default compilation.
VARIANTS = ("unoptimized", "avx2", "sse2", "beside")
SIMULATED = "sm_90a"
AS_TEXT = "text"
GPU = "gpu"
_WARPS = (4, 1, 8, 2)
_WITHOUT = {
    "avx2": ("avx512", "avx10", "amx", "evex512", "avxvnni", "avxneconvert"),
    "sse2": ("avx", "amx", "evex512", "f16c", "fma", "vaes", "vpclmulqdq", "sse3", "ssse3", "sse4",
             "gfni"),
}  # fmt: skip


_FAILURES = (
    TilewrightError, ArithmeticError, LookupError, TypeError, ValueError, AttributeError,
    AssertionError, RuntimeError,
)  # fmt: skip


@dataclass(frozen=True)
class Finding:
    """A way to run the program that failed or gave another result.

    `kind` names the way and what went wrong, so that a reduction keeps to one defect.
    """

    kind: str
    text: str


_Result = TypeVar("_Result")
Run = Callable[[Case], dict[str, Array]]


def examine(
    program: Program, variants: tuple[str, ...] = VARIANTS, more: Mapping[str, Run] | None = None
) -> Finding | None:
    """Run a program every way; the first disagreement, or None.

    `more` are ways by name that stand in place of the default compilation.
    """
    with tempfile.TemporaryDirectory() as folder:
        case = case_of(program, Path(folder))
        expected = _attempt("interpreter", lambda: run_interpreted(case))
        if isinstance(expected, Finding):
            return expected
        ways = dict(more or {})
        if not ways and variants not in ((SIMULATED,), (AS_TEXT,)):
            variants = ("default", *variants)
        ways |= {name: partial(_run, variant=name) for name in variants}
        for variant, run in ways.items():
            got = _attempt(variant, partial(run, case))
            finding = got if isinstance(got, Finding) else _compare(variant, got, expected)
            if finding is not None:
                return finding
    return None


def examine_briskly(program: Program, variant: str) -> Finding | None:
    """Interpret and compile one lowering of a program, one way: a third of the time."""
    with tempfile.TemporaryDirectory() as folder:
        case = case_of(program, Path(folder))
        prepared = prepare(case, _machine(variant) if variant in _WITHOUT else None)
        module = _attempt("frontend", lambda: lower_kernel(prepared.request))
        if isinstance(module, Finding):
            return module
        expected = _attempt("interpreter", lambda: run_module(case, module))
        if isinstance(expected, Finding):
            return expected

        def compiled() -> dict[str, Array]:
            request = prepared.request
            options = request.compile_options
            tile_pipeline(load_target("cpu"), request.machine, options).apply(module)
            is_alone = variant != "beside"
            return launch(
                prepared,
                optimize=variant != "unoptimized",
                module=module,
                may_be_alone=is_alone,
            )

        got = _attempt(variant, compiled)
        return got if isinstance(got, Finding) else _compare(variant, got, expected)


def case_of(program: Program, folder: Path) -> Case:
    """The program as a case, its source in `folder`."""
    return Case(
        f"fuzz-{program.seed}",
        load_kernel(program, folder),
        (program.grid,),
        lambda _: program.arguments(),
        lambda _: None,
        EXACT,
    )


def ways_of(variants: tuple[str, ...]) -> tuple[dict[str, Run], tuple[str, ...]]:
    """`more` and `variants` of `examine`: a GPU stands in place of the default compilation."""
    if GPU not in variants:
        return {}, variants
    run_on_gpu = importlib.import_module("tests.gpu.fuzz_way").run_on_gpu
    return {GPU: run_on_gpu}, tuple(v for v in variants if v != GPU)


def load_kernel(program: Program, folder: Path) -> JITFunction:
    """The kernel of the program's source, imported from a file in `folder`."""
    path = folder / f"fuzz_{program.seed}.py"
    path.write_text(program.source(), encoding="utf-8")
    linecache.checkcache(str(path))
    spec = importlib.util.spec_from_file_location(f"fuzz_{program.seed}", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[module.__name__] = module
    spec.loader.exec_module(module)
    kernel = module.kernel
    assert isinstance(kernel, JITFunction)
    return kernel


def _run(case: Case, variant: str) -> dict[str, Array]:
    if variant == SIMULATED:
        number = int(case.name.rpartition("-")[2])
        return run_threads(case, num_warps=_WARPS[number % len(_WARPS)])
    if variant == AS_TEXT:
        return run_as_text(case)
    if variant == "default":
        return run_compiled(case)
    if variant == "unoptimized":
        return launch(prepare(case), optimize=False)
    if variant == "beside":
        return launch(prepare(case), may_be_alone=False)
    return launch(prepare(case, _machine(variant)))


@cache
def _machine(variant: str) -> MachineModel:
    return reduced_machine(without=_WITHOUT[variant])


def _attempt(way: str, run: Callable[[], _Result]) -> _Result | Finding:
    try:
        return run()
    except _FAILURES as error:
        text = f"{type(error).__name__}: {error}"
        first = text.splitlines()[0].split("<")[0]
        return Finding(f"{way}: {''.join(c for c in first if not c.isdigit())[:60]}", text)


def _compare(way: str, got: dict[str, Array], expected: dict[str, Array]) -> Finding | None:
    for name, right in expected.items():
        left = got[name]
        if is_float(right.dtype):
            left, right = left.astype(np.float64), right.astype(np.float64)
        if not np.array_equal(left, right, equal_nan=is_float(right.dtype)):
            bad = np.flatnonzero(left != right)
            at = int(bad[0]) if bad.size else 0
            text = f"{name}[{at}]: {left[at]} compiled, {right[at]} interpreted ({bad.size} differ)"
            return Finding(f"{way}: wrong values", text)
    return None
