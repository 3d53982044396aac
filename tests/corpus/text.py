"""A case as text: every IR stage printed, read back, and printed again."""

from __future__ import annotations

from collections.abc import Collection

from tests.corpus.case import Array, Case
from tests.corpus.run import prepare, run_module
from tests.corpus.threads import gpu_request
from tilewright.compiler.named_passes import full_context
from tilewright.compiler.request import CompileRequest
from tilewright.compiler.stages import find_stage, stages
from tilewright.frontend.lower import lower_kernel
from tilewright.ir.text import parse_module, print_module


def require_round_trips(request: CompileRequest, only: Collection[str] = ()) -> None:
    """Check every IR stage with its locations, or `only` some; those of one text are checked once.

    xDSL takes tenths of a second to read a stage.
    """
    known = set()
    for name, show in stages(request, lambda module: print_module(module, locations=True)):
        if name == "llir":
            break
        text = "" if name == "source" or (only and name not in only) else show()
        if text and text not in known:
            known.add(text)
            again = print_module(parse_module(text, full_context()), locations=True)
            assert again == text, f"after {name} the text reads back as another"


def run_as_text(case: Case) -> dict[str, Array]:
    """What the arrays hold after the interpreter ran T0 as it reads back; checks last levels."""
    request = prepare(case).request
    for each in (request, gpu_request(case)):
        require_round_trips(each, (find_stage(each, "schedule").name,))
    return run_module(case, parse_module(print_module(lower_kernel(request)), full_context()))
