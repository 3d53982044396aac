"""How a compiled kernel is launched, read off its metadata and checked against a machine."""

from __future__ import annotations

from collections.abc import Mapping
from math import prod
from typing import cast

from tilewright.machine.model import MachineModel
from tilewright.support.errors import UnsupportedError
from tilewright.support.options import CompileOptions
from tilewright.targets.nvidia.errors import ResourcesExceeded
from tilewright.targets.nvidia.host import NAMED_MACHINES
from tilewright.targets.nvidia.launcher import LaunchShape

_LANES = max(machine.lanes for machine in NAMED_MACHINES.values())
_MAX_WARPS = max(machine.max_warps_per_cta for machine in NAMED_MACHINES.values())
_MAX_CLUSTER = max(machine.max_opt_in_cluster_size for machine in NAMED_MACHINES.values())


def launch_shape(metadata: Mapping[str, object]) -> LaunchShape:
    """The launch shape of an artifact: warps, shared memory, clusters, launch modes."""
    options = cast("Mapping[str, object]", metadata.get("options", {}))
    return LaunchShape(
        num_threads=_LANES * int(str(metadata["num_warps"])),
        shared_bytes=int(str(metadata.get("shared_bytes", 0))),
        cluster=launch_cluster(metadata),
        is_cooperative=bool(options.get("launch_cooperative_grid")),
        is_programmatic=bool(options.get("launch_pdl")),
    )


def launch_cluster(metadata: Mapping[str, object]) -> tuple[int, int, int] | None:
    """The cluster of the options, or of programs that load for each other, along the first axis."""
    given = metadata.get("cluster_dims")
    if given is not None:
        x, y, z = cast("tuple[int, int, int]", given)
        return x, y, z
    size = max(int(str(metadata.get(name, 1))) for name in ("num_ctas", "cluster"))
    return None if size == 1 else (size, 1, 1)


def check_options(options: CompileOptions) -> None:
    """Refuse options that no kernel can have on a GPU.

    Raises: UnsupportedError for checked mode and programs of several ctas, ResourcesExceeded
    for more warps or a larger cluster than any machine has.
    """
    if options.checked:
        raise UnsupportedError(
            "kernels are checked on the CPU only, not on target nvidia",
            hint="pass arrays in host memory, or unset TILEWRIGHT_CHECKED",
        )
    if options.num_ctas > 1:
        raise UnsupportedError(
            f"num_ctas is {options.num_ctas}, and a program runs on one cta",
            hint="use num_ctas=1; cluster_dims makes clusters of programs",
        )
    if options.num_warps > _MAX_WARPS:
        raise ResourcesExceeded(
            f"num_warps is {options.num_warps}, and a program has at most {_MAX_WARPS} warps",
            hint=f"use num_warps={_MAX_WARPS} or fewer",
        )
    if prod(options.cluster_dims or ()) > _MAX_CLUSTER:
        raise ResourcesExceeded(
            f"cluster_dims is {options.cluster_dims}, and a cluster has at most {_MAX_CLUSTER} "
            "programs",
            hint="use a smaller cluster",
        )


def check_shape(kernel: str, shape: LaunchShape, machine: MachineModel) -> None:
    """Check a kernel's launch against a machine. Raises: ResourcesExceeded."""
    max_threads, num_warps = machine.max_threads_per_cta, shape.num_threads // machine.lanes
    if shape.num_threads > max_threads:
        raise ResourcesExceeded(
            f"{kernel}: {num_warps} warps are {shape.num_threads} threads, "
            f"and a program has at most {max_threads}",
            hint=f"use num_warps={machine.max_warps_per_cta} or fewer",
        )
    max_shared = machine.max_shared_bytes
    if shape.shared_bytes > max_shared:
        raise ResourcesExceeded(
            f"{kernel}: a program takes {shape.shared_bytes} bytes of shared memory, and the "
            f"machine has {max_shared}",
            hint="use smaller blocks or fewer stages",
        )
