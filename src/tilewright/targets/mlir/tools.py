"""Stock MLIR on this machine: where mlir-opt and mlir-translate are, and how they are run.

Nothing needs them to write a kernel's text. They lower it, which checks it, and what comes out
can be run.
"""

from __future__ import annotations

import functools
import importlib.util
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

from tilewright.support.dataclass import dataclass
from tilewright.support.options import runtime_options
from tilewright.targets.mlir.errors import (
    VERSION,
    MlirToolFailed,
    MlirToolNotFound,
    MlirToolVersion,
)
from tilewright.targets.mlir.schedule import has_schedule, interpreting

_RELEASE = re.compile(r"LLVM version (\d+)\.")
# Chosen, not measured: it ends a tool that hangs.
_TIMEOUT_S = 120
# To buffers: tensors that are written once get their place in what they are written to, each
# other one memory of its own, which is freed where it ends: in loops of scf, not of cf.
TO_BUFFERS = (
    "lift-cf-to-scf",
    "eliminate-empty-tensors",
    "empty-tensor-to-alloc-tensor",
    "one-shot-bufferize{allow-return-allocs-from-loops=true}",
    "func.func(buffer-loop-hoisting)",
    "buffer-deallocation-pipeline",
    "canonicalize",
    "cse",
)
TO_LOOPS = ("convert-linalg-to-loops", "expand-strided-metadata", "lower-affine")
# To the LLVM dialect. What LLVM has no instruction for is a call of libm.
TO_LLVM = (
    "convert-vector-to-scf{full-unroll=true}",
    "convert-scf-to-cf",
    "func.func(math-expand-ops{ops=rsqrt})",
    "convert-math-to-llvm{approximate-log1p=false}",
    "convert-math-to-libm",
    "convert-vector-to-llvm{vector-contract-lowering=outerproduct}",
    "memref-expand",
    "expand-strided-metadata",
    "lower-affine",
    "convert-arith-to-llvm",
    "finalize-memref-to-llvm",
    "convert-func-to-llvm",
    "convert-cf-to-llvm",
    "convert-index-to-llvm",
    "convert-ub-to-llvm",
    "reconcile-unrealized-casts",
    "canonicalize",
    "cse",
)
# What LLVM gets of a copy of memory that is no block of bytes is a call of MLIR's own library;
# of linalg's copy it gets loops.
_COPY = re.compile(r"memref\.copy (%\S+), (%\S+) : (memref<.*>) to (memref<.*>)$", re.MULTILINE)

_ACCESS = re.compile(
    r"^  func\.func private (@tw_access\w*)\(([^)]*)\)( -> \S+)? \{\n(?:    .*\n)*  \}\n", re.M
)
_BITS = re.compile(r"memref<((?:[\d?]+x)*)i1\b")
_STORE_BIT = re.compile(r"^( *)memref\.store (%\S+), .*: memref<(?:[\d?]+x)*i1\b")
_LOAD_BIT = re.compile(r"^( *)(%\S+) = memref\.load .*: memref<(?:[\d?]+x)*i1\b")


@dataclass(frozen=True)
class Tools:
    """An mlir-opt and the mlir-translate beside it, which say the right version."""

    opt: Path
    translate: Path
    version: str
    libraries: str = ""

    def run_passes(
        self, text: str, passes: tuple[str, ...] = (), *, is_generic: bool = False
    ) -> str:
        """A module after passes; without any, parsed, verified and printed.

        With `is_generic` every op is in the form that all of MLIR's readers share.
        Raises: MlirToolFailed with what mlir-opt says.
        """
        pipeline = f"--pass-pipeline=builtin.module({','.join(passes)})"
        form = ("--mlir-print-op-generic",) if is_generic else ()
        return _run((str(self.opt), pipeline, *form), text, self.libraries)

    def to_buffers(self, text: str) -> str:
        """A module of tensors as one of memrefs, which are freed."""
        given, kept = _without_bodies(text)
        passes = interpreting(TO_BUFFERS) if has_schedule(text) else TO_BUFFERS
        lowered = self.run_passes(given, passes)
        copied = _COPY.sub(r"linalg.copy ins(\1 : \3) outs(\2 : \4)", lowered)
        return _with_bodies(copied, kept)

    def to_llvm(self, text: str) -> str:
        """A module of memrefs as LLVM's assembly."""
        loops = _with_calls(_with_bytes(self.run_passes(text, TO_LOOPS)))
        lowered = self.run_passes(loops, TO_LLVM)
        return _run((str(self.translate), "--mlir-to-llvmir"), lowered, self.libraries)


def _without_bodies(text: str) -> tuple[str, dict[str, str]]:
    """A module whose functions of single accesses are only declared, and these functions.

    The pass that frees buffers, of MLIR 22, takes neither an op of the LLVM dialect that has an
    effect nor `memref.generic_atomic_rmw`.
    """
    kept = {found[1]: found[0] for found in _ACCESS.finditer(text)}
    return _ACCESS.sub(
        lambda found: f"  func.func private {found[1]}{_declared(found)}\n", text
    ), kept


def _declared(found: re.Match[str]) -> str:
    kinds = ", ".join(part.split(": ")[1] for part in found[2].split(", %"))
    return f"({kinds}){found[3] or ''}"


