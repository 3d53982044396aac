"""Kernels with a program a tile, run by persistent programs on a machine of few SMs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import tilewright
import tilewright.language as tl
from tilewright import JITFunction
from tilewright.compiler.build import make_request
from tilewright.compiler.compile import to_schedule, to_tiles
from tilewright.frontend.devices import DevicePlacement
from tilewright.runtime.launch_numbers import fits
from tilewright.support.dataclass import replace
from tilewright.targets.nvidia.host import named_machine
from tilewright.targets.nvidia.simulated import launch_words
from tilewright.targets.target import Scheduled, load_target

TARGET = load_target("nvidia")


@tilewright.jit
def blocks(
    a, b, c, M, N, K,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, GROUP: tl.constexpr,
):  # fmt: skip
    """A product by descriptors, tiles in groups of rows."""
    left = tl.make_tensor_descriptor(a, [M, K], [K, 1], [BM, BK])
    right = tl.make_tensor_descriptor(b, [K, N], [N, 1], [BK, BN])
    out = tl.make_tensor_descriptor(c, [M, N], [N, 1], [BM, BN])
    pid = tl.program_id(0)
    rows, columns = tl.cdiv(M, BM), tl.cdiv(N, BN)
    first = pid // (GROUP * columns) * GROUP
    size = min(rows - first, GROUP)
    at_m = (first + pid % (GROUP * columns) % size) * BM
    at_n = pid % (GROUP * columns) // size * BN
    acc = tl.zeros((BM, BN), tl.float32)
    for k in range(0, tl.cdiv(K, BK)):
        acc = tl.dot(left.load([at_m, k * BK]), right.load([k * BK, at_n]), acc)
    out.store([at_m, at_n], acc.to(tl.float16))


@tilewright.jit
def cube(a, b, c, counts, size, height, K: tl.constexpr, B: tl.constexpr):
    """Products of blocks over three axes; each program counts itself where it stands."""
    x, y, z = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    left = tl.make_tensor_descriptor(a, [size, K], [K, 1], [B, B])
    right = tl.make_tensor_descriptor(b, [K, B], [B, 1], [B, B])
    out = tl.make_tensor_descriptor(c, [height, B], [B, 1], [B, B])
    acc = tl.zeros((B, B), tl.float32)
    for k in range(0, K, B):
        acc = tl.dot(left.load([(x + y + z) * B, k]), right.load([k, 0]), acc)
    place = (z * tl.num_programs(1) + y) * tl.num_programs(0) + x
    out.store([place * B, 0], acc.to(tl.float16))
    tl.atomic_add(counts + place, 1)


def scheduled_for(
    kernel: JITFunction, args: Sequence[object], num_sms: int, options: Mapping[str, object]
) -> tuple[Scheduled, str, list[tuple[str, object]]]:
    """A kernel for a machine of so many SMs: its schedule, its text, and the launch's values."""
    call = kernel.specialize_call(tuple(args), dict(options))
    machine = replace(named_machine("sm_90a"), num_sms=num_sms)
    place = DevicePlacement("nvidia")
    request = make_request(call.source, call.specialization, call.options, place, machine)
    leaves = call.specialization.runtime_leaves()
    values = [(type_, call.arguments[str(path[0])]) for path, type_ in leaves]
    scheduled = to_schedule(request, TARGET, to_tiles(request, TARGET))
    return scheduled, TARGET.emit(scheduled, request.machine, request.compile_options), values


def run_on(
    num_sms: int,
    kernel: JITFunction,
    grid: tuple[int, int, int],
    args: Sequence[object],
    seed: int | None = None,
    **options: object,
) -> Scheduled:
    """Simulate a launch on a machine of so many SMs, arrays in place; the program that ran."""
    scheduled, text, values = scheduled_for(kernel, args, num_sms, options)
    assert fits(scheduled.metadata, grid, launch_words(values)), "the launch breaks a guard"
    assert TARGET.simulate is not None
    TARGET.simulate(scheduled, text, kernel.fn.__name__, grid, values, seed, None)
    return scheduled
