"""Saving arrays and putting them back: tuning runs a kernel often and must not show it.

An array is anything with the methods of a NumPy array or of a torch tensor; nothing is
imported to tell them apart.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Protocol, cast

from tilewright.runtime.config import TuningWarning
from tilewright.support.errors import ArgumentNotSupported

ArgumentPath = Sequence[str | int]
Restore = Callable[[], object]


class _Tensor(Protocol):
    shape: Sequence[int]
    data: _Tensor

    def stride(self) -> Sequence[int]: ...
    def element_size(self) -> int: ...
    def data_ptr(self) -> int: ...
    def narrow(self, dim: int, start: int, length: int) -> _Tensor: ...
    def clone(self) -> object: ...
    def copy_(self, source: object) -> object: ...
    def zero_(self) -> object: ...


class _Array(Protocol):
    def copy(self) -> object: ...
    def __setitem__(self, index: object, value: object) -> None: ...


def save(value: object) -> Restore | None:
    """A function that puts the present contents of the array `value` back into it.

    None for what is no array, or one that cannot be written.
    """
    value = base_array(value)
    if hasattr(value, "copy_") and hasattr(value, "clone"):
        tensor = _plain_tensor(value)
        copy = tensor.clone()
        return lambda: tensor.copy_(copy)
    if hasattr(value, "dtype") and hasattr(value, "copy") and hasattr(value, "__setitem__"):
        if not getattr(getattr(value, "flags", None), "writeable", True):
            return None
        array = cast("_Array", value)
        saved = array.copy()
        return lambda: array.__setitem__(..., saved)
    return None


def zero(value: object) -> bool:
    """Fill the array `value` with zeros; False for what is no array."""
    value = base_array(value)
    if hasattr(value, "zero_"):
        _plain_tensor(value).zero_()
        return True
    if hasattr(value, "dtype") and hasattr(value, "__setitem__"):
        cast("_Array", value)[...] = 0
        return True
    return False


def base_array(value: object) -> object:
    """The array below a tensor descriptor or a view under another type; else the value."""
    is_descriptor = hasattr(value, "block_shape")
    is_view = hasattr(value, "data_ptr") and not hasattr(value, "narrow")
    return getattr(value, "base", value) if is_descriptor or is_view else value


def is_gpu_array(value: object) -> bool:
    """Whether an array is on a GPU."""
    known = getattr(value, "is_cuda", None)
    if known is not None:
        return bool(known)
    if hasattr(value, "__cuda_array_interface__"):
        return True
    device = getattr(value, "device", "")
    kind = device if isinstance(device, str) else getattr(device, "type", "")
    return kind.startswith("cuda")


def _plain_tensor(value: object) -> _Tensor:
    """The tensor's memory, without its part in autograd, every element of it once.

    Writing to `data` is no modification that autograd counts: what it saved for a backward pass
    stays valid, as it does when a kernel writes.
    """
    tensor = cast("_Tensor", value).data if hasattr(value, "data") else cast("_Tensor", value)
    for dim, (extent, stride) in enumerate(zip(tensor.shape, tensor.stride(), strict=True)):
        if stride == 0 and extent > 1:
            tensor = tensor.narrow(dim, 0, 1)
    return tensor


def memory_range(value: object) -> tuple[int, int] | None:
    """The first byte of an array's elements and the one behind the last; None without an array."""
    value = base_array(value)
    if hasattr(value, "data_ptr") and hasattr(value, "stride"):
        tensor = cast("_Tensor", value)
        size_bytes = tensor.element_size()
        strides = [stride * size_bytes for stride in tensor.stride()]
        return _reach(tensor.data_ptr(), tuple(tensor.shape), strides, size_bytes)
    for name in ("__array_interface__", "__cuda_array_interface__"):
        interface = getattr(value, name, None)
        if isinstance(interface, dict):
            size_bytes = int(interface["typestr"][2:])
            shape = interface["shape"]
            strides = interface.get("strides") or _row_major(shape, size_bytes)
            return _reach(interface["data"][0], shape, strides, size_bytes)
    return None


