"""Printing, assertions, breakpoints and observers of the interpreter."""

from __future__ import annotations

import bdb
import io

import ml_dtypes
import numpy as np
import pytest

import tilewright
import tilewright.language as tl
from tests.ops.harness import interpret
from tilewright.interp.breakpoints import KernelDebugger, Stop
from tilewright.interp.rules.debug import exact_text
from tilewright.support.errors import AssertionFailed, BrokenPromise


def printed(kernel, grid, *arguments, **constants) -> list[str]:
    output = io.StringIO()
    interpret(kernel, grid, *arguments, settings={"output": output}, **constants)
    return output.getvalue().splitlines()


def test_print_writes_a_line_for_each_element() -> None:
    @tilewright.jit
    def show(BLOCK: tl.constexpr):
        tl.device_print("value", tl.arange(0, BLOCK))

    lines = printed(show, (2,), BLOCK=16)
    assert len(lines) == 32
    assert lines[0] == "pid (0, 0, 0) idx ( 0) value: 0"
    assert lines[31] == "pid (1, 0, 0) idx (15) value: 15"


def test_print_of_several_operands_numbers_them() -> None:
    @tilewright.jit
    def show(n, x):
        tl.device_print("pair", n, x)

    assert printed(show, (1,), 7, 2.5) == [
        "pid (0, 0, 0) idx () pair: (operand 0) 7",
        "pid (0, 0, 0) idx () pair: (operand 1) 2.500000",
    ]


def test_print_in_hexadecimal() -> None:
    @tilewright.jit
    def show(n):
        tl.device_print("bits", n, hex=True)

    assert printed(show, (1,), -2) == ["pid (0, 0, 0) idx () bits: 0xfffffffe"]


@tilewright.jit
def prints_floats(x):
    tl.device_print("", tl.load(x + tl.arange(0, 8)), hex=True)
    tl.device_print("done")


FLOATS = np.array([3.0, -0.1, 0.0, -0.0, np.inf, np.nan, 1e-300, 5e-324])


@pytest.mark.parametrize("dtype", ["float64", "float32", "float16", "bfloat16"])
def test_floats_in_hexadecimal_are_exact_in_the_words_of_c(
    dtype: str, capfd: pytest.CaptureFixture[str]
) -> None:
    values = FLOATS.astype(getattr(ml_dtypes, dtype, dtype))
    lines = printed(prints_floats, (1,), values)
    assert lines[:2] == [
        "pid (0, 0, 0) idx (0): 0x1.8p+1",
        f"pid (0, 0, 0) idx (1): {exact_text(float(values[1]))}",
    ]
    assert lines[8] == "pid (0, 0, 0) done"
    assert [float.fromhex(line.partition("): ")[2]) for line in lines[:5]] == [
        float(value) for value in values[:5]
    ]
    capfd.readouterr()
    prints_floats[(1,)](values)
    assert sorted(capfd.readouterr().out.splitlines()) == sorted(lines)


def test_print_of_unsigned_values() -> None:
    @tilewright.jit
    def show(x):
        tl.device_print("u", tl.load(x))

    lines = printed(show, (1,), np.array([255], np.uint8))
    assert lines == ["pid (0, 0, 0) idx () u: 255"]


def test_print_of_undefined_lanes_says_so() -> None:
    @tilewright.jit
    def show(x, BLOCK: tl.constexpr):
        offsets = tl.arange(0, BLOCK)
        tl.device_print("x", tl.load(x + offsets, mask=offsets < 1))

    lines = printed(show, (1,), np.ones(2, np.float32), BLOCK=2)
    assert [line.rpartition(" ")[2] for line in lines] == ["1.000000", "undefined"]


def test_failed_assertion_names_message_index_and_program() -> None:
    @tilewright.jit
    def check(x, BLOCK: tl.constexpr):
        offsets = tl.arange(0, BLOCK)
        tl.device_assert(tl.load(x + offsets) > 0, "must be positive")

    x = np.array([1, 2, 0, 4], np.int32)
    with pytest.raises(AssertionFailed, match=r"must be positive at tile index \(2,\)"):
        interpret(check, (1,), x, BLOCK=4)
    x[2] = 3
    interpret(check, (1,), x, BLOCK=4)


def test_false_assumption_is_reported() -> None:
    @tilewright.jit
    def assume(n, x):
        tl.assume(n > 4)
        tl.store(x, n)

    interpret(assume, (1,), 5, np.zeros(1, np.int32))
    with pytest.raises(BrokenPromise, match="assumed condition is false"):
        interpret(assume, (1,), 3, np.zeros(1, np.int32))


