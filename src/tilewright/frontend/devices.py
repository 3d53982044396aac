"""Where the arrays of a launch are, and so where the kernel runs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from tilewright.support.dataclass import dataclass
from tilewright.support.errors import CompileError

HOST_TARGETS = ("cpu", "mlir")
"""The targets whose kernels run on the CPU of this machine."""
# DLPack's device types.
_DLPACK_KINDS = {1: "cpu", 2: "cuda", 3: "pinned", 10: "rocm", 13: "cuda"}
_WORDS = {"cpu": "host memory", "pinned": "pinned host memory"}
_REMEDY = "move the arrays to one device, for example with .to('cuda') or .cpu()"


class DeviceMismatch(CompileError):
    """The arrays of a launch are not all where the kernel can reach them."""

    help = _REMEDY


@dataclass(frozen=True)
class Device:
    """The memory that an array is in: `cpu`, `pinned`, `cuda` or another kind, and which one.

    `index` is None where the array does not say.
    """

    kind: str
    index: int | None = None

    def __str__(self) -> str:
        if self.kind in _WORDS:
            return _WORDS[self.kind]
        return self.kind if self.index is None else f"{self.kind}:{self.index}"


@dataclass(frozen=True)
class DevicePlacement:
    """Where a launch runs: a target, and the number of its device (None: the current one)."""

    target: str = "cpu"
    device: int | None = None

    @property
    def is_on_host(self) -> bool:
        """Whether kernels run on this machine's CPU, by whichever way."""
        return self.target in HOST_TARGETS


def device_of(value: object) -> Device | None:
    """The device of an array, by whichever protocol it speaks; None for what is no array."""
    value = getattr(value, "base", value) if hasattr(value, "block_shape") else value
    if hasattr(value, "is_cuda") and hasattr(value, "device"):
        return _said_device(value)
    if hasattr(value, "__cuda_array_interface__"):
        number = getattr(getattr(value, "device", None), "id", None)
        return Device("cuda", number if isinstance(number, int) else None)
    if hasattr(value, "__array_interface__"):
        return Device("cpu")
    ask = getattr(value, "__dlpack_device__", None)
    if callable(ask):
        kind, index = cast("tuple[int, int]", ask())
        return Device(_DLPACK_KINDS.get(int(kind), f"device type {int(kind)}"), int(index))
    return _said_device(value) if hasattr(value, "data_ptr") else None


def _said_device(value: object) -> Device:
    """What `value.device` says, a `torch.device` or its text; the host where it says nothing.

    A view of a tensor under other strides, which is no tensor, has one too.
    """
    device = getattr(value, "device", None)
    if isinstance(device, str):
        kind, _, number = device.partition(":")
        return Device(kind, int(number) if number.isdecimal() else None)
    kind, index = str(getattr(device, "type", "cpu")), getattr(device, "index", None)
    return Device(kind, index if isinstance(index, int) else None)


def place(
    kernel: str, arrays: Sequence[tuple[str, object]], wanted: str = "auto"
) -> DevicePlacement:
    """Where a launch with these arrays, by name, runs; `wanted` is `auto` or a target.

    Raises: DeviceMismatch, which names the arguments that do not go together.
    """
    found = [(name, value, device_of(value)) for name, value in arrays]
    placed = [(name, value, device) for name, value, device in found if device is not None]
    on_gpu = [(name, device) for name, _, device in placed if device.kind == "cuda"]
    for name, _, device in placed:
        if device.kind not in ("cpu", "pinned", "cuda"):
            raise DeviceMismatch(f"{kernel}(): `{name}` is on {device}, where no target runs")
    if wanted in HOST_TARGETS or (wanted == "auto" and not on_gpu):
        _check_on_host(kernel, on_gpu, wanted)
        return DevicePlacement("mlir" if wanted == "mlir" else "cpu")
    for name, value, device in placed:
        if device.kind == "cpu" and not _is_pinned(value):
            raise _host_array(kernel, name, on_gpu)
    return DevicePlacement("nvidia", _common_index(kernel, on_gpu))


def _check_on_host(kernel: str, on_gpu: Sequence[tuple[str, Device]], wanted: str) -> None:
    for name, device in on_gpu:
        raise DeviceMismatch(
            f"{kernel}(): `{name}` is on {device}, and TILEWRIGHT_TARGET={wanted} runs every "
            "kernel on the CPU",
            hint="unset TILEWRIGHT_TARGET, or pass arrays in host memory",
        )


def _is_pinned(value: object) -> bool:
    """Whether a tensor's host memory is one that GPUs reach."""
    ask = getattr(value, "is_pinned", None)
    return bool(ask()) if callable(ask) else False


def _host_array(kernel: str, name: str, on_gpu: Sequence[tuple[str, Device]]) -> DeviceMismatch:
    if not on_gpu:
        return DeviceMismatch(
            f"{kernel}(): `{name}` is in host memory, and TILEWRIGHT_TARGET=nvidia runs every "
            "kernel on the GPU",
            hint="unset TILEWRIGHT_TARGET, or pass arrays on the GPU",
        )
    other, device = on_gpu[0]
    return DeviceMismatch(
        f"{kernel}(): `{name}` is in host memory, but `{other}` is on {device}", argument=name
    )


def _common_index(kernel: str, on_gpu: Sequence[tuple[str, Device]]) -> int | None:
    known = [(name, device) for name, device in on_gpu if device.index is not None]
    for name, device in known[1:]:
        first, other = known[0]
        if device.index != other.index:
            raise DeviceMismatch(
                f"{kernel}(): `{first}` is on {other}, but `{name}` is on {device}", argument=name
            )
    return known[0][1].index if known else None
