"""The GPUs that kernels are compiled for, by their features: of this machine, or by name.

A named machine needs no GPU: it is what `tilewright compile --target sm_90a` compiles for.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from tilewright.support.errors import UnsupportedError
from tilewright.targets.nvidia.errors import AssemblerNotFound, DeviceNotSupported
from tilewright.targets.nvidia.toolchain import find_assembler

Features = Mapping[str, int | float | str | bool | None]

# Feature -> the driver's number for the device attribute that holds it (cuda.h).
_ATTRIBUTES: Mapping[str, int] = {
    "num_sms": 16,
    "warp_size": 10,
    "max_threads_per_cta": 1,
    "max_threads_per_sm": 39,
    "max_ctas_per_sm": 106,
    "registers_per_sm": 82,
    "max_shared_bytes": 97,
    "shared_bytes_per_sm": 81,
    "reserved_shared_bytes": 111,
    "l2_bytes": 38,
}
_MAJOR, _MINOR = 75, 76
_OLDEST = (9, 0)

# H100 SXM and H200. Source: CUDA programming guide, compute capability 9.0; the devices.
_HOPPER: Mapping[str, int] = {
    "num_sms": 132,
    "warp_size": 32,
    "max_threads_per_cta": 1024,
    "max_threads_per_sm": 2048,
    "max_ctas_per_sm": 32,
    "registers_per_sm": 65536,
    "max_shared_bytes": 232448,
    "shared_bytes_per_sm": 233472,
    "reserved_shared_bytes": 1024,
    "l2_bytes": 50 << 20,
}
NAMED_MACHINES: Mapping[str, Mapping[str, int]] = {"sm_90a": _HOPPER}


class DeviceQuery(Protocol):
    """What describing a GPU asks of the driver."""

    def attribute(self, device: int, number: int) -> int:
        """The attribute of a device by the driver's number for it."""
        ...

    def device_name(self, device: int) -> str:
        """The device's name."""
        ...


def named_machine(name: str) -> Features:
    """The machine `name` (an architecture such as `sm_90a`), as this host compiles for it.

    Raises: UnsupportedError for a name that is not in `NAMED_MACHINES`.
    """
    if name not in NAMED_MACHINES:
        raise UnsupportedError(
            f"there is no machine {name!r}",
            hint=f"the machines are {', '.join(NAMED_MACHINES)}",
        )
    return {"arch": name, **NAMED_MACHINES[name], **_architecture(9, 0), **_toolchain()}


def device_machine(query: DeviceQuery, device: int) -> Features:
    """The features of a GPU of this machine.

    Raises: DeviceNotSupported when it is older than Hopper.
    """
    major, minor = query.attribute(device, _MAJOR), query.attribute(device, _MINOR)
    if (major, minor) < _OLDEST:
        raise DeviceNotSupported(
            f"device {device} ({query.device_name(device)}) has compute capability {major}.{minor}"
        )
    sizes = {name: query.attribute(device, number) for name, number in _ATTRIBUTES.items()}
    arch = f"sm_{major}{minor}a"
    return {"arch": arch, **sizes, **_architecture(major, minor), **_toolchain()}


def _architecture(major: int, minor: int) -> dict[str, int | bool]:
    """What follows from the compute capability alone."""
    return {
        "has_mma": True,
        "has_cp_async": True,
        "has_tma": True,
        "has_clusters": True,
        "has_setmaxnreg": True,
        # Hopper's matrix instructions were not carried over to its successors.
        "has_wgmma": (major, minor) == _OLDEST,
        "max_registers_per_thread": 255,
        "max_cluster_size": 8,
    }


def _toolchain() -> dict[str, str | None]:
    """The assembler's version: another one gives another cubin."""
    try:
        return {"ptxas": find_assembler().version}
    except AssemblerNotFound:
        # PTX can be had without; assembling it says what is missing.
        return {"ptxas": None}
