"""`tilewright replay`: a compile that failed, run again in a process of its own."""

from __future__ import annotations

from pathlib import Path

import click

from tilewright.compiler.reproducer import current_versions, read_reproducer
from tilewright.compiler.worker import DEFAULT_TIMEOUT_S, compile_in_worker
from tilewright.runtime.fingerprint import compiler_fingerprint
from tilewright.tools.show import title


@click.command()
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--timeout", default=DEFAULT_TIMEOUT_S, show_default=True, help="Seconds to wait.")
def replay(file: Path, timeout: float) -> None:
    """Run the compile in a reproducer again; exit with 1 when it still fails."""
    kept = read_reproducer(file)
    click.echo(f"kernel   {title(kept.request)}")
    click.echo(f"failed   after stage `{kept.stage}`: {kept.message}")
    for name, version in kept.versions.items():
        now = current_versions().get(name, "missing")
        if now != version:
            click.echo(f"version  {name} was {version}, is {now}")
    key = kept.request.cache_key(compiler_fingerprint())
    artifact = compile_in_worker(kept.request, key, timeout, keeps_reproducer=False)
    sizes = ", ".join(f"{name} {len(data)} bytes" for name, data in artifact.sections.items())
    click.echo(f"now      it compiles: {sizes}")