def test_breakpoint_shows_tiles_as_arrays() -> None:
    @tilewright.jit
    def stop(x, scale, BLOCK: tl.constexpr):
        values = tl.load(x + tl.arange(0, BLOCK)) * scale
        breakpoint()
        tl.store(x + tl.arange(0, BLOCK), values)

    seen = []
    x = np.arange(4, dtype=np.float32)

    def hook(stop: Stop) -> None:
        if not stop.is_step:
            seen.append((stop.namespace, stop.span))

    settings = {"breakpoint_hook": hook, "races": False}
    interpret(stop, (2,), x, 3.0, BLOCK=4, settings=settings)
    names, span = seen[0]
    assert np.array_equal(names["values"], [0, 3, 6, 9])
    assert isinstance(names["values"], np.ndarray)
    assert names["scale"] == 3
    assert [names["program_id"] for names, _ in seen] == [(0, 0, 0), (1, 0, 0)]
    with open(span.file, encoding="utf-8") as file:
        assert "breakpoint()" in file.read().splitlines()[span.line - 1]


@tilewright.jit
def halved(value):
    half = value / 2
    return half


@tilewright.jit
def stepped(x, BLOCK: tl.constexpr):
    values = tl.load(x + tl.arange(0, BLOCK))
    breakpoint()
    less = halved(values)
    for i in range(2):
        less += i
    tl.store(x + tl.arange(0, BLOCK), less)


def talk(*commands: str, grid: int = 1) -> list[str]:
    """What the debugger says to commands, its prompts left out."""
    said = io.StringIO()
    typed = io.StringIO("".join(f"{command}\n" for command in commands))
    x = np.arange(4, dtype=np.float32)
    settings = {"breakpoint_hook": KernelDebugger(typed, said), "races": False}
    interpret(stepped, (grid,), x, BLOCK=4, settings=settings)
    return [line.removeprefix("(Pdb) ") for line in said.getvalue().splitlines()]


def places(lines: list[str]) -> list[str]:
    """The statements that the debugger shows."""
    return [line.removeprefix("-> ") for line in lines if line.startswith("-> ")]


def test_next_goes_from_line_to_line_of_the_kernel() -> None:
    assert places(talk("n", "n", "n", "n", "n", "n", "c")) == [
        "breakpoint()",
        "less = halved(values)",
        "for i in range(2):",
        "less += i",
        "less += i",
        "tl.store(x + tl.arange(0, BLOCK), less)",
    ]


def test_step_goes_into_a_call_and_return_out_of_it() -> None:
    assert places(talk("s", "s", "r", "c")) == [
        "breakpoint()",
        "less = halved(values)",
        "half = value / 2",
        "for i in range(2):",
    ]


def test_where_shows_the_calls_inside_the_kernel_alone() -> None:
    said = talk("s", "s", "s", "w", "p half", "up", "c")
    first = said.index("-> return half") + 1
    shown = [line.strip(" >") for line in said[first:]]
    frames = [line for line in shown if line.endswith("()") and "(" in line]
    assert [frame.rpartition(")")[0].rpartition(")")[2] for frame in frames[:2]] == [
        "stepped(",
        "halved(",
    ]
    assert all(__file__ in frame for frame in frames)
    assert any("0.5" in line for line in said)


def test_next_stays_in_its_program_and_continue_goes_to_the_next_breakpoint() -> None:
    said = talk("p program_id", "c", "p program_id", *["n"] * 6, grid=2)
    assert [line for line in said if line.startswith("(")] == ["(0, 0, 0)", "(1, 0, 0)"]
    assert places(said)[0] == places(said)[1] == "breakpoint()"


def test_quitting_ends_the_launch() -> None:
    with pytest.raises(bdb.BdbQuit):
        talk("n", "q")


def test_observer_sees_every_op_with_its_results() -> None:
    @tilewright.jit
    def add(x):
        tl.store(x, tl.load(x) + 1.0)

    class Recorder:
        def __init__(self) -> None:
            self.names: list[str] = []

        def after_op(self, operation, program, results) -> None:
            self.names.append(operation.name)
            assert len(results) == len(operation.results)

    recorder = Recorder()
    interpret(add, (1,), np.zeros(1, np.float32), settings={"observers": [recorder]})
    assert [n for n in recorder.names if n != "arith.constant"] == [
        "tt.load",
        "arith.addf",
        "tt.store",
    ]
