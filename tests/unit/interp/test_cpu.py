"""The ops of C2 in the interpreter."""

from __future__ import annotations

import io
from collections.abc import Sequence

import ml_dtypes
import numpy as np
import pytest

from tests.ops.examples import segments
from tilewright.interp.evaluate import Argument, run_kernel
from tilewright.ir.text import parse_module
from tilewright.ops.dialects import make_dialects, tile_context
from tilewright.support.errors import (
    AssertionFailed,
    MisalignedAccess,
    OutOfBoundsAccess,
    UndefinedValue,
)
from tilewright.targets.cpu.interpret import CPU_INTERPRETATION
from tilewright.targets.cpu.ops import CPU_OPS

P = "!tt.ptr<f32>"
V = "vector<8xf32>"
M = "vector<8xi1>"
I = "vector<8xi32>"
ALL, MASKED, OTHER = segments(1, 0, 0), segments(1, 1, 0), segments(1, 1, 1)


def run(types: Sequence[str], body: str, *arguments: Argument, **settings: object) -> None:
    """Run a kernel whose arguments are %0, %1, … of `types`."""
    names = ", ".join(f"%{i}: {t}" for i, t in enumerate(types))
    text = f"""
"builtin.module"() ({{
  "tt.func"() <{{sym_name = "k", function_type = ({", ".join(types)}) -> ()}}> ({{
  ^bb0({names}):
    {body}
    "tt.return"() : () -> ()
  }}) : () -> ()
}}) : () -> ()"""
    context = tile_context(tuple(make_dialects(CPU_OPS, ())))
    run_kernel(parse_module(text, context), arguments, (1,), rules=CPU_INTERPRETATION, **settings)


MASK_OF_N = f"""
    %lanes = "cpu.iota"() : () -> {I}
    %limit = "tt.splat"(%2) : (i32) -> {I}
    %m = "arith.cmpi"(%lanes, %limit) <{{predicate = 2 : i64}}> : ({I}, {I}) -> {M}"""


def test_masked_vector_copy() -> None:
    x, y = np.arange(5, dtype=np.float32), np.full(5, -1, np.float32)
    body = f"""{MASK_OF_N}
    %v = "cpu.load"(%0, %m) <{{{MASKED}}}> : ({P}, {M}) -> {V}
    "cpu.store"(%1, %v, %m) : ({P}, {V}, {M}) -> ()"""
    run((P, P, "i32"), body, x, y, 5)
    assert np.array_equal(x, y)
    with pytest.raises(OutOfBoundsAccess, match="element 5"):
        run((P, P, "i32"), body, x, y, 6)


def test_tail_lanes_are_undefined_until_selected_away() -> None:
    x, y = np.arange(5, dtype=np.float32), np.zeros(8, np.float32)
    load = f"""{MASK_OF_N}
    %v = "cpu.load"(%0, %m) <{{{MASKED}}}> : ({P}, {M}) -> {V}"""
    with pytest.raises(UndefinedValue, match=r"tile index \(5,\)"):
        run((P, P, "i32"), load + f'"cpu.store"(%1, %v) : ({P}, {V}) -> ()', x, y, 5)
    chosen = f"""
    %zero = "arith.constant"() <{{value = dense<7.0> : {V}}}> : () -> {V}
    %w = "arith.select"(%m, %v, %zero) : ({M}, {V}, {V}) -> {V}
    "cpu.store"(%1, %w) : ({P}, {V}) -> ()"""
    run((P, P, "i32"), load + chosen, x, y, 5)
    assert y.tolist() == [0, 1, 2, 3, 4, 7, 7, 7]


def test_arena_memory_is_undefined_until_it_is_written() -> None:
    y = np.zeros(8, np.float32)
    alloc = f'%a = "cpu.alloc"() <{{num_elems = 8 : i64, label = "t"}}> : () -> {P}'
    load = f'%v = "cpu.load"(%a) <{{{ALL}}}> : ({P}) -> {V}'
    store = f'"cpu.store"(%0, %v) : ({P}, {V}) -> ()'
    with pytest.raises(UndefinedValue):
        run((P,), "\n".join((alloc, load, store)), y)
    fill = f"""
    %c = "arith.constant"() <{{value = dense<3.0> : {V}}}> : () -> {V}
    "cpu.store"(%a, %c) : ({P}, {V}) -> ()"""
    run((P,), "\n".join((alloc, fill, load, store)), y)
    assert y.tolist() == [3] * 8


