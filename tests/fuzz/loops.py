"""`python -m tests.fuzz.loops --count N --seed S`: random loops in every form, and a count of each.

Program k has seed + k and the form k modulo the number of forms. What is right stands in the forms'
own tests: every way to run a program leaves the same bits.
"""

from __future__ import annotations

import signal
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import FrameType

import click

from tests.fuzz import (
    test_grouped,
    test_hostile_loops,
    test_in_place,
    test_lifted,
    test_overlapping,
    test_paged,
    test_pipelined_loops,
    test_published,
    test_unasked,
)
from tests.fuzz.test_roles import require_agreement
from tests.fuzz.unasked_attentions import generate_attention
from tests.fuzz.unasked_products import generate_product

Form = Callable[[int, Path], object]
# A program takes a second of the processor, however busy it is; one that takes minutes hangs.
_MOST_SECONDS = 300
_REPORTED = 100


def _depths(seed: int, folder: Path) -> None:
    (kernel,) = test_pipelined_loops.load(range(seed, seed + 1), folder)
    test_pipelined_loops.check(kernel, seed)


def _clusters(seed: int, folder: Path) -> bool:
    programs = 2 + 2 * (seed % 3)
    return require_agreement(seed, folder, to_threads=True, over_tiles=True, programs=programs)


def _unasked_product(seed: int, folder: Path) -> bool:
    return test_unasked.check(seed, folder, generate_product) == "copied"


def _unasked_attention(seed: int, folder: Path) -> bool:
    return test_unasked.check(seed, folder, generate_attention) == "copied"


FORMS: dict[str, Form] = {
    "depths": _depths,
    "hostile": test_hostile_loops.check,
    "roles": partial(require_agreement, to_threads=True),
    "tiles": partial(require_agreement, to_threads=True, over_tiles=True),
    "gathers": partial(require_agreement, to_threads=True, gathers=True),
    "clusters": _clusters,
    "copied": partial(require_agreement, to_threads=True, copies=True),
    "grouped": test_grouped.check,
    "in place": test_in_place.check,
    "lifted": test_lifted.check,
    "overlapping": test_overlapping.check,
    "paged": test_paged.check,
    "published": test_published.check,
    "unasked products": _unasked_product,
    "unasked attentions": _unasked_attention,
}
"""What a program is made of, and how it runs: a seed and a folder for its text.

A form that says whether the program became what it is about returns it: the others are programs
of one role, which must be right as well.
"""


def _give_up(_signal: int, _frame: FrameType | None) -> None:
    raise TimeoutError(f"no answer in {_MOST_SECONDS} s of the processor")


def examine(form: str, seed: int) -> tuple[bool, str]:
    """Whether a program took the form, and what was wrong with it, or ''."""
    signal.signal(signal.SIGPROF, _give_up)
    signal.setitimer(signal.ITIMER_PROF, _MOST_SECONDS)
    try:
        with tempfile.TemporaryDirectory() as folder:
            taken = FORMS[form](seed, Path(folder))
    except Exception:
        return True, traceback.format_exc()
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
    return taken is not False, ""


@click.command()
@click.option("--count", default=100, help="How many programs.")
@click.option("--seed", default=0, help="The first seed; program k has seed + k.")
@click.option("--limit", default=0.0, help="Stop after so many seconds; 0 is no limit.")
@click.option("--form", "forms", multiple=True, type=click.Choice(tuple(FORMS)),
              help="Only these forms.")  # fmt: skip
def main(count: int, seed: int, limit: float, forms: tuple[str, ...]) -> None:
    """Run random loops every way and compare bits; say how many of each form there were."""
    chosen, started = forms or tuple(FORMS), time.perf_counter()
    done, taken, failed = Counter[str](), Counter[str](), Counter[str]()
    for number in range(seed, seed + count):
        if limit and time.perf_counter() - started > limit:
            break
        form = chosen[number % len(chosen)]
        is_taken, fault = examine(form, number)
        done[form] += 1
        taken[form] += is_taken
        failed[form] += bool(fault)
        if fault:
            print(f"--- {form}, seed {number}\n{fault}", flush=True)
        if done.total() % _REPORTED == 0:
            print(_table(done, taken, failed), flush=True)
    print(_table(done, taken, failed))
    sys.exit(1 if failed.total() else 0)


def _table(done: Counter[str], taken: Counter[str], failed: Counter[str]) -> str:
    lines = [
        f"{form}: {done[form]} programs, {taken[form]} took the form, {failed[form]} failed"
        for form in done
    ]
    return "\n".join([*lines, f"all: {done.total()} programs, {failed.total()} failed"])


if __name__ == "__main__":
    main()
