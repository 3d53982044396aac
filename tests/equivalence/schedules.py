"""The table of `docs/schedules-of-the-corpus.md`: every kernel with a loop under every schedule.

    python -m tests.equivalence.schedules

It runs each kernel as threads of an H200 in the simulator, as it is and under each form, and
compares all bits with those of one iteration after the other.
"""

from __future__ import annotations

import inspect
import re
import sys
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from xdsl.dialects.builtin import IntegerAttr, ModuleOp, i32

from tests.corpus.case import Array, Case
from tests.corpus.copied import COPIED
from tests.corpus.everything import CASES
from tests.corpus.partitioned import PARTITIONED
from tests.corpus.run import tile_module
from tests.corpus.sharing import SHARING
from tests.corpus.threads import gpu_request, lower_for_gpu, run_lowered
from tests.equivalence.test_copied_rings import UNASKED
from tilewright.ir.regions import ControlFlowOp
from tilewright.ir.schedule_attributes import pipelining_of
from tilewright.ops.control_flow import ForOp
from tilewright.support.dataclass import replace
from tilewright.support.errors import MalformedSchedule, TilewrightError

PATH = Path(__file__).parents[2] / "docs" / "schedules-of-the-corpus.md"
STRAIGHT = {"num_stages": 1, "num_consumer_groups": 0, "bulk_access": "never"}
_TURNS = "roles load | math x2 split tiles; ring ab tiles load#0 load#1 slots 4 tma release late"
_STAGES = "tt.num_stages"
_ROLES = re.compile(r"runs as roles: .*math(?: x(\d))?")
_LOOP = re.compile(r"\b(for|while)\b")
_PATH = re.compile(r"\S*?([\w-]+\.py:\d+)")


@dataclass(frozen=True)
class Form:
    """A schedule that is asked for: the options of the launch, and the stages of each loop."""

    name: str
    options: dict[str, object]
    stages: int = 0

    def annotate(self, module: ModuleOp) -> None:
        """Say the stages at each loop, as `tl.range(…, num_stages=…)` does."""
        for op in module.walk():
            if self.stages and isinstance(op, ForOp):
                op.attributes[_STAGES] = IntegerAttr(self.stages, i32)


FORMS = [
    Form("as it is", {}),
    Form("1 stage", {"num_stages": 1}, 1),
    *(Form(f"{n} stages", {"num_stages": n}, n) for n in (2, 3, 4, 5)),
    Form("1 group", {"num_consumer_groups": 1}),
    *(Form(f"{n} groups", {"num_consumer_groups": n}) for n in (2, 3)),
    Form("in turn", {"schedule": _TURNS}),
]


@dataclass(frozen=True)
class Outcome:
    """What became of a case under a form: how it ran, why not as asked, and whether bits differ."""

    kind: str
    reason: str = ""
    differs: bool = False

    def __str__(self) -> str:
        """As the table says it."""
        return f"{self.kind}, **differs**" if self.differs else self.kind


def cases() -> list[Case]:
    """The corpus, as far as its kernels have loops, and what was written to run in roles.

    But for descriptors of empty tensors, which no launch takes, and of rings with one memory those
    of a single count of iterations.
    """
    launched = [each for each in PARTITIONED if "no-step" not in each.case.name]
    sharing = [each for each in SHARING if each.case.name.endswith(("-2-3", "-odd"))]
    written = [each.case for each in (*launched, *sharing, *COPIED)]
    unasked = [case for part in UNASKED.values() for case in part]
    written += [replace(case, name=f"unasked-{case.name}") for case in unasked]
    known = {case.name: case for case in (*CASES, *written)}
    return [case for case in known.values() if _has_loop(case)]


def _has_loop(case: Case) -> bool:
    if not _LOOP.search(inspect.getsource(case.kernel.fn)):
        return False
    ops = tile_module(gpu_request(case)).walk()
    return any(isinstance(op, ControlFlowOp) and op.is_loop() for op in ops)


def straight(case: Case) -> dict[str, Array]:
    """What a case leaves when one iteration follows the other."""
    given = {name: value for name, value in STRAIGHT.items() if name not in case.options}
    return run_lowered(case, lower_for_gpu(case, FORMS[1].annotate, **given))


