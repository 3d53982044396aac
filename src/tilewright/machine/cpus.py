"""CPUs as data: what holds where a host does not say, and one made up."""

from __future__ import annotations

from tilewright.machine.model import MachineModel
from tilewright.support.dataclass import replace

DEFAULT_L1_BYTES, DEFAULT_L2_BYTES, DEFAULT_L3_BYTES = 32 << 10, 1 << 20, 16 << 20
"""Caches where the kernel reports none: at most those of any x86 or ARM server since 2018."""

LINE_BYTES = 64
"""A cache line. Source: every x86-64 core; the Neoverse cores of Arm's servers."""

MADE_UP_CPU = MachineModel(
    name="made-up",
    arch="x86-64",
    triple="x86_64-unknown-linux-gnu",
    features=("+avx2", "+fma"),
    vector_bytes=32,
    num_registers=16,
    l1_bytes=DEFAULT_L1_BYTES,
    l2_bytes=DEFAULT_L2_BYTES,
    l3_bytes=DEFAULT_L3_BYTES,
)
"""An x86 core with AVX2 and small caches that does not depend on the host, for passes and tests."""

MADE_UP_AMX_CPU = replace(
    MADE_UP_CPU,
    features=("+amx-bf16", "+amx-int8", "+amx-tile", "+avx2", "+avx512f", "+fma"),
    vector_bytes=64,
    num_registers=32,
)
"""The same with AVX-512 and AMX's tile registers."""