def _row_major(shape: Sequence[int], size_bytes: int) -> list[int]:
    strides: list[int] = []
    for extent in reversed(shape):
        strides.insert(0, size_bytes)
        size_bytes *= extent
    return strides


def _reach(
    address: int, shape: Sequence[int], strides: Sequence[int], size_bytes: int
) -> tuple[int, int]:
    if 0 in shape:
        return address, address
    steps = [(extent - 1) * stride for extent, stride in zip(shape, strides, strict=True)]
    low = address + sum(step for step in steps if step < 0)
    return low, address + sum(step for step in steps if step > 0) + size_bytes


def value_at(path: ArgumentPath, arguments: Mapping[str, object]) -> object:
    """The argument, or element of a tuple argument, at `path`; None where there is none."""
    value: object = arguments.get(str(path[0]))
    for step in path[1:]:
        value = cast("Sequence[object]", value)[int(step)]
    return value


def updated_paths(
    arguments: Mapping[str, object],
    reads: Iterable[ArgumentPath],
    writes: Iterable[ArgumentPath],
) -> list[ArgumentPath]:
    """The arguments that a kernel writes and reads, under this name or another.

    What it only writes a second run writes again, so nothing of it needs to be kept.
    """
    read = [memory_range(value_at(path, arguments)) for path in reads]
    found: list[ArgumentPath] = []
    for path in writes:
        extent = memory_range(value_at(path, arguments))
        if extent is not None and any(_do_meet(extent, other) for other in read):
            found.append(path)
    return found


def _do_meet(one: tuple[int, int], other: tuple[int, int] | None) -> bool:
    return other is not None and one[0] < other[1] and other[0] < one[1]


class ArgumentState:
    """The contents of a launch's arrays, as each timed run must find them.

    `named` are put back before every run and at the end, `zeroed` filled with zeros. Others
    are saved by `protect`: those that the kernel reads and writes. No other array is touched.
    *Raises*: `ArgumentNotSupported` when a name holds no array.
    """

    def __init__(
        self, arguments: Mapping[str, object], named: Sequence[str], zeroed: Sequence[str]
    ) -> None:
        self._arguments = arguments
        self._zeroed = [(name, arguments[name]) for name in zeroed if name in arguments]
        self._restores: dict[tuple[str | int, ...], Restore] = {}
        self._known: set[tuple[str | int, ...]] = {(name,) for name in (*named, *zeroed)}
        for name in named:
            value = arguments.get(name)
            if value is not None:
                self._restores[(name,)] = _required(save(value), name, "restore_value", value)

    def protect(self, effects: Mapping[str, Iterable[ArgumentPath]]) -> None:
        """Save what a kernel with these `reads` and `writes` would change for good."""
        reads, writes = effects.get("reads", ()), effects.get("writes", ())
        for path in map(tuple, updated_paths(self._arguments, reads, writes)):
            if path in self._known:
                continue
            self._known.add(path)
            restore = _save_if_possible(path, value_at(path, self._arguments))
            if restore is not None:
                self._restores[path] = restore

    def before_run(self) -> None:
        """Let the arrays be as a run must find them."""
        for name, value in self._zeroed:
            if value is not None and not zero(value):
                raise _no_array(name, "reset_to_zero", value)
        for restore in self._restores.values():
            restore()


def _save_if_possible(path: ArgumentPath, value: object) -> Restore | None:
    try:
        return save(value)
    except (MemoryError, RuntimeError) as error:  # torch's error for memory of a GPU is the second
        name = ".".join(map(str, path))
        warnings.warn(
            f"autotune(): `{name}` is updated in place and could not be saved ({error}); after "
            "tuning it holds what the trials left",
            TuningWarning,
            stacklevel=2,
        )
        return None


def _required(restore: Restore | None, name: str, option: str, value: object) -> Restore:
    if restore is None:
        raise _no_array(name, option, value)
    return restore


def _no_array(name: str, option: str, value: object) -> ArgumentNotSupported:
    return ArgumentNotSupported(
        f"autotune(): {option} names `{name}`, which is a {type(value).__name__}",
        argument=name,
        hint=f"{option} takes the names of arguments that are writable arrays or tensors",
    )
