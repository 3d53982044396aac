"""What an author said and the kernel has no use for: options of a launch, clauses of a schedule.

A text or a value that is wrong is an error. One that is right elsewhere is not, as a configuration
is for many kernels; that it does nothing here is said.
"""

from __future__ import annotations

from collections.abc import Iterator

from xdsl.dialects.builtin import IntegerAttr
from xdsl.ir import Operation

from tilewright.ir.effects import Group, own_effects
from tilewright.ir.locations import describe
from tilewright.ir.schedule import Schedule
from tilewright.ir.schedule_attributes import schedule_of
from tilewright.ops.control_flow import ForOp, counted_loops
from tilewright.ops.function import FuncOp
from tilewright.ops.ring_queries import rings_of
from tilewright.ops.roles import find_roles
from tilewright.passes.branch_masks import find_masks
from tilewright.schedule.plan.anchors import anchors_of, kind_of
from tilewright.support.options import CompileOptions
from tilewright.targets.nvidia.tma_ops import TmaStoreOp, find_init

_NO_ROLES = "the kernel does not run as roles"
_OF_ROLES = ("num_buffers_warp_spec", "reg_dec_producer", "reg_inc_consumer", "jitter")
_SAID_BY_TEXT = (
    *("num_consumer_groups", "num_buffers_warp_spec", "reg_dec_producer", "reg_inc_consumer"),
    *("loop_schedule", "num_stages"),
)
"""The options in whose place the text of a schedule is."""
_UNUSED_HINTS = {
    "loop_unroll_factor": "no loop is unrolled for it; `tl.static_range` unrolls",
    "flatten": "loops in loops are not merged",
    "disallow_acc_multi_buffer": "sums of products have one buffer anyway",
    "disable_licm": "what a loop does not change is computed in front of it where that is faster",
}
"""The hints of `tl.range` that are taken from other compilers' kernels, and why they do nothing."""


def without_effect(options: CompileOptions, tiles: FuncOp, kernel: FuncOp) -> tuple[str, ...]:
    """What of the options and of the schedule does nothing to a kernel, each with the reason.

    `tiles` is the kernel at T0, `kernel` the same at T2.
    """
    schedule = schedule_of(kernel) or Schedule()
    return (
        *_options(options, schedule, tiles, kernel),
        *_clauses(schedule, tiles, kernel),
        *_hints(schedule, tiles, kernel),
    )


def _options(
    options: CompileOptions, schedule: Schedule, tiles: FuncOp, kernel: FuncOp
) -> Iterator[str]:
    default, has_roles = CompileOptions(), find_roles(kernel) is not None
    if has_roles and options.num_warps != default.num_warps:
        yield _said(options, "num_warps", "roles have warps of their own")
    if options.maxnreg is not None and _grants_registers(kernel):
        yield _said(options, "maxnreg", "roles have registers of their own")
    if options.schedule is not None:
        yield from _said_by_text(options, default)
        if options.jitter and not has_roles:
            yield _said(options, "jitter", _NO_ROLES)
        yield from _waits(options, kernel)
        return
    for name in _OF_ROLES:
        if getattr(options, name) != getattr(default, name) and not has_roles:
            yield _said(options, name, _NO_ROLES)
    if options.loop_schedule is not None:
        if not has_roles:
            yield _said(options, "loop_schedule", _NO_ROLES)
        elif max(map(_products_in, counted_loops(tiles)), default=0) < 2:
            yield _said(options, "loop_schedule", "no loop has two products")
    if options.num_stages is not None and options.num_stages > 1:
        if has_roles:
            instead = "`num_buffers_warp_spec` is the number of slots of roles"
            yield _said(options, "num_stages", instead)
        elif not schedule.loops:
            yield _said(options, "num_stages", "no loop has loads that run ahead")
    yield from _waits(options, kernel)


def _said_by_text(options: CompileOptions, default: CompileOptions) -> Iterator[str]:
    """The options whose place the text of a schedule takes."""
    for name in _SAID_BY_TEXT:
        if getattr(options, name) != getattr(default, name):
            yield _said(options, name, "`schedule` is said, which takes its place")


def _waits(options: CompileOptions, kernel: FuncOp) -> Iterator[str]:
    if options.deadlock_seconds and not rings_of(kernel) and find_init(kernel) is None:
        yield _said(options, "deadlock_seconds", "nothing waits for a ring or a copy")


def _clauses(schedule: Schedule, tiles: FuncOp, kernel: FuncOp) -> Iterator[str]:
    if schedule.turns is not None and _is_alone(schedule.turns.role, kernel):
        role = schedule.turns.role
        yield f"`{schedule.turns}` has no effect: {role} has one replica, which waits for no turn"
    if schedule.epilogue.kind == "tma" and not any(map(_is_copied_out, kernel.walk())):
        yield f"`{schedule.epilogue}` has no effect: the copy engine stores nothing"
    if schedule.mask == "branch" and next(find_masks(tiles), None) is None:
        yield "`mask branch` has no effect: no loop has a mask that scalars tell to be whole"
    if schedule.cluster > 1 and find_roles(kernel) is None:
        yield f"`cluster {schedule.cluster}` has no effect: {_NO_ROLES}"


def _hints(schedule: Schedule, tiles: FuncOp, kernel: FuncOp) -> Iterator[str]:
    """The hints of loops that do nothing, each with the line of its loop."""
    ahead = {str(loop.loop) for loop in schedule.loops}
    anchors = {op: str(anchor) for anchor, op in anchors_of(tiles).items() if anchor.index >= 0}
    for op in tiles.walk():
        for name, reason in _UNUSED_HINTS.items():
            if f"tt.{name}" in op.attributes:
                yield f"`{name}` of the loop at {describe(op)} has no effect: {reason}"
        stages = op.attributes.get("tt.num_stages")
        asks = isinstance(stages, IntegerAttr) and stages.value.data > 1
        if asks and find_roles(kernel) is None and anchors.get(op) not in ahead:
            what = f"`num_stages` of the loop at {describe(op)} has no effect"
            yield f"{what}: none of its loads run ahead"


def _said(options: CompileOptions, name: str, reason: str) -> str:
    return f"`{name}={getattr(options, name)!r}` has no effect: {reason}"


def _products_in(loop: ForOp) -> int:
    return sum(kind_of(op) == "dot" for op in loop.body.block.ops)


def _grants_registers(kernel: FuncOp) -> bool:
    roles = find_roles(kernel)
    return roles is not None and any(role.registers for role in roles.described())


def _is_alone(name: str, kernel: FuncOp) -> bool:
    """Whether no role of this name has several replicas."""
    roles = find_roles(kernel)
    described = () if roles is None else roles.described()
    return all(role.replicas == 1 for role in described if role.name == name)


def _is_copied_out(op: Operation) -> bool:
    return any(isinstance(e, Group) and e.of is TmaStoreOp for e in own_effects(op))
