"""The author's assembly for NVIDIA GPUs: words, packs and constraints, simulated."""

from __future__ import annotations

import numpy as np
import pytest
from llvmlite import binding

import tilewright
import tilewright.language as tl
from tests.unit.codegen.simt.launching import llvm_text, simulated
from tilewright.support.errors import UnsupportedError

SIZE = 256
EMPTY = np.zeros(SIZE, np.int32)


@tilewright.jit
def one_result(x, out, SIZE: tl.constexpr):
    i = tl.arange(0, SIZE)
    text: tl.constexpr = "sub.s32 $0, $1, $2;"
    tl.store(
        out + i, tl.inline_asm_elementwise(text, "=r,r,r", [tl.load(x + i), i], tl.int32, True, 1)
    )


@tilewright.jit
def floats_in_registers(x, out, SIZE: tl.constexpr):
    i = tl.arange(0, SIZE)
    text: tl.constexpr = "neg.f32 $0, $1;"
    tl.store(
        out + i, tl.inline_asm_elementwise(text, "=f,f", [tl.load(x + i)], tl.float32, True, 1)
    )


@tilewright.jit
def packed_bytes(x, low, high, SIZE: tl.constexpr):
    i = tl.arange(0, SIZE)
    lows, highs = tl.inline_asm_elementwise(
        """
        and.b32 $0, $2, 0x0f0f0f0f;
        shr.u32 $1, $2, 4;
        """,
        "=r,=r,r",
        [tl.load(x + i)],
        (tl.int8, tl.int8),
        True,
        4,
    )
    tl.store(low + i, lows)
    tl.store(high + i, highs & 15)


@tilewright.jit
def widened(x, out, SIZE: tl.constexpr):
    """Two halves of a word become two words."""
    i = tl.arange(0, SIZE)
    text: tl.constexpr = "and.b32 $0, $2, 0xffff; shr.u32 $1, $2, 16;"
    wide = tl.inline_asm_elementwise(text, "=r,=r,r", [tl.load(x + i)], tl.int32, True, 2)
    tl.store(out + i, wide)


@tilewright.jit
def halves(x, low, high, SIZE: tl.constexpr):
    i = tl.arange(0, SIZE)
    text: tl.constexpr = "mov.b32 {$0, $1}, $2;"
    types: tl.constexpr = (tl.float16, tl.float16)
    lows, highs = tl.inline_asm_elementwise(text, "=h,=h,r", [tl.load(x + i)], types, True, 1)
    tl.store(low + i, lows)
    tl.store(high + i, highs)


@tilewright.jit
def immediates(x, out, SIZE: tl.constexpr, TABLE: tl.constexpr):
    """Bits of each word by a table of `lop3`, which takes it as part of the instruction."""
    i = tl.arange(0, SIZE)
    text: tl.constexpr = "lop3.b32 $0, $1, $2, $3, $4;"
    args = (tl.load(x + i), 0x000F000F, -3, TABLE)
    tl.store(out + i, tl.inline_asm_elementwise(text, "=r,r,n,n,n", args, tl.int32, True, 1))


@tilewright.jit
def constant_output(x, out, SIZE: tl.constexpr):
    i = tl.arange(0, SIZE)
    args = (tl.load(x + i),)
    tl.store(out + i, tl.inline_asm_elementwise("mov.b32 $0, $1;", "=n,r", args, tl.int32, True, 1))


@tilewright.jit
def no_immediate(x, out, SIZE: tl.constexpr):
    i = tl.arange(0, SIZE)
    args = (i, tl.load(x + i))
    text: tl.constexpr = "add.s32 $0, $1, $2;"
    tl.store(out + i, tl.inline_asm_elementwise(text, "=r,r,n", args, tl.int32, True, 1))


@tilewright.jit
def scalar(out):
    tl.store(
        out,
        tl.inline_asm_elementwise(
            "add.s32 $0, $1, 3;", "=r,r", [tl.program_id(0)], tl.int32, False, 1
        ),
    )


@tilewright.jit
def wrong_inputs(x, out, SIZE: tl.constexpr):
    i = tl.arange(0, SIZE)
    tl.store(out + i, tl.inline_asm_elementwise("mov.b32 $0, $1;", "=r,r", [i], tl.int32, True, 2))


@tilewright.jit
def wrong_constraint(x, out, SIZE: tl.constexpr):
    i = tl.arange(0, SIZE)
    tl.store(out + i, tl.inline_asm_elementwise("mov.b32 $0, $1;", "=x,r", [i], tl.int32, True, 1))


