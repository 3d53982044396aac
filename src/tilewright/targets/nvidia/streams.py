"""Streams: which one a launch goes to, by the package that its arrays come from.

No array package is imported: one that is not loaded has no current stream.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from typing import Protocol, cast

from tilewright.targets.nvidia.errors import StreamNotSupported

# A function from a GPU's number to the handle of this thread's stream there.
StreamGetter = Callable[[int], int]


class _Stream(Protocol):
    @property
    def ptr(self) -> int: ...


def stream_getter(arrays: Iterable[object]) -> StreamGetter | None:
    """Who knows the current stream for a launch with these arrays; None for nobody.

    The package of the first array that has streams decides; without such an array torch does,
    where it runs on a GPU already. Where nobody knows, launches go to the default stream.
    """
    for array in arrays:
        package = type(array).__module__.partition(".")[0]
        getter = _GETTERS[package]() if package in _GETTERS else None
        if getter is not None:
            return getter
    return _torch_getter()


def _torch_getter() -> StreamGetter | None:
    torch = sys.modules.get("torch")
    core = getattr(torch, "_C", None)
    getter = getattr(core, "_cuda_getCurrentRawStream", None)
    cuda = getattr(torch, "cuda", None)
    is_initialized = getattr(cuda, "is_initialized", None)
    if getter is None or is_initialized is None or not is_initialized():
        return None
    return cast("StreamGetter", getter)


def _cupy_getter() -> StreamGetter | None:
    cuda = getattr(sys.modules.get("cupy"), "cuda", None)
    current = getattr(cuda, "get_current_stream", None)
    if current is None:
        return None
    ask = cast("Callable[[int], _Stream]", current)
    return lambda device: ask(device).ptr


def package_stream(device: int) -> int:
    """The stream that this thread works on by a package that knows: torch, cupy; else 0."""
    for find in (_torch_getter, _cupy_getter):
        getter = find()
        if getter is not None:
            return getter(device)
    return 0


_GETTERS: dict[str, Callable[[], StreamGetter | None]] = {
    "torch": _torch_getter,
    "cupy": _cupy_getter,
}


def stream_handle(stream: object) -> int:
    """The handle of a stream that a user passed: a number, or what torch, cupy or others make.

    Raises: StreamNotSupported.
    """
    if isinstance(stream, int) and not isinstance(stream, bool):
        return stream
    protocol = getattr(stream, "__cuda_stream__", None)
    if callable(protocol):
        answer = protocol()
        if isinstance(answer, tuple) and len(answer) == 2 and isinstance(answer[1], int):
            return answer[1]
    for name in ("cuda_stream", "ptr"):
        handle = getattr(stream, name, None)
        if isinstance(handle, int):
            return handle
    raise StreamNotSupported(f"stream= is {stream!r:.80}, which is no CUDA stream")
