"""`tilewright explain`: what the schedule made of a kernel, in the kernel's own lines."""

from __future__ import annotations

from collections.abc import Sequence

import click

from tilewright.compiler.request import CompileRequest
from tilewright.compiler.stages import schedule_of
from tilewright.targets.cpu.report import NestReport
from tilewright.targets.cpu.runtime.cycle_counts import PartCount
from tilewright.targets.mlir.decide_access_forms import AccessForms
from tilewright.tools.explain_gpu import explain_gpu
from tilewright.tools.explain_nests import explain_nests
from tilewright.tools.show import title


def explain(request: CompileRequest, counts: Sequence[PartCount] = ()) -> None:
    """Print the report on one kernel, with what its parts were counted to take."""
    scheduled = schedule_of(request)
    click.secho(title(request), bold=True)
    if isinstance(scheduled.report, NestReport):
        explain_nests(scheduled.report, counts)
    elif isinstance(scheduled.report, AccessForms):
        _explain_accesses(scheduled.report)
    else:
        explain_gpu(request, scheduled)


def _explain_accesses(report: AccessForms) -> None:
    """What the MLIR target made of loads and stores."""
    click.echo(
        f"  {report.num_views} loads and stores of tiles are views of memory, "
        f"{len(report.remarks)} go element by element"
    )
    for remark in dict.fromkeys(report.remarks):
        click.echo(f"  remark: {remark}")
