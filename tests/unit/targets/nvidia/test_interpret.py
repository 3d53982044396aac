"""T1 and T2 in the interpreter: what a broken schedule is caught at."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from xdsl.dialects.builtin import IntegerAttr, ModuleOp, UnitAttr, i32
from xdsl.ir import Operation

import tilewright
import tilewright.language as tl
from tilewright.compiler.compile import to_schedule, to_tiles
from tilewright.compiler.request import CompileRequest
from tilewright.interp.evaluate import run_kernel
from tilewright.interp.shared_memory import SharedMemory
from tilewright.interp.simt.faults import ProxyRace, SharedRace, UnfinishedOperation
from tilewright.ir.op import build
from tilewright.ops.staging import DotWaitOp, LaidOutDotOp
from tilewright.support.errors import UndefinedValue, UninitializedRead
from tilewright.support.options import option_names
from tilewright.targets.nvidia.host import named_machine
from tilewright.targets.nvidia.interpret import NVIDIA_INTERPRETATION
from tilewright.targets.target import load_target

SIZE, DEPTH = 64, 128


@tilewright.jit
def product(a, b, c, K, SIZE: tl.constexpr, STEP: tl.constexpr):
    """c = a @ b, one tile, by wgmma."""
    i, k = tl.arange(0, SIZE), tl.arange(0, STEP)
    total = tl.zeros((SIZE, SIZE), tl.float32)
    for start in range(0, K, STEP):
        x = tl.load(a + i[:, None] * K + start + k[None, :])
        y = tl.load(b + (start + k)[:, None] * SIZE + i[None, :])
        total = tl.dot(x, y, total)
    tl.store(c + i[:, None] * SIZE + i[None, :], total)


def inputs() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(1)
    a = rng.standard_normal((SIZE, DEPTH)).astype(np.float16)
    b = rng.standard_normal((DEPTH, SIZE)).astype(np.float16)
    return a, b, np.zeros((SIZE, SIZE), np.float32)


def scheduled() -> ModuleOp:
    """The product at T2."""
    a, b, c = inputs()
    call = product.specialize_call((a, b, c, DEPTH), {"SIZE": SIZE, "STEP": 32})
    options = {name: getattr(call.options, name) for name in option_names()}
    source, machine = product.source, named_machine("sm_90a")
    request = CompileRequest(
        source.functions, source.kernel, call.specialization, options, "nvidia", machine
    )
    target = load_target("nvidia")
    return to_schedule(request, target, to_tiles(request, target)).module


def run(module: ModuleOp) -> np.ndarray:
    a, b, c = inputs()
    run_kernel(module, (a, b, c, DEPTH), (1,), rules=NVIDIA_INTERPRETATION)
    np.testing.assert_allclose(c, a.astype(np.float64) @ b.astype(np.float64), rtol=1e-4, atol=1e-4)
    return c


def ops(module: ModuleOp, name: str) -> list[Operation]:
    return [op for op in module.walk() if op.name == name]


def test_the_schedule_as_it_is_gives_the_product() -> None:
    run(scheduled())


@pytest.mark.parametrize(
    ("name", "fault"),
    [
        ("ttg.barrier", SharedRace),
        ("ttng.fence_async_shared", ProxyRace),
        ("ttg.async_wait", UnfinishedOperation),
        ("ttg.async_copy_global_to_local", UninitializedRead),
    ],
)
def test_what_is_left_out_is_missed(name: str, fault: type[Exception]) -> None:
    module = scheduled()
    for op in ops(module, name):
        for result in op.results:
            for use in list(result.uses):
                use.operation.operands = [v for v in use.operation.operands if v is not result]
        op.detach()
        op.erase()
    with pytest.raises(fault):
        run(module)


def test_a_wait_that_leaves_too_many_copies_running_is_missed() -> None:
    module = scheduled()
    for wait in ops(module, "ttg.async_wait"):
        wait.properties["num"] = IntegerAttr(2, i32)
    with pytest.raises(UnfinishedOperation):
        run(module)


def test_tiles_in_one_place_destroy_each_other() -> None:
    module = scheduled()
    for alloc in ops(module, "ttg.local_alloc"):
        alloc.properties["offset_bytes"] = IntegerAttr(0, i32)
    with pytest.raises(UnfinishedOperation, match="an asynchronous copy is to write"):
        run(module)


def asynchronous(change: Callable[[LaidOutDotOp, DotWaitOp], None]) -> ModuleOp:
    """The schedule with products that run on, each with a wait right behind it."""
    module = scheduled()
    for dot in ops(module, "ttg.dot"):
        assert isinstance(dot, LaidOutDotOp) and dot.parent is not None
        dot.properties["is_async"] = UnitAttr()
        pending = {"pending": IntegerAttr(0, i32)}
        wait = build(DotWaitOp, [dot.result], [dot.result.type], pending, location=dot.location)
        dot.parent.insert_op_after(wait, dot)
        dot.result.replace_all_uses_with(wait.results[0])
        wait.operands = [dot.result]
        change(dot, wait)
    return module


def test_a_product_that_is_waited_for_is_the_product() -> None:
    run(asynchronous(lambda dot, wait: None))


def test_the_result_of_a_running_product_is_undefined() -> None:
    def leave_running(dot: LaidOutDotOp, wait: DotWaitOp) -> None:
        wait.properties["pending"] = IntegerAttr(1, i32)

    with pytest.raises((UndefinedValue, UnfinishedOperation)):
        run(asynchronous(leave_running))


def loading(first: int | None, second: int | None) -> SharedMemory:
    """Two loads of eight bytes each at one barrier, with what they announce."""
    memory = SharedMemory(is_ordered=True)
    memory.reserve(16)
    for start, announced in ((0, first), (8, second)):
        memory.start_load(0, np.arange(start, start + 8), np.full(8, start, np.uint8), announced)
    return memory


def test_loads_of_a_phase_arrive_together() -> None:
    memory = loading(16, None)
    assert memory.end_loads(0) == 0
    np.testing.assert_array_equal(memory.fetch(np.arange(16))[0], [0] * 8 + [8] * 8)


@pytest.mark.parametrize("announced", [(8, None), (24, None), (None, None), (8, 8)])
def test_a_phase_that_would_not_end_is_missed(announced: tuple[int | None, int | None]) -> None:
    with pytest.raises(AssertionError, match="0"):
        loading(*announced).end_loads(0)