def _with_bodies(text: str, kept: dict[str, str]) -> str:
    """A module with the functions that were only declared."""
    for name, body in kept.items():
        declared = re.compile(rf"^ *func\.func private {name}\(.*\n", re.M)
        found = declared.search(text)
        assert found is not None, name
        text = text[: found.start()] + body + text[found.end() :]
    return text


def _with_bytes(text: str) -> str:
    """A module of loops whose memrefs of i1 are of i8: stores of less than a byte have no form.

    Nothing computes with a memref here but loads and stores.
    """
    if "xi1" not in text and "memref<i1" not in text:
        return text
    lines: list[str] = []
    for number, line in enumerate(text.splitlines()):
        store, load = _STORE_BIT.match(line), _LOAD_BIT.match(line)
        wide = _BITS.sub(r"memref<\1i8", line)
        if store is not None:
            lines.append(f"{store[1]}%bit{number} = arith.extui {store[2]} : i1 to i8")
            wide = wide.replace(f"memref.store {store[2]},", f"memref.store %bit{number},", 1)
        elif load is not None:
            lines.append(wide.replace(load[2], f"%bit{number}", 1))
            wide = f"{load[1]}{load[2]} = arith.trunci %bit{number} : i8 to i1"
        lines.append(wide)
    return "\n".join(lines) + "\n"


def _with_calls(text: str) -> str:
    """A module that calls libm's expm1: the pass's own form, exp(x) - 1, loses every place."""
    for kind, symbol in (("f32", "expm1f"), ("f64", "expm1")):
        found = re.compile(rf"math\.expm1 (%\S+) : {kind}$", re.M)
        changed = found.sub(rf"func.call @{symbol}(\1) : ({kind}) -> {kind}", text)
        if changed != text:
            end = changed.rindex("}")
            declared = f"  func.func private @{symbol}({kind}) -> {kind}\n"
            text = changed[:end] + declared + changed[end:]
    return text


FORMS = ("linalg", "memref", "llvm")
"""What a kernel's text is shown as: tensors, as it is written; memrefs; LLVM's assembly."""


def form_text(text: str, form: str) -> str:
    """A module in one of `FORMS`; all but the first need the tools.

    Raises: MlirToolNotFound, MlirToolVersion, MlirToolFailed.
    """
    if form == "linalg":
        return text
    tools = find_tools()
    buffers = tools.to_buffers(text)
    return buffers if form == "memref" else tools.to_llvm(buffers)


def find_tools() -> Tools:
    """The tools of this machine: by option, on PATH, in the wheels.

    Raises: MlirToolNotFound, MlirToolVersion.
    """
    chosen = runtime_options().mlir_opt
    if chosen is not None and not chosen.is_file():
        raise MlirToolNotFound(f"TILEWRIGHT_MLIR_OPT is {chosen}, which is no file")
    candidates = [(chosen, "")] if chosen is not None else list(_candidates())
    for path, libraries in candidates:
        return _checked(path, libraries)
    raise MlirToolNotFound("mlir-opt is not on this machine")


def _candidates() -> Iterator[tuple[Path, str]]:
    """Each mlir-opt, with the folder that holds its libraries."""
    for name in (f"mlir-opt-{VERSION}", "mlir-opt"):
        found = shutil.which(name)
        if found is not None:
            yield Path(found), ""
    spec, llvm = (importlib.util.find_spec(name) for name in ("mlir", "llvm"))
    if spec is None or llvm is None:
        return
    folders = [str(Path(place) / "lib") for place in llvm.submodule_search_locations or ()]
    for place in spec.submodule_search_locations or ():
        path = Path(place) / "bin" / "mlir-opt"
        if path.is_file():
            yield path, ":".join(folders)


@functools.cache
def _checked(opt: Path, libraries: str) -> Tools:
    """The tools at a path. Raises: MlirToolNotFound, MlirToolVersion."""
    translate = opt.with_name(opt.name.replace("opt", "translate"))
    if not translate.is_file():
        raise MlirToolNotFound(f"there is no {translate.name} beside {opt}")
    try:
        answer = _run((str(opt), "--version"), "", libraries)
    except MlirToolFailed as error:
        raise MlirToolNotFound(f"{opt} cannot be run: {error.summary}") from error
    match = _RELEASE.search(answer)
    shown = "no version" if match is None else f"version {match[1]}"
    if match is None or int(match[1]) != VERSION:
        raise MlirToolVersion(f"{opt} says {shown}; version {VERSION} is needed")
    return Tools(opt, translate, match[1], libraries)


def _run(command: tuple[str, ...], text: str, libraries: str) -> str:
    """What a tool writes. Raises: MlirToolFailed."""
    name = Path(command[0]).name
    try:
        answer = subprocess.run(
            ("env", f"LD_LIBRARY_PATH={libraries}", *command) if libraries else command,
            input=text,
            capture_output=True,
            text=True,
            timeout=_TIMEOUT_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise MlirToolFailed(f"{name}: {error}") from error
    if answer.returncode:
        said = [line for line in answer.stderr.splitlines() if line.strip()]
        raise MlirToolFailed(f"{name}: {said[0] if said else f'exit {answer.returncode}'}")
    return answer.stdout
