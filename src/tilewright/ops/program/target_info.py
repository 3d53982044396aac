"""User functions that ask for the target, and those that only some targets have."""

from __future__ import annotations

from xdsl.dialects.builtin import IntegerAttr, StringAttr

from tilewright.language.core import constexpr, int32, int64, tensor, tuple_
from tilewright.ops.arguments import integer_constant
from tilewright.ops.builder import Builder, integer_property, ir_type
from tilewright.ops.inline.ir import InlineAsmOp
from tilewright.ops.program.ir import ClockOp
from tilewright.ops.surface import surface
from tilewright.support.errors import UnsupportedError

_INFO, _CUDA = "target_info", "extra.cuda"
NVIDIA = "nvidia"
WARP_LANES = 32


def capability(b: Builder) -> int:
    """The compute capability of an NVIDIA target as two digits (90 for sm_90a), else 0."""
    return b.machine.compute_capability if b.target == NVIDIA else 0


@surface(module=_INFO)
def current_target(b: Builder) -> tuple_:
    """The target that the kernel is compiled for: `.backend`, `.arch` and `.warp_size`.

    `backend` is "cuda" on NVIDIA GPUs, with the compute capability as `arch`; elsewhere the
    name of the target.
    """
    is_gpu = b.target == NVIDIA
    values = (
        ("backend", "cuda" if is_gpu else b.target),
        ("arch", capability(b) if is_gpu else b.machine.arch),
        ("warp_size", WARP_LANES if is_gpu else 1),
    )
    return tuple_([constexpr(value) for _, value in values], [name for name, _ in values])


@surface(module=_INFO)
def is_cuda(b: Builder) -> constexpr:
    """Whether the kernel is compiled for an NVIDIA GPU."""
    return constexpr(b.target == NVIDIA)


@surface(module=_INFO)
def cuda_capability_geq(b: Builder, major: object, minor: object = 0) -> constexpr:
    """Whether the target is an NVIDIA GPU of at least compute capability `major`.`minor`."""
    least = 10 * integer_constant(major, "cuda_capability_geq", "major")
    least += integer_constant(minor, "cuda_capability_geq", "minor")
    return constexpr(b.target == NVIDIA and capability(b) >= least)


def _define_absent(name: str, what: str) -> None:
    def function(b: Builder) -> constexpr:
        return constexpr(False)

    function.__name__ = name
    function.__doc__ = f"Whether the kernel is compiled for {what}: no, there is no such target."
    surface(name, module=_INFO)(function)


for _name, _what in (
    ("is_hip", "an AMD GPU"),
    ("is_hip_cdna3", "a CDNA3 GPU"),
    ("is_hip_cdna4", "a CDNA4 GPU"),
    ("is_hip_gfx1250", "a gfx1250 GPU"),
):
    _define_absent(_name, _what)


@surface(module=_CUDA)
def num_warps(b: Builder) -> constexpr:
    """The number of warps that run one program, as the launch asked; 4 where it did not."""
    return constexpr(int(str(b.options.get("num_warps") or 4)))


@surface(module=_CUDA)
def num_threads(b: Builder) -> constexpr:
    """32 times the number of warps."""
    return constexpr(WARP_LANES * num_warps(b).value)  # type: ignore[operator]  # an int


@surface(module=_CUDA)
def globaltimer(b: Builder) -> tensor:
    """The nanoseconds of a clock that all programs share and that never goes back, int64."""
    return b.tensor(ClockOp, [], int64)


@surface(module=_CUDA)
def smid(b: Builder) -> tensor:
    """The number of the multiprocessor that runs the program, int32.

    Raises: UnsupportedError on targets without multiprocessors.
    """
    if b.target != NVIDIA:
        raise UnsupportedError(
            f"smid(): the target {b.target} has no multiprocessors",
            hint="guard the call with `if tl.target_info.is_cuda():`",
        )
    op = b.emit(InlineAsmOp, (), [ir_type(int32)], _assembly("mov.u32 $0, %smid;"))
    return tensor(op.results[0], int32)


def _assembly(text: str) -> dict[str, StringAttr | IntegerAttr]:
    return {
        "asm_string": StringAttr(text),
        "constraints": StringAttr("=r"),
        "pure": IntegerAttr.from_bool(False),
        "packed_element": integer_property(1),
    }


def _dependency(b: Builder, text: str) -> None:
    """Assembly without result on NVIDIA GPUs from sm_90 on; nothing elsewhere."""
    if capability(b) >= 90:
        b.emit(InlineAsmOp, (), [ir_type(int32)], _assembly(f"{text} mov.u32 $0, 0;"))


@surface(module=_CUDA)
def gdc_wait(b: Builder) -> None:
    """Wait until the kernel launched before this one is done (programmatic dependent launch).

    On targets without such launches kernels run one after another: nothing to wait for.
    """
    _dependency(b, "griddepcontrol.wait;")


@surface(module=_CUDA)
def gdc_launch_dependents(b: Builder) -> None:
    """Let the next kernel start before this one is done (programmatic dependent launch).

    On targets without such launches it does nothing.
    """
    _dependency(b, "griddepcontrol.launch_dependents;")
