"""What a kernel in roles may be instead where ptxas spills, serializes products, or refuses it.

Registers are known only behind ptxas: a group of warps whose sums do not fit keeps them in
memory, and its products wait for each other. Then the kernel is compiled with its products in the
order of the text, with a group more, and as programs without roles, until ptxas finds nothing. What
an author wrote as a schedule stays.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence

from tilewright.ir.locations import describe
from tilewright.ir.schedule_attributes import schedule_of
from tilewright.ops.function import find_kernel
from tilewright.ops.roles import find_roles
from tilewright.runtime.artifact import RESOURCES_SECTION
from tilewright.support.options import CompileOptions
from tilewright.targets.nvidia.ptxas_messages import EXCEEDED, SERIALIZED
from tilewright.targets.target import Form, Scheduled

# Chosen, not measured: four registers of a thread, stored and loaded again once, cost nothing.
_NEGLIGIBLE_SPILL_BYTES = 32
_MOST_GROUPS = 3
_IN_ORDER = "straight"


def problem_of(sections: Mapping[str, bytes]) -> str:
    """What ptxas found slow in a kernel, registers in memory or products that wait; '' else."""
    section = sections.get(RESOURCES_SECTION)
    if section is None:
        return ""
    counts = json.loads(section)
    codes = sorted({code for text in counts["remarks"] for code in SERIALIZED if code in text})
    spilled = counts["spill_store_bytes"] + counts["spill_load_bytes"]
    found = [f"ptxas serializes its products ({', '.join(codes)})"] if codes else []
    if spilled > _NEGLIGIBLE_SPILL_BYTES:
        found.append(f"{spilled} bytes of registers a thread go through memory")
    return " and ".join(found)


def other_forms(scheduled: Scheduled, options: CompileOptions, problem: str) -> Sequence[Form]:
    """The forms that a kernel in roles is to be tried in, the fastest first."""
    kernel = find_kernel(scheduled.module)
    roles = find_roles(kernel)
    if roles is None or options.schedule is not None:
        return ()
    groups = max(role.replicas for role in roles.described())
    schedule = schedule_of(kernel)
    is_staged = options.loop_schedule is None and schedule is not None and bool(schedule.loops)
    changes: list[Mapping[str, object]] = [{"loop_schedule": _IN_ORDER}] if is_staged else []
    for more in range(groups + 1, _MOST_GROUPS + 1):
        changes.append({"num_consumer_groups": more})
    where = f"{describe(roles)}: {groups} group(s) of warps are not taken: {problem}"
    forms = [Form(change, _remark(where, change), _has_roles) for change in changes]
    if any(text in problem for text in (*SERIALIZED, *EXCEEDED)):
        plain = dict(_plain(options))
        forms.append(Form(plain, _remark(where, plain), _has_no_roles))
    return forms


def _plain(options: CompileOptions) -> Iterator[tuple[str, object]]:
    """The options of the same kernel without roles, as far as they differ."""
    plain = options.without_roles()
    for name in ("num_consumer_groups", "loop_schedule", "num_warps", "num_stages"):
        if getattr(plain, name) != getattr(options, name):
            yield name, getattr(plain, name)


def _remark(where: str, change: Mapping[str, object]) -> str:
    shown = ", ".join(f"{name}={value!r}" for name, value in change.items())
    return f"{where}; taken as with {shown}"


def _has_roles(scheduled: Scheduled) -> bool:
    return find_roles(find_kernel(scheduled.module)) is not None


def _has_no_roles(scheduled: Scheduled) -> bool:
    return not _has_roles(scheduled)
