"""Tuning on torch tensors: no trace in versions, gradients, contents and memory."""

from __future__ import annotations

import gc
import weakref
from pathlib import Path

import pytest

import tilewright
import tilewright.language as tl
import torch
from tilewright.support.errors import OutOfBoundsAccess

pytestmark = pytest.mark.torch

CONFIGS = [tilewright.Config({"BLOCK": block}) for block in (32, 64, 256)]


@pytest.fixture(autouse=True)
def cache_dir(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEWRIGHT_CACHE_DIR", str(tmp_path / "cache"))


def tuned(**settings: object):
    return tilewright.autotune(CONFIGS, key=["n"], warmup=0, rep=2, **settings)


def grid(meta: dict[str, int]) -> tuple[int]:
    return (tilewright.cdiv(meta["n"], meta["BLOCK"]),)


def make_scale(**settings: object):
    @tuned(**settings)
    @tilewright.jit
    def scale(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
        offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        mask = offsets < n
        tl.store(out_ptr + offsets, 2 * tl.load(x_ptr + offsets, mask=mask), mask=mask)

    return scale


def make_add_into(**settings: object):
    @tuned(**settings)
    @tilewright.jit
    def add_into(x_ptr, total_ptr, n, BLOCK: tl.constexpr):
        offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        mask = offsets < n
        total = tl.load(total_ptr + offsets, mask=mask) + tl.load(x_ptr + offsets, mask=mask)
        tl.store(total_ptr + offsets, total, mask=mask)

    return add_into


@pytest.mark.parametrize("n", [17, 1000, 4097])
def test_tuning_changes_no_version_and_no_input(n: int) -> None:
    x, total = torch.randn(n), torch.randn(n)
    before, expected = x.clone(), total + x
    make_add_into()[grid](x, total, n)
    assert (x._version, total._version) == (0, 0)
    assert torch.equal(x, before)
    assert torch.equal(total, expected)


def test_the_backward_of_the_call_that_tuned_works() -> None:
    kernel = make_scale()

    class Scale(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            out = torch.empty_like(x)
            kernel[grid](x, out, x.numel())
            return out

        @staticmethod
        def backward(ctx, gradient):
            (x,) = ctx.saved_tensors
            return 2 * gradient + 0 * x

    leaf = torch.randn(8, 130, requires_grad=True)
    # Views of what autograd saved, as in an attention layer.
    q, k = (leaf * 3).chunk(2, dim=1)
    total = Scale.apply(q.contiguous()).sum() + (Scale.apply(k.contiguous()) * k).sum()
    total.backward()
    assert leaf.grad is not None


def test_a_view_that_a_kernel_updates_keeps_the_version_of_its_base() -> None:
    base = torch.zeros(4, 64)
    make_add_into()[grid](torch.ones(64), base[1], 64)
    assert base._version == 0
    assert base.sum() == 64 and base[1].sum() == 64


def test_a_leaf_that_wants_a_gradient_can_be_updated() -> None:
    weight = torch.zeros(100, requires_grad=True)
    make_add_into()[grid](torch.ones(100), weight, 100)
    assert weight._version == 0
    assert (weight == 1).all()


def test_named_arrays_keep_their_version_too() -> None:
    x, total = torch.ones(100), torch.ones(100)
    make_add_into(restore_value=["total_ptr"])[grid](x, total, 100)
    assert (total == 2).all() and total._version == 0
    zeroed = torch.ones(100)
    make_add_into(reset_to_zero=["total_ptr"], cache_results=False)[grid](x, zeroed, 100)
    assert (zeroed == 1).all() and zeroed._version == 0


def test_an_output_that_shares_memory_with_an_input_is_put_back() -> None:
    whole = torch.arange(128.0)
    make_scale()[grid](whole, whole.view(-1), 128)
    assert torch.equal(whole, 2 * torch.arange(128.0))


def test_an_expanded_tensor_is_saved_once_an_element() -> None:
    one = torch.ones(1)
    make_add_into()[lambda meta: (1,)](torch.ones(1), one.expand(100), 1)
    assert one.item() == 2


def test_only_what_is_read_and_written_is_cloned(monkeypatch: pytest.MonkeyPatch) -> None:
    cloned: list[int] = []
    clone = torch.Tensor.clone

    def counted(tensor: torch.Tensor, *args: object, **kwargs: object) -> torch.Tensor:
        cloned.append(tensor.numel())
        return clone(tensor, *args, **kwargs)

    monkeypatch.setattr(torch.Tensor, "clone", counted)
    make_scale()[grid](torch.ones(1000), torch.empty(1000), 1000)
    assert cloned == []
    make_add_into()[grid](torch.ones(1000), torch.ones(1000), 1000)
    assert cloned == [1000]


def test_tuning_keeps_no_argument_alive() -> None:
    kernel, x, total = make_add_into(), torch.ones(1000), torch.ones(1000)
    kernel[grid](x, total, 1000)
    known = [weakref.ref(x), weakref.ref(total)]
    del x, total
    gc.collect()
    assert [found() for found in known] == [None, None]


def test_a_fault_of_a_trial_reaches_the_user(monkeypatch: pytest.MonkeyPatch) -> None:
    @tuned()
    @tilewright.jit
    def unmasked(x_ptr, n, BLOCK: tl.constexpr):
        offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        tl.store(x_ptr + offsets, 1.0 + tl.load(x_ptr + offsets))

    monkeypatch.setenv("TILEWRIGHT_CHECKED", "1")
    x = torch.zeros(100)
    with pytest.raises(OutOfBoundsAccess):
        unmasked[grid](x, 100)
    assert (x == 0).all()
