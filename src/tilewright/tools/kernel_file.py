"""What the commands that look at kernels have in common: the file, the kernel, the target."""

from __future__ import annotations

from pathlib import Path

import click

from tilewright.support.errors import InvalidOption

_EXISTING = click.Path(exists=True, dir_okay=False, path_type=Path)


class _KernelFile(click.ParamType[tuple[Path, str]]):
    """`FILE` or `FILE:KERNEL`."""

    name = "file"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[Path, str]:
        text = str(value)
        path, kernel = Path(text), ""
        if not path.exists() and ":" in text:
            head, _, kernel = text.rpartition(":")
            path = Path(head)
        if path.suffix == ".mlir":
            raise InvalidOption(
                f"{path} holds IR, and this command takes a Python file",
                hint=f'run passes on it: tilewright passes {path} "PASS …"',
            )
        return _EXISTING.convert(str(path), param, ctx), kernel


FILE = click.argument("file", type=_KernelFile(), metavar="FILE[:KERNEL]")
KERNEL = click.option("--kernel", default="", help="Only the kernel of this name.")
ARGUMENTS = click.option(
    "--arg",
    "arguments",
    multiple=True,
    metavar="NAME=TYPE",
    help="Describe an argument (x=*fp32:16, n=i32, BLOCK=64) in place of running the file.",
)
FUNCTION = click.option(
    "--function",
    default="",
    metavar="NAME",
    help="Import the file and call this function of it, in place of running all of it.",
)
TARGET = click.option(
    "--target",
    "machine",
    default="cpu",
    show_default=True,
    metavar="MACHINE",
    help="What to compile for: cpu (this machine's), mlir (MLIR's core dialects), or a GPU such as "
    "sm_90a; none is needed.",
)
OPTIONS = click.option(
    "--option",
    "options",
    multiple=True,
    metavar="NAME=VALUE",
    help="A compile option for described arguments, such as num_warps=8.",
)
