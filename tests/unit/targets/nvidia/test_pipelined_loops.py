"""Loops whose loads run ahead give the bits of loops whose loads do not, and no race."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pytest
from xdsl.dialects.builtin import ModuleOp

from tests.unit.targets.nvidia import pipelined_kernels as kernels
from tests.unit.targets.nvidia.pipelined_kernels import halves
from tilewright import JITFunction
from tilewright.compiler.build import make_request
from tilewright.compiler.compile import to_schedule, to_tiles
from tilewright.frontend.devices import DevicePlacement
from tilewright.interp.evaluate import run_kernel
from tilewright.ir.schedule_attributes import pipelining_of, schedule_of
from tilewright.ops import arguments
from tilewright.ops.function import find_kernel
from tilewright.targets.nvidia.host import named_machine
from tilewright.targets.nvidia.interpret import NVIDIA_INTERPRETATION
from tilewright.targets.nvidia.partition import form
from tilewright.targets.target import load_target

STAGES = (2, 3, 4, 5)


def at_t2(kernel: JITFunction, args: tuple[object, ...], meta: Mapping[str, object]) -> ModuleOp:
    """The program that an H100 would run."""
    call = kernel.specialize_call(args, dict(meta))
    machine, place = named_machine("sm_90a"), DevicePlacement("nvidia")
    request = make_request(call.source, call.specialization, call.options, place, machine)
    target = load_target("nvidia")
    return to_schedule(request, target, to_tiles(request, target)).module


def accounts(module: ModuleOp) -> list[str]:
    """What the loops of a program say of how they were pipelined."""
    return [text for op in module.walk() if (text := pipelining_of(op))]


def check(
    kernel: JITFunction,
    grid: tuple[int, ...],
    inputs: tuple[object, ...],
    out: np.ndarray,
    rest: tuple[object, ...],
    *,
    in_loop: bool = False,
    stages: tuple[int, ...] = STAGES,
    **meta: object,
) -> list[str]:
    """One program at several depths, in the interpreter of T2 and in the simulator.

    Its loads stay those of threads; `test_bulk_access.py` has those that the engine takes over.
    Returns what the last one says of its loops.
    """
    said: list[str] = []
    name = "STAGES" if in_loop else "num_stages"
    expected: np.ndarray | None = None
    for number in (1, *stages):
        depth = {**meta, name: number, "bulk_access": "never"}
        simulated, interpreted = np.full_like(out, 7), np.full_like(out, 7)
        kernel.simulate[grid](*inputs, simulated, *rest, **depth)
        module = at_t2(kernel, (*inputs, interpreted, *rest), depth)
        # An argument of value 1 is a constant of the kernel.
        values = [v for v in (*inputs, interpreted, *rest) if not (isinstance(v, int) and v == 1)]
        run_kernel(module, tuple(values), grid, rules=NVIDIA_INTERPRETATION)
        expected = simulated if expected is None else expected
        assert np.array_equal(simulated, expected, equal_nan=True), f"{name}={number}"
        if number > 1:
            said = accounts(module)
            assert np.allclose(interpreted, expected, rtol=2e-2, atol=2e-2, equal_nan=True)
    return said


@pytest.mark.parametrize("depth", [0, 8, 16, 32, 64, 80, 96, 128, 160, 272, 13])
def test_a_matmul_of_any_depth(depth: int) -> None:
    rows, columns = 80, 80
    a, b = halves(1, rows, max(depth, 1)), halves(2, max(depth, 1), columns)
    out = np.zeros((rows, columns), np.float32)
    said = check(kernels.matmul, (2, 2), (a, b), out, (rows, columns, depth), BM=64, BN=64, BK=32)
    is_copied = depth % 8 == 0  # rows of 16 bytes
    assert said[0].startswith("loads run"), said
    assert ("is no copy of 4, 8 or 16 bytes" in said[0]) is not is_copied, said


@pytest.mark.parametrize("num_warps", [4, 8])
def test_products_run_on_into_the_next_iteration(num_warps: int) -> None:
    a, b = halves(1, 128, 192), halves(2, 192, 64)
    out = np.zeros((128, 64), np.float32)
    (said,) = check(
        kernels.matmul, (1, 1), (a, b), out, (128, 64, 192), BM=128, BN=64, BK=64,
        stages=(3, 4), num_warps=num_warps,
    )  # fmt: skip
    assert said.endswith("products run on into the next iteration")


@pytest.mark.parametrize("num_warps", [1, 4])
def test_a_tile_that_is_transposed_in_registers(num_warps: int) -> None:
    a, b = halves(1, 128, 192), halves(2, 64, 192)
    out = np.zeros((128, 64), np.float32)
    check(
        kernels.matmul_transposed, (1,), (a, b), out, (192,), BM=128, BN=64, BK=64,
        stages=(2, 4), num_warps=num_warps,
    )  # fmt: skip


@pytest.mark.parametrize("steps", [0, 1, 2, 3, 5])
def test_two_loops_one_after_the_other(steps: int) -> None:
    depth = 64 * max(steps, 1)
    a, b = halves(3, 64, depth), halves(4, depth, 64)
    out = np.zeros((64, 64), np.float32)
    said = check(kernels.two_loops, (1,), (a, b), out, (64 * steps,), S=64)
    assert [text.startswith("loads run") for text in said] == [True, True]


@pytest.mark.parametrize("tiles", [0, 1, 3])
def test_a_loop_in_a_loop_over_tiles(tiles: int) -> None:
    a, b = halves(5, 64, 192), halves(6, 192, 64 * max(tiles, 1))
    out = np.zeros((64, 64 * max(tiles, 1)), np.float32)
    (said,) = check(kernels.persistent_matmul, (2,), (a, b), out, (192, tiles), S=64)
    assert said.startswith("loads run")


@pytest.mark.parametrize("first", [0, 64, 1000])
def test_a_branch_in_the_loop_and_values_carried_beside(first: int) -> None:
    a, b = halves(7, 64, 256), halves(8, 256, 64)
    out = np.zeros((64, 64), np.float32)
    (said,) = check(kernels.conditional_matmul, (1,), (a, b), out, (256, first), S=64)
    assert said.startswith("loads run") and "products" not in said


@pytest.mark.parametrize("is_causal", [False, True])
@pytest.mark.parametrize("keys", [64, 100, 192, 256])
def test_attention(keys: int, is_causal: bool) -> None:
    q, k, v = halves(9, 256, 64), halves(10, 256, 64), halves(11, 256, 64)
    out = np.zeros((256, 64), np.float32)
    (said,) = check(
        kernels.attention, (4,), (q, k, v), out, (keys,), stages=(2, 3),
        CAUSAL=is_causal, S=64, D=64,
    )  # fmt: skip
    assert said.startswith("loads run")


@pytest.mark.parametrize(("rows", "columns"), [(0, 8), (1, 128), (7, 100), (8, 128), (9, 77)])
def test_rows_are_loaded_ahead_of_a_softmax(rows: int, columns: int) -> None:
    x = np.random.default_rng(12).standard_normal((max(rows, 1), columns)).astype(np.float32)
    out = np.zeros_like(x)
    (said,) = check(
        kernels.softmax, (2,), (x,), out, (rows, columns), in_loop=True, BLOCK=128, num_warps=2
    )
    assert said.startswith("loads run")


@pytest.mark.parametrize("steps", [0, 1, 4, 6])
def test_what_is_not_defined_beyond_the_loop_does_no_harm(steps: int) -> None:
    x = np.random.default_rng(13).standard_normal((8, 128)).astype(np.float32)
    where = np.array([3, 1, 0, 7, 5, 2], np.int32)
    out = np.zeros(128, np.float32)
    check(
        kernels.gathered_sum, (1,), (x, where), out, (steps,), in_loop=True, BLOCK=128, num_warps=2
    )


@pytest.mark.parametrize("depth", [16, 64, 96, 128, 160, 272])
def test_a_matmul_through_descriptors_of_any_depth(depth: int) -> None:
    rows, columns = 80, 80
    a, b = halves(1, rows, max(depth, 16)), halves(2, max(depth, 16), columns)
    out = np.zeros((rows, columns), np.float32)
    (said,) = check(
        kernels.described_matmul, (2, 2), (a, b), out, (rows, columns, depth), BM=64, BN=64, BK=32
    )
    assert said.endswith("products run on into the next iteration")


@pytest.mark.parametrize("num_warps", [2, 8])
def test_a_matmul_through_descriptors_of_other_warps(num_warps: int) -> None:
    a, b = halves(1, 128, 320), halves(2, 320, 64)
    out = np.zeros((128, 64), np.float32)
    (said,) = check(
        kernels.described_matmul, (1, 1), (a, b), out, (128, 64, 320), BM=128, BN=64, BK=64,
        num_warps=num_warps, stages=(2, 4),
    )  # fmt: skip
    assert said.startswith("loads run") and ("products" in said) == (num_warps == 8)


@pytest.mark.parametrize(("depth", "tiles", "first"), [(192, 5, 0), (128, 3, 1), (0, 3, 0)])
def test_slots_go_on_where_a_loop_starts_again(depth: int, tiles: int, first: int) -> None:
    a, b = halves(5, 64, max(depth, 64)), halves(6, max(depth, 64), 64 * tiles)
    out = np.zeros((64, 64 * tiles), np.float32)
    said = check(
        kernels.described_tiles,
        (2,),
        (a, b),
        out,
        (max(depth, 64), depth, tiles, first),
        S=64,
        stages=(2, 3, 4),
    )
    assert [text.startswith("loads run") for text in said] == [True, True]


@pytest.mark.parametrize("keys", [64, 100, 256])
def test_attention_through_descriptors(keys: int) -> None:
    q, k, v = halves(9, 256, 64), halves(10, 256, 64), halves(11, 256, 64)
    out = np.zeros((256, 64), np.float32)
    (said,) = check(
        kernels.described_attention, (4,), (q, k, v), out, (keys,), stages=(2, 3), S=64, D=64
    )
    assert said.startswith("loads run")


@pytest.mark.parametrize("steps", [0, 1, 5])
def test_divisions_of_tiles_are_guarded_beyond_the_loop(steps: int) -> None:
    x = np.random.default_rng(14).standard_normal((16, 128)).astype(np.float32)
    out = np.zeros(128, np.float32)
    check(kernels.divided_rows, (1,), (x,), out, (steps,), in_loop=True, BLOCK=128, num_warps=2)


@pytest.mark.parametrize("shape", [(192, 64, 64), (96, 48, 32)])
def test_tiles_of_any_extent_are_pipelined_or_left_alone(
    shape: tuple[int, int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The surface refuses such tiles, and what is below must not."""
    monkeypatch.setattr(arguments, "is_tile_extent", lambda extent, _: extent > 0)
    monkeypatch.setattr(form, "require_extents", lambda *_: None)
    rows, columns, depth = shape
    a, b = halves(1, rows, 3 * depth), halves(2, 3 * depth, columns)
    out = np.zeros((rows, columns), np.float32)
    check(
        kernels.matmul, (1, 1), (a, b), out, (rows, columns, 3 * depth),
        BM=rows, BN=columns, BK=depth, stages=(2, 4),
    )  # fmt: skip


