"""What every compile checks of its own result."""

from __future__ import annotations

import pytest

from tests.corpus.everything import CASES
from tests.corpus.threads import gpu_request
from tilewright.compiler.compile import to_schedule, to_tiles
from tilewright.schedule import shared_barriers
from tilewright.schedule.layout import assign
from tilewright.support.dataclass import replace
from tilewright.support.errors import InternalError
from tilewright.targets.target import load_target

NVIDIA = load_target("nvidia")
PRODUCT = next(case for case in CASES if case.name.startswith("matmul-"))


def test_a_schedule_that_leaves_its_level_is_refused() -> None:
    request = gpu_request(PRODUCT)
    lazy = replace(NVIDIA, schedule=lambda machine, options: ())
    module = to_tiles(request, NVIDIA)
    with pytest.raises(InternalError, match=r"invalid T2: .* a tile has a layout"):
        to_schedule(request, lazy, module)


def test_a_schedule_that_forgets_a_barrier_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shared_barriers._Placer, "_insert_barrier", lambda placer, op, reason: None)
    request = gpu_request(PRODUCT)
    module = to_tiles(request, NVIDIA)
    with pytest.raises(InternalError, match="no barrier between the write of"):
        to_schedule(request, NVIDIA, module)


def test_a_pass_that_leaves_a_tile_without_a_layout_is_found_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(assign, "assign_layouts", lambda kernel, layouts: None)
    request = gpu_request(PRODUCT)
    module = to_tiles(request, NVIDIA)
    seen: list[str] = []
    with pytest.raises(InternalError, match=r"invalid T1: .* a tile has a layout"):
        to_schedule(request, NVIDIA, module, lambda name, result: seen.append(name))
    assert seen[-1] == "verify-layouts"
