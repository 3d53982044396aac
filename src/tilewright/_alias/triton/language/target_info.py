"""`triton.language.target_info`: what kernels may ask about the target, at compile time."""

from __future__ import annotations

from tilewright.language.host import constexpr_function

from ..runtime import driver as _driver


@constexpr_function
def current_target() -> object:
    """The target that kernels are compiled for now."""
    return _driver.active.get_current_target()


@constexpr_function
def is_cuda() -> bool:
    """Whether kernels are compiled for an NVIDIA GPU."""
    return _driver.active.get_current_target().backend == "cuda"


@constexpr_function
def cuda_capability_geq(major: int, minor: int = 0) -> bool:
    """Whether the target is an NVIDIA GPU of at least this compute capability."""
    target = _driver.active.get_current_target()
    return target.backend == "cuda" and int(target.arch) >= 10 * major + minor


@constexpr_function
def is_hip() -> bool:
    """Whether kernels are compiled for an AMD GPU: no."""
    return False


@constexpr_function
def is_hip_cdna3() -> bool:
    """Whether the target is a CDNA3 GPU: no."""
    return False


@constexpr_function
def is_hip_cdna4() -> bool:
    """Whether the target is a CDNA4 GPU: no."""
    return False


@constexpr_function
def is_hip_gfx1250() -> bool:
    """Whether the target is a gfx1250 GPU: no."""
    return False
