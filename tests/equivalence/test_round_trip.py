"""What is printed after each pass is read back unchanged, on both targets, with its locations."""

from __future__ import annotations

import pytest

from tests.corpus.case import Case
from tests.corpus.everything import CASES, over
from tests.corpus.run import prepare
from tests.corpus.text import require_round_trips
from tests.corpus.threads import gpu_request

_QUICK = [case for case in CASES if not case.is_slow]
# NaNs are no splats to xDSL, descriptors become tensor maps, products get layouts of all kinds.
_TELLING = ("block-nan-padding", "descriptor", "matmul")


@over([*_QUICK[::24], *[case for case in _QUICK if case.name.startswith(_TELLING)][::6]])
def test_every_level_reads_back_as_it_was_printed(case: Case) -> None:
    require_round_trips(gpu_request(case))
    require_round_trips(prepare(case).request)


@pytest.mark.slow
@over(_QUICK)
def test_every_level_reads_back_as_it_was_printed_anywhere(case: Case) -> None:
    require_round_trips(gpu_request(case))
    require_round_trips(prepare(case).request)
