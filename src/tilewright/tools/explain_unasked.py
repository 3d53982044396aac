"""The part of `tilewright explain` that says how else products in loops could run, if asked for.

What nobody says has what was fastest for its kind. Whether the other ways can be had is found by
compiling the kernel so.
"""

from __future__ import annotations

from collections.abc import Iterator

from xdsl.dialects.builtin import ModuleOp

from tilewright.compiler.compile import in_form, to_tiles
from tilewright.compiler.request import CompileRequest
from tilewright.compiler.stages import schedule_of
from tilewright.ir.locations import describe
from tilewright.ir.regions import loops_around
from tilewright.ir.schedule_attributes import pipelining_of
from tilewright.ops.function import FuncOp, find_kernel
from tilewright.ops.roles import find_roles
from tilewright.schedule.plan.anchors import kind_of
from tilewright.schedule.plan.products import DecideProducts
from tilewright.schedule.plan.schedule import loops_in_order
from tilewright.support.errors import TilewrightError
from tilewright.support.options import CompileOptions
from tilewright.targets.nvidia.explain.schedule import explain_schedule
from tilewright.targets.nvidia.partition.form import partition_remarks
from tilewright.targets.target import load_target

_AHEAD = {"num_stages": 2}
# By definition: all that an option may ask for, the number that was fastest first.
_GROUPS = (2, 1, 3)


def other_ways(request: CompileRequest, tiles: ModuleOp, kernel: FuncOp) -> Iterator[str]:
    """What a launch could ask for that has no roles, or whose loads do not run ahead.

    `kernel` is what the request became at T2, and `tiles` what it was at T0.
    """
    options = request.compile_options
    is_said = options.schedule is not None or options.plan is not None
    if is_said or find_roles(kernel) is not None or not _has_loops_of_products(tiles):
        return
    if options.num_stages is None:
        yield from _ahead(request, tiles, options)
    if options.num_consumer_groups is None and request.machine.has_setmaxnreg:
        yield _roles(request)


def _has_loops_of_products(tiles: ModuleOp) -> bool:
    return any(kind_of(op) == "dot" and any(loops_around(op)) for op in tiles.walk())


def _ahead(request: CompileRequest, tiles: ModuleOp, options: CompileOptions) -> Iterator[str]:
    """The loops in the order of the text, and whether their loads could run ahead."""
    clone = tiles.clone()
    DecideProducts(request.machine, options.num_warps).apply(clone)
    loops = list(loops_in_order(find_kernel(clone), request.machine, options.num_warps))
    tried = _tried(request, **_AHEAD) if loops else None
    asked = set() if isinstance(tried, str) or tried is None else set(_pipelined(tried))
    for loop, reason in loops:
        where = describe(loop)
        text = f"{where}: loads do not run ahead unasked, as {reason}"
        yield f"{text}; num_stages=2 has them do so" if where in asked else text


def _pipelined(kernel: FuncOp) -> Iterator[str]:
    for op in kernel.walk():
        account = pipelining_of(op)
        if account and not account.startswith("not "):
            yield describe(op)


def _roles(request: CompileRequest) -> str:
    """Which number of groups makes roles; where none does, why the first one does not."""
    reasons: list[str] = []
    for groups in _GROUPS:
        found = _tried(request, num_consumer_groups=groups)
        if not isinstance(found, str) and find_roles(found) is not None:
            tiles = to_tiles(
                in_form(request, {"num_consumer_groups": groups}), load_target("nvidia")
            )
            copied = ", ".join(_copied(find_kernel(tiles), found))
            whose = f", whose threads copy what is loaded at {copied}" if copied else ""
            return f"no roles unasked; num_consumer_groups={groups} makes them{whose}"
        reasons.append(found if isinstance(found, str) else "; ".join(partition_remarks(found)))
    return f"no roles, and num_consumer_groups makes none: {reasons[0]}"


def _copied(tiles: FuncOp, kernel: FuncOp) -> Iterator[str]:
    """The lines of the loads that threads copy to rings."""
    summary = explain_schedule(tiles, kernel)
    rings = () if summary is None else summary.rings
    copied = [ring.name for ring in rings if ring.medium == "cp_async"]
    ops = () if summary is None else summary.ops
    yield from dict.fromkeys(op.line for op in ops if op.ring in copied)


def _tried(request: CompileRequest, **options: object) -> FuncOp | str:
    """The kernel at T2 with other options; why there is none."""
    try:
        return find_kernel(schedule_of(in_form(request, options)).module)
    except TilewrightError as error:  # tiles that groups do not share, or what does not fit
        return error.summary
