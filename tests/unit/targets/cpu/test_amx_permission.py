"""Permission to use AMX: asked of the system once, decisive for what is compiled and what runs."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator

import pytest

from tilewright.runtime.artifact import Artifact
from tilewright.support.errors import UnsupportedError
from tilewright.targets.cpu import host
from tilewright.targets.cpu.driver import make_driver
from tilewright.targets.cpu.host import permitted_features
from tilewright.targets.cpu.runtime import amx_permission
from tilewright.targets.cpu.runtime.amx_permission import is_amx_permitted

TILE_DATA = 1 << 18
AMX = {"amx-tile": True, "amx-bf16": True, "amx-fp16": False, "avx512f": True}


class System:
    """A C library whose `syscall` answers as a kernel would."""

    def __init__(self, supported: int, outcome: int) -> None:
        self.supported, self.outcome = supported, outcome
        self.requests: list[int] = []

    def syscall(self, number: ctypes.c_long, code: ctypes.c_long, argument: object) -> int:
        assert number.value == 158
        if code.value == 0x1021:
            argument._obj.value = self.supported  # type: ignore[attr-defined]
            return 0
        assert code.value == 0x1023
        self.requests.append(argument.value)  # type: ignore[attr-defined]
        return self.outcome

    def __getattribute__(self, name: str) -> object:
        if name != "syscall":
            return super().__getattribute__(name)
        bound = super().__getattribute__("syscall")
        return Function(bound)


class Function:
    """A function of a C library: its result type can be set."""

    def __init__(self, call: object) -> None:
        self.call = call
        self.restype: object = None

    def __call__(self, *arguments: object) -> object:
        assert self.restype is ctypes.c_long
        return self.call(*arguments)  # type: ignore[operator]


@pytest.fixture(autouse=True)
def _asked_afresh() -> Iterator[None]:
    is_amx_permitted.cache_clear()
    yield
    is_amx_permitted.cache_clear()


def on_system(monkeypatch: pytest.MonkeyPatch, supported: int, outcome: int) -> System:
    system = System(supported, outcome)
    monkeypatch.setattr(amx_permission.sys, "platform", "linux")
    monkeypatch.setattr(amx_permission.platform, "machine", lambda: "x86_64")
    monkeypatch.setattr(amx_permission.ctypes, "CDLL", lambda name: system)
    return system


def test_permission_is_requested_once(monkeypatch: pytest.MonkeyPatch) -> None:
    system = on_system(monkeypatch, TILE_DATA | 7, 0)
    assert is_amx_permitted() and is_amx_permitted()
    assert system.requests == [18]


def test_a_refusal_is_an_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    """As Linux refuses where a thread's signal stack is too small."""
    system = on_system(monkeypatch, TILE_DATA, -1)
    assert not is_amx_permitted() and system.requests == [18]


def test_nothing_is_requested_where_the_registers_are_missing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    system = on_system(monkeypatch, 7, 0)
    assert not is_amx_permitted() and system.requests == []


def test_other_systems_are_not_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    system = on_system(monkeypatch, TILE_DATA, 0)
    monkeypatch.setattr(amx_permission.platform, "machine", lambda: "aarch64")
    assert not is_amx_permitted() and system.requests == []


def test_a_machine_has_amx_if_it_is_permitted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(host, "is_amx_permitted", lambda: True)
    assert permitted_features(AMX) == AMX
    monkeypatch.setattr(host, "is_amx_permitted", lambda: False)
    assert permitted_features(AMX) == {**AMX, "amx-tile": False, "amx-bf16": False}


def test_nobody_asks_for_a_machine_without_amx(monkeypatch: pytest.MonkeyPatch) -> None:
    def ask() -> bool:
        raise AssertionError("asked")

    monkeypatch.setattr(host, "is_amx_permitted", ask)
    features = {"avx512f": True, "amx-tile": False}
    assert permitted_features(features) == features


def test_code_for_amx_is_not_loaded_without_permission(monkeypatch: pytest.MonkeyPatch) -> None:
    on_system(monkeypatch, TILE_DATA, -1)
    artifact = Artifact("key", {"name": "k", "uses_amx": True}, {"object": b"\x7fELF"})
    with pytest.raises(UnsupportedError, match="compiled for AMX") as caught:
        make_driver().load(artifact)
    assert "signal stack" in str(caught.value.hint)
