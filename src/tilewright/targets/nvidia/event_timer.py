"""Timing by the driver's own events, for programs that use a GPU without torch.

It serves what `runtime/cuda_timer.py` asks of `torch.cuda`, which looks this module up where the
driver has been loaded. Events and flushes go to the stream that launches go to.
"""

from __future__ import annotations

import contextlib
from typing import Protocol

from tilewright.runtime.drivers import load_driver
from tilewright.support.dataclass import dataclass
from tilewright.targets.nvidia.cuda import Cuda
from tilewright.targets.nvidia.streams import package_stream

# Source: cuda.h, CUdevice_attribute: the number for the size of the L2 cache.
_L2_CACHE_BYTES = 38


class TimingCuda(Cuda, Protocol):
    """The calls of the driver that timing makes too. Raises: CudaError from each."""

    def synchronize(self) -> None:
        """Wait for all work of this thread's context."""
        ...

    def create_event(self) -> int:
        """A new event that notes the time."""
        ...

    def destroy_event(self, event: int) -> None:
        """Give an event back."""
        ...

    def record_event(self, event: int, stream: int) -> None:
        """Note the time at which what is in `stream` now is done."""
        ...

    def elapsed_milliseconds(self, start: int, end: int) -> float:
        """The time between two events that both happened."""
        ...

    def allocate(self, size_bytes: int) -> int:
        """Memory on the GPU of this thread's context."""
        ...

    def free(self, address: int) -> None:
        """Give memory back."""
        ...

    def fill(self, address: int, size_bytes: int, stream: int) -> None:
        """Write zeros, in the order of a stream."""
        ...


class Event:
    """A point in the stream that launches go to."""

    def __init__(self, cuda: TimingCuda) -> None:
        self._cuda = cuda
        self._handle = cuda.create_event()

    def __del__(self) -> None:
        # The driver may be gone before its events are.
        with contextlib.suppress(Exception):
            self._cuda.destroy_event(self._handle)

    def record(self) -> None:
        """Note the time at which all work so far is done."""
        self._cuda.record_event(self._handle, package_stream(self._cuda.context_device()))

    def elapsed_time(self, end: Event) -> float:
        """The milliseconds from here to `end`, once both happened."""
        return self._cuda.elapsed_milliseconds(self._handle, end._handle)


class Buffer:
    """Memory on the GPU that is there to be written over."""

    def __init__(self, cuda: TimingCuda, size_bytes: int) -> None:
        self._cuda, self._size_bytes = cuda, size_bytes
        self._address = cuda.allocate(size_bytes)

    def __del__(self) -> None:
        with contextlib.suppress(Exception):
            self._cuda.free(self._address)

    def zero_(self) -> None:
        """Write all of it."""
        self._cuda.fill(
            self._address, self._size_bytes, package_stream(self._cuda.context_device())
        )


@dataclass(frozen=True)
class DeviceProperties:
    """What timing asks of a GPU."""

    L2_cache_size: int


@dataclass(frozen=True)
class EventTimer:
    """The driver in the words of `torch.cuda`."""

    cuda: TimingCuda

    def synchronize(self) -> None:
        """Wait for all work."""
        self.cuda.synchronize()

    def current_device(self) -> int:
        """The number of the GPU that work goes to."""
        return self.cuda.context_device()

    def get_device_properties(self, device: int) -> DeviceProperties:
        """What is known of a GPU."""
        return DeviceProperties(self.cuda.attribute(device, _L2_CACHE_BYTES))

    def Event(self, enable_timing: bool) -> Event:
        """A point in the stream; it always notes the time."""
        del enable_timing
        return Event(self.cuda)

    def ByteTensor(self, size: int) -> Buffer:
        """Memory on the GPU."""
        return Buffer(self.cuda, size)


def timer_in_use() -> EventTimer | None:
    """The timer of this thread's context; None where this program has not used a GPU."""
    cuda = getattr(load_driver("nvidia"), "opened", None)
    return EventTimer(cuda) if cuda is not None and cuda.current_context() else None
