"""Occupancy by hand-computed cases, streams by stand-ins for packages."""

from __future__ import annotations

import sys
from types import SimpleNamespace

import pytest

from tilewright.targets.nvidia.errors import StreamNotSupported
from tilewright.targets.nvidia.host import NAMED_MACHINES, named_machine
from tilewright.targets.nvidia.occupancy import occupancy
from tilewright.targets.nvidia.streams import stream_getter, stream_handle

from .fake_cuda import FakeTensor

HOPPER = NAMED_MACHINES["sm_90a"]


@pytest.mark.parametrize(
    ("registers", "num_warps", "shared_bytes", "ctas", "limit"),
    [
        (32, 4, 0, 16, "registers"),
        (16, 4, 0, 16, "threads"),
        (16, 1, 0, 32, "ctas"),
        (128, 4, 49152, 4, "registers"),
        (64, 4, 100_000, 2, "shared memory"),
        (255, 8, 0, 1, "registers"),
        (168, 12, 230_000, 1, "registers"),
    ],
)
def test_occupancy_is_what_the_scarcest_resource_allows(
    registers: int, num_warps: int, shared_bytes: int, ctas: int, limit: str
) -> None:
    found = occupancy(registers, num_warps, shared_bytes, HOPPER)
    assert (found.ctas_per_sm, found.limit) == (ctas, limit)
    assert found.fraction == ctas * num_warps / 64


def test_a_named_machine_needs_no_gpu() -> None:
    machine = named_machine("sm_90a")
    assert machine.arch == "sm_90a"
    assert machine.max_shared_bytes == 232448


def test_streams_are_read_by_every_protocol() -> None:
    assert stream_handle(5) == 5
    assert stream_handle(SimpleNamespace(cuda_stream=6)) == 6
    assert stream_handle(SimpleNamespace(ptr=7)) == 7
    assert stream_handle(SimpleNamespace(__cuda_stream__=lambda: (0, 8))) == 8


@pytest.mark.parametrize("stream", [True, "main", 1.5, SimpleNamespace(ptr="x")])
def test_what_is_no_stream_is_refused(stream: object) -> None:
    with pytest.raises(StreamNotSupported):
        stream_handle(stream)


class CupyArray:
    """An array of a package of that name."""


CupyArray.__module__ = "cupy._core.core"


def test_the_package_of_the_first_array_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    cupy = SimpleNamespace(
        cuda=SimpleNamespace(get_current_stream=lambda device: SimpleNamespace(ptr=30 + device))
    )
    torch = SimpleNamespace(
        _C=SimpleNamespace(_cuda_getCurrentRawStream=lambda device: 40 + device),
        cuda=SimpleNamespace(is_initialized=lambda: True),
    )
    monkeypatch.setitem(sys.modules, "cupy", cupy)
    monkeypatch.setitem(sys.modules, "torch", torch)
    for arrays, stream in (([CupyArray()], 31), ([FakeTensor(0)], 41), ([], 41)):
        getter = stream_getter(arrays)
        assert getter is not None and getter(1) == stream


def test_nobody_knows_a_stream_without_packages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cupy", None)
    monkeypatch.setitem(sys.modules, "torch", None)
    assert stream_getter([FakeTensor(0), CupyArray()]) is None
