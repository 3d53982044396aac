"""`tilewright cache`: what the disk cache holds."""

from __future__ import annotations

import time

import click

from tilewright.runtime.artifact import METADATA_SECTION, Artifact
from tilewright.runtime.cache import CacheEntry, DiskCache, open_default
from tilewright.tools.show import echo_table, size_text

_KINDS = {"json": "tuning result", "object": "thread pool and launcher"}
_UNITS = ((86400, "d"), (3600, "h"), (60, "min"))


@click.group()
def cache() -> None:
    """Look at, check or empty the cache of compiled kernels and tuning results."""


@cache.command()
def ls() -> None:
    """List the entries, least recently used first."""
    store = open_default()
    entries = store.entries()
    now = time.time()
    rows = [
        (entry.key[:12], size_text(entry.size_bytes), age(now, entry), kind(store, entry))
        for entry in entries
    ]
    if rows:
        echo_table(("key", "size", "last used", "what"), rows)
    total = sum(entry.size_bytes for entry in entries)
    where = store.directory or "memory (there is no cache directory)"
    click.echo(
        f"{len(entries)} entries, {size_text(total)} of {size_text(store.size_limit_bytes)}, "
        f"in {where}"
    )


def age(now_s: float, entry: CacheEntry) -> str:
    """How long ago an entry was used, in its largest unit."""
    seconds = max(0, int(now_s - entry.last_use_ns / 1e9))
    for length, unit in _UNITS:
        if seconds >= length:
            return f"{seconds // length} {unit} ago"
    return "just now"


def kind(store: DiskCache, entry: CacheEntry) -> str:
    """What an entry is, from the names of its sections; kernels by their name."""
    if not entry.sections:
        return "damaged"
    if METADATA_SECTION not in entry.sections:
        names = ", ".join(entry.sections)
        return _KINDS.get(names, names)
    return f"kernel {_kernel_name(store, entry.key)}"


def _kernel_name(store: DiskCache, key: str) -> str:
    artifact = Artifact.from_sections(key, store.get(key) or {})
    return "?" if artifact is None else str(artifact.metadata.get("name", "?"))


@cache.command()
@click.option("--yes", is_flag=True, help="Do not ask.")
def clear(yes: bool) -> None:
    """Remove every entry."""
    store = open_default()
    if not yes:
        click.confirm(f"remove every entry of {store.directory}?", abort=True)
    click.echo(f"removed {store.clear()} entries")


@cache.command()
def verify() -> None:
    """Check every entry; exit with 1 when one is damaged."""
    store = open_default()
    damaged = store.verify()
    for key in damaged:
        click.echo(f"damaged: {key}")
    click.echo(f"{len(store.entries())} entries checked, {len(damaged)} damaged")
    if damaged:
        click.echo("a damaged entry is never used: it is compiled again and replaced")
        raise click.exceptions.Exit(1)
