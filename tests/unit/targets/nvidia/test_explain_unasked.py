"""What `tilewright explain` says of kernels whose author does not say how products run."""

from __future__ import annotations

import inspect

import pytest

from tests.corpus.case import Case
from tests.corpus.copied import gathered, gathered_case, paged, paged_case
from tests.corpus.threads import gpu_request
from tilewright import JITFunction
from tilewright.compiler.compile import to_tiles
from tilewright.compiler.stages import schedule_of
from tilewright.ir.schedule_attributes import pipelining_of
from tilewright.ops.function import FuncOp, find_kernel
from tilewright.targets.target import load_target
from tilewright.tools.explain_gpu import explain_gpu
from tilewright.tools.explain_unasked import other_ways

ROWS = gathered_case(gathered, 128, 64, 192, "gathered")


def place_of(kernel: JITFunction, text: str) -> str:
    """The file and the line of the first line of a kernel with a text."""
    lines, first = inspect.getsourcelines(kernel.fn)
    return f"copied.py:{first + next(at for at, line in enumerate(lines) if text in line)}"


def said_of(case: Case, **options: object) -> list[str]:
    """What is said of a launch with some options."""
    request = gpu_request(case, **options)
    kernel = find_kernel(schedule_of(request).module)
    return list(other_ways(request, to_tiles(request, load_target("nvidia")), kernel))


def pipelined_loops(kernel: FuncOp) -> list[str]:
    """What is said of the loops of a kernel whose loads run ahead."""
    return [account for op in kernel.walk() if (account := pipelining_of(op))]


def test_a_gathered_product_runs_ahead_and_names_the_rows_that_threads_would_copy() -> None:
    (text,) = said_of(ROWS)
    assert text.startswith("no roles unasked; num_consumer_groups=2 makes them, whose threads copy")
    assert text.endswith(place_of(gathered, "x = tl.load"))


def test_attention_over_pages_says_why_its_loads_do_not_run_ahead() -> None:
    # A head of 64 by 128 keys: a second slot takes the place of another program.
    ahead, roles = said_of(paged_case(200, keys=128), num_warps=8)
    loop, keys = place_of(paged, "for start"), place_of(paged, "k = tl.load")
    assert f"{loop}: loads do not run ahead unasked, as with 2 slots fewer programs" in ahead
    assert ahead.endswith("; num_stages=2 has them do so")
    assert roles.endswith(place_of(paged, "v = tl.load")) and f"{keys}, " in roles


def test_attention_over_pages_runs_ahead_where_no_program_is_lost() -> None:
    case = paged_case(200)
    request = gpu_request(case)
    (loop,) = pipelined_loops(find_kernel(schedule_of(request).module))
    assert "loads run 1 iterations ahead, to 2 slots of 16384 bytes" in loop
    (text,) = said_of(case)
    assert text.startswith("no roles unasked; num_consumer_groups=2 makes them")


def test_a_product_that_cannot_have_roles_says_what_is_in_the_way() -> None:
    narrow = gathered_case(gathered, 128, 64, 96, "narrow-rows", M=32)
    (text,) = said_of(narrow)
    assert text.startswith("no roles, and num_consumer_groups makes none: ")


@pytest.mark.parametrize("options", [{"num_consumer_groups": 2}, {"num_consumer_groups": 0}])
def test_who_says_how_many_groups_is_told_nothing_of_them(options: dict[str, int]) -> None:
    assert said_of(ROWS, **options) == []


def test_the_command_says_it(capsys: pytest.CaptureFixture[str]) -> None:
    request = gpu_request(ROWS)
    explain_gpu(request, schedule_of(request))
    assert "unasked: no roles unasked; num_consumer_groups=2" in capsys.readouterr().out
