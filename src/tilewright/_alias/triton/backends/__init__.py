"""`triton.backends`: the targets by name, each with its compiler and its driver."""

from __future__ import annotations

from tilewright.support.dataclass import dataclass

from .._names import refuse
from ..runtime.driver import CPUDriver, CUDADriver, DriverBase
from . import driver as driver
from .compiler import BaseBackend, CPUBackend, CUDABackend


@dataclass(frozen=True)
class Backend:
    """A target: the class of its compiler and the class of its driver."""

    compiler: type[BaseBackend]
    driver: type[DriverBase]


backends: dict[str, Backend] = {
    "nvidia": Backend(CUDABackend, CUDADriver),
    "cpu": Backend(CPUBackend, CPUDriver),
}

__getattr__ = refuse(__name__, {"amd": "the targets are the CPU and NVIDIA GPUs"})

__all__ = ["Backend", "BaseBackend", "DriverBase", "backends"]
