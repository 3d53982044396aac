"""`python -m triton.tools.link`: one launch function over the variants of a kernel.

It reads the headers that `triton.tools.compile` wrote. The function takes every argument and
launches the first variant whose hints the arguments meet; most hints first.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import cast

from tilewright.support.dataclass import dataclass
from tilewright.support.errors import CompileError

from .compile import LINK_MARK, Word


@dataclass(frozen=True)
class Linked:
    """What a header says of its variant."""

    name: str
    symbol: str
    header: str
    words: tuple[tuple[str, Word], ...]

    def parameters(self) -> list[tuple[str, Word]]:
        """The arguments that the launch function takes."""
        return [(name, word) for name, word in self.words if not word.is_constant]

    def condition(self) -> str:
        """When the variant fits, as an expression of C."""
        tests = [_test(name, word) for name, word in self.parameters() if word.hint]
        return " && ".join(tests) or "1"

    def num_hints(self) -> int:
        """How much it asks of the arguments."""
        return sum(bool(word.hint) for _, word in self.words)


def _test(name: str, word: Word) -> str:
    return f"({name} == 1)" if word.hint == "1" else f"({name} % 16 == 0)"


def read_header(path: Path) -> Linked:
    """The variant of a header. Raises: CompileError for any other file."""
    for line in path.read_text(encoding="utf-8").splitlines():
        if line.startswith(LINK_MARK):
            name, symbol, listed = line.removeprefix(LINK_MARK).split()
            words = [word.split(":") for word in listed.split(",")]
            return Linked(name, symbol, path.name, tuple((n, Word(t, h)) for t, h, n in words))
    raise CompileError(f"{path} was not written by triton.tools.compile")


def _same_parameters(variants: Sequence[Linked]) -> list[tuple[str, Word]]:
    """The parameters that all variants share. Raises: CompileError where they differ."""
    shapes = {tuple((n, w.type) for n, w in v.parameters()) for v in variants}
    if len(shapes) != 1:
        raise CompileError(
            f"the variants of {variants[0].name} take different arguments",
            hint="compile them from one signature, with other hints and constants",
        )
    return variants[0].parameters()


def link(variants: Sequence[Linked], header: str) -> tuple[str, str]:
    """The header and the source of the dispatcher over the variants of one kernel."""
    name = variants[0].name
    parameters = _same_parameters(variants)
    declared = "".join(f", {word.c_type} {n}" for n, word in parameters)
    passed = "".join(f", {n}" for n, _ in parameters)
    ordered = sorted(variants, key=lambda v: -v.num_hints())
    tests = "".join(
        f"  if ({v.condition()})\n    return {v.symbol}(stream{passed});\n" for v in ordered
    )
    prototypes = (
        f"CUresult {name}(CUstream stream{declared});\n"
        f"CUresult load_{name}(void);\nvoid unload_{name}(void);\n"
    )
    loads = "".join(
        f"  if (result == CUDA_SUCCESS)\n    result = load_{v.symbol}();\n" for v in ordered
    )
    unloads = "".join(f"  unload_{v.symbol}();\n" for v in ordered)
    head = f"#pragma once\n#include <cuda.h>\n#include <stdint.h>\n\n{prototypes}"
    includes = "".join(f'#include "{file}"\n' for file in (header, *(v.header for v in ordered)))
    body = (
        f"{includes}\n"
        f"CUresult {name}(CUstream stream{declared}) {{\n{tests}"
        f"  return CUDA_ERROR_INVALID_VALUE;\n}}\n\n"
        f"CUresult load_{name}(void) {{\n  CUresult result = CUDA_SUCCESS;\n{loads}"
        f"  return result;\n}}\n\n"
        f"void unload_{name}(void) {{\n{unloads}}}\n"
    )
    return head, body


def main(arguments: Sequence[str] | None = None) -> None:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m triton.tools.link", description=__doc__)
    parser.add_argument("headers", nargs="+", type=Path)
    parser.add_argument("-o", "--out", type=Path, required=True, help="path without suffix")
    given = parser.parse_args(arguments)
    output = cast("Path", given.out)
    variants = [read_header(path) for path in cast("list[Path]", given.headers)]
    names = dict.fromkeys(variant.name for variant in variants)
    header = output.with_name(f"{output.name}.h")
    heads: list[str] = []
    bodies: list[str] = []
    for name in names:
        head, body = link([v for v in variants if v.name == name], header.name)
        heads.append(head)
        bodies.append(body)
    header.write_text("\n".join(heads), encoding="utf-8")
    output.with_name(f"{output.name}.c").write_text("\n".join(bodies), encoding="utf-8")


if __name__ == "__main__":
    main()
