"""Where a launch runs, by the arrays it is given."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from tilewright.frontend.devices import Device, DeviceMismatch, DevicePlacement, device_of, place
from tilewright.runtime.snapshots import is_gpu_array

HOST = np.zeros(4)


def torch_like(kind: str, index: int | None = None, is_pinned: bool = False) -> object:
    return SimpleNamespace(
        is_cuda=kind == "cuda",
        device=SimpleNamespace(type=kind, index=index),
        is_pinned=lambda: is_pinned,
        data_ptr=lambda: 0,
    )


GPU0, GPU1 = torch_like("cuda", 0), torch_like("cuda", 1)


def test_every_protocol_says_where_an_array_is() -> None:
    cupy = SimpleNamespace(__cuda_array_interface__={}, device=SimpleNamespace(id=3))
    numba = SimpleNamespace(__cuda_array_interface__={})
    dlpack = SimpleNamespace(__dlpack_device__=lambda: (2, 1))
    descriptor = SimpleNamespace(block_shape=(4,), base=GPU1)
    assert device_of(HOST) == Device("cpu")
    assert device_of(GPU1) == Device("cuda", 1)
    assert device_of(torch_like("cpu")) == Device("cpu")
    assert device_of(cupy) == Device("cuda", 3)
    assert device_of(numba) == Device("cuda")
    assert device_of(dlpack) == Device("cuda", 1)
    assert device_of(descriptor) == Device("cuda", 1)
    assert device_of(5) is None


def test_a_view_that_is_no_tensor_is_where_its_device_says() -> None:
    def view(device: object) -> object:
        return SimpleNamespace(data_ptr=lambda: 0, dtype="float32", device=device)

    on_gpu, by_text = view(SimpleNamespace(type="cuda", index=1)), view("cuda:1")
    assert device_of(on_gpu) == device_of(by_text) == Device("cuda", 1)
    assert device_of(view("cuda")) == Device("cuda")
    assert device_of(view("cpu")) == device_of(view(None)) == Device("cpu")
    assert device_of(SimpleNamespace(data_ptr=lambda: 0)) == Device("cpu")
    assert place("k", [("x", on_gpu), ("y", GPU1)]) == DevicePlacement("nvidia", 1)
    assert is_gpu_array(on_gpu)
    assert is_gpu_array(by_text)
    assert not is_gpu_array(view("cpu"))
    assert not is_gpu_array(HOST)


def test_host_arrays_run_on_the_cpu_and_cuda_arrays_on_their_gpu() -> None:
    assert place("k", [("x", HOST)]) == DevicePlacement("cpu")
    assert place("k", [("x", GPU1), ("y", GPU1)]) == DevicePlacement("nvidia", 1)
    assert place("k", []) == DevicePlacement("cpu")
    assert place("k", [], "nvidia") == DevicePlacement("nvidia")


def test_an_array_that_does_not_say_its_gpu_goes_with_one_that_does() -> None:
    numba = SimpleNamespace(__cuda_array_interface__={})
    assert place("k", [("x", numba), ("y", GPU1)]) == DevicePlacement("nvidia", 1)
    assert place("k", [("x", numba)]) == DevicePlacement("nvidia")


def test_a_host_array_among_cuda_arrays_is_named() -> None:
    with pytest.raises(DeviceMismatch) as caught:
        place("scale", [("x", GPU0), ("out", HOST)])
    assert "scale(): `out` is in host memory, but `x` is on cuda:0" in str(caught.value)


def test_pinned_host_memory_goes_with_cuda_arrays() -> None:
    pinned = torch_like("cpu", is_pinned=True)
    assert place("k", [("x", GPU0), ("y", pinned)]) == DevicePlacement("nvidia", 0)
    assert place("k", [("y", pinned)]) == DevicePlacement("cpu")


def test_arrays_on_two_gpus_are_named() -> None:
    with pytest.raises(DeviceMismatch, match="`x` is on cuda:0, but `y` is on cuda:1"):
        place("scale", [("x", GPU0), ("y", GPU1)])


def test_a_device_that_no_target_runs_on_is_refused() -> None:
    with pytest.raises(DeviceMismatch, match="`x` is on mps:0"):
        place("scale", [("x", torch_like("mps", 0))])


def test_the_chosen_target_must_fit_the_arrays() -> None:
    with pytest.raises(DeviceMismatch, match="TILEWRIGHT_TARGET=cpu"):
        place("scale", [("x", GPU0)], "cpu")
    with pytest.raises(DeviceMismatch, match="TILEWRIGHT_TARGET=nvidia"):
        place("scale", [("x", HOST)], "nvidia")
