"""torch tensors as kernel arguments on the CPU: dtypes, strides, the warm path, errors."""

from __future__ import annotations

import pytest
from torch._subclasses.fake_tensor import FakeTensorMode

import tilewright
import tilewright.language as tl
import torch
from tilewright.runtime.accessors import tensor_accessors
from tilewright.runtime.tensor_descriptor import TensorDescriptor
from tilewright.support import errors

pytestmark = pytest.mark.torch


@tilewright.jit
def add_kernel(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask)
    y = tl.load(y_ptr + offsets, mask=mask)
    tl.store(out_ptr + offsets, x + y, mask=mask)


@tilewright.jit
def copy_2d_kernel(x_ptr, out_ptr, rows, columns, stride_row, stride_column, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)[:, None]
    j = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)[None, :]
    mask = (i < rows) & (j < columns)
    x = tl.load(x_ptr + i * stride_row + j * stride_column, mask=mask)
    tl.store(out_ptr + i * columns + j, x, mask=mask)


@tilewright.jit
def matmul_kernel(a_ptr, b_ptr, c_ptr, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    i, j, k = tl.arange(0, M), tl.arange(0, N), tl.arange(0, K)
    a = tl.load(a_ptr + i[:, None] * K + k[None, :])
    b = tl.load(b_ptr + k[:, None] * N + j[None, :])
    tl.store(c_ptr + i[:, None] * N + j[None, :], tl.dot(a, b))


@pytest.mark.parametrize(
    "dtype",
    [torch.float32, torch.float64, torch.float16, torch.bfloat16, torch.int32, torch.int64],
)
def test_sums_equal_torch_for_every_dtype(dtype):
    torch.manual_seed(0)
    x = (torch.randn(1003) * 50).to(dtype)
    y = (torch.randn(1003) * 50).to(dtype)
    out = torch.zeros_like(x)
    for _ in range(2):  # the second launch takes the warm path
        out.zero_()
        add_kernel[(tilewright.cdiv(1003, 256),)](x, y, out, 1003, BLOCK=256)
        torch.testing.assert_close(out, x + y, rtol=0, atol=0)


def test_the_warm_path_tells_dtypes_apart():
    for dtype in (torch.float32, torch.int32, torch.float32, torch.bfloat16):
        x = torch.arange(64).to(dtype)
        out = torch.zeros_like(x)
        add_kernel[(1,)](x, x, out, 64, BLOCK=64)
        torch.testing.assert_close(out, x + x, rtol=0, atol=0)


def test_the_words_of_plain_tensors_are_found_and_tell_dtypes_apart():
    accessors = tensor_accessors(torch.Tensor, "is_cpu")
    assert accessors is not None
    assert accessors.care
    dtypes = (torch.float32, torch.float64, torch.int32, torch.int64, torch.bool, torch.bfloat16)
    codes = [accessors.code_of(torch.empty(3, dtype=dtype)) for dtype in dtypes]
    assert codes == [accessors.code_of(torch.ones(2, 7).to(dtype)) for dtype in dtypes]
    assert len(set(codes)) == len(dtypes)


def test_a_type_that_is_asked_for_its_device_has_no_words_of_plain_tensors():
    accessors = tensor_accessors(torch.Tensor, "get_device")
    assert accessors is not None
    assert not accessors.care
    assert accessors.code_of(torch.empty(3)) == 0


def test_tensors_that_autograd_follows_stay_on_the_warm_path():
    out = torch.zeros(64)
    with torch.inference_mode():
        made = torch.randn(64)
    tensors = (torch.randn(64), torch.randn(64, requires_grad=True), made)
    add_kernel[(1,)](tensors[0], tensors[0], out, 64, BLOCK=64)
    slow, add_kernel._launch_slowly = add_kernel._launch_slowly, None
    try:
        for x in tensors:
            add_kernel[(1,)](x, x, out, 64, BLOCK=64)
            assert torch.equal(out, (x + x).detach())
    finally:
        add_kernel._launch_slowly = slow


def test_the_warm_path_leaves_tensors_elsewhere_to_the_slow_one():
    x, out = torch.randn(64), torch.zeros(64)
    others = (torch.empty(64, device="meta"), torch.eye(8).to_sparse(), torch.conj(x + 0j))
    for _ in range(3):
        add_kernel[(1,)](x, x, out, 64, BLOCK=64)
        for other in (*others, torch._efficientzerotensor(64)):
            with pytest.raises(errors.TilewrightError):
                add_kernel[(1,)](other, x, out, 64, BLOCK=64)
        assert torch.equal(out, x + x)


def test_views_of_any_stride_are_read_in_place():
    base = torch.randn(300, 200)
    for view in (base, base.t(), base[::2, 3::3], base.flip(0)[5:, :]):
        out = torch.zeros(view.shape)
        rows, columns = view.shape
        grid = (tilewright.cdiv(rows, 32), tilewright.cdiv(columns, 32))
        copy_2d_kernel[grid](view, out, rows, columns, *view.stride(), BLOCK=32)
        torch.testing.assert_close(out, view.contiguous(), rtol=0, atol=0)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_dot_agrees_with_torch_in_higher_precision(dtype):
    torch.manual_seed(1)
    a, b = torch.randn(64, 96).to(dtype)[:, :64].contiguous(), torch.randn(64, 32).to(dtype)
    c = torch.zeros(64, 32)
    matmul_kernel[(1,)](a, b, c, 64, 32, 64)
    torch.testing.assert_close(c.double(), a.double() @ b.double(), rtol=1e-5, atol=1e-4)


def test_the_interpreter_takes_tensors_too():
    x, y = torch.randn(100), torch.randn(100)
    out = torch.zeros(100)
    add_kernel.interpret[(2,)](x, y, out, 100, BLOCK=64)
    torch.testing.assert_close(out, x + y, rtol=0, atol=0)


def test_checked_mode_knows_the_extent_of_a_tensor():
    x = torch.randn(100)
    out = torch.zeros(100)
    with pytest.raises(errors.OutOfBoundsAccess, match="x_ptr"):
        add_kernel[(2,)](x, torch.randn(128), out, 128, BLOCK=64, checked=True)


def test_an_unknown_dtype_names_the_parameter():
    x = torch.zeros(4, dtype=torch.complex64)
    with pytest.raises(errors.CompileError, match="x_ptr"):
        add_kernel[(1,)](x, x, x, 4, BLOCK=4)


def test_a_tensor_that_has_no_address_is_refused_by_name():
    x, out = torch.randn(64), torch.zeros(64)
    for _ in range(3):  # the later launches through the launcher that the first one left
        add_kernel[(1,)](x, x, out, 64, BLOCK=64)
        for hidden in (x.to_sparse(), x.to_mkldnn()):
            with pytest.raises(errors.ArgumentNotSupported, match=r"`y_ptr`.*memory") as raised:
                add_kernel[(1,)](x, hidden, out, 64, BLOCK=64)
            assert "to_dense()" in raised.value.hint
        with pytest.raises(errors.ArgumentNotSupported, match=r"`x_ptr`.*memory"):
            torch.vmap(lambda row: add_kernel[(1,)](row, x, out, 64, BLOCK=64))(x[None])


@tilewright.jit
def read_tile_kernel(source, out_ptr, N: tl.constexpr):
    tl.store(out_ptr + tl.arange(0, N), source.load([0]))


def test_a_view_that_negates_its_memory_is_refused_and_its_copy_is_not():
    x, out = torch.randn(64), torch.zeros(64)
    negated = torch._neg_view(x)
    part = torch.view_as_complex(torch.randn(64, 2)).conj().imag
    for _ in range(3):
        add_kernel[(1,)](x, x, out, 64, BLOCK=64)
        for view in (negated, part, torch.nn.Parameter(negated, requires_grad=False)):
            with pytest.raises(errors.ArgumentNotSupported, match=r"x_ptr.*negates") as raised:
                add_kernel[(1,)](view, x, out, 64, BLOCK=64)
            assert "resolve_neg()" in raised.value.hint
            with pytest.raises(errors.ArgumentNotSupported, match=r"out_ptr.*negates"):
                add_kernel[(1,)](x, x, view, 64, BLOCK=64)
        add_kernel[(1,)](negated.resolve_neg(), x, out, 64, BLOCK=64)
        assert out.abs().max() == 0


def test_a_descriptor_of_a_view_that_negates_its_memory_is_refused():
    x, out = torch.randn(64), torch.zeros(64)
    for _ in range(2):
        read_tile_kernel[(1,)](TensorDescriptor(x, [64], [1], [64]), out, N=64)
        with pytest.raises(errors.ArgumentNotSupported, match=r"source.*negates"):
            read_tile_kernel[(1,)](TensorDescriptor(torch._neg_view(x), [64], [1], [64]), out, N=64)


@tilewright.jit
def double_kernel(x_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    mask = offsets < n
    tl.store(x_ptr + offsets, 2 * tl.load(x_ptr + offsets, mask=mask), mask=mask)


@pytest.mark.filterwarnings("ignore:Accessing the data pointer of FakeTensor")
def test_tensors_without_memory_are_refused_before_and_after_a_warm_call() -> None:
    def freed() -> torch.Tensor:
        tensor = torch.ones(8)
        tensor.untyped_storage().resize_(0)
        return tensor

    with FakeTensorMode():
        fake = torch.zeros(8)
    whole = torch.ones(8)
    for _ in range(3):
        for tensor in (freed(), fake):
            with pytest.raises(
                errors.ArgumentNotSupported, match="`x_ptr` has 8 elements and no memory"
            ):
                double_kernel[(1,)](tensor, 8, 8)
        double_kernel[(1,)](whole, 8, 8)
    assert torch.equal(whole, torch.full((8,), 8.0))


def test_empty_tensors_stay_on_the_warm_path() -> None:
    empty = torch.empty(0)
    assert empty.data_ptr() == 0
    for _ in range(2):
        double_kernel[(1,)](empty, 0, 16)
    slow, double_kernel._launch_slowly = double_kernel._launch_slowly, None
    try:
        double_kernel[(1,)](empty, 0, 16)
    finally:
        double_kernel._launch_slowly = slow
