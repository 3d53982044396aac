"""`tilewright passes`: passes on a module that is written as text."""

from __future__ import annotations

from pathlib import Path

import click

from tilewright.compiler.named_passes import run_passes_on_text
from tilewright.support.errors import MalformedText


@click.command()
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.argument("pipeline")
def passes(file: Path, pipeline: str) -> None:
    """Run passes on a module of IR, and print what they leave.

    FILE holds one module in MLIR's generic form, as `tilewright ir` prints it. PIPELINE names
    passes with spaces between them, options in braces: "decide-products verify-plan". The module
    is checked before the first pass and behind each one.
    """
    try:
        text = file.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise MalformedText(
            f"{file} is no text: byte {error.start} is not UTF-8",
            hint="write a module as `tilewright ir` prints it",
        ) from None
    click.echo(run_passes_on_text(text, pipeline, name=str(file)), nl=False)
