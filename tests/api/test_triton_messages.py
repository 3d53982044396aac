"""Where errors point and what they are called, for programs that match Triton's messages."""

from __future__ import annotations

import numpy as np
import pytest

from tests.api.alias import ALIAS  # noqa: F401  # puts `triton` on the path

import triton  # isort: skip
import triton.language as tl  # isort: skip


@triton.jit
def names_nothing():
    missing  # noqa: B018, F821  # pyright: ignore[reportUndefinedVariable]


@triton.jit
def two_shapes(n):
    if n == 0:
        return tl.arange(0, 4)
    else:
        return tl.arange(0, 8)


@triton.jit
def first_or_second(a, b, is_second):
    if is_second:
        return b
    else:
        return a


def test_positions_count_from_the_def_of_an_indented_kernel() -> None:
    @triton.jit
    def kernel():
        tl.static_assert(False)

    with pytest.raises(triton.CompilationError, match=r"^at 2:4:"):
        kernel[(1,)]()
    with pytest.raises(triton.CompilationError, match=r"^at 2:4:"):
        triton.compile(triton.compiler.ASTSource(fn=kernel, signature={}))


def test_each_function_on_the_way_says_its_own_position() -> None:
    @triton.jit
    def kernel():
        # The line of the call, not this one.
        names_nothing()

    with pytest.raises(triton.CompilationError, match=r"^at 3:4: missing is not defined") as caught:
        kernel[(1,)]()
    assert str(caught.value.__cause__).startswith("at 2:4: missing is not defined")


def test_the_return_that_differs_is_the_place() -> None:
    @triton.jit
    def kernel(n):
        two_shapes(n)

    with pytest.raises(triton.CompilationError, match=r"^at 2:4: Inconsistent return") as caught:
        kernel[(1,)](7)
    assert str(caught.value.__cause__).startswith("at 5:8: Inconsistent return types")


def test_a_variable_of_the_function_around_is_no_global() -> None:
    size = 42

    @triton.jit
    def kernel():
        tl.arange(0, size)

    expected = r"size is not defined\n.*a variable of the function around the kernel"
    with pytest.raises(triton.CompilationError, match=expected):
        kernel[(1,)]()


def test_phrases_are_in_the_message_of_the_error() -> None:
    @triton.jit
    def ternary(a: tl.const, b, is_second):
        tl.store(b if is_second else a, 1.0)

    @triton.jit
    def constant(a: tl.const, b, is_second):
        tl.store(a, 1.0)

    x = np.zeros(1, np.float32)
    with pytest.raises(triton.CompilationError) as caught:
        ternary[(1,)](x, x.copy(), 7)
    phrase = "Ternary expression with dynamic condition has inconsistent type"
    assert caught.value.error_message.startswith(phrase)
    with pytest.raises(triton.CompilationError) as caught:
        constant[(1,)](x, x.copy(), 7)
    assert caught.value.error_message.startswith("Cannot store to a constant pointer")


def test_limits_are_named_as_triton_names_them() -> None:
    @triton.jit
    def narrow_block(x):
        tl.make_tensor_descriptor(x, [8, 8], [8, 1], [4, 2]).load([0, 0])

    @triton.jit
    def long_sums(x):
        a = tl.full((64, 64), 0.0, tl.float8e5)
        tl.store(x, tl.sum(tl.dot(a, a, max_num_imprecise_acc=128)))

    with pytest.raises(triton.CompilationError) as caught:
        narrow_block[(1,)](np.zeros((8, 8), np.float32))
    assert "Descriptor block shape must have at least 16 bytes" in str(caught.value.__cause__)
    with pytest.raises(triton.CompilationError) as caught:
        long_sums[(1,)](np.zeros(1, np.float32))
    assert str(caught.value.__cause__) == "max_num_imprecise_acc (128) must be <= K (64)"


def test_a_number_of_warps_that_is_no_power_of_two_fails_an_assertion() -> None:
    @triton.jit
    def kernel():
        pass

    with pytest.raises(AssertionError, match="num_warps must be a power of 2") as caught:
        kernel[(1,)](num_warps=3)
    assert isinstance(caught.value, triton.TritonError)


def test_a_constant_that_was_assigned_to_is_a_changed_global() -> None:
    size = tl.constexpr(4)

    @triton.jit
    def kernel(x):
        tl.store(x, size)

    x = np.zeros(1, np.int32)
    kernel[(1,)](x)
    size.value = 5
    expected = (
        r"size has changed since we compiled this kernel, from constexpr\[4\] to constexpr\[5\]"
    )
    with pytest.raises(RuntimeError, match=expected):
        kernel[(1,)](x)
    assert x[0] == 4
