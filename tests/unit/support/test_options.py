"""Options are checked by name and value; the environment is read live and in one table."""

from __future__ import annotations

import dataclasses
import re
import sys
from pathlib import Path

import platformdirs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tilewright.support import environment as environment_module
from tilewright.support import options as options_module
from tilewright.support.environment import VARIABLES, InvalidVariable, Variable, default_cache_dir
from tilewright.support.errors import CompileError, InvalidOption
from tilewright.support.options import (
    CompileOptions,
    DefaultStages,
    UnknownOption,
    debug_options,
    option_names,
    runtime_options,
)

POWERS = st.integers(0, 6).map(lambda exponent: 2**exponent)
OPTIONS = st.builds(
    CompileOptions,
    num_warps=POWERS,
    num_stages=st.integers(1, 9),
    maxnreg=st.none() | st.integers(1, 255),
    cluster_dims=st.none() | st.tuples(*[st.integers(1, 16)] * 3),
    launch_pdl=st.booleans(),
    enable_fp_fusion=st.booleans(),
    checked=st.booleans(),
    default_dot_input_precision=st.sampled_from([None, "ieee", "tf32"]),
    descriptors=st.sampled_from(["auto", "pointers"]),
    plan=st.none() | st.text(max_size=20),
)


@pytest.fixture(autouse=True)
def no_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in VARIABLES:
        monkeypatch.delenv(variable.name, raising=False)


@given(OPTIONS)
def test_options_round_trip_through_json(options: CompileOptions) -> None:
    assert CompileOptions.from_json(options.to_json()) == options


@given(OPTIONS, OPTIONS)
def test_json_is_equal_exactly_where_options_are(a: CompileOptions, b: CompileOptions) -> None:
    assert (a.to_json() == b.to_json()) == (a == b)


def test_every_option_is_in_the_json() -> None:
    names = {field.name for field in dataclasses.fields(CompileOptions)}
    assert names == set(option_names()) == set(options_module._DOMAINS)
    assert all(f'"{name}":' in CompileOptions().to_json() for name in names)


def test_json_without_an_option_has_its_default() -> None:
    assert CompileOptions.from_json('{"num_warps": 8}') == CompileOptions(num_warps=8)


@pytest.mark.parametrize("text", ["", "{", "[]", "3", "[" * 100_000])
def test_json_that_is_no_object_is_an_error(text: str) -> None:
    with pytest.raises(InvalidOption, match="not a JSON object"):
        CompileOptions.from_json(text)


def test_unknown_option_names_the_valid_ones() -> None:
    with pytest.raises(UnknownOption) as caught:
        CompileOptions().replaced({"num_warp": 4})
    assert isinstance(caught.value, CompileError)
    assert "`num_warp`" in str(caught.value)
    assert all(f"`{name}`" in str(caught.value) for name in option_names())


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("num_warps", 3),
        ("num_warps", 0),
        ("num_warps", True),
        ("num_warps", 4.0),
        ("num_stages", 0),
        ("num_ctas", -2),
        ("maxnreg", 256),
        ("enable_fp_fusion", 1),
        ("debug", "yes"),
        ("sanitize_overflow", 1),
        ("checked", 0),
        ("default_dot_input_precision", "fp8"),
        ("descriptors", "tma"),
        ("plan", 3),
    ],
)
def test_bad_value_of_an_option_is_named(name: str, value: object) -> None:
    with pytest.raises(InvalidOption, match=re.escape(f"option `{name}` is {value!r}")) as caught:
        CompileOptions().replaced({name: value})
    assert caught.value.argument == name
    assert caught.value.hint.startswith("pass ")


def test_replaced_keeps_the_other_options() -> None:
    assert CompileOptions(num_warps=8).replaced({"num_stages": 2}) == CompileOptions(8, 2)


def test_defaults_without_variables() -> None:
    options = runtime_options()
    assert options.cache_dir == default_cache_dir()
    assert options.cache_size_bytes == 2 << 30
    assert options.num_threads is None
    assert not (options.checked or options.debug)
    assert not any(dataclasses.astuple(debug_options()))