def outcome(case: Case, form: Form, expected: dict[str, Array]) -> Outcome:
    """Run a case under a form."""
    try:
        threads = lower_for_gpu(case, form.annotate, **form.options)
    except MalformedSchedule:
        return Outcome("-")  # a product has two loads, and this kernel has not
    except TilewrightError as error:
        return Outcome("refused", f"refused: {_placeless(error.summary)}")
    found = run_lowered(case, threads)
    differs = any(_bits(found[name]) != _bits(array) for name, array in expected.items())
    loops = [op for op in threads.scheduled.module.walk() if isinstance(op, ForOp)]
    accounts = [account for account in map(pipelining_of, loops) if account]
    kind = _kind(threads.scheduled.remarks, accounts)
    return Outcome(kind, _reason(form, kind, threads.scheduled.remarks, accounts), differs)


def _bits(array: Array) -> bytes:
    return np.ascontiguousarray(array).tobytes()


def _kind(remarks: tuple[str, ...], accounts: list[str]) -> str:
    roles = _ROLES.search("\n".join(remarks))
    if roles is not None:
        return f"roles {roles[1] or 1}"
    ahead = [account for account in accounts if not account.startswith("not")]
    return "ahead" if ahead else "straight"


def _reason(form: Form, kind: str, remarks: tuple[str, ...], accounts: list[str]) -> str:
    """Why a form that was asked for was not taken; '' where it was, or nothing was asked."""
    if form.stages > 1 and kind == "straight":
        reasons = [account for account in accounts if account.startswith("not")]
        return _placeless(reasons[0]) if reasons else "no loop loads tiles that may run ahead"
    if form.options.keys() & {"num_consumer_groups", "schedule"} and not kind.startswith("roles"):
        reasons = [text for text in remarks if "not split into roles" in text or "no roles" in text]
        return _placeless(reasons[0]) if reasons else "nothing says why"
    return ""


def _placeless(text: str) -> str:
    """A reason without the places of this corpus, which are many."""
    return _PATH.sub("…", text.splitlines()[0]).removeprefix("…: ")


Row = tuple[str, list[Outcome]]


def run_all(chosen: list[Case], report: Callable[[str], None]) -> list[Row]:
    """Each case under every form."""
    rows: list[Row] = []
    for case in chosen:
        expected = straight(case)
        rows.append((case.name, [outcome(case, form, expected) for form in FORMS]))
        report(" | ".join([case.name, *map(str, rows[-1][1])]))
    return rows


def render(rows: list[Row]) -> str:
    """The document."""
    found = [each for _, outcomes in rows for each in outcomes]
    wrong = sum(each.differs for each in found)
    kinds = Counter(each.kind.split()[0] for each in found)
    reasons = Counter(each.reason for each in found if each.reason)
    names = [form.name for form in FORMS]
    num_runs = len(found) - kinds["-"]
    return "\n".join([
        "# Schedules of the corpus: which a kernel runs under, and its bits",
        "",
        "Generated by `python -m tests.equivalence.schedules`, which runs every kernel of the",
        "corpus that has a loop as threads of an H200 in the simulator, and compares all bits with",
        "those of one iteration after the other (`num_stages=1`, no copies by the engine).",
        "",
        f"{len(rows)} kernels under {len(FORMS)} forms: {num_runs} runs, of which {wrong} differ",
        f"in a bit. {kinds['roles']} are in roles, in {kinds['ahead']} loads run ahead,",
        f"{kinds['straight']} are straight, {kinds['refused']} are refused by an error.",
        "",
        "*As it is*: nothing is asked for. *Stages*: of the launch, and of each of its loops.",
        "*Groups*: `num_consumer_groups`. *In turn*: two groups that take whole tiles, by a",
        "schedule of two loads, which `-` has not. `roles 2` are two groups that multiply, `ahead`",
        "is one program whose loads run ahead, `straight` one whose iterations follow each other.",
        "A form that was not taken has its reason below.",
        "",
        f"| kernel | {' | '.join(names)} |",
        f"|{'---|' * (1 + len(names))}",
        *(f"| {name} | {' | '.join(map(str, outcomes))} |" for name, outcomes in rows),
        "",
        "## Why not as asked",
        "",
        "| reason | runs |",
        "|---|---|",
        *(f"| {reason} | {count} |" for reason, count in sorted(reasons.items())),
        "",
    ])  # fmt: skip


def main() -> None:
    """Run all of it and write the page."""
    rows = run_all(cases(), lambda line: print(line, flush=True))
    PATH.write_text(render(rows), encoding="utf-8")
    sys.exit(any(each.differs for _, outcomes in rows for each in outcomes))


if __name__ == "__main__":
    main()
