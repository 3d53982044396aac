"""The command line: `tilewright COMMAND`, or `python -m tilewright COMMAND`."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import click
from xdsl.dialects.builtin import ModuleOp

import tilewright
from tilewright.compiler.request import CompileRequest
from tilewright.compiler.stages import find_stage, stage_names, stages
from tilewright.ir.text import print_module
from tilewright.support.environment import environment_with_path
from tilewright.support.errors import TilewrightError
from tilewright.tools.cache import cache
from tilewright.tools.collect import Collected, requests_of
from tilewright.tools.compile import compile_
from tilewright.tools.environment import env
from tilewright.tools.explain import explain as explain_request
from tilewright.tools.kernel_file import ARGUMENTS, FILE, FUNCTION, KERNEL, OPTIONS, TARGET
from tilewright.tools.layout import layout
from tilewright.tools.measure import collect_counting, require_measurable
from tilewright.tools.passes import passes
from tilewright.tools.replay import replay
from tilewright.tools.show import ValueNames, echo_diff, title
from tilewright.tools.simulate import simulate

ALIAS_DIRECTORY = Path(tilewright.__file__).parent / "_alias"


class _Commands(click.Group):
    """The group that shows our errors as they are meant to be read, without a traceback."""

    def invoke(self, ctx: click.Context) -> object:
        try:
            return super().invoke(ctx)
        except TilewrightError as error:
            click.echo(str(error), err=True)
            ctx.exit(1)


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
@FILE
@click.option("--stage", default="frontend", show_default=True, help="Which stage to print.")
@click.option("--diff", "changed_by", metavar="PASS", help="Show what one pass changes.")
@click.option("--locations", is_flag=True, help="Print the source location of every op.")
@click.option("--list", "lists", is_flag=True, help="List the stages.")
@TARGET
@KERNEL
@FUNCTION
@ARGUMENTS
@OPTIONS
def ir(
    file: tuple[Path, str],
    stage: str,
    changed_by: str | None,
    locations: bool,
    lists: bool,
    machine: str,
    kernel: str,
    function: str,
    arguments: tuple[str, ...],
    options: tuple[str, ...],
) -> None:
    """Print a stage of the kernels of a file, or what a pass changes.

    The file is run from its first line on, as `python FILE` would, and every kernel that it
    launches is shown as it was specialised. What the file prints goes to stderr. --function runs
    one function of it only; --arg launches nothing.
    """
    collected = requests_of(file[0], kernel or file[1], arguments, machine, options, function)
    for request in collected.requests:
        if lists:
            click.echo("\n".join(stage_names(request)))
            return
        click.secho(f"// {title(request)}", bold=True)
        _show_stage(request, changed_by or stage, changed_by is not None, locations)
    _finish(collected)


def _show_stage(request: CompileRequest, wanted: str, is_diff: bool, locations: bool) -> None:
    """Print the stage `wanted`, or how it differs from what comes before it."""
    stage = find_stage(request, wanted)
    before, names = "", ValueNames()

    def text_of(module: ModuleOp) -> str:
        if is_diff:
            names.give(module)
        return print_module(module, locations=locations)

    for name, show in stages(request, text_of):
        if name == stage.before and is_diff:
            before = show()
        if name == stage.name:
            text = show()
            break
    else:
        raise AssertionError(f"stage {stage.name} never comes")
    if is_diff:
        echo_diff(before, text, stage.before, wanted)
    else:
        click.echo(text, nl=not text.endswith("\n"))


def _finish(collected: Collected) -> None:
    """End as the file did: with its error, if it had one."""
    if collected.error is not None:
        raise collected.error


@tool.command()
@FILE
@TARGET
@KERNEL
@FUNCTION
@ARGUMENTS
@OPTIONS
@click.option(
    "--measure",
    is_flag=True,
    help="On the CPU: count the cycles of each nest and product while the file runs.",
)
def explain(
    file: tuple[Path, str],
    machine: str,
    kernel: str,
    function: str,
    arguments: tuple[str, ...],
    options: tuple[str, ...],
    measure: bool,
) -> None:
    """Explain what the kernels of a file become, in their own lines.

    On the CPU what takes the time first, by estimate (a core's rates): of a program, or of a step
    of a loop where constants do not say how often it runs; with --measure what it took, too. Then
    for each loop nest: its bounds, vector width, bytes and operations, how every access reaches
    memory, and why a slow one is slow; for each product its unit and what it packs. On a GPU:
    vectors and sectors of every access, conversions with cost and cause, matrix instructions,
    shared memory, barriers, registers, occupancy. No GPU is needed. The file is run as by `ir`.
    """

    def collect() -> Collected:
        return requests_of(file[0], kernel or file[1], arguments, machine, options, function)

    if not measure:
        collected, counts = collect(), {}
    else:
        require_measurable(machine, arguments)
        collected, counts = collect_counting(collect)
    for request in collected.requests:
        explain_request(request, counts.get(request.to_bytes(), ()))
    _finish(collected)


tool.add_command(compile_)
tool.add_command(cache)
tool.add_command(env)
tool.add_command(layout)
tool.add_command(passes)
tool.add_command(replay)
tool.add_command(simulate)


def main() -> None:
    """The entry point of the command `tilewright`."""
    tool(prog_name="tilewright")
