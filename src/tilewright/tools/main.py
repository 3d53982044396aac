"""The command line: `tilewright COMMAND`, or `python -m tilewright COMMAND`."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import click

import tilewright
from tilewright.compiler.compile import compile_request
from tilewright.compiler.request import CompileRequest
from tilewright.compiler.stages import stage_names, stages
from tilewright.ir.text import print_module
from tilewright.runtime.fingerprint import compiler_fingerprint
from tilewright.support.errors import InvalidOption, TilewrightError
from tilewright.support.options import environment_with_path
from tilewright.tools.cache import cache
from tilewright.tools.collect import Collected, requests_of
from tilewright.tools.environment import env
from tilewright.tools.explain import explain as explain_request
from tilewright.tools.replay import replay
from tilewright.tools.show import echo_diff, title

ALIAS_DIRECTORY = Path(tilewright.__file__).parent / "_alias"
_EXISTING = click.Path(exists=True, dir_okay=False, path_type=Path)


class _Commands(click.Group):
    """The group that shows our errors as they are meant to be read, without a traceback."""

    def invoke(self, ctx: click.Context) -> object:
        try:
            return super().invoke(ctx)
        except TilewrightError as error:
            click.echo(str(error), err=True)
            ctx.exit(1)


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
        return _EXISTING.convert(str(path), param, ctx), kernel


_FILE = click.argument("file", type=_KernelFile(), metavar="FILE[:KERNEL]")
_KERNEL = click.option("--kernel", default="", help="Only the kernel of this name.")
_ARGUMENTS = click.option(
    "--arg",
    "arguments",
    multiple=True,
    metavar="NAME=TYPE",
    help="Describe an argument (x=*fp32:16, n=i32, BLOCK=64) in place of running the file.",
)


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(tilewright.__version__, prog_name="tilewright")
def tool() -> None:
    """Run, inspect and compile kernels of the tile language."""


@tool.command(context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False})
@click.option("-m", "is_module", is_flag=True, help="SCRIPT is the name of a module.")
@click.argument("script")
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def run(is_module: bool, script: str, arguments: tuple[str, ...]) -> None:
    """Run a script that was written for Triton: `import triton` gets Tilewright.

    Processes that the script starts inherit this.
    """
    if not is_module and not Path(script).exists():
        raise click.UsageError(f"there is no file {script}")
    command = [sys.executable, *(["-m"] if is_module else []), script, *arguments]
    sys.stdout.flush()
    os.execve(sys.executable, command, environment_with_path(ALIAS_DIRECTORY))


@tool.command()
@_FILE
@click.option("--stage", default="frontend", show_default=True, help="Which stage to print.")
@click.option("--diff", "changed_by", metavar="PASS", help="Show what one pass changes.")
@click.option("--locations", is_flag=True, help="Print the source location of every op.")
@click.option("--list", "lists", is_flag=True, help="List the stages.")
@_KERNEL
@_ARGUMENTS
def ir(
    file: tuple[Path, str],
    stage: str,
    changed_by: str | None,
    locations: bool,
    lists: bool,
    kernel: str,
    arguments: tuple[str, ...],
) -> None:
    """Print a stage of the kernels of a file, or what a pass changes.

    The file is run, and every kernel that it launches is shown as it was specialised.
    """
    collected = requests_of(file[0], kernel or file[1], arguments)
    for request in collected.requests:
        if lists:
            click.echo("\n".join(stage_names(request)))
            return
        click.secho(f"// {title(request)}", bold=True)
        _show_stage(request, changed_by or stage, changed_by is not None, locations)
    _finish(collected)


def _show_stage(request: CompileRequest, wanted: str, is_diff: bool, locations: bool) -> None:
    """Print the stage `wanted`, or how it differs from the one before it."""
    names = stage_names(request)
    if wanted not in names:
        raise InvalidOption(
            f"there is no stage or pass `{wanted}`", hint=f"the stages are {', '.join(names)}"
        )
    previous_name, previous = "", ""
    for name, text in stages(request, lambda m: print_module(m, locations=locations)):
        if name == wanted and is_diff:
            echo_diff(previous, text, previous_name, name)
        elif name == wanted:
            click.echo(text, nl=not text.endswith("\n"))
        if name == wanted:
            return
        previous_name, previous = name, text


def _finish(collected: Collected) -> None:
    """End as the file did: with its error, if it had one."""
    if collected.error is not None:
        raise collected.error


@tool.command()
@_FILE
@_KERNEL
@_ARGUMENTS
def explain(file: tuple[Path, str], kernel: str, arguments: tuple[str, ...]) -> None:
    """Explain the loop nests that the kernels of a file become on the CPU.

    For each nest: its source lines, bounds, vector width, bytes and operations, how every
    access reaches memory, and why a slow one is slow.
    """
    collected = requests_of(file[0], kernel or file[1], arguments)
    for request in collected.requests:
        explain_request(request)
    _finish(collected)


@tool.command("compile")
@_FILE
@click.option("-o", "--output", type=click.Path(path_type=Path), required=True, metavar="DIR")
@_KERNEL
@_ARGUMENTS
def compile_(file: tuple[Path, str], output: Path, kernel: str, arguments: tuple[str, ...]) -> None:
    """Write every stage and the object code of the kernels of a file to a directory."""
    collected = requests_of(file[0], kernel or file[1], arguments)
    for request in collected.requests:
        key = request.cache_key(compiler_fingerprint())
        directory = output / f"{request.name}-{key[:12]}"
        directory.mkdir(parents=True, exist_ok=True)
        _write_all(request, key, directory)
        click.echo(f"{directory}: {title(request)}")
    _finish(collected)


def _write_all(request: CompileRequest, key: str, directory: Path) -> None:
    suffixes = {"source": "py", "llir": "ll", "asm": "s"}
    for index, (name, text) in enumerate(stages(request)):
        path = directory / f"{index:02d}-{name}.{suffixes.get(name, 'mlir')}"
        path.write_text(text, encoding="utf-8")
    artifact = compile_request(request, key)
    for name, data in artifact.sections.items():
        (directory / f"{request.name}.{'o' if name == 'object' else name}").write_bytes(data)
    metadata = json.dumps(dict(artifact.metadata), indent=1, sort_keys=True)
    (directory / "metadata.json").write_text(metadata, encoding="utf-8")
    (directory / "request.json").write_bytes(request.to_bytes())


tool.add_command(cache)
tool.add_command(env)
tool.add_command(replay)


def main() -> None:
    """The entry point of the command `tilewright`."""
    tool(prog_name="tilewright")