def test_undefined_values_make_arena_memory_undefined_again() -> None:
    x, y = np.zeros(8, np.float32), np.zeros(8, np.float32)
    body = f"""{MASK_OF_N}
    %a = "cpu.alloc"() <{{num_elems = 8 : i64}}> : () -> {P}
    %c = "arith.constant"() <{{value = dense<3.0> : {V}}}> : () -> {V}
    "cpu.store"(%a, %c) : ({P}, {V}) -> ()
    %v = "cpu.load"(%0, %m) <{{{MASKED}}}> : ({P}, {M}) -> {V}
    "cpu.store"(%a, %v) : ({P}, {V}) -> ()
    %w = "cpu.load"(%a) <{{{ALL}}}> : ({P}) -> {V}
    "cpu.store"(%1, %w) : ({P}, {V}) -> ()"""
    with pytest.raises(UndefinedValue, match=r"tile index \(3,\)"):
        run((P, P, "i32"), body, x, y, 3)


def test_accesses_outside_of_a_buffer_are_found() -> None:
    body = f"""
    %a = "cpu.alloc"() <{{num_elems = 4 : i64, label = "acc"}}> : () -> {P}
    %c = "arith.constant"() <{{value = dense<3.0> : {V}}}> : () -> {V}
    "cpu.store"(%a, %c) : ({P}, {V}) -> ()"""
    with pytest.raises(OutOfBoundsAccess, match=r"outside of `acc` \(4 elements\)"):
        run((), body)


def test_placed_buffers_share_the_bytes_of_one_arena() -> None:
    y = np.zeros(8, np.float32)
    alloc = '"cpu.alloc"() <{num_elems = 8 : i64, offset_bytes = 0 : i64}> : () -> '
    body = f"""
    %a = {alloc}{P}
    %b = {alloc}{P}
    %c = "arith.constant"() <{{value = dense<3.0> : {V}}}> : () -> {V}
    "cpu.store"(%a, %c) : ({P}, {V}) -> ()
    %v = "cpu.load"(%b) <{{{ALL}}}> : ({P}) -> {V}
    "cpu.store"(%0, %v) : ({P}, {V}) -> ()"""
    run((P,), body, y)
    assert y.tolist() == [3] * 8


