"""`triton._internal_testing`: what suites of tests written for Triton import.

Lists of dtypes by name, arrays of random values, the way between NumPy and arguments of kernels,
and questions about the machine. Values and ranges are our own; the names are what suites use.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from importlib import import_module
from types import ModuleType
from typing import Any

import numpy as np

from tilewright.language import dtype as Dtype
from tilewright.support.environment import set_variable

from . import knobs
from . import language as tl
from .backends.compiler import GPUTarget
from .runtime.driver import driver
from .runtime.tensors import TensorWrapper, reinterpret

# Arrays of torch and marks of pytest, which this package does not depend on.
_Tensor = Any
_Mark = Any
_Array = np.ndarray[Any, np.dtype[Any]]

int_dtypes = ["int8", "int16", "int32", "int64"]
uint_dtypes = ["uint8", "uint16", "uint32", "uint64"]
integral_dtypes = [*int_dtypes, *uint_dtypes]
float_dtypes = ["float16", "float32", "float64"]
float_dtypes_with_bfloat16 = [*float_dtypes, "bfloat16"]
dtypes = [*integral_dtypes, *float_dtypes]
dtypes_with_bfloat16 = [*dtypes, "bfloat16"]
torch_float8_dtypes = ["float8_e4m3fn", "float8_e5m2"]
torch_dtypes = ["bool", *int_dtypes, "uint8", *float_dtypes, "bfloat16"]
# Elements of 64 bits are not among those that suites move through descriptors.
tma_dtypes = sorted({*dtypes_with_bfloat16} - {"int64", "uint64", "float64"})

# Names that NumPy and torch have for elements, where the language has another one.
_LANGUAGE_NAMES = {
    "bool": "int1",
    "bool_": "int1",
    "float8_e4m3fn": "float8e4nv",
    "float8_e4m3fnuz": "float8e4b8",
    "float8_e5m2": "float8e5",
    "float8_e5m2fnuz": "float8e5b16",
}
tma_skip_msg = "descriptors need a GPU of compute capability 9.0 or later"


def is_interpreter() -> bool:
    """Whether kernels are interpreted (`TRITON_INTERPRET=1`)."""
    return bool(knobs.runtime.interpret)


def get_current_target() -> GPUTarget | None:
    """What kernels are compiled for; None where they are interpreted."""
    return None if is_interpreter() else driver.active.get_current_target()


def _capability() -> int:
    """The compute capability of the GPU, 90 for 9.0; 0 without one."""
    target = get_current_target()
    return int(target.arch) if target is not None and target.backend == "cuda" else 0


def is_cuda() -> bool:
    """Whether kernels run on an NVIDIA GPU."""
    return _capability() > 0


def is_ampere_or_newer() -> bool:
    """Whether they run on an NVIDIA GPU of compute capability 8.0 or later."""
    return _capability() >= 80


def is_hopper_or_newer() -> bool:
    """Whether they run on an NVIDIA GPU of compute capability 9.0 or later."""
    return _capability() >= 90


def is_hopper() -> bool:
    """Whether they run on a GPU of compute capability 9.x."""
    return _capability() // 10 == 9


def is_blackwell() -> bool:
    """Whether they run on a GPU of compute capability 10.x, which is no target here."""
    return _capability() // 10 == 10


def is_blackwell_ultra() -> bool:
    """Whether they run on a GPU of compute capability 10.3, which is no target here."""
    return _capability() == 103


def is_sm12x() -> bool:
    """Whether they run on a GPU of compute capability 12.x, which is no target here."""
    return _capability() // 10 == 12


def _never() -> bool:
    """False: kernels do not run on GPUs of this kind here."""
    return False


is_hip = is_hip_cdna = is_hip_cdna2 = is_hip_cdna3 = is_hip_cdna4 = _never
is_hip_rdna = is_hip_rdna3 = is_hip_rdna4 = is_hip_gfx11 = is_hip_gfx12 = is_hip_gfx1250 = _never
is_xpu = _never


def get_arch() -> str:
    """The name of the target's architecture; empty where kernels are interpreted."""
    target = get_current_target()
    return "" if target is None else str(target.arch)


def get_hip_lds_size() -> int:
    """Bytes of shared memory of an AMD GPU: 0, there is none."""
    return 0


def supports_tma(byval_only: bool = False) -> bool:
    """Whether kernels take descriptors: they do on every target, and where interpreted."""
    return True


def supports_ws() -> bool:
    """Whether kernels are specialized by warps: on Hopper."""
    return is_hopper()


def requires_tma(function: Callable[..., object]) -> Callable[..., object]:
    """The test as it is, which needs descriptors: there is no target without them."""
    return function


