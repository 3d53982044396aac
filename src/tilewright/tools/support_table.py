"""Writes the table of the language's names: what runs where, each with an example.

    python -m tilewright.tools.support_table

A state is not declared but found: the example of a name is interpreted, and compiled for each
target as far as the text for the assembler. `docs/language-names.md` is checked in, and a test
finds the states anew.
"""

from __future__ import annotations

import importlib.util
import io
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import redirect_stdout
from pathlib import Path
from types import ModuleType

import numpy as np

import tilewright.language as tl
from tilewright.compiler.build import make_request
from tilewright.compiler.compile import to_schedule, to_tiles
from tilewright.compiler.request import CompileRequest
from tilewright.jit import JITFunction
from tilewright.runtime.tensor_descriptor import TensorDescriptor
from tilewright.support.dataclass import dataclass, replace
from tilewright.support.errors import TilewrightError, UnsupportedError
from tilewright.support.options import CompileOptions
from tilewright.targets.nvidia.host import named_machine
from tilewright.targets.nvidia.ptx import to_ptx
from tilewright.targets.target import load_target
from tilewright.tools.generate_language import registry
from tilewright.tools.language_examples import ABSENT, EXAMPLES

PATH = Path(__file__).parents[3] / "docs" / "language-names.md"
COLUMNS = ("interpreter", "CPU", "sm_90a")
YES = "yes"
_MODULES = ("extra", "math", "target_info")
_ELSEWHERE = "extra.libdevice."
# What a compiler under construction may raise for a kernel that it cannot take yet.
_FAILURES = (TilewrightError, KeyError, AssertionError, NotImplementedError, ValueError, TypeError)

_HEAD = """import tilewright
import tilewright.language as tl

INT64 = tl.constexpr(tl.str_to_ty("i64"))


@tilewright.aggregate
class Pair:
    first: tl.tensor
    second: tl.tensor

    @tilewright.jit
    def total(self):
        return self.first + self.second


@tilewright.constexpr_function
def double(value):
    return 2 * value


@tilewright.must_use_result
@tilewright.jit
def successor(x):
    return x + 1


@tilewright.jit
def branchy(x, y):
    if x > y:
        return x
    return y * 2


@tilewright.jit
def later_maximum(x, i, y, j):
    return tl.maximum(x, y), tl.maximum(i, j)


@tilewright.jit
def fabs(x):
    table = {(tl.float32,): ("__nv_fabsf", tl.float32)}
    return tl.extern_elementwise("libdevice", "", [x], table, is_pure=True)


@tilewright.jit
def keep(out, value):
    if isinstance(value, tl.tuple):
        for k in tl.static_range(len(value)):
            keep(out + k * 1024, value[k])
    elif isinstance(value, tl.tensor):
        count: tl.constexpr = value.numel
        if len(value.shape) > 1:
            tl.store(out + tl.arange(0, count), tl.reshape(value, (count,)).to(tl.float32))
        elif len(value.shape) == 1:
            tl.store(out + tl.arange(0, count), value.to(tl.float32))
        else:
            tl.store(out, value.to(tl.float32))


@tilewright.jit
def kernel(x_ptr, n_ptr, wide_ptr, byte_ptr, counts, desc, row, integers, s, out):
    i = tl.arange(0, 16)
    x = tl.load(x_ptr + i)
    y = tl.load(x_ptr + 16 + i)
    m = tl.load(x_ptr + i[:, None] * 16 + i[None, :])
    h = m.to(tl.float16)
    n = tl.load(n_ptr + i)
    b = n > 7
"""


@dataclass(frozen=True)
class Row:
    """One name: its example, and its state in each column (`yes` or the reason)."""

    name: str
    example: str
    states: tuple[str, ...]


def public_names() -> list[str]:
    """Every public name of `tl`, of `tl.math`, `tl.extra.cuda` and `tl.target_info`."""
    names = [name for name in tl.__all__ if name not in _MODULES]
    names += [key for key in registry() if "." in key and not key.startswith(_ELSEWHERE)]
    return sorted(names, key=lambda name: (name.count("."), name))


def example_kernel(name: str, folder: Path) -> JITFunction:
    """The kernel of a name's example, imported from a file in `folder`."""
    text = EXAMPLES[name]
    body = text if "\n" in text or not _is_expression(text) else f"keep(out, {text})"
    path = folder / f"example_{name.replace('.', '_')}.py"
    path.write_text(_HEAD + "".join(f"    {line}\n" for line in body.split("\n")))
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None and spec.loader is not None
    module: ModuleType = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    spec.loader.exec_module(module)
    kernel = module.kernel
    assert isinstance(kernel, JITFunction)
    return kernel


def _is_expression(text: str) -> bool:
    try:
        compile(text, "example", "eval")
    except SyntaxError:
        return False
    return not text.startswith("keep(")


