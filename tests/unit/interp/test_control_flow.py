"""Loops, branches and calls in the interpreter."""

from __future__ import annotations

import numpy as np
import pytest

import tilewright
import tilewright.language as tl
from tests.ops.harness import interpret
from tilewright.interp.evaluate import run_kernel
from tilewright.ir.text import parse_module
from tilewright.ops.dialects import tile_context
from tilewright.support.errors import AssertionFailed, InternalError, LoopStepNotPositive


@tilewright.jit
def count(out, low, high, step):
    total = 0
    for i in range(low, high, step):
        total += i
    tl.store(out, total)


@pytest.mark.parametrize("bounds", [(0, 10, 3), (5, 5, 2), (-4, 3, 2), (7, 2, 4)])
def test_for_loops_run_like_range(bounds: tuple[int, int, int]) -> None:
    out = np.zeros(1, np.int32)
    interpret(count, (1,), out, *bounds)
    assert out[0] == sum(range(*bounds))


def test_step_of_zero_is_reported() -> None:
    with pytest.raises(AssertionFailed, match="a step that only the run knows must be positive"):
        interpret(count, (1,), np.zeros(1, np.int32), 0, 4, 0)


@tilewright.jit
def fibonacci(out, n):
    a, b = 0, 1
    while n > 0:
        a, b = b, a + b
        n -= 1
    tl.store(out, a)


def test_carried_values_are_swapped_at_once() -> None:
    out = np.zeros(1, np.int32)
    interpret(fibonacci, (1,), out, 20)
    assert out[0] == 6765


@tilewright.jit
def nested(out, n):
    total = 0
    for i in range(n):
        for j in range(n):
            if j == i:
                continue
            if j > i + 2:
                break
            total += i * 10 + j
    tl.store(out, total)


def test_nested_loops_with_break_and_continue() -> None:
    out = np.zeros(1, np.int32)
    interpret(nested, (1,), out, 6)
    want = 0
    for i in range(6):
        for j in range(6):
            if j == i:
                continue
            if j > i + 2:
                break
            want += i * 10 + j
    assert out[0] == want


@tilewright.jit
def carried_tile(x, y, n, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    best = tl.full((BLOCK,), -1000.0, tl.float32)
    pointers = x + offsets
    for _ in range(n):
        best = tl.maximum(best, tl.load(pointers))
        pointers += BLOCK
    tl.store(y + offsets, best)


def test_tiles_and_pointers_are_carried() -> None:
    x = np.random.default_rng(2).standard_normal((5, 16)).astype(np.float32)
    y = np.zeros(16, np.float32)
    interpret(carried_tile, (1,), x, y, 5, BLOCK=16)
    assert np.array_equal(y, x.max(0))


CALL = """
"builtin.module"() ({
  "tt.func"() <{sym_name = "k", sym_visibility = "public",
                function_type = (!tt.ptr<i32>) -> ()}> ({
  ^bb0(%p: !tt.ptr<i32>):
    %two = "arith.constant"() <{value = 2 : i32}> : () -> i32
    %a = "tt.call"(%two) <{callee = @square}> : (i32) -> i32
    %b = "tt.call"(%a) <{callee = @square}> : (i32) -> i32
    "tt.store"(%p, %b) : (!tt.ptr<i32>, i32) -> ()
    "tt.return"() : () -> ()
  }) : () -> ()
  "tt.func"() <{sym_name = "square", sym_visibility = "private",
                function_type = (i32) -> i32}> ({
  ^bb0(%x: i32):
    %y = "arith.muli"(%x, %x) : (i32, i32) -> i32
    "tt.return"(%y) : (i32) -> ()
  }) : () -> ()
}) : () -> ()"""


def test_calls_that_were_not_inlined_run() -> None:
    out = np.zeros(1, np.int32)
    run_kernel(parse_module(CALL, tile_context()), [out], (1,))
    assert out[0] == 16


UNCHECKED_LOOP = """builtin.module {
  "tt.func"() <{sym_name = "kernel", sym_visibility = "public",
                function_type = (i32) -> ()}> ({
  ^bb0(%step: i32):
    %zero = "arith.constant"() <{value = 0 : i32}> : () -> i32
    %four = "arith.constant"() <{value = 4 : i32}> : () -> i32
    "scf.for"(%zero, %four, %step) ({
    ^bb1(%i: i32):
      "scf.yield"() : () -> ()
    }) : (i32, i32, i32) -> ()
    "tt.return"() : () -> ()
  }) : () -> ()
}"""


def test_step_of_zero_is_reported_where_the_text_does_not_ask() -> None:
    with pytest.raises(LoopStepNotPositive):
        run_kernel(parse_module(UNCHECKED_LOOP, tile_context()), [0], (1,))


def test_number_of_arguments_is_checked() -> None:
    with pytest.raises(InternalError, match="1 arguments expected, got 2"):
        run_kernel(parse_module(CALL, tile_context()), [np.zeros(1, np.int32), 3], (1,))
