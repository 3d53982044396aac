"""A scope is its own program: threads, barrier, shared memory and what is computed once."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

import tilewright
import tilewright.language as tl
from tests.unit.codegen.simt.launching import MACHINE
from tests.unit.codegen.simt.two_roles import Role, emit_roles, run_roles
from tilewright.codegen.llvm_builder import FunctionBuilder, ModuleBuilder
from tilewright.codegen.rules import DEFAULT_RULES
from tilewright.codegen.simt.context import SimtContext
from tilewright.codegen.simt.partition import Partition, check_partitions, whole_cta
from tilewright.schedule.role_registers import entry_registers, most_granted
from tilewright.support.errors import InternalError
from tilewright.targets.nvidia.math import NvidiaMath
from tilewright.targets.nvidia.rules import NVIDIA_RULES
from tilewright.targets.nvidia.services import NvidiaServices

SOURCES = Path(tilewright.__file__).parent


@tilewright.jit
def column_sums(x, y):
    rows, columns = tl.arange(0, 64)[:, None], tl.arange(0, 32)[None, :]
    for turn in range(3):
        tile = tl.load(x + turn * 2048 + rows * 32 + columns)
        tl.store(y + turn * 32 + tl.arange(0, 32), tl.sum(tile, 0))


@tilewright.jit
def transpose(x, y):
    rows, columns = tl.arange(0, 64)[:, None], tl.arange(0, 64)[None, :]
    for turn in range(2):
        tile = tl.load(x + turn * 4096 + rows * 64 + columns)
        places = y + turn * 4096 + tl.arange(0, 64)[:, None] * 64 + tl.arange(0, 64)[None, :]
        tl.store(places, tl.trans(tile))


@tilewright.jit
def sorted_rows(x, y):
    places = tl.arange(0, 512)
    tl.store(y + places, tl.sort(tl.load(x + places)))


def numbers(count: int, seed: int) -> np.ndarray:
    return np.random.default_rng(seed).integers(-1000, 1000, count, np.int32)


def sums_and_transpose(**options: int) -> tuple[Role, Role]:
    first = Role(column_sums, (numbers(6144, 1), np.zeros(96, np.int32)), **options)
    second = Role(transpose, (numbers(8192, 2), np.zeros(8192, np.int32)))
    return first, second


def require_results(first: Role, second: Role) -> None:
    x, y = first.arrays
    np.testing.assert_array_equal(y.reshape(3, 32), x.reshape(3, 64, 32).sum(1))
    x, y = second.arrays
    np.testing.assert_array_equal(y.reshape(2, 64, 64), x.reshape(2, 64, 64).swapaxes(1, 2))


@pytest.mark.parametrize("seed", [None, 1, 2, 3])
def test_two_bodies_run_at_once_in_warps_of_their_own(seed: int | None) -> None:
    roles = sums_and_transpose()
    run_roles(roles, seed)
    require_results(*roles)


@pytest.mark.parametrize("warps", [1, 2, 8])
def test_scopes_need_not_be_of_one_size(warps: int) -> None:
    roles = sums_and_transpose(warps=warps)
    run_roles(roles)
    require_results(*roles)


def test_replicas_of_one_body_do_not_meet_the_other_role() -> None:
    roles = (
        Role(sorted_rows, (numbers(512, 3), np.zeros(512, np.int32)), replicas=3),
        sums_and_transpose()[1],
    )
    run_roles(roles, seed=4)
    x, y = map(np.asarray, roles[0].arrays)
    np.testing.assert_array_equal(y, np.sort(x))


def test_each_scope_waits_at_its_own_barrier_for_its_own_threads() -> None:
    text, _ = emit_roles(sums_and_transpose())
    waits = re.findall(r"call void @llvm\.nvvm\.barrier\.cta\.sync\.aligned\.(\w+)\((.*?)\)", text)
    assert {kind for kind, _ in waits} == {"count"}
    assert {arguments for _, arguments in waits} == {"i32 1, i32 128", "i32 2, i32 128"}
    assert '"nvvm.reqntid"="256,1,1"' in text


def test_what_a_scope_computes_once_stands_in_its_first_block() -> None:
    text, _ = emit_roles(sums_and_transpose())
    blocks = re.split(r"\n(?=bb\d+:)", text)
    # Once for the branch by warp, and once for each scope.
    assert sum("read.ptx.sreg.tid.x()" in block for block in blocks) == 3


def context(warps: int) -> SimtContext:
    module = ModuleBuilder()
    services = NvidiaServices(module, NvidiaMath(), warps, MACHINE)
    fn = FunctionBuilder(module, "define ptx_kernel void @k()")
    return SimtContext(module, fn, NVIDIA_RULES, services, default_rules=DEFAULT_RULES)


def test_an_inner_scope_shares_no_values_with_the_outer_one() -> None:
    ctx = context(12)
    with ctx.open_scope(whole_cta(12)) as outer:
        before = ctx.index.linear(ctx.fn, (1,), (2,))
        ctx.fn.branch("bb1000")
        ctx.fn.place("bb1000")
        with ctx.open_scope(Partition(12, 4, 4, barrier=1)):
            inside = ctx.index.linear(ctx.fn, (1,), (2,))
        assert ctx.scope is outer
        assert ctx.index.linear(ctx.fn, (1,), (2,)) == before != inside
    entry, following = ctx.fn.text().split("bb1000:")
    assert f"{before} = " in entry and f"{inside} = " in following


def test_a_rule_outside_of_every_scope_is_a_defect() -> None:
    with pytest.raises(InternalError, match="no scope is open"):
        context(4).scope.barrier()


@pytest.mark.parametrize(
    ("part", "what"),
    [
        (Partition(12, 4, 2, barrier=3, shared_start=4096), "warps"),
        (Partition(12, 4, 4, 2, barrier=1, shared_start=4096), "barriers"),
        (Partition(12, 4, 4, barrier=3, shared_start=512, shared_bytes=4096), "shared memory"),
    ],
)
def test_partitions_that_share_something_are_refused(part: Partition, what: str) -> None:
    first = Partition(12, 4, 0, barrier=2, shared_bytes=1024)
    with pytest.raises(InternalError, match=f"share {what}"):
        check_partitions((first, part), 16)


@pytest.mark.parametrize(
    "part",
    [
        Partition(8, 4, 4, 2, barrier=1),
        Partition(12, 4, 0, 3, barrier=14),
        Partition(8, 4, 4, barrier=0),
    ],
)
def test_warps_or_barriers_that_there_are_not_are_refused(part: Partition) -> None:
    with pytest.raises(InternalError, match="has no such warps or barriers"):
        check_partitions((part,), 16)


@pytest.mark.parametrize("warps", [0, 3, 6, 16])
def test_a_scope_of_tiles_has_a_power_of_two_of_warps(warps: int) -> None:
    with pytest.raises(InternalError, match="out of 8 warps"):
        Partition(8, warps)


@pytest.mark.parametrize(("warps", "registers"), [(4, 255), (8, 255), (12, 168), (16, 128)])
def test_a_cta_alone_on_its_multiprocessor_starts_with_so_many_registers(
    warps: int, registers: int
) -> None:
    assert entry_registers(MACHINE, warps) == registers


@pytest.mark.parametrize(
    ("warps", "granted", "registers"),
    [(12, 4 * 24 + 8 * 104, 80), (12, 4 * 40 + 8 * 232, 168), (8, 4 * 40 + 4 * 240, 255)],
)
def test_roles_start_with_what_they_are_granted_where_two_programs_fit_then(
    warps: int, granted: int, registers: int
) -> None:
    assert entry_registers(MACHINE, warps, granted) == registers
    assert registers * warps >= granted


def test_roles_have_what_whole_units_leave() -> None:
    """168 registers for each of 384 threads are 1024 fewer than an SM has."""
    assert most_granted(MACHINE, 12) == 168 * 384 < MACHINE.registers_per_sm
    assert most_granted(MACHINE, 16) == MACHINE.registers_per_sm


@pytest.mark.parametrize(("registers", "direction"), [(24, "dec"), (160, "dec"), (240, "inc")])
def test_a_role_resizes_its_registers_before_anything_else(registers: int, direction: str) -> None:
    first, second = sums_and_transpose()
    third = Role(second.kernel, second.arrays, registers=registers)
    text, _ = emit_roles((first, second, third))
    call = f"setmaxnreg.{direction}.sync.aligned.u32(i32 {registers})"
    assert text.count("setmaxnreg") == text.count(call) == 1
    assert '"nvvm.minctasm"="1" "nvvm.maxnreg"="168"' in text
    block = next(b for b in re.split(r"\n(?=bb\d+:)", text) if call in b)
    assert call in block.splitlines()[1]


def test_no_rule_knows_other_threads_than_those_of_its_scope() -> None:
    """Emission of ops names no thread, barrier or number of warps of the whole cta."""
    forbidden = re.compile(
        r"sreg\.n?tid|barrier\.cta|barrier0|cta_warps|options\.num_warps|thread_id\("
    )
    folders = ("codegen/simt/rules", "targets/nvidia/rules")
    rules = [path for folder in folders for path in (SOURCES / folder).glob("*.py")]
    assert len(rules) > 15
    found = [
        f"{path.name}:{number}: {line.strip()}"
        for path in rules
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if forbidden.search(line)
    ]
    assert found == []
