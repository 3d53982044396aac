"""The machine that this process runs on, by its features and never by its name."""

from __future__ import annotations

import functools
import os
from collections.abc import Mapping
from pathlib import Path

import llvmlite.binding as llvm

from tilewright.codegen.optimize import initialize_llvm
from tilewright.machine.cpus import DEFAULT_L1_BYTES, DEFAULT_L2_BYTES, DEFAULT_L3_BYTES
from tilewright.machine.model import MachineModel
from tilewright.targets.cpu.runtime.amx_permission import is_amx_permitted

_SYSFS_CACHE = Path("/sys/devices/system/cpu/cpu0/cache")
_CGROUP = Path("/sys/fs/cgroup")
_DEFAULT_CACHE_BYTES = {"L1d": DEFAULT_L1_BYTES, "L2": DEFAULT_L2_BYTES, "L3": DEFAULT_L3_BYTES}


@functools.cache
def host_machine() -> MachineModel:
    """The host, read once a process."""
    initialize_llvm()
    features = permitted_features(llvm.get_host_cpu_features())
    return describe_machine(llvm.get_default_triple(), llvm.get_host_cpu_name(), features)


def permitted_features(features: Mapping[str, bool]) -> Mapping[str, bool]:
    """The features that this process may use: AMX's need the system's permission."""
    amx = [name for name, is_on in features.items() if is_on and name.startswith("amx-")]
    if not amx or is_amx_permitted():
        return features
    return {**features, **dict.fromkeys(amx, False)}


def describe_machine(triple: str, cpu: str, features: Mapping[str, bool]) -> MachineModel:
    """The machine model of a CPU with the given feature bits."""
    signed = tuple(f"{'+' if on else '-'}{name}" for name, on in sorted(features.items()))
    on = frozenset(name for name, is_on in features.items() if is_on)
    is_arm = triple.startswith(("aarch64", "arm64"))
    has_wide = _has_full_avx512(on)
    return MachineModel(
        name=cpu,
        arch=cpu,
        triple=triple,
        features=signed,
        vector_bytes=64 if has_wide else 32 if "avx2" in on else 16,
        # NEON and AVX-512 have 32 vector registers, everything before 16.
        num_registers=32 if has_wide or is_arm else 16,
        l1_bytes=cache_bytes("L1d"),
        l2_bytes=cache_bytes("L2"),
        l3_bytes=cache_bytes("L3"),
    )


def _has_full_avx512(on: frozenset[str]) -> bool:
    # The foundation alone lacks byte and word operations and masks on narrow vectors.
    return {"avx512f", "avx512bw", "avx512dq", "avx512vl"} <= on


def cache_bytes(level: str) -> int:
    """The size of data cache `level` (`L1d`, `L2`, `L3`) as the kernel reports it."""
    return _reported_caches().get(level, _DEFAULT_CACHE_BYTES[level])


@functools.cache
def _reported_caches() -> dict[str, int]:
    """The sizes of the first CPU's data caches, each file read once."""
    found: dict[str, int] = {}
    for entry in sorted(_SYSFS_CACHE.glob("index*")) if _SYSFS_CACHE.is_dir() else ():
        kind = {"Data": "d", "Unified": ""}.get(_read(entry / "type"))
        size = _parse_size(_read(entry / "size"))
        if kind is not None and size:
            found.setdefault(f"L{_read(entry / 'level')}{kind}", size)
    return found


def _parse_size(text: str) -> int:
    scale = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}.get(text[-1:], 1)
    digits = text.rstrip("KMG")
    return int(digits) * scale if digits.isdigit() else 0


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="ascii").strip()
    except (OSError, UnicodeDecodeError):
        return ""


def usable_cpus() -> tuple[int, ...]:
    """The CPUs in this process's affinity mask; empty where the system has no such mask."""
    if not hasattr(os, "sched_getaffinity"):
        return ()
    return tuple(sorted(os.sched_getaffinity(0)))


def available_parallelism() -> int:
    """How many threads may run at once: the affinity mask, cut by the cgroup's CPU quota."""
    num_cpus = len(usable_cpus()) or os.cpu_count() or 1
    quota = cgroup_cpu_quota()
    return num_cpus if quota is None else max(1, min(num_cpus, round(quota)))


def cgroup_cpu_quota() -> float | None:
    """The CPU bandwidth of the tightest cgroup around this process, in CPUs, or None."""
    quotas = [quota for path in _cgroup_folders() for quota in (_folder_quota(path),) if quota]
    return min(quotas, default=None)


def _cgroup_folders() -> list[Path]:
    """Every folder from this process's cgroup up to the root, version 2 and version 1."""
    folders = [_CGROUP, _CGROUP / "cpu"]
    for line in _read(Path("/proc/self/cgroup")).splitlines():
        _, controllers, path = line.split(":", 2)
        root = _CGROUP if not controllers else _CGROUP / controllers
        here = root / path.lstrip("/")
        if not controllers or "cpu" in controllers.split(","):
            folders += [here, *(p for p in here.parents if p.is_relative_to(root))]
    return folders


def _folder_quota(folder: Path) -> float | None:
    quota, _, period = _read(folder / "cpu.max").partition(" ")
    if not quota:
        quota = _read(folder / "cpu.cfs_quota_us")
        period = _read(folder / "cpu.cfs_period_us")
    if not quota.isdigit() or not period.isdigit() or int(period) == 0:
        return None
    return int(quota) / int(period)
