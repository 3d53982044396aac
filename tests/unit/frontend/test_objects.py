"""Objects of the author's that functions of compile time read: kernels are of what these hold."""

from __future__ import annotations

import enum
import linecache
import os
import subprocess
import sys
import textwrap
import threading
from pathlib import Path

import numpy as np
import pytest

import tilewright
import tilewright.language as tl
from tilewright.frontend.fingerprints import fingerprint
from tilewright.language.host import ConstexprFunction
from tilewright.support.errors import DtypeNotAllowed

TABLE = np.array([1, 2, 3])


class Sizes:
    """A plain object: neither a dataclass nor a container."""

    def __init__(self, rows: int) -> None:
        self.rows = rows
        self.lock = threading.Lock()
        self.parts: object = None

    def doubled(self) -> int:
        return self.rows * 2


SIZES = Sizes(3)


class Mode(enum.Enum):
    """Equal to itself only."""

    SLOW = 1
    FAST = 2


class Width(enum.IntEnum):
    """A number with a name."""

    NARROW = 4


@tilewright.constexpr_function
def of_the_array():
    return int(TABLE[0])


@tilewright.constexpr_function
def of_a_part():
    return SIZES.rows


@tilewright.constexpr_function
def of_a_method():
    return SIZES.doubled()


@tilewright.constexpr_function
def of_a_class():
    return Sizes(5).doubled()


@tilewright.jit
def reads(out, FUNCTION: tl.constexpr):
    tl.store(out, FUNCTION())


@tilewright.constexpr_function
def is_fast(mode):
    return mode is Mode.FAST and isinstance(mode, Mode) and len(list(Mode)) == 2


@tilewright.jit
def asks(out, K: tl.constexpr):
    if isinstance(K, Mode):
        tl.store(out, 1)
    elif isinstance(K, Width):
        tl.store(out, 2)
    elif isinstance(K, (Sizes, str)):
        tl.store(out, 3)
    else:
        tl.store(out, 4)
    tl.store(out + 1, is_fast(K))


@tilewright.jit
def asks_for_functions(out, K: tl.constexpr):
    if isinstance(K, tilewright.JITFunction):
        tl.store(out, 1)
    elif isinstance(K, ConstexprFunction):
        tl.store(out, 2)
    elif isinstance(K, (Sizes, str)):
        tl.store(out, 3)
    tl.store(out + 1, isinstance(K, (tilewright.JITFunction, ConstexprFunction)))


@tilewright.jit
def names_a_class_of_functions(out, K: tl.constexpr):
    tl.store(out, tilewright.JITFunction)


def result(kernel: tilewright.JITFunction, **constants: object) -> list[int]:
    out = np.zeros(2, np.int32)
    kernel[(1,)](out, **constants)
    return out.tolist()


def test_an_array_that_is_written_is_read_again(monkeypatch: pytest.MonkeyPatch) -> None:
    for number in (1, 1, 7, 1):
        TABLE[0] = number
        assert result(reads, FUNCTION=of_the_array)[0] == number
    monkeypatch.setattr(sys.modules[__name__], "TABLE", np.array([9]))
    assert result(reads, FUNCTION=of_the_array)[0] == 9