def numpy_random(
    shape: int | Sequence[int],
    dtype_str: str,
    rs: np.random.RandomState | None = None,
    low: int | None = None,
    high: int | None = None,
) -> _Array:
    """Random values of a type that is named.

    Integers are uniform in [low, high), the whole range of their type by default, with 1 in place
    of 0, so that they divide; floats are normal, those of bfloat16 in a float32 array whose lower
    halves are 0; float8 are bytes; bool is true for a half.
    """
    extents = (shape,) if isinstance(shape, int) else tuple(shape)
    random = np.random.RandomState(17) if rs is None else rs
    if dtype_str in integral_dtypes:
        limits = np.iinfo(dtype_str)
        start = limits.min if low is None else max(low, limits.min)
        stop = limits.max if high is None else min(high, limits.max)
        element: Any = np.dtype(dtype_str)
        integers = np.asarray(random.randint(start, stop, extents, dtype=element))
        return np.where(integers == 0, np.ones_like(integers), integers)
    if dtype_str in ("bool", "bool_", "int1"):
        return np.asarray(random.normal(0, 1, extents) > 0)
    if "float8" in dtype_str:
        return np.asarray(random.randint(20, 40, extents, dtype=np.int8))
    values = np.asarray(random.normal(0, 1, extents))
    if dtype_str == "bfloat16":
        return (values.astype(np.float32).view(np.uint32) & np.uint32(0xFFFF0000)).view(np.float32)
    return values.astype(dtype_str)


def str_to_triton_dtype(name: str) -> Dtype:
    """The type that a name of NumPy, torch or the language stands for; `*` makes a pointer."""
    if name.startswith("*"):
        return tl.pointer_type(str_to_triton_dtype(name[1:]))
    return getattr(tl, _LANGUAGE_NAMES.get(name, name))


def torch_dtype_name(dtype: object) -> str:
    """The name of a type of the language or of torch, without the package."""
    name = getattr(dtype, "name", None)
    return name if isinstance(name, str) else str(dtype).rpartition(".")[2]


def to_triton(x: _Array, device: str, dst_type: str | None = None) -> _Tensor:
    """A NumPy array as an argument of kernels: a tensor of torch, or a wrapper with another type.

    `dst_type` names float8 types for bytes and `bfloat16` for float32.
    """
    torch = import_module("torch")
    kind = x.dtype.name
    if kind in uint_dtypes:
        signed = torch.tensor(x.astype(kind.removeprefix("u")), device=device)
        return reinterpret(signed, getattr(tl, kind))
    tensor = torch.tensor(x, device=device)
    if dst_type is not None and "float8" in dst_type:
        return reinterpret(tensor, getattr(tl, dst_type))
    return tensor.bfloat16() if kind == "float32" and dst_type == "bfloat16" else tensor


def to_numpy(x: _Tensor) -> _Array:
    """The values of an argument of kernels; bfloat16 as float32."""
    torch = import_module("torch")
    if isinstance(x, TensorWrapper):
        base: _Tensor = x.base
        return base.cpu().numpy().astype(torch_dtype_name(x.dtype))
    if not isinstance(x, torch.Tensor):
        raise TypeError(f"`to_numpy` takes a tensor of torch or a wrapper of one, not {type(x)}")
    return (x.float() if x.dtype == torch.bfloat16 else x).cpu().numpy()


def unwrap_tensor(x: _Tensor) -> _Tensor:
    """The tensor of torch below wrappers."""
    return x.base if isinstance(x, TensorWrapper) else x


def default_alloc_fn(size: int, align: int, _: int | None) -> _Tensor:
    """An allocator of scratch memory, for `triton.set_allocator`: bytes of torch."""
    device = "cuda" if is_cuda() else "cpu"
    torch = import_module("torch")
    return torch.empty(size, dtype=torch.int8, device=device)


def _knob_groups() -> Mapping[str, knobs.base_knobs]:
    values = vars(knobs).items()
    return {name: value for name, value in values if isinstance(value, knobs.base_knobs)}


def _fresh_knobs_impl(
    skipped_attr: Iterable[str] = (),
) -> tuple[Callable[[], ModuleType], Callable[[], None]]:
    """(fresh, reset): the first makes settings as without variables, the second undoes it.

    Groups named in `skipped_attr` are left alone.
    """
    skipped = set(skipped_attr)
    groups = [group for name, group in _knob_groups().items() if name not in skipped]
    settings = [setting for group in groups for setting in group.knob_descriptors.values()]
    propagates = knobs.propagate_env
    scopes = ExitStack()

    def fresh() -> ModuleType:
        for group in groups:
            scopes.enter_context(group.scope())
        for setting in settings:
            set_variable(setting.name, None)
        for group in groups:
            group.reset()
        for setting in settings:
            if setting.ours is not None:
                set_variable(setting.ours, None)
        knobs.propagate_env = True
        return knobs

    def reset() -> None:
        scopes.close()
        knobs.propagate_env = propagates

    return fresh, reset
