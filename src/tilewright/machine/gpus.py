"""NVIDIA GPUs as data, by architecture and by product.

*Source*, unless a line says another: CUDA C++ programming guide 13.0, table "Technical
Specifications per Compute Capability", and the white paper of each architecture. Allocation units:
CUDA occupancy calculator. A device that is there is asked for its own sizes
(`targets/nvidia/host.py`); these stand for those that are not.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from tilewright.machine.model import MachineModel
from tilewright.support.dataclass import replace

TRIPLE = "nvptx64-nvidia-cuda"
NUM_BANKS, BANK_BYTES = 32, 4
"""Shared memory of every architecture since 2.0: 32 banks of 4 bytes."""

_COMMON = MachineModel(
    triple=TRIPLE,
    # One load of a lane. Blackwell has 32 bytes (ld.global.v4.b64), which no rule uses yet.
    vector_bytes=16,
    lanes=32,
    max_registers_per_thread=255,
    registers_per_sm=65536,
    register_unit=256,
    # Registers belong to the four quarters of an SM, so warps fit in groups of four.
    warp_unit=4,
    max_threads_per_cta=1024,
    num_barriers=16,  # PTX ISA 8.8, "barrier": resources 0 to 15.
    max_cluster_size=1,
    max_opt_in_cluster_size=1,
    # The system takes 1 KiB of each program's shared memory.
    reserved_shared_bytes=1024,
    shared_unit_bytes=128,
    num_banks=NUM_BANKS,
    bank_bytes=BANK_BYTES,
    matrix_units=("mma",),
    has_cp_async=True,
)


def _of(name: str, capability: int, suffix: str = "", **sizes: object) -> MachineModel:
    arch = f"sm_{capability}{suffix}"
    return replace(_COMMON, name=name, arch=arch, compute_capability=capability, **sizes)


SM_80 = _of(
    "sm_80",
    80,
    num_sms=108,  # A100
    max_threads_per_sm=2048,
    max_ctas_per_sm=32,
    max_shared_bytes=163 << 10,
    shared_bytes_per_sm=164 << 10,
    l1_bytes=192 << 10,
    l2_bytes=40 << 20,
)
SM_86 = _of(
    "sm_86",
    86,
    num_sms=84,  # A40, RTX A6000
    max_threads_per_sm=1536,
    max_ctas_per_sm=16,
    max_shared_bytes=99 << 10,
    shared_bytes_per_sm=100 << 10,
    l1_bytes=128 << 10,
    l2_bytes=6 << 20,
)
SM_89 = _of(
    "sm_89",
    89,
    num_sms=142,  # L40, L40S
    max_threads_per_sm=1536,
    max_ctas_per_sm=24,
    max_shared_bytes=99 << 10,
    shared_bytes_per_sm=100 << 10,
    l1_bytes=128 << 10,
    l2_bytes=96 << 20,
)
# From compute capability 9.0 on.
_NEWER: Mapping[str, object] = {
    "max_cluster_size": 8,
    "has_tma": True,
    "has_stmatrix": True,
    "has_setmaxnreg": True,
}
SM_90A = _of(
    "sm_90a",
    90,
    "a",
    num_sms=132,  # H100 SXM, H200
    max_threads_per_sm=2048,
    max_ctas_per_sm=32,
    max_opt_in_cluster_size=16,
    max_shared_bytes=227 << 10,
    shared_bytes_per_sm=228 << 10,
    l1_bytes=256 << 10,
    l2_bytes=50 << 20,
    matrix_units=("wgmma", "mma"),
    **_NEWER,
)
H100 = replace(SM_90A, name="H100")
# The driver of the H200 reports 60 MB of L2. Source: seen on a device, 2026-10-28.
H200 = replace(SM_90A, name="H200", l2_bytes=60 << 20)
# Source: the vendor's data sheet of the H20, as far as it is public.
H20 = replace(SM_90A, name="H20", num_sms=78, l2_bytes=60 << 20)
SM_100A = _of(
    "sm_100a",
    100,
    "a",
    num_sms=148,  # B200
    max_threads_per_sm=2048,
    max_ctas_per_sm=32,
    max_opt_in_cluster_size=16,
    max_shared_bytes=227 << 10,
    shared_bytes_per_sm=228 << 10,
    l1_bytes=256 << 10,
    l2_bytes=126 << 20,
    # Hopper's matrix instructions were not carried over to its successors.
    matrix_units=("tcgen05", "mma"),
    **_NEWER,
)
SM_120A = _of(
    "sm_120a",
    120,
    "a",
    num_sms=170,  # RTX 5090
    max_threads_per_sm=1536,
    max_ctas_per_sm=24,
    max_shared_bytes=99 << 10,
    shared_bytes_per_sm=100 << 10,
    l1_bytes=128 << 10,
    l2_bytes=96 << 20,
    **_NEWER,
)

GPUS: Mapping[str, MachineModel] = MappingProxyType(
    {
        machine.name: machine
        for machine in (SM_90A, H100, H200, H20, SM_80, SM_86, SM_89, SM_100A, SM_120A)
    }
)
"""The GPUs that are known by name: architectures, then products."""

MADE_UP_GPU = replace(
    SM_90A,
    name="made-up",
    num_sms=3,
    max_shared_bytes=48 << 10,
    shared_bytes_per_sm=50 << 10,
    l2_bytes=1 << 20,
    matrix_units=("mma",),
)
"""A small GPU without wgmma that nobody sells, for tests."""


def gpu_of_capability(capability: int) -> MachineModel:
    """The features of a compute capability (90 for 9.0), the nearest older one's if unknown."""
    architectures = {m.compute_capability: m for m in GPUS.values() if m.name == m.arch}
    known = max((c for c in architectures if c <= capability), default=min(architectures))
    return architectures[known]