def test_operands_are_elements_in_order() -> None:
    x, out = np.arange(SIZE, dtype=np.int32) * 3, np.zeros(SIZE, np.int32)
    (_, got), _ = simulated(one_result, (1,), (x, out), SIZE=SIZE)
    assert np.array_equal(got, x - np.arange(SIZE))


def test_a_constraint_chooses_the_register() -> None:
    x, out = np.arange(SIZE, dtype=np.float32), np.zeros(SIZE, np.float32)
    (_, got), _ = simulated(floats_in_registers, (1,), (x, out), SIZE=SIZE)
    assert np.array_equal(got, -x)


def test_small_elements_share_words() -> None:
    x = np.arange(SIZE).astype(np.int8)
    low, high = (np.zeros(SIZE, np.int8) for _ in range(2))
    (_, lows, highs), _ = simulated(packed_bytes, (1,), (x, low, high), SIZE=SIZE)
    assert np.array_equal(lows, x & 15)
    assert np.array_equal(highs, (x.view(np.uint8) >> 4) & 15)


@pytest.mark.parametrize("size", [SIZE, 64])
def test_a_thread_with_fewer_elements_than_a_pack_repeats_them(size: int) -> None:
    x, out = np.arange(size).astype(np.uint16) + 40000, np.zeros(size, np.int32)
    (_, got), _ = simulated(widened, (1,), (x, out), SIZE=size)
    assert np.array_equal(got, x.astype(np.int32))


def test_scalars_run_once_in_each_thread() -> None:
    (got,), _ = simulated(scalar, (1,), (np.zeros(1, np.int32),))
    assert got[0] == 3
    assert "asm sideeffect" in llvm_text(scalar, (np.zeros(1, np.int32),))


@pytest.mark.parametrize(
    ("table", "expected"),
    [(0xEA, lambda x: (x & 0xF000F) | -3), (0x96, lambda x: x ^ 0xF000F ^ -3)],
)
def test_a_constant_is_part_of_the_instruction(table: int, expected) -> None:
    x = np.random.default_rng(3).integers(-(2**31), 2**31, SIZE, np.int32)
    (_, got), _ = simulated(immediates, (1,), (x, EMPTY), SIZE=SIZE, TABLE=table)
    np.testing.assert_array_equal(got, expected(x))


def test_an_output_is_no_constant() -> None:
    with pytest.raises(UnsupportedError, match="'=n'"):
        llvm_text(constant_output, (EMPTY, EMPTY), SIZE=SIZE)


def test_what_is_no_constant_is_no_part_of_an_instruction() -> None:
    with pytest.raises(UnsupportedError, match="'n' asks for a constant of 32 bits"):
        llvm_text(no_immediate, (EMPTY, EMPTY), SIZE=SIZE)


def test_a_register_of_16_bits_holds_one_element_of_them() -> None:
    x = np.random.default_rng(4).integers(-(2**31), 2**31, SIZE, np.int32)
    outs = tuple(np.zeros(SIZE, dtype) for dtype in (np.float16, np.float16))
    (_, low, high), _ = simulated(halves, (1,), (x, *outs), SIZE=SIZE)
    words = x.view(np.uint16).reshape(SIZE, 2)
    np.testing.assert_array_equal(low.view(np.uint16), words[:, 0])
    np.testing.assert_array_equal(high.view(np.uint16), words[:, 1])
    assert " i16 " in llvm_text(halves, (x, *outs), SIZE=SIZE)
    binding.parse_assembly(llvm_text(halves, (x, *outs), SIZE=SIZE)).verify()


def test_constraints_that_do_not_fit_are_errors() -> None:
    x = np.zeros(SIZE, np.int32)
    with pytest.raises(UnsupportedError, match="name 1 inputs"):
        llvm_text(wrong_inputs, (x, x), SIZE=SIZE)
    with pytest.raises(UnsupportedError, match="'=x'"):
        llvm_text(wrong_constraint, (x, x), SIZE=SIZE)


@tilewright.jit
def impatient(flag, out, timeout):
    tl.store(out, tl.atomic_poll(flag, 1, timeout_ns=timeout).to(tl.int32))
    tl.store(out + 1, tl.atomic_poll(flag, 0, timeout_ns=timeout).to(tl.int32))


def test_a_wait_ends_by_the_clock() -> None:
    (_, out, _), _ = simulated(
        impatient, (1,), (np.zeros(1, np.int32), np.full(2, 9, np.int32), 3000)
    )
    assert out.tolist() == [0, 1]
