"""`triton.knobs`: settings, their variables, groups that packages declare, scopes."""

from __future__ import annotations

import os
from collections.abc import Generator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.api import alias as _alias  # noqa: F401 - puts `triton` on the path
from tilewright.support.errors import TilewrightError

import triton  # isort: skip
from triton import knobs  # isort: skip


class OwnKnobs(knobs.base_knobs):
    """What a package declares for itself."""

    place = knobs.env_str("OWN_PLACE", "here")
    is_quick = knobs.env_bool("OWN_QUICK", True)
    name = knobs.env_opt_str("OWN_NAME")
    is_loud = knobs.env_opt_bool("OWN_LOUD")
    depth = knobs.env_int("OWN_DEPTH", 2)
    writer = knobs.env_class("OWN_WRITER", "Writer")


_DEFAULTS = {
    **{"place": "here", "is_quick": True, "name": None},
    **{"is_loud": None, "depth": 2, "writer": None},
}


@pytest.fixture(autouse=True)
def own_settings(monkeypatch: pytest.MonkeyPatch) -> Generator[None]:
    """Every setting as it was, afterwards; no variables of Triton's."""
    for name in [name for name in os.environ if name.startswith(("TRITON_", "OWN_"))]:
        monkeypatch.delenv(name)
    monkeypatch.delenv("TILEWRIGHT_CACHE_DIR", raising=False)
    with ExitStack() as scopes:
        scopes.callback(setattr, knobs, "propagate_env", True)
        for group in (knobs.cache, knobs.runtime, knobs.nvidia, knobs.compilation, knobs.amd):
            scopes.enter_context(group.scope())
        yield


def test_a_group_of_a_package_has_values_copies_and_resets() -> None:
    knobs.propagate_env = False
    group = OwnKnobs()
    assert group.knobs == _DEFAULTS
    group.is_quick, group.is_loud, group.depth = False, True, 7
    copied = group.copy()
    copied.place = "there"
    assert (copied.is_quick, copied.place, group.place) == (False, "there", "here")
    assert copied.reset().knobs == _DEFAULTS
    assert group.knobs == {**_DEFAULTS, "is_quick": False, "is_loud": True, "depth": 7}
    assert not any(name.startswith("OWN_") for name in os.environ)


def test_a_value_stands_until_the_environment_shall_count_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    group = OwnKnobs()
    group.depth = 5
    assert os.environ["OWN_DEPTH"] == "5"
    monkeypatch.setenv("OWN_DEPTH", "9")
    assert group.depth == 5
    group.depth = knobs.env
    assert group.depth == 9
    group.depth = 4
    monkeypatch.setenv("OWN_DEPTH", "8")
    del group.depth
    assert group.depth == 8


def test_a_number_that_is_none_names_its_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OWN_DEPTH", "deep")
    with pytest.raises(TilewrightError, match="OWN_DEPTH is 'deep'"):
        _ = OwnKnobs().depth


@pytest.mark.parametrize(
    ("text", "value"), [("1", True), ("YES", True), ("On", True), ("0", False), ("n", False)]
)
def test_truth_values_are_written_in_many_ways(
    monkeypatch: pytest.MonkeyPatch, text: str, value: bool
) -> None:
    monkeypatch.setenv("OWN_QUICK", text)
    assert OwnKnobs().is_quick is value


def test_ours_follows_also_where_the_environment_is_left_alone() -> None:
    knobs.propagate_env = False
    knobs.compilation.always_compile = True
    assert "TRITON_ALWAYS_COMPILE" not in os.environ
    assert os.environ["TILEWRIGHT_ALWAYS_COMPILE"] == "1"
    del knobs.compilation.always_compile
    assert "TILEWRIGHT_ALWAYS_COMPILE" not in os.environ
    assert not knobs.compilation.always_compile


def test_a_scope_ends_assignments_and_deletions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRITON_HIP_GLOBAL_PREFETCH", "0")  # which is undone, with what follows
    knobs.amd.global_prefetch = 4
    with knobs.amd.scope():
        del knobs.amd.global_prefetch
        monkeypatch.setenv("TRITON_HIP_GLOBAL_PREFETCH", "17")
        assert knobs.amd.global_prefetch == 17
        knobs.amd.use_buffer_ops = False
    assert knobs.amd.global_prefetch == 4
    assert knobs.amd.use_buffer_ops


def test_directories_follow_the_home_directory(monkeypatch: pytest.MonkeyPatch) -> None:
    assert knobs.cache.dir == os.path.join(knobs.cache.home_dir, ".triton", "cache")
    monkeypatch.setenv("TRITON_HOME", "/far")
    assert knobs.cache.dump_dir == "/far/.triton/dump"
    knobs.cache.home_dir = "/farther"
    assert knobs.cache.override_dir == "/farther/.triton/override"
    monkeypatch.delenv("TRITON_HOME")
    monkeypatch.setenv("TILEWRIGHT_CACHE_DIR", "/own")
    assert knobs.cache.dir == "/own"


def test_a_class_comes_from_the_environment_or_is_assigned(monkeypatch: pytest.MonkeyPatch) -> None:
    manager = triton.runtime.cache.FileCacheManager
    monkeypatch.setenv("TRITON_CACHE_MANAGER", "triton.runtime.cache:FileCacheManager")
    assert knobs.cache.manager_class is manager

    class Other(manager):
        pass

    knobs.cache.manager_class = Other
    assert isinstance(triton.runtime.cache.get_cache_manager("00ff"), Other)
    monkeypatch.setenv("OWN_WRITER", "no_colon")
    with pytest.raises(TilewrightError, match="module:Class"):
        _ = OwnKnobs().writer


def test_a_tool_is_a_path_and_is_missed_when_it_is_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "ptxas"
    program.write_text("#!/bin/sh\necho Cuda compilation tools, release 12.9, V12.9.86\n")
    program.chmod(0o755)
    monkeypatch.setenv("TRITON_PTXAS_PATH", str(program))
    assert knobs.nvidia.ptxas.path == str(program)
    assert knobs.nvidia.ptxas.version == "12.9"
    knobs.nvidia.ptxas = str(tmp_path / "none")
    assert os.environ["TILEWRIGHT_PTXAS"] == str(tmp_path / "none")
    with pytest.raises(RuntimeError, match="none is not on this machine"):
        _ = knobs.nvidia.ptxas.path


def test_folders_of_cuda_are_a_set(monkeypatch: pytest.MonkeyPatch) -> None:
    assert knobs.build.backend_dirs == set()
    monkeypatch.setenv("TRITON_CUDACRT_PATH", "/crt")
    monkeypatch.setenv("TRITON_CUDART_PATH", "/crt")
    assert knobs.build.backend_dirs == {"/crt"}
