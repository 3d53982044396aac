"""`triton.runtime.driver`: the one device there is, as `driver.active` describes it."""

from __future__ import annotations

import importlib
from collections.abc import Callable

from tilewright.runtime.autotune import usable_cpu_count
from tilewright.runtime.drivers import load_driver
from tilewright.support.dataclass import dataclass
from tilewright.testing import do_bench


@dataclass(frozen=True)
class Target:
    """What kernels are compiled for."""

    backend: str
    arch: str
    warp_size: int


class Utilities:
    """Questions about a device."""

    def get_device_properties(self, device: int = 0) -> dict[str, int]:
        """The sizes that scripts plan their grids with; a core stands for a multiprocessor."""
        machine = load_driver("cpu").machine()
        return {
            "multiprocessor_count": usable_cpu_count(),
            "max_shared_mem": int(machine["l2_bytes"] or 0),
            "max_num_regs": int(machine["num_registers"] or 0),
            "warpSize": 1,
        }


class CpuDriver:
    """The CPU as a device."""

    utils = Utilities()

    def get_current_target(self) -> Target:
        """The CPU of this machine."""
        return Target("cpu", str(load_driver("cpu").machine()["cpu"]), 1)

    def get_current_device(self) -> int:
        """The number of the only device."""
        return 0

    def get_current_stream(self, device: int = 0) -> int:
        """The number of the only stream."""
        return 0

    def get_active_torch_device(self) -> object:
        """`torch.device("cpu")`, for scripts that use torch."""
        return importlib.import_module("torch").device("cpu")

    def get_benchmarker(self) -> Callable[..., object]:
        """The timer."""
        return do_bench


active = CpuDriver()
