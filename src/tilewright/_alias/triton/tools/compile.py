"""`python -m triton.tools.compile`: a kernel as C source with the binary inside.

The C file holds the cubin and three functions: `load_<name>`, `unload_<name>` and `<name>`,
which launches the kernel on a stream. It needs NVIDIA's driver and `cuda.h`, and no Python.
"""

from __future__ import annotations

import argparse
import importlib.util
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import cast

from tilewright.runtime.fingerprint import digest
from tilewright.support.dataclass import dataclass
from tilewright.support.errors import CompileError, UnsupportedError

from ..backends.compiler import GPUTarget
from ..compiler.compiler import ASTSource, CompiledKernel, compile
from ..runtime.jit import JITFunction

LINK_MARK = "// triton-link:"
C_TYPES = {
    "u1": "int8_t",
    **{f"i{width}": f"int{width}_t" for width in (8, 16, 32, 64)},
    **{f"u{width}": f"uint{width}_t" for width in (8, 16, 32, 64)},
    "fp16": "uint16_t",
    "bf16": "uint16_t",
    "fp32": "float",
    "fp64": "double",
}
_DEFAULT_SHARED_BYTES = 48 << 10


@dataclass(frozen=True)
class Word:
    """One word of a signature: a type, a hint (`16`, `1` or nothing), or a constant."""

    type: str
    hint: str = ""
    constant: object = None

    @property
    def is_constant(self) -> bool:
        """Whether it is a value in place of a type."""
        return self.type == "constexpr"

    @property
    def c_type(self) -> str:
        """The type of C that the launch function takes. Raises: CompileError."""
        if self.type.startswith("*"):
            return "CUdeviceptr"
        if self.type not in C_TYPES:
            raise CompileError(
                f"an argument of type {self.type} cannot be passed from C",
                hint=f"the types are pointers and {', '.join(C_TYPES)}",
            )
        return C_TYPES[self.type]


@dataclass(frozen=True)
class Variant:
    """A kernel compiled for one signature, with the name that it has in C."""

    symbol: str
    words: Mapping[str, Word]
    kernel: CompiledKernel
    grid: tuple[str, str, str]

    def parameters(self) -> str:
        """The parameters of the launch function behind the stream."""
        listed = [f"{w.c_type} {name}" for name, w in self.words.items() if not w.is_constant]
        return "".join(f", {parameter}" for parameter in listed)

    def passed(self) -> list[str]:
        """The names of the arguments that the kernel gets."""
        return [n for n, w in self.words.items() if not w.is_constant and w.hint != "1"]


def parse_word(text: str) -> Word:
    """`*fp32:16`, `i32`, `1024`, `0.5` or `None` as a word. Raises: CompileError."""
    text = text.strip()
    type_, _, hint = text.partition(":")
    if hint not in ("", "1", "16"):
        raise CompileError(
            f"signature: {text!r} has the hint {hint!r}",
            hint="`:16` means a multiple of 16, `:1` the value 1",
        )
    if type_.startswith("*") or type_ in C_TYPES:
        return Word(type_, hint)
    for read in (int, float):
        try:
            return Word("constexpr", "", read(text))
        except ValueError:
            continue
    if text in ("None", "True", "False"):
        return Word("constexpr", "", {"None": None, "True": True, "False": False}[text])
    raise CompileError(f"signature: {text!r} is no type and no number")


