"""The part of `tilewright explain` that says when and by whom a kernel's ops run."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import click

from tilewright.ir.schedule import Role
from tilewright.ops.function import FuncOp
from tilewright.targets.nvidia.explain.schedule import (
    RingSummary,
    ScheduleSummary,
    explain_schedule,
)
from tilewright.targets.nvidia.explain.waits import WaitSummary
from tilewright.tools.show import echo_table, size_text


def echo_schedule(tiles: FuncOp, kernel: FuncOp, says_stages: bool) -> tuple[str, ...]:
    """Print the schedule of a T2 kernel, whose ops `tiles` has as they were at T0; its reasons.

    `says_stages`: the launch has `num_stages`.
    """
    summary = explain_schedule(tiles, kernel)
    if summary is None:
        return ()
    click.echo("    schedule")
    for clause in summary.clauses:
        click.echo(f"      {clause}")
    _echo_roles(summary.roles)
    _echo_ops(summary)
    _echo_rings(summary)
    _echo_waits(summary.waits)
    for text in summary.loops:
        click.echo(f"    loop: {text}")
    unsaid = "the launch does not say `num_stages`: loops that do not either have what was fastest"
    by_default = summary.rings and not summary.roles and not says_stages
    for text in (*summary.reasons, *((unsaid,) if by_default else ())):
        click.echo(f"    because: {text}")
    return summary.reasons


def _echo_roles(roles: Iterable[Role]) -> None:
    rows = [
        (
            f"    {role.name}",
            f"{role.replicas} × {role.warps}",
            str(role.registers or "its own"),
            {"m": "rows", "n": "columns", "tiles": "whole tiles"}.get(role.split, ""),
        )
        for role in roles
    ]
    if rows:
        echo_table(("    role", "groups × warps", "registers", "groups share"), rows)


def _echo_ops(summary: ScheduleSummary) -> None:
    rows = [
        (f"    {op.anchor}", Path(op.line).name, op.role, op.place, op.ring) for op in summary.ops
    ]
    if rows:
        echo_table(("    scheduled op", "line", "role", "runs at", "fills"), rows)


def _echo_rings(summary: ScheduleSummary) -> None:
    rows = [
        (
            f"    {ring.name}",
            ring.loads,
            f"{ring.slots} × {size_text(ring.slot_bytes)}{_memory(ring)}",
            ring.medium,
            ring.release,
        )
        for ring in summary.rings
    ]
    if rows:
        echo_table(("    ring", "filled by", "slots", "moved by", "released"), rows)


def _memory(ring: RingSummary) -> str:
    return f", shares the slots of {ring.shares}" if ring.shares else ""


def _echo_waits(waits: Iterable[WaitSummary]) -> None:
    rows = [
        ("    wait", Path(line).name, role, what)
        for line, role, what in dict.fromkeys((w.line, w.role, w.what) for w in waits)
    ]
    if rows:
        echo_table(("    wait", "line", "role", "for"), rows)
