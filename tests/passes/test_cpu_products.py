"""How operands of products reach the microkernel: packed, or read where they lie."""

from __future__ import annotations

import numpy as np
import pytest
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation

import tilewright
import tilewright.language as tl
from tests.passes.lowered import count, named, nests, packing_products
from tilewright.targets.cpu.ops import DotOp

F32 = np.zeros(1 << 16, np.float32)
F16 = np.zeros(1 << 16, np.float16)


@tilewright.jit
def product(a, b, c, stride_m, stride_k, SIZE: tl.constexpr):
    """c = a @ b with one tile of each."""
    i = tl.arange(0, SIZE)
    x = tl.load(a + i[:, None] * stride_m + i[None, :] * stride_k)
    y = tl.load(b + i[:, None] * SIZE + i[None, :])
    tl.store(c + i[:, None] * SIZE + i[None, :], tl.dot(x, y).to(tl.float32))


@tilewright.jit
def overwritten(a, b, c, SIZE: tl.constexpr):
    """c = a @ b, where `a` is overwritten between its load and the product."""
    i = tl.arange(0, SIZE)
    here = i[:, None] * SIZE + i[None, :]
    x = tl.load(a + here)
    y = tl.load(b + here)
    tl.store(a + here, y)
    tl.store(c + here, tl.dot(x, y))


@tilewright.jit
def overwritten_later(a, b, SIZE: tl.constexpr):
    """a = a @ b."""
    i = tl.arange(0, SIZE)
    here = i[:, None] * SIZE + i[None, :]
    tl.store(a + here, tl.dot(tl.load(a + here), tl.load(b + here)))


@tilewright.jit
def powers(a, c, n, SIZE: tl.constexpr):
    """c = a to the power of a power of two: both operands are carried by the loop."""
    i = tl.arange(0, SIZE)
    here = i[:, None] * SIZE + i[None, :]
    x = tl.load(a + here)
    for _ in range(n):
        x = tl.dot(x, x)
    tl.store(c + here, x)


def reads_in_place(module: ModuleOp) -> tuple[bool, bool]:
    """Whether the one product of a kernel reads A, and B, from the user's memory."""
    (dot,) = named(module, "cpu.dot")
    assert isinstance(dot, DotOp)
    return dot.a_stride is not None, dot.b_source is not None


def test_packing_of_a_carried_operand_stands_where_its_loop_does() -> None:
    module, _ = nests(powers, a=F32, c=F32, n=3, SIZE=16)
    assert named(module, "cpu.pack")


def test_rows_are_read_where_they_lie() -> None:
    module, _ = nests(product, a=F32, b=F32, c=F32, stride_m=64, stride_k=1, SIZE=32)
    assert reads_in_place(module) == (True, True)
    assert count(module, "cpu.pack") == 0


@pytest.mark.parametrize(("stride_k", "a"), [(64, F32), (1, F16)])
def test_columns_of_a_and_an_a_that_needs_conversion_are_packed(
    stride_k: int, a: np.ndarray
) -> None:
    module, _ = nests(product, a=a, b=a, c=F32, stride_m=1, stride_k=stride_k, SIZE=32)
    assert reads_in_place(module) == (False, True)
    assert count(module, "cpu.pack") == 1


def test_bytes_are_packed_in_groups() -> None:
    bytes_ = np.zeros(1 << 12, np.int8)
    module, _ = nests(product, a=bytes_, b=bytes_, c=F32, stride_m=64, stride_k=1, SIZE=32)
    assert reads_in_place(module) == (False, False)
    assert count(module, "cpu.pack") == 2


@tilewright.jit
def long_product(a, b, c, K, SIZE: tl.constexpr):
    """c = a @ b in steps of SIZE."""
    i = tl.arange(0, SIZE)
    acc = tl.zeros((SIZE, SIZE), tl.float32)
    for k in range(0, K, SIZE):
        x = tl.load(a + i[:, None] * K + k + i[None, :])
        acc = tl.dot(x, tl.load(b + (k + i)[:, None] * SIZE + i[None, :]), acc)
    tl.store(c + i[:, None] * SIZE + i[None, :], acc)


def test_a_loop_fetches_the_next_tile_of_b_and_a_single_product_none() -> None:
    module, _ = nests(long_product, a=F32, b=F32, c=F32, K=512, SIZE=32)
    assert all(product.next_b is not None for product in packing_products(module))
    module, _ = nests(product, a=F32, b=F32, c=F32, stride_m=64, stride_k=1, SIZE=32)
    assert all(isinstance(d, DotOp) and d.next_b is None for d in named(module, "cpu.dot"))


def test_the_last_step_fetches_the_place_of_the_result() -> None:
    module, _ = nests(long_product, a=F32, b=F32, c=F32, K=512, SIZE=32)
    function = next(op for op in module.walk() if op.name == "tt.func")
    result = function.regions[0].block.args[2]
    for dot in packing_products(module):
        assert dot.next_b is not None
        choice = dot.next_b.owner
        assert isinstance(choice, Operation) and choice.name == "arith.select"
        place = choice.operands[2]
        while isinstance(place.owner, Operation):
            place = place.owner.operands[0]
        assert place is result


def test_a_store_between_load_and_product_forces_a_copy() -> None:
    module, _ = nests(overwritten, a=F32, b=F32, c=F32, SIZE=32)
    assert reads_in_place(module) == (False, False)


