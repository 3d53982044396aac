"""The schedules that a tuner tries: each is right, and there is a good reason for each."""

from __future__ import annotations

import numpy as np

import tilewright
import tilewright.language as tl
from tests.ptxas.kernels import request_of
from tests.unit.schedule import scheduled_kernels as kernels
from tests.unit.targets.nvidia.persistent_kernels import blocks
from tilewright import JITFunction
from tilewright.compiler.schedules import schedules
from tilewright.ir.schedule_text import parse_schedule


@tilewright.jit
def product(a, b, c, k, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    left = tl.make_tensor_descriptor(a, [M, k], [k, 1], [M, K])
    right = tl.make_tensor_descriptor(b, [k, N], [N, 1], [K, N])
    acc = tl.zeros((M, N), tl.float32)
    for start in range(0, k, K):
        acc = tl.dot(left.load([0, start]), right.load([start, 0]), acc)
    at = tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :]
    tl.store(c + at, acc)


@tilewright.jit
def doubled(x, out, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    tl.store(out + at, tl.load(x + at) * 2)


SIZES = {"M": 128, "N": 64, "K": 64}


def operands(k: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(k)
    a, b = (rng.integers(-3, 4, shape).astype(np.float16) for shape in ((128, k), (k, 64)))
    return a, b


def of_product(kernel: JITFunction = product, **options: object):
    arguments = (*operands(320), np.zeros((128, 64), np.float32), 320)
    return schedules(request_of(kernel, arguments, {**SIZES, **options}))


def test_a_product_is_tried_without_stages_with_several_and_in_roles() -> None:
    found = of_product()
    assert found[0] == {"num_stages": 1}
    texts = [str(options["schedule"]) for options in found[1:]]
    assert len(set(texts)) == len(texts)
    assert all(str(parse_schedule(text)) == text for text in texts)
    slots = [parse_schedule(text).channels[0].slots for text in texts if "roles" not in text]
    assert slots == [2, 3, 4, 5]
    replicas = {parse_schedule(t).roles[1].replicas for t in texts if "roles" in t}
    assert replicas == {1, 2}  # 128 rows are not shared by three groups


def test_a_product_with_a_program_a_tile_is_tried_with_persistent_programs() -> None:
    a, b = operands(320)
    sizes = {"BM": 128, "BN": 64, "BK": 64, "GROUP": 2}
    arguments = (a, b, np.zeros((128, 64), np.float16), 128, 64, 320)
    found = schedules(request_of(blocks, arguments, sizes))
    parsed = [parse_schedule(str(options["schedule"])) for options in found[1:]]
    assert {bool(s.persist) for s in parsed if s.roles} == {True, False}
    assert not any(s.persist for s in parsed if not s.roles)
    splits = {s.roles[1].split for s in parsed if s.persist}
    assert splits == {"", "tiles"}  # one group, and two that take whole tiles in turn


def test_a_wide_tile_is_also_tried_with_all_of_it_waiting_to_be_stored() -> None:
    """Four buffers of 64 columns, and the slots that they leave; narrower tiles keep two."""
    c = np.zeros((256, 256), np.float16)
    a, b = np.zeros((256, 320), np.float16), np.zeros((320, 256), np.float16)
    for columns, expected in ((256, {(2, 4), (4, 3)}), (128, {(2, 6)})):
        sizes = {"BM": 128, "BN": columns, "BK": 64, "GROUP": 2, "num_warps": 8}
        found = schedules(request_of(blocks, (a, b, c, 256, 256, 320), sizes))
        parsed = [parse_schedule(str(options["schedule"])) for options in found[1:]]
        two = [s for s in parsed if s.persist and s.roles[1].replicas == 2 and s.cluster == 1]
        deep = {(s.epilogue.buffers, s.channels[0].slots) for s in two if s.channels[0].slots > 2}
        assert deep == expected


def test_the_order_is_the_same_every_time() -> None:
    assert of_product() == of_product()


def test_every_schedule_has_the_same_result() -> None:
    a, b = operands(320)
    expected = a.astype(np.float32) @ b.astype(np.float32)
    for options in of_product():
        c = np.full((128, 64), 7, np.float32)
        product.simulate[(1,)](a, b, c, 320, **SIZES, **options)
        np.testing.assert_array_equal(c, expected, err_msg=str(options))


def test_a_kernel_without_loops_or_with_its_own_schedule_is_not_tried() -> None:
    x = np.zeros(256, np.float32)
    assert schedules(request_of(doubled, (x, x), {"BLOCK": 256})) == ()
    halves, out = np.zeros((64, 192), np.float16), np.zeros((64, 64), np.float32)
    meta = {"S": 64, "LOADS": 0, "PRODUCT": 2}
    assert schedules(request_of(kernels.staged, (halves, halves, out, 192), meta)) == ()


def test_the_cpu_has_nothing_to_choose_from() -> None:
    arguments = (*operands(320), np.zeros((128, 64), np.float32), 320)
    assert product.schedules(arguments, SIZES) == ()
