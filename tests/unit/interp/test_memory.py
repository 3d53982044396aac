"""What the interpreter says when a kernel touches memory that it may not touch."""

from __future__ import annotations

import numpy as np
import pytest

import tilewright
import tilewright.language as tl
from tests.ops.examples import P, segments
from tests.ops.harness import interpret
from tilewright.interp.evaluate import run_kernel
from tilewright.interp.memory import BufferArgument, Memory
from tilewright.ir.text import parse_module
from tilewright.ops.dialects import tile_context
from tilewright.support.errors import (
    BrokenPromise,
    DivisionByZero,
    KernelFault,
    MisalignedAccess,
    NullAccess,
    OutOfBoundsAccess,
    ReadOnlyWrite,
    UndefinedValue,
    UninitializedRead,
)

FLOAT_POINTER = tl.pointer_type(tl.float32)
INT_POINTER = tl.pointer_type(tl.int32)


@tilewright.jit
def copy(x, y, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    values = tl.load(x + offsets, mask=offsets < n, other=0.0)
    tl.store(y + offsets, values, mask=offsets < n)


@tilewright.jit
def copy_unmasked(x, y, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + offsets, tl.load(x + offsets))


def line_of(error: KernelFault, text: str) -> bool:
    """Whether the error's span is on a line of this file that holds `text`."""
    assert error.span is not None
    with open(error.span.file, encoding="utf-8") as file:
        return text in file.read().splitlines()[error.span.line - 1]


def test_masked_copy_touches_only_its_lanes() -> None:
    x, y = np.arange(100, dtype=np.float32), np.full(100, -1, np.float32)
    interpret(copy, (2,), x, y, 100, BLOCK=64)
    assert np.array_equal(x, y)


def test_load_past_the_end_names_argument_element_lane_and_program() -> None:
    x, y = np.zeros(100, np.float32), np.zeros(128, np.float32)
    with pytest.raises(OutOfBoundsAccess) as caught:
        interpret(copy_unmasked, (2,), x, y, BLOCK=64)
    error = caught.value
    assert error.argument == "x"
    assert "load of element 100, outside of `x` (100 elements)" in error.summary
    assert "tile index (36,), in program (1, 0, 0)" in error.summary
    assert line_of(error, "tl.load(x + offsets)")
    assert "mask" in error.hint


def test_store_past_the_end_is_reported_before_it_happens() -> None:
    x, y = np.ones(128, np.float32), np.zeros(128, np.float32)
    with pytest.raises(OutOfBoundsAccess, match=r"store of element 64, outside of `y`"):
        interpret(copy_unmasked, (2,), x, y[:64], BLOCK=64)
    assert not y[64:].any()


def test_negative_offsets_are_out_of_bounds() -> None:
    @tilewright.jit
    def before(x):
        tl.store(x - 1, 0.0)

    with pytest.raises(OutOfBoundsAccess, match="element -1"):
        interpret(before, (1,), np.zeros(4, np.float32))


def test_overflowing_offsets_land_in_no_other_argument() -> None:
    @tilewright.jit
    def far(x, y, stride):
        tl.store(y, tl.load(x + tl.program_id(0) * stride))

    x, y = np.zeros(16, np.float32), np.zeros(16, np.float32)
    with pytest.raises(OutOfBoundsAccess) as caught:
        interpret(far, (2,), x, y, 1 << 30)
    assert caught.value.argument == "x"


def test_accesses_between_rows_of_a_view_are_out_of_bounds() -> None:
    x, y = np.zeros((8, 16), np.float32)[:, :4], np.zeros(32, np.float32)
    with pytest.raises(OutOfBoundsAccess, match="between the elements of a strided view of `x`"):
        interpret(copy_unmasked, (1,), x, y, BLOCK=16)


def test_arrays_that_share_memory_see_each_other() -> None:
    base = np.arange(64, dtype=np.float32)
    interpret(copy_unmasked, (1,), base[:32], base[16:48], BLOCK=32)
    assert np.array_equal(base[16:48], np.arange(32))


def test_null_pointer_is_reported() -> None:
    text = f"""
"builtin.module"() ({{
  "tt.func"() <{{sym_name = "k", function_type = ({P}) -> ()}}> ({{
  ^bb0(%p: {P}):
    %v = "tt.load"(%p) <{{{segments(1, 0, 0)}}}> : ({P}) -> f32
    "tt.return"() : () -> ()
  }}) : () -> ()
}}) : () -> ()"""
    with pytest.raises(NullAccess, match="null pointer"):
        run_kernel(parse_module(text, tile_context()), [None], (1,))


def test_misaligned_access_is_reported() -> None:
    @tilewright.jit
    def wide(x, y):
        tl.store(y, tl.load((x + 1).to(INT_POINTER)))

    with pytest.raises(MisalignedAccess, match="`x` that is no multiple of 4"):
        interpret(wide, (1,), np.zeros(16, np.int8), np.zeros(1, np.int32))


def test_store_into_a_read_only_array_is_reported() -> None:
    x, y = np.zeros(16, np.float32), np.zeros(16, np.float32)
    y.flags.writeable = False
    with pytest.raises(ReadOnlyWrite, match="`y`"):
        interpret(copy_unmasked, (1,), x, y, BLOCK=16)


def test_reading_what_nothing_has_written_is_reported() -> None:
    x, y = np.zeros(16, np.float32), np.zeros(16, np.float32)
    with pytest.raises(UninitializedRead, match="element 0 of `x`"):
        interpret(copy_unmasked, (1,), x, y, BLOCK=16, settings={"uninitialized": ["x"]})


def test_memory_that_was_written_may_be_read() -> None:
    @tilewright.jit
    def twice(x, y, BLOCK: tl.constexpr):
        offsets = tl.arange(0, BLOCK)
        tl.store(x + offsets, offsets)
        tl.store(y + offsets, tl.load(x + offsets))

    x, y = np.zeros(16, np.int32), np.zeros(16, np.int32)
    interpret(twice, (1,), x, y, BLOCK=16, settings={"uninitialized": ["x", "y"]})
    assert y.tolist() == list(range(16))


@tilewright.jit
def store_undefined(x, y, n, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    values = tl.load(x + offsets, mask=offsets < n)
    tl.store(y + offsets, values * 2 + 1)


@tilewright.jit
def sum_undefined(x, y, n, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    tl.store(y, tl.sum(tl.load(x + offsets, mask=offsets < n), axis=0))


@tilewright.jit
def select_defined(x, y, n, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    values = tl.load(x + offsets, mask=offsets < n)
    tl.store(y, tl.sum(tl.where(offsets < n, values, 0.0), axis=0))


@pytest.mark.parametrize("kernel", [store_undefined, sum_undefined])
def test_values_of_masked_lanes_do_not_reach_memory(kernel) -> None:
    x, y = np.ones(16, np.float32), np.zeros(16, np.float32)
    with pytest.raises(UndefinedValue, match="a value to store is undefined") as caught:
        interpret(kernel, (1,), x, y, 10, BLOCK=16)
    assert "other" in caught.value.hint
    interpret(kernel, (1,), x, y, 16, BLOCK=16)


def test_undefined_values_that_are_not_chosen_do_no_harm() -> None:
    x, y = np.ones(16, np.float32), np.zeros(1, np.float32)
    interpret(select_defined, (1,), x, y, 10, BLOCK=16)
    assert y[0] == 10


def test_undefined_values_are_followed_through_a_loop() -> None:
    @tilewright.jit
    def loop(x, y, n, BLOCK: tl.constexpr):
        total = tl.zeros((BLOCK,), tl.float32)
        offsets = tl.arange(0, BLOCK)
        for i in range(0, n, BLOCK):
            total += tl.load(x + i + offsets, mask=i + offsets < n)
        tl.store(y + offsets, total)

    x, y = np.ones(24, np.float32), np.zeros(16, np.float32)
    with pytest.raises(UndefinedValue, match=r"tile index \(8,\)"):
        interpret(loop, (1,), x, y, 24, BLOCK=16)


def test_division_by_zero_is_undefined_where_it_is_used() -> None:
    @tilewright.jit
    def divide(x, y, z, BLOCK: tl.constexpr):
        offsets = tl.arange(0, BLOCK)
        a, b = tl.load(x + offsets), tl.load(y + offsets)
        tl.store(z + offsets, tl.where(b == 0, -1, a // b))

    @tilewright.jit
    def divide_blindly(x, y, z, BLOCK: tl.constexpr):
        offsets = tl.arange(0, BLOCK)
        tl.store(z + offsets, tl.load(x + offsets) // tl.load(y + offsets))

    x, y = np.full(4, 6, np.int32), np.array([1, 2, 0, 3], np.int32)
    z = np.zeros(4, np.int32)
    interpret(divide, (1,), x, y, z, BLOCK=4)
    assert z.tolist() == [6, 3, -1, 2]
    with pytest.raises(DivisionByZero, match=r"tile index \(2,\)"):
        interpret(divide_blindly, (1,), x, y, z, BLOCK=4)


def test_undefined_condition_is_reported() -> None:
    @tilewright.jit
    def decide(x, y):
        if tl.load(x, mask=False) > 0:
            tl.store(y, 1.0)

    with pytest.raises(UndefinedValue, match="a branch condition"):
        interpret(decide, (1,), np.ones(1, np.float32), np.zeros(1, np.float32))


def test_promise_that_does_not_hold_is_reported() -> None:
    @tilewright.jit
    def promise(x, n):
        n = tl.multiple_of(n, 8)
        tl.store(x + n, 1.0)

    interpret(promise, (1,), np.zeros(32, np.float32), 24)
    with pytest.raises(BrokenPromise, match="divisibility"):
        interpret(promise, (1,), np.zeros(32, np.float32), 12)


def test_pointers_in_memory_reach_arrays_that_were_announced() -> None:
    @tilewright.jit
    def indirect(table, y, BLOCK: tl.constexpr):
        x = tl.load(table + tl.program_id(0)).to(FLOAT_POINTER)
        offsets = tl.arange(0, BLOCK)
        tl.store(y + tl.program_id(0) * BLOCK + offsets, tl.load(x + offsets))

    parts = [np.full(8, i, np.float32) for i in range(3)]
    table = np.array([p.ctypes.data for p in parts], np.int64)
    y = np.zeros(24, np.float32)
    interpret(indirect, (3,), table, y, BLOCK=8, settings={"reachable": parts})
    assert y.tolist() == [0] * 8 + [1] * 8 + [2] * 8
    with pytest.raises(OutOfBoundsAccess, match="belongs to no argument"):
        interpret(indirect, (3,), table, y, BLOCK=8, settings={"reaches_foreign": False})
    parts[1][:] = 9
    interpret(indirect, (3,), table, y, BLOCK=8)
    assert y.tolist() == [0] * 8 + [9] * 8 + [2] * 8


def test_pointer_to_no_memory_at_all_is_reported() -> None:
    @tilewright.jit
    def wild(table, y):
        tl.store(y, tl.load(tl.load(table).to(FLOAT_POINTER)))

    table = np.array([1 << 20], np.int64)
    with pytest.raises(OutOfBoundsAccess, match="belongs to no argument"):
        interpret(wild, (1,), table, np.zeros(1, np.float32))


def test_memory_of_the_caller_may_be_given_by_address() -> None:
    memory = np.arange(8, dtype=np.float32)
    y = np.zeros(8, np.float32)
    module = interpret(copy_unmasked, (1,), memory, y, BLOCK=8)
    y[:] = 0
    raw = BufferArgument(memory.ctypes.data, 32, memory.dtype, owner=memory)
    run_kernel(module, [raw, y], (1,))
    assert np.array_equal(y, memory)
    short = BufferArgument(memory.ctypes.data, 28, memory.dtype, owner=memory)
    with pytest.raises(OutOfBoundsAccess, match="element 7"):
        run_kernel(module, [short, y], (1,))


def test_call_chain_is_in_the_error() -> None:
    with pytest.raises(OutOfBoundsAccess) as caught:
        interpret(outer, (1,), np.zeros(4, np.float32))
    assert line_of(caught.value, "tl.store(x + 100")
    assert len(caught.value.chain) == 1
    assert "called from" in str(caught.value)


@tilewright.jit
def inner(x):
    tl.store(x + 100, 1.0)


@tilewright.jit
def outer(x):
    inner(x)


def test_addresses_agree_with_the_real_ones_in_their_low_bits() -> None:
    array = np.zeros(1000, np.float64)[3:]
    pointers = Memory().map_buffers([("x", array)], ())
    assert pointers["x"] % 4096 == array.ctypes.data % 4096


def test_pointer_of_a_reversed_view_is_its_first_element() -> None:
    array = np.arange(8, dtype=np.int32)[::-1]
    memory = Memory()
    address = memory.map_buffers([("x", array)], ())["x"]
    allocation = memory.find(address)
    assert allocation is not None
    assert address - allocation.base == 28


def test_empty_array_has_no_element() -> None:
    with pytest.raises(OutOfBoundsAccess, match=r"`x` \(0 elements\)"):
        interpret(outer_one, (1,), np.zeros(0, np.float32))


@tilewright.jit
def outer_one(x):
    tl.store(x, 1.0)
