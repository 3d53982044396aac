"""`triton.backends.compiler`: what kernels are compiled for, and the compiler as an object."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from tilewright.runtime.fingerprint import compiler_fingerprint
from tilewright.support.errors import UnsupportedError

DIVISIBILITY = 16
_FP8 = ("fp8e4nv", "fp8e5", "fp8e4b15", "fp8e4b8", "fp8e5b16")
_TARGETS = {"cpu": "cpu", "cuda": "nvidia"}


class GPUTarget(NamedTuple):
    """What kernels are compiled for: `cpu` or `cuda`, the machine's name, and its warp size."""

    backend: str
    arch: int | str
    warp_size: int


class BackendOptions:
    """The compile options of a backend, as attributes."""

    def __init__(self, backend_name: str, values: Mapping[str, object]) -> None:
        self.__dict__.update(_DEFAULTS)
        self.backend_name = backend_name
        self.__dict__.update(values)

    def __repr__(self) -> str:
        return f"BackendOptions({self.__dict__})"


_DEFAULTS: dict[str, object] = {
    "num_warps": 4,
    "num_stages": 3,
    "num_ctas": 1,
    "warp_size": 32,
    "maxnreg": None,
    "cluster_dims": (1, 1, 1),
    "enable_fp_fusion": True,
    "debug": False,
    "sanitize_overflow": True,
    "launch_cooperative_grid": False,
    "launch_pdl": False,
    "extern_libs": (),
    "supported_fp8_dtypes": _FP8,
    "deprecated_fp8_dot_operand_dtypes": (),
    "default_dot_input_precision": "tf32",
    "allowed_dot_input_precisions": ("tf32", "tf32x3", "ieee", "bf16x3", "bf16x6"),
    "max_num_imprecise_acc_default": 0,
    "arch": None,
    "ir_override": None,
    "instrumentation_mode": "",
}


class BaseBackend:
    """The compiler for one target, as clients ask about it."""

    def __init__(self, target: GPUTarget) -> None:
        self.target = target

    @staticmethod
    def supports_target(target: GPUTarget) -> bool:
        """Whether kernels can be compiled for `target`."""
        return target.backend in _TARGETS

    def hash(self) -> str:
        """The identity of the compiler and the target."""
        return f"{compiler_fingerprint()}-{self.target.backend}-{self.target.arch}"

    def parse_options(self, options: Mapping[str, object]) -> BackendOptions:
        """The options of a launch over the defaults; unknown names are left out."""
        known = {name: v for name, v in options.items() if name in _DEFAULTS}
        return BackendOptions(self.target.backend, known)

    def load_dialects(self, context: object) -> None:
        """Nothing: every operation is known from the start."""

    def get_codegen_implementation(self, options: object) -> dict[str, Callable[..., object]]:
        """Nothing: targets lower operations by their own rules."""
        return {}

    def get_module_map(self) -> dict[str, object]:
        """Nothing: libdevice is the same on every target."""
        return {}

    @staticmethod
    def is_within_2gb(value: object) -> bool:
        """Whether a tensor's memory is known to be below 2 GiB: never."""
        return False

    @staticmethod
    def parse_attr(description: str) -> list[list[object]]:
        """The attributes that a specialisation key stands for: `D` is a multiple of 16."""
        return [["tt.divisibility", DIVISIBILITY]] if "D" in description else []

    @staticmethod
    def get_int_specialization(value: int, *, align: bool = True) -> str:
        """The key of an integer argument."""
        return "D" if align and value % DIVISIBILITY == 0 else ""

    @staticmethod
    def get_tensor_specialization(value: object, *, align: bool = True) -> str:
        """The key of an array argument."""
        pointer = getattr(value, "data_ptr", None)
        return "D" if align and callable(pointer) and _is_aligned(pointer()) else ""

    @classmethod
    def get_arg_specialization(cls, value: object, kind: str, *, align: bool = True) -> str:
        """The key of an argument that is an `int` or a `tensor`."""
        if kind == "int" and isinstance(value, int):
            return cls.get_int_specialization(value, align=align)
        return cls.get_tensor_specialization(value, align=align)


def _is_aligned(address: object) -> bool:
    return isinstance(address, int) and address % DIVISIBILITY == 0


class CPUBackend(BaseBackend):
    """The compiler for the CPU."""

    @staticmethod
    def supports_target(target: GPUTarget) -> bool:
        """Whether `target` is a CPU."""
        return target.backend == "cpu"


class CUDABackend(BaseBackend):
    """The compiler for NVIDIA GPUs."""

    @staticmethod
    def supports_target(target: GPUTarget) -> bool:
        """Whether `target` is an NVIDIA GPU."""
        return target.backend == "cuda"


def target_folder(target: GPUTarget) -> str:
    """The name of our target for one of Triton's. Raises: `UnsupportedError`."""
    if target.backend not in _TARGETS:
        raise UnsupportedError(
            f"kernels cannot be compiled for {target.backend!r}",
            hint="the targets are " + ", ".join(repr(name) for name in _TARGETS),
        )
    return _TARGETS[target.backend]


def backend_for(target: GPUTarget) -> BaseBackend:
    """The compiler for `target`. Raises: `UnsupportedError`."""
    target_folder(target)
    classes: Sequence[type[BaseBackend]] = (CPUBackend, CUDABackend)
    return next(cls(target) for cls in classes if cls.supports_target(target))
