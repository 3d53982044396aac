"""The GPUs that kernels are compiled for, by their features: of this machine, or by name.

A named machine needs no GPU: it is what `tilewright compile --target sm_90a` compiles for.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from tilewright.machine.gpus import GPUS, gpu_of_capability
from tilewright.machine.model import MachineModel
from tilewright.support.dataclass import replace
from tilewright.support.errors import UnsupportedError
from tilewright.targets.nvidia.errors import (
    AssemblerNotFound,
    DeviceNotSupported,
    MachineNotSupported,
)
from tilewright.targets.nvidia.toolchain import find_assembler

# Source: cuda.h, CUdevice_attribute. Size -> the driver's number for what holds it.
_ATTRIBUTES: Mapping[str, int] = {
    "num_sms": 16,
    "lanes": 10,
    "max_threads_per_cta": 1,
    "max_threads_per_sm": 39,
    "max_ctas_per_sm": 106,
    "registers_per_sm": 82,
    "max_shared_bytes": 97,
    "shared_bytes_per_sm": 81,
    "reserved_shared_bytes": 111,
    "l2_bytes": 38,
}
# Source: the same; and the oldest GPU that code is made for.
_MAJOR, _MINOR = 75, 76
_OLDEST = (9, 0)

NAMED_MACHINES: Mapping[str, MachineModel] = {
    name: machine for name, machine in GPUS.items() if machine.has_stmatrix and machine.has_tma
}
"""Those that there are rules for: older ones have no stmatrix and no copy engine."""


class DeviceQuery(Protocol):
    """What describing a GPU asks of the driver."""

    def attribute(self, device: int, number: int) -> int:
        """The attribute of a device by the driver's number for it."""
        ...

    def device_name(self, device: int) -> str:
        """The device's name."""
        ...


def named_machine(name: str) -> MachineModel:
    """The machine `name` (an architecture such as `sm_90a`), as this host compiles for it.

    Raises: UnsupportedError for a name that is not in `GPUS`, MachineNotSupported for one that
    is not in `NAMED_MACHINES`.
    """
    if name not in GPUS:
        raise UnsupportedError(
            f"there is no machine {name!r}",
            hint=f"the machines are {', '.join(NAMED_MACHINES)}",
        )
    if name not in NAMED_MACHINES:
        raise MachineNotSupported(
            f"{name} has no stmatrix and no copy engine, which the NVIDIA target's code relies on",
            hint=f"compile for one of {', '.join(NAMED_MACHINES)}, or for the CPU",
        )
    return replace(NAMED_MACHINES[name], assembler=_assembler_version())


def device_machine(query: DeviceQuery, device: int) -> MachineModel:
    """The features of a GPU of this machine.

    Raises: DeviceNotSupported when it is older than Hopper.
    """
    major, minor = query.attribute(device, _MAJOR), query.attribute(device, _MINOR)
    if (major, minor) < _OLDEST:
        raise DeviceNotSupported(
            f"device {device} ({query.device_name(device)}) has compute capability {major}.{minor}"
        )
    read = {name: query.attribute(device, number) for name, number in _ATTRIBUTES.items()}
    # Zero is what a driver answers that does not know an attribute: its capability tells then.
    sizes = {name: size for name, size in read.items() if size}
    capability, arch = 10 * major + minor, f"sm_{major}{minor}a"
    return replace(
        gpu_of_capability(capability),
        name=arch,
        arch=arch,
        compute_capability=capability,
        assembler=_assembler_version(),
        **sizes,
    )


def _assembler_version() -> str:
    """The assembler's version: another one gives another cubin."""
    try:
        return find_assembler().version
    except AssemblerNotFound:
        # PTX can be had without; assembling it says what is missing.
        return ""
