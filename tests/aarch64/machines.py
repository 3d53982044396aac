"""AArch64 machines that kernels are compiled for here, and what qemu stands in for each."""

from __future__ import annotations

from dataclasses import dataclass

from tilewright.machine.model import MachineModel

TRIPLE = "aarch64-unknown-linux-gnu"
# What Armv8.2-A servers since 2019 have beyond the base architecture.
_SERVER = ("+aes", "+crc", "+dotprod", "+fp-armv8", "+fullfp16", "+lse", "+neon", "+rcpc", "+sha2")


@dataclass(frozen=True)
class Emulated:
    """A machine, and the `-cpu` of qemu that runs its code.

    The sizes of caches are those of the makers' manuals. qemu's "neoverse-n1" refuses what that
    core lacks; its "max" has what any core has, so that only what is switched off is refused.
    """

    machine: MachineModel
    cpu: str


def _machine(
    name: str, features: tuple[str, ...], l1_bytes: int, l2_bytes: int, l3_bytes: int
) -> MachineModel:
    return MachineModel(
        name=name,
        arch=name,
        triple=TRIPLE,
        features=tuple(sorted(features)),
        vector_bytes=16,
        num_registers=32,
        l1_bytes=l1_bytes,
        l2_bytes=l2_bytes,
        l3_bytes=l3_bytes,
    )


NEOVERSE_N1 = Emulated(_machine("neoverse-n1", _SERVER, 64 << 10, 1 << 20, 1 << 20), "neoverse-n1")
NEOVERSE_V2 = Emulated(
    _machine(
        "neoverse-v2",
        (*_SERVER, "+bf16", "+fp16fml", "+i8mm", "+sve", "+sve2"),
        *(64 << 10, 2 << 20, 2 << 20),
    ),
    # The core's scalable vectors have 128 bits.
    "max,sve128=on,sve-max-vq=1",
)
APPLE_M1 = Emulated(
    _machine("apple-m1", (*_SERVER, "+fp16fml", "+sha3"), 128 << 10, 3 << 20, 8 << 20),
    "max,sve=off,sme=off",
)
MACHINES = {e.machine.name: e for e in (NEOVERSE_N1, NEOVERSE_V2, APPLE_M1)}