def load_kernel(path: Path, name: str) -> JITFunction:
    """The kernel `name` of a file, which is run. Raises: CompileError."""
    sys.path.insert(0, str(path.parent))
    spec = importlib.util.spec_from_file_location(path.stem, path)
    if spec is None or spec.loader is None:
        raise CompileError(f"{path} is no Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    spec.loader.exec_module(module)
    kernel: object = getattr(module, name, None)
    while not isinstance(kernel, JITFunction):
        inner: object = getattr(kernel, "fn", None)
        if inner is None:
            raise CompileError(f"{path} has no kernel `{name}`")
        kernel = inner
    return kernel


def make_source(kernel: JITFunction, words: Mapping[str, Word]) -> ASTSource:
    """The kernel with the types, constants and facts that the words say."""
    positions = {name: (index,) for index, name in enumerate(words)}
    constants: dict[str | tuple[int, ...], object] = {}
    for name, word in words.items():
        if word.is_constant:
            constants[name] = word.constant
        elif word.hint == "1":
            constants[name] = 1
    facts = {positions[n]: [["tt.divisibility", 16]] for n, w in words.items() if w.hint == "16"}
    return ASTSource(kernel, {n: w.type for n, w in words.items()}, constants, facts)


def make_variant(
    kernel: JITFunction,
    signature: str,
    grid: str,
    target: GPUTarget,
    options: Mapping[str, object],
    name: str,
) -> Variant:
    """Compile a kernel for a signature. Raises: CompileError, UnsupportedError."""
    texts = signature.split(",")
    if len(texts) != len(kernel.arg_names):
        raise CompileError(
            f"signature: {len(texts)} words for the {len(kernel.arg_names)} parameters of "
            f"{kernel.__name__}()",
            hint=f"the parameters are {', '.join(kernel.arg_names)}",
        )
    if target.backend != "cuda":
        raise UnsupportedError(
            f"C source is written for NVIDIA GPUs, not for {target.backend}",
            hint="`tilewright compile FILE -o DIR` writes the object code of other targets",
        )
    words = {n: parse_word(t) for n, t in zip(kernel.arg_names, texts, strict=True)}
    # The C function has a parameter for each argument; tensor maps would need a launcher.
    plain = {"descriptors": "pointers", **options}
    compiled = compile(make_source(kernel, words), target, plain)
    parts = [part.strip() for part in grid.split(",")]
    x, y, z = (*parts, "1", "1")[:3]
    suffix = digest(signature, repr(sorted(options.items())), repr(target))[:8]
    return Variant(f"{name}_{suffix}", words, compiled, (x, y, z))


def header_text(variant: Variant, name: str) -> str:
    """The header of a variant, with the line that the linker reads."""
    hints = ",".join(f"{w.type}:{w.hint}:{n}" for n, w in variant.words.items())
    return f"""#pragma once
{LINK_MARK} {name} {variant.symbol} {hints}
#include <cuda.h>
#include <stdint.h>

CUresult load_{variant.symbol}(void);
void unload_{variant.symbol}(void);
CUresult {variant.symbol}(CUstream stream{variant.parameters()});
"""


def source_text(variant: Variant, header: str) -> str:
    """The C source of a variant."""
    metadata, symbol = variant.kernel.metadata, variant.symbol
    image = variant.kernel.asm["cubin"]
    assert isinstance(image, bytes)
    rows = (", ".join(map(hex, image[i : i + 16])) for i in range(0, len(image), 16))
    image_rows = ",\n  ".join(rows)
    arguments = "".join(f"&{name}, " for name in variant.passed())
    entry = variant.kernel.artifact.metadata.get("symbol", metadata.name)
    x, y, z = variant.grid
    opt_in = f"""  if (result == CUDA_SUCCESS)
    result = cuFuncSetAttribute(
        function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, {metadata.shared});
"""
    return f"""#include "{header}"

static const unsigned char image[] = {{
  {image_rows}
}};
static CUmodule module = NULL;
static CUfunction function = NULL;

CUresult load_{symbol}(void) {{
  CUresult result = cuModuleLoadData(&module, image);
  if (result == CUDA_SUCCESS)
    result = cuModuleGetFunction(&function, module, "{entry}");
{opt_in if metadata.shared > _DEFAULT_SHARED_BYTES else ""}  return result;
}}

void unload_{symbol}(void) {{
  if (module != NULL)
    cuModuleUnload(module);
  module = NULL;
  function = NULL;
}}

CUresult {symbol}(CUstream stream{variant.parameters()}) {{
  if (function == NULL) {{
    CUresult result = load_{symbol}();
    if (result != CUDA_SUCCESS)
      return result;
  }}
  unsigned x = {x}, y = {y}, z = {z};
  void *arguments[] = {{{arguments}NULL}};
  if (x * y * z == 0)
    return CUDA_SUCCESS;
  return cuLaunchKernel(function, x, y, z, {32 * metadata.num_warps}, 1, 1, {metadata.shared},
                        stream, arguments, NULL);
}}
"""


def write_variant(variant: Variant, name: str, output: Path) -> tuple[Path, Path]:
    """Write header and source as `<output>.<hash>.h` and `.c`; their paths."""
    stem = f"{output.name}.{variant.symbol.rpartition('_')[2]}"
    header, source = output.with_name(f"{stem}.h"), output.with_name(f"{stem}.c")
    header.write_text(header_text(variant, name), encoding="utf-8")
    source.write_text(source_text(variant, header.name), encoding="utf-8")
    return header, source


def parse_target(text: str) -> GPUTarget:
    """`cuda:90:32` as a target. Raises: CompileError."""
    parts = text.split(":")
    if len(parts) != 3 or not parts[2].isdigit():
        raise CompileError(f"target {text!r}", hint="write `backend:arch:warp`, as cuda:90:32")
    return GPUTarget(parts[0], int(parts[1]) if parts[1].isdigit() else parts[1], int(parts[2]))


def main(arguments: Sequence[str] | None = None) -> None:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m triton.tools.compile", description=__doc__)
    parser.add_argument("path", type=Path, help="the Python file with the kernel")
    parser.add_argument("-n", "--kernel-name", required=True)
    parser.add_argument("-s", "--signature", required=True, help="*fp32:16, i32, 1024")
    parser.add_argument("-g", "--grid", required=True, help="expressions of C in the arguments")
    parser.add_argument("-t", "--target", default="cuda:90:32")
    parser.add_argument("-w", "--num-warps", type=int, default=4)
    parser.add_argument("-ns", "--num-stages", type=int)
    parser.add_argument("-on", "--out-name", help="the name in C; the kernel's by default")
    parser.add_argument("-o", "--out-path", type=Path)
    given = parser.parse_args(arguments)
    kernel_name, out_name = cast("str", given.kernel_name), cast("str | None", given.out_name)
    name = out_name or kernel_name
    options = {"num_warps": given.num_warps}
    options |= {} if given.num_stages is None else {"num_stages": given.num_stages}
    kernel = load_kernel(cast("Path", given.path), kernel_name)
    target = parse_target(cast("str", given.target))
    variant = make_variant(kernel, given.signature, given.grid, target, options, name)
    output = cast("Path | None", given.out_path) or Path(name)
    for path in write_variant(variant, name, output):
        print(path)


if __name__ == "__main__":
    main()