@pytest.mark.parametrize("num_warps", [1, 4])
@pytest.mark.parametrize("steps", [0, 1, 5])
def test_a_tile_that_addresses_come_from_is_there_at_once(steps: int, num_warps: int) -> None:
    """It was taken from where its copy had only just been started."""
    a = np.random.default_rng(15).standard_normal((256, 32)).astype(np.float32)
    table = np.random.default_rng(16).integers(0, 6 * 32, 6 * 32).astype(np.int32)
    out = np.zeros((32, 32), np.float32)
    said = check(
        kernels.gathered_rows, (1,), (a, table), out, (steps,),
        in_loop=True, S=32, num_warps=num_warps,
    )  # fmt: skip
    # An argument of 1 is a constant: there is no iteration to run ahead of.
    assert said == ["loads run 4 iterations ahead, to 5 slots of 4096 bytes"] * (steps != 1)


def test_no_load_runs_ahead_of_a_store_to_what_its_address_comes_from() -> None:
    a, b = halves(17, 3 * 64, 64), halves(18, 64, 64)
    outs = [np.zeros((64, 64), np.float32) for _ in range(4)]
    for number, out in enumerate(outs, 1):
        table = np.zeros(8, np.int32)
        kernels.rewritten_table.simulate[(1,)](a, b, table, out, 5, S=64, num_stages=number)
        assert list(table) == [0, 1, 2, 0, 1, 2, 0, 0]
        module = at_t2(kernels.rewritten_table, (a, b, table, out, 5), dict(S=64, num_stages=3))
        schedule = schedule_of(find_kernel(module))
        assert schedule is not None and not schedule.loops
        assert "a launch cannot tell whether" in schedule.reasons[0]
    assert all(np.array_equal(outs[0], out) for out in outs)


@pytest.mark.parametrize("extent", [4, 8, 16, 32, 64])
def test_slots_of_the_copy_engine_start_where_it_may_write(extent: int) -> None:
    """A box lies at a multiple of 128 bytes, and here a tile is as short as 16."""
    a = np.random.default_rng(19).standard_normal(1024).astype(np.float32)
    out = np.zeros(extent, np.float32)
    (said,) = check(kernels.short_rows, (1,), (a,), out, (7,), in_loop=True, B=extent)
    assert said == f"loads run 4 iterations ahead, to 5 slots of {4 * extent} bytes"