def example_arguments() -> dict[str, object]:
    """Fresh arguments of an example."""
    floats = (np.arange(4096) % 23 - 11).astype(np.float32)
    integers = np.arange(4096, dtype=np.int32) % 64
    return {
        "x_ptr": floats,
        "n_ptr": np.arange(64, dtype=np.int32) % 16,
        "wide_ptr": np.arange(64, dtype=np.int64),
        "byte_ptr": np.arange(1024).astype(np.uint8),
        "counts": np.zeros(64, np.int32),
        "desc": TensorDescriptor(floats.reshape(64, 64).copy(), (64, 64), (64, 1), (8, 16)),
        "row": TensorDescriptor(floats.reshape(64, 64).copy(), (64, 64), (64, 1), (1, 16)),
        "integers": TensorDescriptor(integers.reshape(64, 64), (64, 64), (64, 1), (8, 16)),
        "s": 5,
        "out": np.zeros(8192, np.float32),
    }


def interpret(kernel: JITFunction) -> dict[str, object]:
    """The arguments after the interpreter ran an example."""
    arguments = example_arguments()
    with redirect_stdout(io.StringIO()):
        kernel.interpret[(1,)](**arguments)
    return arguments


def _request(kernel: JITFunction) -> CompileRequest:
    call = kernel.specialize_call((), example_arguments())
    return make_request(call.source, call.specialization, CompileOptions())


def compile_for_cpu(kernel: JITFunction) -> str:
    """The text for the CPU's assembler."""
    return _text_of(replace(_request(kernel), target="cpu"))


def compile_for_hopper(kernel: JITFunction) -> str:
    """The PTX for sm_90a; no GPU and no assembler is needed."""
    machine = named_machine("sm_90a")
    options = {**_request(kernel).options, "num_warps": 4}
    request = replace(_request(kernel), target="nvidia", machine=machine, options=options)
    return to_ptx(_text_of(request), machine)


def _text_of(request: CompileRequest) -> str:
    target = load_target(request.target)
    module = to_tiles(request, target, None)
    scheduled = to_schedule(request, target, module, None)
    return target.emit(scheduled, request.machine, request.compile_options)


_WAYS: Mapping[str, Callable[[JITFunction], object]] = {
    "interpreter": interpret,
    "CPU": compile_for_cpu,
    "sm_90a": compile_for_hopper,
}


def state_of(column: str, kernel: JITFunction) -> str:
    """`yes`, or why the example does not run there."""
    try:
        _WAYS[column](kernel)
    except UnsupportedError as error:
        return error.summary
    except _FAILURES as error:
        summary = error.summary if isinstance(error, TilewrightError) else ""
        return f"not yet: {summary or type(error).__name__}"
    return YES


def rows() -> Iterator[Row]:
    """Every name with its states, found now."""
    with tempfile.TemporaryDirectory() as folder:
        for name in public_names():
            kernel = example_kernel(name, Path(folder))
            states = tuple(state_of(column, kernel) for column in COLUMNS)
            yield Row(name, EXAMPLES[name], states)


def render(table: list[Row]) -> str:
    """The document."""
    done = [sum(row.states[k] == YES for row in table) for k in range(len(COLUMNS))]
    counts = ", ".join(f"{c}: {d} of {len(table)}" for c, d in zip(COLUMNS, done, strict=True))
    absent = [f"| `{name}` | {reason} |" for name, reason in ABSENT.items()]
    return "\n".join([
        "# The names of the language",
        "",
        "Every public name of `tilewright.language` (`tl`) with one use, and where it runs. A cell",
        "is `yes`, or says why not. Generated by `python -m tilewright.tools.support_table`, which",
        "interprets and compiles each example. `tl.extra.libdevice` has [a page](libdevice.md).",
        "",
        f"{counts}.",
        "",
        f"| name | example | {' | '.join(COLUMNS)} |",
        f"|---|---|{'---|' * len(COLUMNS)}",
        *(render_row(row) for row in table),
        "",
        "## Names of Triton that are not in `tl`",
        "",
        "| name | in its place |",
        "|---|---|",
        *absent,
        "",
    ])  # fmt: skip


def render_row(row: Row) -> str:
    """One line of the table."""
    lines = [_cell(line) for line in row.example.split("\n")]
    example = "<br>".join(f"`{line}`" for line in lines)
    states = " | ".join(_cell(state) for state in row.states)
    return f"| `{row.name}` | {example} | {states} |"


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def parse(document: str) -> dict[str, tuple[str, ...]]:
    """The states by name that a rendered document holds."""
    found: dict[str, tuple[str, ...]] = {}
    for line in document.splitlines():
        cells = [cell.strip() for cell in line.replace("\\|", "\0").strip("|").split("|")]
        if len(cells) == 2 + len(COLUMNS) and cells[0].startswith("`"):
            states = tuple(cell.replace("\0", "|") for cell in cells[2:])
            found[cells[0].strip("`")] = states
    return found


def main() -> None:
    """Find every state and write the document."""
    PATH.write_text(render(list(rows())), encoding="utf-8")
    print(f"wrote {PATH.name}")


if __name__ == "__main__":
    main()