@pytest.mark.parametrize(("function", "factor"), [(of_a_part, 1), (of_a_method, 2)])
def test_an_object_that_is_assigned_to_is_read_again(
    function: object, factor: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    for rows in (3, 3, 1000, 3):
        monkeypatch.setattr(SIZES, "rows", rows)
        assert result(reads, FUNCTION=function)[0] == rows * factor
    monkeypatch.setattr(sys.modules[__name__], "SIZES", Sizes(11))
    assert result(reads, FUNCTION=function)[0] == 11 * factor


def test_a_class_that_is_defined_anew_is_read_again(monkeypatch: pytest.MonkeyPatch) -> None:
    class Tripled(Sizes):
        def doubled(self) -> int:
            return self.rows * 3

    assert result(reads, FUNCTION=of_a_class)[0] == 10
    monkeypatch.setattr(sys.modules[__name__], "Sizes", Tripled)
    assert result(reads, FUNCTION=of_a_class)[0] == 15


@pytest.mark.parametrize(
    ("constant", "expected"),
    [
        (Mode.FAST, [1, 1]),
        (Mode.SLOW, [1, 0]),
        (Width.NARROW, [2, 0]),
        ("text", [3, 0]),
        (2, [4, 0]),
    ],
)
def test_classes_are_asked_for_and_members_are_themselves(
    constant: object, expected: list[int]
) -> None:
    assert result(asks, K=constant) == expected


PROGRAM = """
import enum
import numpy as np
import tilewright
import tilewright.language as tl

NUMBER = int(__import__("sys").argv[1])
TABLE = np.array([NUMBER])


class Plain:
    SIZE = NUMBER

    def rows(self):
        return self.held


class Mode(enum.Enum):
    ONE = NUMBER


PLAIN = Plain()
PLAIN.held = NUMBER


def ordinary():
    return PLAIN.held


@tilewright.constexpr_function
def declared():
    made = Plain()
    made.held = CONSTANT
    return int(TABLE[0]), PLAIN.held, PLAIN.SIZE, PLAIN.rows(), list(Mode)[0].value, made.rows()


@tilewright.jit
def kernel(out):
    for i in tl.static_range(6):
        tl.store(out + i, declared()[i])
    tl.store(out + 6, ordinary())


out = np.zeros(7, np.int32)
kernel[(1,)](out)
print(*out)
"""


def test_compiled_kernels_on_disk_are_of_what_objects_held(tmp_path: Path) -> None:
    script = tmp_path / "program.py"
    environment = {**os.environ, "TILEWRIGHT_CACHE_DIR": str(tmp_path / "cache")}
    for number in ("2", "5"):
        script.write_text(textwrap.dedent(PROGRAM).replace("CONSTANT", number))
        command = [sys.executable, str(script), number]
        told = subprocess.run(
            command, env=environment, text=True, capture_output=True, check=True
        ).stdout
        assert told.split() == [number] * 7


def test_a_fingerprint_is_of_contents() -> None:
    assert fingerprint(np.arange(4)) == fingerprint(np.arange(4))
    assert fingerprint(np.arange(4)) != fingerprint(np.arange(4).astype(np.int32))
    assert fingerprint({"a": [1]}) != fingerprint({"a": [2]})
    assert fingerprint({1, 2, "x"}) == fingerprint({"x", 2, 1})
    assert fingerprint((1, True, 1.0)) != fingerprint((True, 1, 1.0))
    assert fingerprint(["ab", "c"]) != fingerprint(["a", "bc"])


def test_a_fingerprint_of_what_cannot_be_kept_is_of_one_object() -> None:
    first, second = Sizes(1), Sizes(1)
    assert fingerprint(first) == fingerprint(second)
    first.rows = 2
    assert fingerprint(first) != fingerprint(second)
    first.rows, first.parts, second.parts = 1, (i for i in ()), (i for i in ())
    assert fingerprint(first) == fingerprint(first)
    assert fingerprint(first) != fingerprint(second)


def test_a_fingerprint_ends_where_objects_hold_each_other() -> None:
    ring: list[object] = [1]
    ring.append(ring)
    deep: list[object] = []
    for _ in range(100_000):
        deep = [deep]
    assert fingerprint(ring) == fingerprint(ring)
    assert fingerprint(deep) == fingerprint(deep)


def test_a_function_s_code_and_what_it_closes_over_are_contents() -> None:
    def adder(number: int):
        return lambda x: x + number

    assert fingerprint(adder(1)) == fingerprint(adder(1))
    assert fingerprint(adder(1)) != fingerprint(adder(2))
    linecache.clearcache()
    assert fingerprint(adder(1)) == fingerprint(adder(1))


@pytest.mark.parametrize(("passed", "kind"), [(reads, 1), (of_a_part, 2), ("text", 3)])
def test_functions_are_instances_of_their_classes(passed: object, kind: int) -> None:
    assert result(asks_for_functions, K=passed) == [kind, kind != 3]


def test_the_class_of_kernels_is_no_kernel() -> None:
    with pytest.raises(DtypeNotAllowed, match="JITFunction is no number"):
        result(names_a_class_of_functions, K=1)