def test_variables_are_read_live(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert not debug_options().interpret
    monkeypatch.setenv("TILEWRIGHT_INTERPRET", "1")
    monkeypatch.setenv("TILEWRIGHT_NUM_THREADS", "3")
    monkeypatch.setenv("TILEWRIGHT_DUMP_IR", str(tmp_path))
    assert debug_options().interpret
    assert runtime_options().num_threads == 3
    assert debug_options().dump_ir == tmp_path


def test_each_variable_changes_one_option(monkeypatch: pytest.MonkeyPatch) -> None:
    values = {"1 or 0": "1", "a directory": "/d", "auto, cpu, nvidia or mlir": "mlir"}
    values["none or cpu"] = "cpu"
    plain = (*dataclasses.astuple(runtime_options()), *dataclasses.astuple(debug_options()))
    for variable in VARIABLES:
        with monkeypatch.context() as patch:
            patch.setenv(variable.name, values.get(variable.accepts, "1"))
            now = (*dataclasses.astuple(runtime_options()), *dataclasses.astuple(debug_options()))
        assert sum(a != b for a, b in zip(plain, now, strict=True)) == 1, variable.name


@pytest.mark.parametrize("text", ["1", "true", "On", " yes "])
def test_flag_is_on(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setenv("TILEWRIGHT_CHECKED", text)
    assert runtime_options().checked


@pytest.mark.parametrize("text", ["", "0", "false", "OFF", "no"])
def test_flag_is_off(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setenv("TILEWRIGHT_CHECKED", text)
    assert not runtime_options().checked


@pytest.mark.parametrize(
    ("text", "size_bytes"),
    [
        ("0", 0),
        ("4096", 4096),
        ("512M", 512 << 20),
        ("2g", 2 << 30),
        ("1 KiB", 1024),
        ("3MB", 3 << 20),
    ],
)
def test_size_has_units(monkeypatch: pytest.MonkeyPatch, text: str, size_bytes: int) -> None:
    monkeypatch.setenv("TILEWRIGHT_CACHE_SIZE", text)
    assert runtime_options().cache_size_bytes == size_bytes


@pytest.mark.parametrize(
    ("name", "text", "remedy"),
    [
        ("TILEWRIGHT_CHECKED", "maybe", "1 or 0"),
        ("TILEWRIGHT_NUM_THREADS", "0", "a positive number of threads"),
        ("TILEWRIGHT_NUM_THREADS", "-1", "a positive number of threads"),
        ("TILEWRIGHT_NUM_THREADS", "two", "a positive number of threads"),
        ("TILEWRIGHT_NUM_THREADS", "9" * 5000, "a positive number of threads"),
        ("TILEWRIGHT_CACHE_SIZE", "big", "a number of bytes such as 512M or 2G"),
        ("TILEWRIGHT_CACHE_SIZE", "-1", "a number of bytes such as 512M or 2G"),
        ("TILEWRIGHT_CACHE_SIZE", "1.5G", "a number of bytes such as 512M or 2G"),
        ("TILEWRIGHT_CACHE_SIZE", "M", "a number of bytes such as 512M or 2G"),
        ("TILEWRIGHT_CACHE_SIZE", "5I", "a number of bytes such as 512M or 2G"),
        ("TILEWRIGHT_CACHE_SIZE", "²", "a number of bytes such as 512M or 2G"),
    ],
)
def test_malformed_variable_is_named_with_value_and_remedy(
    monkeypatch: pytest.MonkeyPatch, name: str, text: str, remedy: str
) -> None:
    monkeypatch.setenv(name, text)
    with pytest.raises(InvalidVariable) as caught:
        runtime_options()
    assert all(part in str(caught.value) for part in (name, repr(text), remedy))


def test_disabled_cache_has_no_directory(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("TILEWRIGHT_CACHE_DIR", str(tmp_path))
    assert runtime_options().cache_dir == tmp_path
    monkeypatch.setenv("TILEWRIGHT_DISABLE_CACHE", "1")
    assert runtime_options().cache_dir is None


def test_home_is_expanded_and_relative_directories_are_made_absolute(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("TILEWRIGHT_CACHE_DIR", "~/kernels")
    assert runtime_options().cache_dir == tmp_path / "kernels"
    monkeypatch.setenv("TILEWRIGHT_CACHE_DIR", "kernels")
    assert runtime_options().cache_dir == Path.cwd() / "kernels"


@pytest.mark.parametrize("base", [None, "", "/var/xdg", "relative"])
def test_default_directory_is_that_of_platformdirs(
    monkeypatch: pytest.MonkeyPatch, base: str | None
) -> None:
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    if base is not None:
        monkeypatch.setenv("XDG_CACHE_HOME", base)
    expected = platformdirs.user_cache_path("tilewright", appauthor=False)
    assert default_cache_dir() == expected
    monkeypatch.setattr(sys, "platform", "freebsd")
    assert default_cache_dir() == expected


def test_every_variable_is_in_the_table_once() -> None:
    declared = [v for v in vars(environment_module).values() if isinstance(v, Variable)]
    names = [variable.name for variable in VARIABLES]
    assert sorted(names) == sorted({variable.name for variable in declared})
    assert all(name.startswith("TILEWRIGHT_") for name in names)
    for variable in VARIABLES:
        assert variable.meaning.endswith(".") and variable.accepts and variable.show_default()


def test_environment_is_read_here_only() -> None:
    package = Path(environment_module.__file__).parents[1]
    reads = re.compile(r"\bos\.(environ|getenv)\b|\bfrom os import\b.*\b(environ|getenv)\b")
    found = [
        str(path.relative_to(package))
        for path in sorted(package.rglob("*.py"))
        if reads.search(path.read_text(encoding="utf-8"))
    ]
    assert found == ["support/environment.py"]


def test_stages_that_a_configuration_does_not_say_are_unsaid() -> None:
    unsaid = CompileOptions().replaced({"num_stages": DefaultStages(3)})
    assert unsaid.num_stages is None and unsaid == CompileOptions()
    assert CompileOptions().replaced({"num_stages": 3}).num_stages == 3
