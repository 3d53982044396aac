"""`tilewright compile`: every stage and the machine code of a file's kernels, for any machine."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from pathlib import Path

import click

from tilewright.compiler.compile import compile_request
from tilewright.compiler.request import CompileRequest
from tilewright.compiler.stages import formed_request, schedule_of, stages
from tilewright.runtime.artifact import RESOURCES_SECTION, Artifact
from tilewright.runtime.fingerprint import compiler_fingerprint
from tilewright.support.errors import InvalidOption, UnsupportedError
from tilewright.targets.mlir.emit import emit_module
from tilewright.targets.mlir.schedule import SCHEDULES, with_schedule
from tilewright.targets.mlir.tools import FORMS, form_text
from tilewright.targets.nvidia.occupancy import occupancy
from tilewright.targets.target import load_target
from tilewright.tools.collect import requests_of
from tilewright.tools.kernel_file import ARGUMENTS, FILE, FUNCTION, KERNEL, OPTIONS, TARGET
from tilewright.tools.show import count_text, size_text, title

_SUFFIXES = {"source": "py", "llir": "ll", "asm": "s", "ptx": "ptx"}
_SECTION_SUFFIXES = {"object": "o", "cubin": "cubin"}


@click.command("compile")
@FILE
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="Write below this directory.",
)
@TARGET
@KERNEL
@FUNCTION
@ARGUMENTS
@OPTIONS
@click.option(
    "--emit",
    "form",
    type=click.Choice(FORMS),
    help="With --target mlir: print the kernels in this form, and nothing else.",
)
@click.option(
    "--grid-loop",
    is_flag=True,
    help="With --emit: a function that runs every program of a grid, not one program.",
)
@click.option(
    "--schedule",
    type=click.Choice(SCHEDULES),
    help="With --emit: a script of the transform dialect beside the kernel, for AVX-512.",
)
def compile_(
    file: tuple[Path, str],
    output: Path | None,
    machine: str,
    kernel: str,
    function: str,
    arguments: tuple[str, ...],
    options: tuple[str, ...],
    form: str | None,
    grid_loop: bool,
    schedule: str | None,
) -> None:
    """Compile the kernels of a file and write every stage and the machine code to a directory.

    Without -o, only what the kernels take of the machine is printed. The file is run as by `ir`.
    """
    prints = form is not None or grid_loop or schedule is not None
    if prints and machine != "mlir":
        raise InvalidOption("--emit, --grid-loop and --schedule go with --target mlir")
    collected = requests_of(file[0], kernel or file[1], arguments, machine, options, function)
    for request in collected.requests:
        if prints:
            _print_form(request, form or FORMS[0], grid_loop, schedule)
            continue
        artifact = compile_request(request, request.cache_key(compiler_fingerprint()))
        where = ""
        if output is not None:
            directory = output / f"{request.name}-{artifact.key[:12]}"
            directory.mkdir(parents=True, exist_ok=True)
            _write_all(request, artifact, directory)
            where = f"{directory}: "
        click.secho(f"{where}{title(request)}", bold=True)
        echo_resources(request, artifact)
    if collected.error is not None:
        raise collected.error


def _print_form(
    request: CompileRequest, form: str, has_grid_loop: bool, schedule: str | None
) -> None:
    """A kernel as MLIR on the standard output, and what went slowly on the standard error."""
    scheduled = schedule_of(request)
    text = emit_module(scheduled.module, has_grid_loop)
    if schedule is not None:
        text = with_schedule(text)
    click.echo(form_text(text, form), nl=False)
    for remark in scheduled.remarks:
        click.echo(f"remark: {remark}", err=True)


def _write_all(request: CompileRequest, artifact: Artifact, directory: Path) -> None:
    for index, (name, show) in enumerate(stages(formed_request(request, artifact))):
        path = directory / f"{index:02d}-{name}.{_SUFFIXES.get(name, 'mlir')}"
        path.write_text(show(), encoding="utf-8")
    for name, suffix in _SECTION_SUFFIXES.items():
        if name in artifact.sections:
            (directory / f"{request.name}.{suffix}").write_bytes(artifact.sections[name])
    for name, view in load_target(request.target).views.items():
        try:
            text = view(artifact.sections)
        except UnsupportedError as error:
            click.echo(f"  no {name}: {error.summary}; {error.hint}")
            continue
        (directory / f"{request.name}.{name}").write_text(text, encoding="utf-8")
    metadata = json.dumps({**artifact.metadata, **_resources(artifact)}, indent=1, sort_keys=True)
    (directory / "metadata.json").write_text(metadata, encoding="utf-8")
    (directory / "request.json").write_bytes(request.to_bytes())


def _resources(artifact: Artifact) -> dict[str, object]:
    """What the assembler reports, with the compiler's remarks and its own in one list."""
    section = artifact.sections.get(RESOURCES_SECTION)
    if section is None:
        return {}
    found: dict[str, object] = json.loads(section)
    own, reported = artifact.metadata.get("remarks", []), found.get("remarks", [])
    assert isinstance(own, list) and isinstance(reported, list)
    return {**found, "remarks": [*own, *reported]}


def echo_resources(request: CompileRequest, artifact: Artifact, said: Collection[str] = ()) -> None:
    """Print what a kernel takes of a GPU, and the remarks, which every target has.

    What was `said` already, behind the line of a remark, is not said again.
    """
    resources = _resources(artifact)
    if not resources:
        echo_remarks(artifact.metadata.get("remarks", []), said)
        return
    registers = _count(resources, "registers")
    spills = _count(resources, "spill_store_bytes") + _count(resources, "spill_load_bytes")
    shared = _count(resources, "static_shared_bytes") + _count(artifact.metadata, "shared_bytes")
    num_warps = _count(artifact.metadata, "num_warps")
    click.echo(
        f"  {registers} registers · {size_text(spills)} spilled · "
        f"{size_text(_count(resources, 'stack_bytes'))} of stack · "
        f"{size_text(shared)} of shared memory · {num_warps} warps"
    )
    fit = occupancy(registers, num_warps, shared, request.machine)
    click.echo(
        f"  {count_text(fit.ctas_per_sm, 'program')} on an SM, {fit.warps_per_sm} of "
        f"{fit.max_warps_per_sm} warps ({fit.fraction:.0%}), limited by {fit.limit}"
    )
    echo_remarks(resources.get("remarks", []), said)


def echo_remarks(remarks: object, said: Collection[str] = ()) -> None:
    """Print each remark once, but for those whose text was `said`."""
    assert isinstance(remarks, list | tuple)
    for remark in dict.fromkeys(map(str, remarks)):
        if not any(remark.endswith(f": {text}") for text in said):
            click.echo(f"  remark: {remark}")


def _count(counts: Mapping[str, object], name: str) -> int:
    return int(str(counts.get(name, 0)))
