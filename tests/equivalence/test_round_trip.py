"""What is printed after each pass is read back unchanged, on both targets, with its locations."""

from __future__ import annotations

import pytest

from tests.corpus.case import Case
from tests.corpus.everything import CASES, over
from tests.corpus.run import prepare
from tests.corpus.threads import gpu_request
from tilewright.compiler.named_passes import full_context
from tilewright.compiler.request import CompileRequest
from tilewright.compiler.stages import stages
from tilewright.ir.text import parse_module, print_module

_QUICK = [case for case in CASES if not case.is_slow]
# NaNs are no splats to xDSL, descriptors become tensor maps, products get layouts of all kinds.
_TELLING = ("block-nan-padding", "descriptor", "matmul", "where-inf")


def require_round_trips(request: CompileRequest) -> None:
    """Check every IR stage; two stages with the same text are checked once."""
    known = set()
    for name, show in stages(request, lambda module: print_module(module, locations=True)):
        if name == "llir":
            break
        text = "" if name == "source" else show()
        if text and text not in known:
            known.add(text)
            again = print_module(parse_module(text, full_context()), locations=True)
            assert again == text, f"after {name}"


@over([*_QUICK[::24], *[case for case in _QUICK if case.name.startswith(_TELLING)][::6]])
def test_every_level_reads_back_as_it_was_printed(case: Case) -> None:
    require_round_trips(gpu_request(case))
    require_round_trips(prepare(case).request)


@pytest.mark.slow
@over(_QUICK)
def test_every_level_reads_back_as_it_was_printed_anywhere(case: Case) -> None:
    require_round_trips(gpu_request(case))
    require_round_trips(prepare(case).request)
