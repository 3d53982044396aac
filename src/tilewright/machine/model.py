"""What the compiler knows of a machine: features and sizes as data.

One class for CPUs and GPUs. A pass, a rule or a cost asks for what it needs (`lanes`, `has_wgmma`,
`max_shared_bytes`) and never for a name; what a machine has not is 0, False or empty. The values of
known machines, with their sources, are in `gpus` and `cpus`; a driver fills in what a device says
of itself.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping

from tilewright.machine.mma import MatrixAtom, matrix_atom
from tilewright.support.dataclass import dataclass
from tilewright.support.errors import InternalError

FeatureValue = int | float | str | bool | None
_SEPARATOR = ","


@dataclass(frozen=True)
class MachineModel:
    """A machine that kernels are compiled for.

    *Units*: `_bytes` are bytes, caches as one core sees them; `registers_per_sm` and
    `register_unit` count 32-bit registers, `num_registers` the vector registers of a CPU core.

    `name` is what a user calls it and `arch` what its assembler does (`sm_90a`, `znver4`), with
    `features` signed as LLVM has them. `compute_capability` is 10 times major plus minor.
    A warp of `lanes` runs in step; a program is a cta of at most `max_threads_per_cta`, which has
    `num_barriers` to wait at.
    `matrix_units` names instructions of `mma`, the fastest first. Registers of a warp are handed
    out in `register_unit`s and to groups of `warp_unit` warps, shared memory in
    `shared_unit_bytes`.
    `assembler` is the version of the program that assembles for it: another gives other code.
    `host_l3_bytes` is all of the last cache, of which a virtual machine has `l3_bytes`; 0 if it has
    all of it.
    """

    name: str = ""
    arch: str = ""
    triple: str = ""
    features: tuple[str, ...] = ()
    compute_capability: int = 0
    assembler: str = ""
    # Registers and vectors.
    vector_bytes: int = 0
    num_registers: int = 0
    lanes: int = 1
    max_registers_per_thread: int = 0
    registers_per_sm: int = 0
    register_unit: int = 0
    warp_unit: int = 0
    has_setmaxnreg: bool = False
    # What runs at once.
    num_sms: int = 0
    num_barriers: int = 0
    max_threads_per_cta: int = 0
    max_threads_per_sm: int = 0
    max_ctas_per_sm: int = 0
    max_cluster_size: int = 0
    max_opt_in_cluster_size: int = 0
    # Shared memory.
    max_shared_bytes: int = 0
    shared_bytes_per_sm: int = 0
    reserved_shared_bytes: int = 0
    shared_unit_bytes: int = 0
    num_banks: int = 0
    bank_bytes: int = 0
    # Instructions.
    matrix_units: tuple[str, ...] = ()
    has_cp_async: bool = False
    has_tma: bool = False
    has_stmatrix: bool = False
    # Caches.
    l1_bytes: int = 0
    l2_bytes: int = 0
    l3_bytes: int = 0
    host_l3_bytes: int = 0

    def has_feature(self, name: str) -> bool:
        """Whether LLVM's feature `name` (without sign) is on."""
        return name in self.enabled_features

    @functools.cached_property
    def enabled_features(self) -> frozenset[str]:
        """LLVM's features that are on, without their sign."""
        return frozenset(name[1:] for name in self.features if name.startswith("+"))

    @functools.cached_property
    def matrix_atoms(self) -> tuple[MatrixAtom, ...]:
        """The matrix instructions, the fastest first."""
        return tuple(matrix_atom(name) for name in self.matrix_units)

    @property
    def has_wgmma(self) -> bool:
        """Whether warp groups multiply matrices out of shared memory."""
        return "wgmma" in self.matrix_units

    @property
    def has_mma(self) -> bool:
        """Whether warps multiply matrices in registers."""
        return "mma" in self.matrix_units

    @property
    def has_gather(self) -> bool:
        """Whether a CPU loads from several addresses with one instruction."""
        return self.has_feature("avx2")

    @property
    def max_warps_per_cta(self) -> int:
        """The warps that a program can have."""
        return self.max_threads_per_cta // self.lanes

    @property
    def max_warps_per_sm(self) -> int:
        """The warps that a multiprocessor holds."""
        return self.max_threads_per_sm // self.lanes

    def to_features(self) -> dict[str, FeatureValue]:
        """This model as a flat mapping of JSON values; a tuple is joined by commas."""
        values = {name: getattr(self, name) for name in _FIELDS}
        return {n: _SEPARATOR.join(v) if type(v) is tuple else v for n, v in values.items()}

    @staticmethod
    def from_features(features: Mapping[str, FeatureValue]) -> MachineModel:
        """The model that `to_features` wrote. Raises: InternalError for any other mapping."""
        if features.keys() != _FIELDS.keys():
            names = sorted(features.keys() ^ _FIELDS.keys())
            raise InternalError(f"not a machine: {', '.join(names)} missing or unknown")
        values: dict[str, object] = {}
        for name, value in features.items():
            kind = _FIELDS[name]
            if type(value) is not (str if kind is tuple else kind):
                raise InternalError(f"not a machine: {name} is {value!r:.40}")
            values[name] = _split(str(value)) if kind is tuple else value
        return MachineModel(**values)  # type: ignore[arg-type]  # the types were checked

    def __repr__(self) -> str:
        return f"MachineModel({self.name or 'abstract'})"


def _split(text: str) -> tuple[str, ...]:
    return tuple(text.split(_SEPARATOR)) if text else ()


ABSTRACT = MachineModel()
"""No machine in particular: what the reference interpreter stands for."""

# Field -> the type of its values.
_FIELDS: Mapping[str, type] = {
    name: type(getattr(ABSTRACT, name)) for name in MachineModel.__annotations__
}
