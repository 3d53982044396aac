"""Snapshots: what a kernel names, and whether it still means the same."""

from __future__ import annotations

import enum
import subprocess
import sys
from typing import Any, NamedTuple

import pytest

import tilewright
import tilewright.language as tl
import tilewright.language.math as tlm
from tilewright.frontend.constants import (
    BuiltinRef,
    EnumMember,
    FunctionRef,
    ModuleRef,
    NamedTupleClass,
    OpRef,
    Unusable,
    where,
)
from tilewright.frontend.source import snapshot
from tilewright.support.errors import SourceNotAvailable

SIZE = tl.constexpr(4)
plain = 5


class Mode(enum.Enum):
    FAST = 1


class Point(NamedTuple):
    x: object
    y: object = 0


@tilewright.jit
def helper(x):
    return x * SIZE


@tilewright.jit
def kernel(x, n: tl.int64, B: tl.constexpr = 8, *, k: tl.constexpr = None, c: tl.const = None):
    p = Point(1, y=helper(n))
    if Mode.FAST == Mode.FAST:
        tl.store(x + tl.arange(0, B), tlm.exp(min(p.x, plain)))
    unknown.thing()  # noqa: F821  # pyright: ignore[reportUndefinedVariable]


def captures(function: tilewright.JITFunction) -> dict[str, object]:
    source = snapshot(function)
    return dict(source.functions[source.kernel].captures)


def test_every_global_name_is_resolved():
    found = captures(kernel)
    assert found["tl"] == ModuleRef("tilewright.language")
    assert found["tl.store"] == OpRef("store")
    assert found["tlm.exp"] == OpRef("math.exp")
    assert found["min"] == BuiltinRef("min")
    assert found["Mode.FAST"] == EnumMember(where(Mode), "FAST", 1)
    assert found["Point"] == NamedTupleClass("Point", ("x", "y"), (0,))
    assert found["plain"] == Unusable("GlobalNotConstexpr", "5")
    assert found["unknown"] == Unusable("UndefinedName", "unknown")
    assert isinstance(found["helper"], FunctionRef)
    assert not {"x", "n", "p"} & set(found)


def test_callees_are_snapshotted_with_their_own_captures():
    source = snapshot(kernel)
    (key,) = (key for key in source.functions if key.endswith(":helper"))
    assert source.functions[key].captures == {"SIZE": 4}


def test_parameters_carry_kind_annotation_and_default():
    parameters = {p.name: p for p in snapshot(kernel).parameters}
    assert parameters["n"].annotation == "i64"
    assert parameters["B"].is_constexpr
    assert parameters["B"].default == 8
    assert parameters["k"].is_constexpr
    assert parameters["k"].kind == "keyword"
    assert parameters["k"].has_default
    assert parameters["c"].annotation == "const"
    assert not parameters["x"].has_default


def test_do_not_specialize_takes_names_and_positions():
    parameters = snapshot(kernel, ["x"], [1]).parameters
    assert not parameters[0].specialize
    assert parameters[1].specialize
    assert not parameters[1].specialize_alignment


def test_a_changed_constexpr_is_noticed():
    global SIZE
    source = snapshot(helper)
    assert [guard.name for guard in source.changed()] == []
    saved = SIZE
    try:
        SIZE = tl.constexpr(4)
        assert [guard.name for guard in source.changed()] == []
        SIZE = tl.constexpr(5)
        assert [guard.name for guard in source.changed()] == ["SIZE"]
    finally:
        SIZE = saved


def make(value: int):
    bound = tl.constexpr(value)

    def rebind(other: int) -> None:
        nonlocal bound
        bound = tl.constexpr(other)

    @tilewright.jit
    def inner(x):
        tl.store(x, bound)

    return inner, rebind


def test_a_changed_closure_variable_is_noticed():
    inner, rebind = make(1)
    source = snapshot(inner)
    rebind(2)
    assert [guard.name for guard in source.changed()] == ["bound"]


def test_functions_of_two_closures_have_two_keys():
    first, _ = make(1)
    second, _ = make(2)

    @tilewright.jit
    def both(x):
        first(x)
        second(x)

    functions = snapshot(both).functions
    assert len(functions) == 3
    assert sorted(f.captures["bound"] for f in functions.values() if "bound" in f.captures) == [
        1,
        2,
    ]


def test_a_function_without_source_is_refused():
    namespace: dict[str, Any] = {"tilewright": tilewright}
    exec("def f(x):\n    pass", namespace)
    with pytest.raises(SourceNotAvailable, match="no source text for `f`"):
        snapshot(tilewright.jit(namespace["f"]))


def test_a_lambda_is_refused():
    function = tilewright.jit(lambda x: x)
    with pytest.raises(SourceNotAvailable):
        snapshot(function)


def test_a_snapshot_loads_no_compiler():
    program = (
        f"import sys; sys.path[:0] = {sys.path!r}\n"
        "import tests.unit.frontend.test_source as t\n"
        "t.snapshot(t.kernel)\n"
        "assert 'xdsl' not in sys.modules and 'llvmlite' not in sys.modules, 'loaded'\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True)