def test_alignment_that_the_schedule_claims_is_checked() -> None:
    x = np.zeros(64, np.float32)
    start = (-x.ctypes.data // 4) % 16
    body = f"""%v = "cpu.load"(%0) <{{align_bytes = 64 : i64, {ALL}}}> : ({P}) -> {V}"""
    run((P,), body, x[start:])
    with pytest.raises(MisalignedAccess, match="64 bytes"):
        run((P,), body, x[start + 1 :])


def test_gather_and_scatter_by_offsets_and_by_pointers() -> None:
    x, y = np.arange(8, dtype=np.float32), np.zeros(8, np.float32)
    body = f"""
    %lanes = "cpu.iota"() : () -> {I}
    %seven = "arith.constant"() <{{value = dense<7> : {I}}}> : () -> {I}
    %back = "arith.subi"(%seven, %lanes) : ({I}, {I}) -> {I}
    %v = "cpu.gather"(%0, %back) <{{{segments(1, 1, 0, 0)}}}> : ({P}, {I}) -> {V}
    %base = "tt.splat"(%1) : ({P}) -> vector<8x{P}>
    %ptrs = "tt.addptr"(%base, %lanes) : (vector<8x{P}>, {I}) -> vector<8x{P}>
    "cpu.store_pointers"(%ptrs, %v) : (vector<8x{P}>, {V}) -> ()
    %w = "cpu.load_pointers"(%ptrs) <{{{ALL}}}> : (vector<8x{P}>) -> {V}
    "cpu.scatter"(%0, %lanes, %w) : ({P}, {I}, {V}) -> ()"""
    run((P, P), body, x, y)
    assert y.tolist() == [7, 6, 5, 4, 3, 2, 1, 0]
    assert x.tolist() == y.tolist()


def test_lanes_are_folded_by_halving() -> None:
    x, y = np.arange(8, dtype=np.float32), np.zeros(2, np.float32)
    body = f"""
    %v = "cpu.load"(%0) <{{{ALL}}}> : ({P}) -> {V}
    %s = "cpu.nest"() <{{bounds = array<i64: 8>, vector = 8 : i32}}> ({{
      %r = "cpu.reduce_lanes"(%v) ({{
      ^bb0(%a: f32, %b: f32):
        %d = "arith.subf"(%a, %b) : (f32, f32) -> f32
        "cpu.yield"(%d) : (f32) -> ()
      }}) : ({V}) -> f32
      "cpu.yield"(%r) : (f32) -> ()
    }}) : () -> f32
    "cpu.store"(%1, %s) : ({P}, f32) -> ()"""
    run((P, P), body, x, y)
    lanes = x.copy()
    while len(lanes) > 1:
        lanes = lanes[: len(lanes) // 2] - lanes[len(lanes) // 2 :]
    assert y[0] == lanes[0]


def test_shuffle_and_extract() -> None:
    x, y = np.arange(8, dtype=np.float32), np.zeros(3, np.float32)
    body = f"""
    %v = "cpu.load"(%0) <{{{ALL}}}> : ({P}) -> {V}
    %s = "cpu.shuffle"(%v, %v) <{{pattern = array<i32: 7, 9>}}> : ({V}, {V}) -> vector<2xf32>
    "cpu.store"(%1, %s) : ({P}, vector<2xf32>) -> ()
    %two = "arith.constant"() <{{value = 2 : i32}}> : () -> i32
    %e = "cpu.extract"(%v, %two) : ({V}, i32) -> f32
    %p = "tt.addptr"(%1, %two) : ({P}, i32) -> {P}
    "cpu.store"(%p, %e) : ({P}, f32) -> ()"""
    run((P, P), body, x, y)
    assert y.tolist() == [7, 1, 2]


WHOLE = segments(1, 1, 1, 0, 0, 0, 0)


def test_a_copy_of_a_part_has_zeros_behind_it() -> None:
    """A matrix [4, 6] of which [2, 3] are there; nothing is read behind them."""
    sizes = "".join(
        f'\n    %s{n} = "arith.constant"() <{{value = {n} : i64}}> : () -> i64'
        for n in (2, 3, 4, 6, 9)
    )
    body = f"""{sizes}
    "cpu.pack"(%0, %s9, %1, %s2, %s3, %s4, %s6) <{{rows = 4 : i64, columns = 6 : i64, role = "a",
      {segments(*(1,) * 7)}}}> : ({P}, i64, {P}, i64, i64, i64, i64) -> ()"""
    x, y = np.arange(1, 13, dtype=np.float32), np.full(24, 7, np.float32)
    run((P, P), body, x, y)
    want = np.zeros((4, 6), np.float32)
    want[0, :3], want[1, :3] = x[:3], x[9:12]
    np.testing.assert_array_equal(y.reshape(4, 6), want)


def dot_body(element: str, kept: str, acc: str, *, transposed: bool, zero: bool) -> str:
    """Pack a [4, 6] and a [6, 5] (or its transpose) and multiply them."""
    source, packed, total = (f"!tt.ptr<{t}>" for t in (element, kept, acc))
    b_flag = ", transposed" if transposed else ""
    return f"""
    %a = "cpu.alloc"() <{{num_elems = 24 : i64, label = "a"}}> : () -> {packed}
    %b = "cpu.alloc"() <{{num_elems = 30 : i64, label = "b"}}> : () -> {packed}
    %six = "arith.constant"() <{{value = 6 : i64}}> : () -> i64
    %wide = "arith.constant"() <{{value = {6 if transposed else 5} : i64}}> : () -> i64
    "cpu.pack"(%0, %six, %a) <{{rows = 4 : i64, columns = 6 : i64, role = "a", {WHOLE}}}> :
      ({source}, i64, {packed}) -> ()
    "cpu.pack"(%1, %wide, %b) <{{rows = 6 : i64, columns = 5 : i64, role = "b"{b_flag},
      {WHOLE}}}> :
      ({source}, i64, {packed}) -> ()
    "cpu.dot"(%a, %b, %2) <{{m = 4 : i64, n = 5 : i64, k = 6 : i64{", zero_init" * zero},
      {segments(1, 1, 1, *(0,) * 13)}}}> :
      ({packed}, {packed}, {total}) -> ()"""


@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize("zero", [False, True])
@pytest.mark.parametrize(
    ("dtype", "names"),
    [
        (np.float32, ("f32", "f32", "f32")),
        (np.float64, ("f64", "f64", "f64")),
        (ml_dtypes.bfloat16, ("bf16", "f32", "f32")),
        (np.float16, ("f16", "f32", "f32")),
        (np.int8, ("i8", "i8", "i32")),
    ],
)
def test_packed_product(dtype, names, transposed: bool, zero: bool) -> None:
    rng = np.random.default_rng(3)
    a, b = (rng.integers(-4, 5, shape).astype(dtype) for shape in ((4, 6), (6, 5)))
    acc = np.ones((4, 5), {"f32": np.float32, "f64": np.float64, "i32": np.int32}[names[2]])
    want = a.astype(np.float64) @ b.astype(np.float64) + (0 if zero else 1)
    body = dot_body(*names, transposed=transposed, zero=zero)
    types = [f"!tt.ptr<{t}>" for t in (names[0], names[0], names[2])]
    run(types, body, a, np.ascontiguousarray(b.T) if transposed else b, acc)
    assert np.array_equal(acc, want)


@pytest.mark.parametrize("first", [0, 1])
def test_a_product_with_a_target_leaves_what_it_adds_to(first: int) -> None:
    rng = np.random.default_rng(7)
    a, b = (rng.integers(-4, 5, shape).astype(np.float32) for shape in ((4, 6), (6, 5)))
    acc, target = np.ones((4, 5), np.float32), np.full((4, 7), 9, np.float32)
    body = f"""
    %six = "arith.constant"() <{{value = 6 : i64}}> : () -> i64
    %seven = "arith.constant"() <{{value = 7 : i64}}> : () -> i64
    %first = "arith.constant"() <{{value = {first} : i1}}> : () -> i1
    "cpu.dot"(%0, %1, %2, %six, %3, %seven, %first) <{{m = 4 : i64, n = 5 : i64, k = 6 : i64,
      {segments(1, 1, 1, 1, *(0,) * 8, 1, 1, 1, 0)}}}> :
      (!tt.ptr<f32>, !tt.ptr<f32>, !tt.ptr<f32>, i64, !tt.ptr<f32>, i64, i1) -> ()"""
    run(("!tt.ptr<f32>",) * 4, body, a, b, acc, target)
    assert np.array_equal(target[:, :5], a @ b + (1 - first))
    assert (target[:, 5:] == 9).all() and (acc == 1).all()


@pytest.mark.parametrize("first", [0, 1])
@pytest.mark.parametrize("last", [0, 1])
def test_product_that_is_told_whether_its_sum_is_rounded_to_a_place(last: int, first: int) -> None:
    rng = np.random.default_rng(5)
    a, b = (rng.integers(-9, 9, shape).astype(np.float32) for shape in ((4, 6), (6, 5)))
    acc, target = np.full((4, 5), 1000, np.float32), np.full((4, 7), 9, ml_dtypes.bfloat16)
    body = f"""
    %six = "arith.constant"() <{{value = 6 : i64}}> : () -> i64
    %seven = "arith.constant"() <{{value = 7 : i64}}> : () -> i64
    %first = "arith.constant"() <{{value = {first} : i1}}> : () -> i1
    %last = "arith.constant"() <{{value = {last} : i1}}> : () -> i1
    "cpu.dot"(%0, %1, %2, %six, %3, %seven, %first, %last) <{{m = 4 : i64, n = 5 : i64, k = 6 : i64,
      {segments(1, 1, 1, 1, *(0,) * 8, 1, 1, 1, 1)}}}> :
      (!tt.ptr<f32>, !tt.ptr<f32>, !tt.ptr<f32>, i64, !tt.ptr<bf16>, i64, i1, i1) -> ()"""
    run((*("!tt.ptr<f32>",) * 3, "!tt.ptr<bf16>"), body, a, b, acc, target)
    want = a @ b + 1000 * (1 - first)
    assert np.array_equal(target[:, :5], want.astype(target.dtype) if last else np.full((4, 5), 9))
    assert np.array_equal(acc, np.full((4, 5), 1000) if last else want)
    assert (target[:, 5:] == 9).all()


def test_product_of_rows_that_lie_apart() -> None:
    rng = np.random.default_rng(5)
    a, b = (rng.integers(-4, 5, shape).astype(np.float32) for shape in ((4, 9), (6, 5)))
    acc = np.ones((4, 5), np.float32)
    body = f"""
    %nine = "arith.constant"() <{{value = 9 : i64}}> : () -> i64
    "cpu.dot"(%0, %1, %2, %nine) <{{m = 4 : i64, n = 5 : i64, k = 6 : i64,
      {segments(1, 1, 1, 1, *(0,) * 12)}}}> :
      (!tt.ptr<f32>, !tt.ptr<f32>, !tt.ptr<f32>, i64) -> ()"""
    want = a[:, :6] @ b + 1
    run(("!tt.ptr<f32>",) * 3, body, a, b, acc)
    assert np.array_equal(acc, want)


def test_one_element_is_printed_and_asserted_at_its_index() -> None:
    output = io.StringIO()
    body = f"""
    "cpu.print"(%0, %1) <{{prefix = " x: ", hex = false, shape = array<i64: 128>,
                          {segments(1, 1)}}}> : (f32, i32) -> ()
    %zero = "arith.constant"() <{{value = 0 : i32}}> : () -> i32
    %ok = "arith.cmpi"(%1, %zero) <{{predicate = 0 : i64}}> : (i32, i32) -> i1
    "cpu.assert"(%ok, %1) <{{message = "only zero"}}> : (i1, i32) -> ()"""
    with pytest.raises(AssertionFailed, match=r"only zero at tile index \(5,\)"):
        run(("f32", "i32"), body, 1.5, 5, output=output)
    assert output.getvalue() == "pid (0, 0, 0) idx (  5) x: 1.500000\n"
