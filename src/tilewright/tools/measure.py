"""What `explain --measure` adds: a file runs with kernels that count what their parts take."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager

from tilewright.compiler.request import CompileRequest
from tilewright.runtime.fingerprint import compiler_fingerprint
from tilewright.support.errors import InvalidOption
from tilewright.support.options import COUNTS_CYCLES
from tilewright.targets.cpu.runtime.cycle_counts import KernelCounts, PartCount, collected_counts
from tilewright.tools.collect import Collected

Counts = Mapping[bytes, tuple[PartCount, ...]]
"""What each request's kernel counted, by the request's bytes."""


def collect_counting(collect: Callable[[], Collected]) -> tuple[Collected, Counts]:
    """The requests of a file that is run by `collect`, and what their kernels counted."""
    with collected_counts() as found, counting_cycles():
        collected = collect()
    return collected, {each.to_bytes(): _counts_of(each, found) for each in collected.requests}


@contextmanager
def counting_cycles() -> Generator[None]:
    """Have the launches inside the block take `count_cycles`, unless they say otherwise."""
    token = COUNTS_CYCLES.set(True)
    try:
        yield
    finally:
        COUNTS_CYCLES.reset(token)


def require_measurable(machine: str, arguments: Sequence[str]) -> None:
    """Raise: InvalidOption for what no kernel of this machine's CPU is launched by."""
    if machine != "cpu":
        raise InvalidOption(
            f"--measure counts cycles of this machine's CPU, not of {machine}",
            hint="leave --target out; `tilewright simulate` counts what a GPU would do",
        )
    if arguments:
        raise InvalidOption(
            "--measure goes with a file that is run, and --arg launches nothing",
            hint="name a function that launches the kernel with --function",
        )


def _counts_of(request: CompileRequest, found: Sequence[KernelCounts]) -> tuple[PartCount, ...]:
    """The counts of every load of a request's kernel together."""
    key = request.cache_key(compiler_fingerprint())
    each = [counts.read() for counts in found if counts.key == key]
    return tuple(
        PartCount(sum(part.cycles for part in parts), sum(part.runs for part in parts))
        for parts in zip(*each, strict=True)
    )
