"""`JITFunction.device_caches`: the compiled kernels of a function, by device."""

from __future__ import annotations

from ..backends.compiler import BaseBackend
from .driver import driver


class DeviceCaches(dict[object, tuple[object, ...]]):
    """What is kept for each device: compiled kernels, target, backend; all devices share it.

    A device goes by any key: its number, the name that torch gives the CPU, a `torch.device`.
    """

    def __init__(self, kernels: dict[object, object]) -> None:
        super().__init__()
        target = driver.active.get_current_target()
        self._entry = (kernels, {}, target, BaseBackend(target), None)
        self[driver.active.get_current_device()] = self._entry
        if target.backend == "cpu":
            self["cpu"] = self._entry

    def __missing__(self, device: object) -> tuple[object, ...]:
        self[device] = self._entry
        return self._entry

    def get(  # pyright: ignore[reportIncompatibleMethodOverride] - every device has an entry
        self, device: object, default: object = None
    ) -> tuple[object, ...]:
        """What is kept for a device."""
        return self[device]
