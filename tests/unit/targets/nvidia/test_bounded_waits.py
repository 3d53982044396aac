"""Waits with a bound, and pauses: they change no bit, and what hangs says what it waits for."""

from __future__ import annotations

import ctypes

import numpy as np
import pytest

from tests.unit.targets.nvidia.fake_cuda import FakeCuda
from tests.unit.targets.nvidia.hanging import (
    BF16,
    BLOCKS,
    GRID,
    ROLES,
    TURNS,
    K,
    described,
    forget_a_release,
    forget_a_turn,
    operands,
    product,
    tiles,
)
from tilewright.support.errors import Deadlock
from tilewright.targets.nvidia.hang_reports import HangReport, HangReports
from tilewright.targets.nvidia.schedule import CheckProtocol


def simulated(**options: object) -> np.ndarray:
    a, b, expected = operands()
    c = np.zeros_like(expected)
    product.simulate[GRID](*described(a, b, c), K, **BLOCKS, **options)
    return c


@pytest.mark.parametrize(
    "options", [{"deadlock_seconds": 5}, {"jitter": 3}, {"deadlock_seconds": 5, "jitter": 4}]
)
def test_bounds_and_pauses_change_no_bit(options: dict[str, int]) -> None:
    _, _, expected = operands()
    assert (simulated(**ROLES, **options).view(np.uint16) == expected.view(np.uint16)).all()
    assert expected.dtype == BF16


def test_pipelined_copies_are_bounded_too() -> None:
    _, _, expected = operands()
    found = simulated(num_stages=3, deadlock_seconds=5)
    assert (found.view(np.uint16) == expected.view(np.uint16)).all()


@pytest.mark.parametrize("options", [{}, {"deadlock_seconds": 5}])
def test_a_release_that_is_missing_is_named(
    monkeypatch: pytest.MonkeyPatch, options: dict[str, int]
) -> None:
    monkeypatch.setattr(CheckProtocol, "apply", forget_a_release)
    with pytest.raises(Deadlock) as caught:
        simulated(**ROLES, **options)
    said = str(caught.value)
    assert "role load waits for phase 0 of empty[0] of ring " in said, said
    assert "role math waits for phase 1 of full[0] of ring " in said, said


def in_turn(**options: object) -> np.ndarray:
    a, b, expected = operands()
    c = np.zeros_like(expected)
    tiles.simulate[(1,)](*described(a, b, c), K, **BLOCKS, **TURNS, **options)
    return c


@pytest.mark.parametrize(
    "options", [{}, {"deadlock_seconds": 5}, {"deadlock_seconds": 5, "jitter": 4}]
)
def test_turns_with_a_bound_change_no_bit(options: dict[str, int]) -> None:
    _, _, expected = operands()
    assert (in_turn(**options).view(np.uint16) == expected.view(np.uint16)).all()


@pytest.mark.parametrize("options", [{}, {"deadlock_seconds": 5}])
def test_a_turn_that_is_not_passed_is_named(
    monkeypatch: pytest.MonkeyPatch, options: dict[str, int]
) -> None:
    monkeypatch.setattr(CheckProtocol, "apply", forget_a_turn)
    with pytest.raises(Deadlock) as caught:
        in_turn(**options)
    said = str(caught.value)
    code = tiles.fn.__code__
    line = f"{code.co_filename}:{code.co_firstlineno + 4}"
    assert f"role math 1 waits for its turn at tiles ({line})" in said, said


WAITS = {
    "seconds": 5,
    "waits": [
        "phase {phase} of empty[{slot}] of ring ab (k.py:3)",
        "phase {phase} of full[{slot}] of ring ab (k.py:3)",
    ],
    "groups": [["load", 0, 4], ["math 0", 4, 8], ["math 1", 8, 12]],
}


class HostMemory(FakeCuda):
    """A GPU whose kernels write to this process's memory."""

    def allocate_host(self, size_bytes: int) -> int:
        self.memory = (ctypes.c_int32 * (size_bytes // 4))()
        return ctypes.addressof(self.memory)


def test_a_report_says_what_every_role_waits_for() -> None:
    cuda, reports = HostMemory(), HangReports()
    reports.watch(cuda, 7, "k", WAITS)
    (name, module, symbol, address) = cuda.calls[-1]
    assert (name, module, symbol) == ("global", 7, "tw_hang_report")
    assert address == ctypes.addressof(cuda.memory)
    assert reports.error() is None
    cuda.memory[0:7] = (1, 2, 3, 0, 5, 0, 1)
    for warp in (4, 5, 6, 7):
        cuda.memory[8 * warp : 8 * warp + 7] = (2, 0, 4, 0, 5, 0, 1)
    error = reports.error()
    assert isinstance(error, Deadlock)
    assert str(error).splitlines()[:4] == [
        "error[Deadlock]: k: program (5, 0, 1) waited for 5 s",
        "  load waits for phase 3 of empty[2] of ring ab (k.py:3)",
        "  math 0 waits for phase 4 of full[0] of ring ab (k.py:3)",
        "  math 1 has ended, or waits at a barrier for warps of its own",
    ]


def test_a_kernel_without_roles_is_one_group() -> None:
    words = (ctypes.c_int32 * 256)()
    words[0:7] = (1, 4, 1, 0, 0, 0, 0)
    report = HangReport("k", words, 1, ("phase {phase} of the copies to slot {slot}",), ())
    assert "every warp waits for phase 1 of the copies to slot 4" in str(report.error())


def test_a_report_that_nobody_heard_is_told_at_the_end(capsys: pytest.CaptureFixture[str]) -> None:
    cuda, reports = HostMemory(), HangReports()
    reports.watch(cuda, 7, "k", WAITS)
    cuda.memory[0:7] = (1, 0, 0, 0, 0, 0, 0)
    reports._tell_at_exit()
    assert "load waits for phase 0 of empty[0]" in capsys.readouterr().err
    reports._tell_at_exit()
    assert capsys.readouterr().err == ""
