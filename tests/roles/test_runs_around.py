"""Runs of the protocol that no one chose the arguments of: around the number of slots."""

from __future__ import annotations

import pytest

from tests.corpus.partitioned import GEMMS, PARTITIONED, Partitioned
from tests.corpus.threads import gpu_request
from tests.equivalence.test_rings import lowered
from tests.roles.mutants import mutants_of
from tilewright.compiler import instruments
from tilewright.compiler.compile import to_schedule, to_tiles
from tilewright.compiler.instruments import verifier_of
from tilewright.ops.function import find_kernel
from tilewright.ops.rings import RingReleaseOp
from tilewright.schedule.protocol.around import launches_around, run_around
from tilewright.schedule.protocol.run import run_protocol
from tilewright.schedule.protocol.scalars import Launch
from tilewright.support.errors import ProtocolBroken
from tilewright.targets.target import load_target


@pytest.mark.parametrize("case", PARTITIONED, ids=lambda case: case.name)
@pytest.mark.parametrize(("replicas", "slots"), [(1, 1), (2, 3)])
def test_formed_roles_run_to_their_ends(case: Partitioned, replicas: int, slots: int) -> None:
    kernel = find_kernel(lowered(case, case.text(replicas, slots=slots), "T2"))
    assert run_around(kernel) > 0


def test_launches_are_around_the_number_of_slots() -> None:
    kernel = find_kernel(lowered(GEMMS[0], GEMMS[0].text(2, slots=3), "T2"))
    sizes = {next(iter(launch.arguments.values())) for launch in launches_around(kernel)}
    assert {0, 64, 2 * 64, 3 * 64, 4 * 64, 7 * 64} <= sizes


def test_a_release_that_is_missing_is_found() -> None:
    module = lowered(GEMMS[0], GEMMS[0].text(2, slots=3), "T2")
    releases = [n for n, op in enumerate(module.walk()) if isinstance(op, RingReleaseOp)]
    dropped = [m for m in mutants_of(module) if m.number in releases and "dropped" in m.name]
    dropped[0].apply(module)
    with pytest.raises(ProtocolBroken, match="ring ab"):
        run_around(find_kernel(module))


def test_a_run_gives_up_where_it_is_told_to() -> None:
    kernel = find_kernel(lowered(GEMMS[0], GEMMS[0].text(2, slots=3), "T2"))
    launch = Launch({3: 128, 4: 64, 5: 64 * 1000})
    assert 0 < run_protocol(kernel, launch, 500) < run_protocol(kernel, launch)


def test_a_compile_that_is_verified_runs_the_roles(monkeypatch: pytest.MonkeyPatch) -> None:
    ran: list[int] = []

    def note(kernel: object) -> int:
        ran.append(run_around(kernel))  # type: ignore[arg-type]  # a kernel
        return ran[-1]

    monkeypatch.setattr(instruments, "run_around", note)
    request = gpu_request(GEMMS[0].case, num_consumer_groups=2)
    target, observe = load_target("nvidia"), verifier_of(request)
    to_schedule(request, target, to_tiles(request, target, observe), observe)
    assert len(ran) == 1 and ran[0] > 0