def test_products_of_overwritten_operands_are_those_of_the_loaded_values() -> None:
    rng = np.random.default_rng(0)
    a, b = rng.standard_normal((2, 32, 32), np.float32)
    c, want = np.empty_like(a), a @ b
    first = a.copy()
    overwritten[(1,)](first, b, c, SIZE=32)
    np.testing.assert_allclose(c, want, rtol=1e-4, atol=1e-4)
    np.testing.assert_array_equal(first, b)
    overwritten_later[(1,)](a, b, SIZE=32)
    np.testing.assert_allclose(a, want, rtol=1e-4, atol=1e-4)


@tilewright.jit
def chosen(condition, x, y):
    if condition > 0:
        return x
    return y


@tilewright.jit
def choice_of_products(a, b, out, SIZE: tl.constexpr):
    """out[pid] = a @ a or b @ b, both computed before the branch."""
    i = tl.arange(0, SIZE)
    here = i[:, None] * SIZE + i[None, :]
    first = tl.dot(tl.load(a + here), tl.load(a + here))
    second = tl.dot(tl.load(b + here), tl.load(b + here))
    pid = tl.program_id(0)
    tl.store(out + pid * SIZE * SIZE + here, chosen(pid, first, second))


def test_products_made_before_a_branch_do_not_share_its_result() -> None:
    a, out = np.ones((16, 16), np.float32), np.zeros((2, 16, 16), np.float32)
    choice_of_products[(2,)](a, 2 * a, out, SIZE=16)
    assert (out[0] == 64).all() and (out[1] == 16).all()


@tilewright.jit
def view_in_places(a, b, out, n, TRANSPOSED: tl.constexpr, SIDE: tl.constexpr, SIZE: tl.constexpr):
    """Another shape of a sorted tile is an operand in a branch, a loop and a branch in it."""
    i = tl.arange(0, SIZE)
    here = i[:, None] * SIZE + i[None, :]
    x = tl.load(a + here)
    split = tl.reshape(tl.sort(tl.reshape(tl.load(b + here), (SIZE, 2, SIZE // 2))), (SIZE, SIZE))
    y = tl.trans(split) if TRANSPOSED else split
    pid = tl.program_id(0)
    acc = x
    if pid % 2 == 0:
        acc = tl.dot(acc, y) if SIDE == 1 else tl.dot(y, acc)
    for step in range(n):
        acc = tl.dot(acc, y) if SIDE == 1 else tl.dot(y, acc)
        if (step + pid) % 3 == 0:
            acc += x
            if pid > 1:
                acc += tl.dot(x, y) if SIDE == 1 else tl.dot(y, x)
    tl.store(out + pid * SIZE * SIZE + here, acc)


@pytest.mark.parametrize("n", [0, 1, 3])
@pytest.mark.parametrize("side", [0, 1])
@pytest.mark.parametrize("transposed", [False, True])
def test_a_view_is_packed_before_the_regions_that_multiply_it(
    transposed: bool, side: int, n: int
) -> None:
    rng = np.random.default_rng(n)
    a, b = rng.integers(-1, 2, (2, 16, 16)).astype(np.float32)
    y = np.sort(b.reshape(16, 2, 8)).reshape(16, 16)
    y = y.T if transposed else y
    out = np.zeros((4, 16, 16), np.float32)
    view_in_places[(4,)](a, b, out, n, TRANSPOSED=transposed, SIDE=side, SIZE=16)

    def times(x: np.ndarray) -> np.ndarray:
        return x @ y if side else y @ x

    for pid in range(4):
        want = times(a) if pid % 2 == 0 else a
        for step in range(n):
            want = times(want)
            if (step + pid) % 3 == 0:
                want = want + a + (times(a) if pid > 1 else 0)
        np.testing.assert_array_equal(out[pid], want)


@tilewright.jit
def view_of_carried(a, b, out, n, SIZE: tl.constexpr):
    """A view of what a loop carries is multiplied in a branch after the loop's next value."""
    i = tl.arange(0, SIZE)
    here = i[:, None] * SIZE + i[None, :]
    x, y = tl.load(a + here), tl.load(b + here)
    acc = tl.dot(x, y)
    total = tl.zeros((SIZE, SIZE), tl.float32)
    for step in range(n):
        before = tl.reshape(tl.reshape(acc, (SIZE * SIZE,)), (SIZE, SIZE))
        acc = tl.dot(x, y, acc)
        if step % 2 == 0:
            total += tl.dot(before, tl.reshape(tl.reshape(acc, (SIZE * SIZE,)), (SIZE, SIZE)))
    tl.store(out + here, total)


@pytest.mark.parametrize("n", [0, 1, 4])
def test_a_view_of_a_carried_tile_is_multiplied_as_it_was(n: int) -> None:
    rng = np.random.default_rng(n)
    a, b = rng.integers(-1, 2, (2, 16, 16)).astype(np.float32)
    out, want = np.ones((16, 16), np.float32), np.zeros((16, 16), np.float32)
    view_of_carried[(1,)](a, b, out, n, SIZE=16)
    acc = a @ b
    for step in range(n):
        before, acc = acc, acc + a @ b
        if step % 2 == 0:
            want = want + before @ acc
    np.testing.assert_array_equal(out, want)
