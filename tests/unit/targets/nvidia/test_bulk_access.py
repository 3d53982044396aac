"""Kernels of plain pointers by the copy engine: the same bits, where launches allow it."""

from __future__ import annotations

import re
from collections.abc import Mapping

import numpy as np
import pytest

from tests.unit.targets.nvidia.bulk_kernels import attention, crossed, product, updated
from tilewright import JITFunction
from tilewright.compiler.build import make_request
from tilewright.compiler.compile import to_schedule, to_tiles
from tilewright.compiler.schedules import schedules
from tilewright.frontend.devices import DevicePlacement
from tilewright.ir.schedule_attributes import schedule_of
from tilewright.ops.function import find_kernel
from tilewright.ops.roles import find_roles
from tilewright.runtime.launch_numbers import fits
from tilewright.support.errors import NotPowerOfTwo
from tilewright.targets.nvidia.host import named_machine
from tilewright.targets.nvidia.simulated import launch_words
from tilewright.targets.target import Scheduled, load_target

PIPELINED: Mapping[str, int] = {"num_stages": 3}
ROLES: Mapping[str, int] = {"num_consumer_groups": 2}
BLOCKS = {"BM": 128, "BN": 64, "BK": 64, "GROUP": 2}
Args = tuple[object, ...]
Grid = tuple[int, int, int]


def scheduled(kernel: JITFunction, args: Args, **options: object) -> tuple[Scheduled, list[int]]:
    """The program for a launch before it is known whether it fits, and the launch's words."""
    call = kernel.specialize_call(args, options)
    machine, place = named_machine("sm_90a"), DevicePlacement("nvidia")
    request = make_request(call.source, call.specialization, call.options, place, machine)
    target = load_target("nvidia")
    leaves = call.specialization.runtime_leaves()
    values = [(type_, call.arguments[str(path[0])]) for path, type_ in leaves]
    return to_schedule(request, target, to_tiles(request, target)), launch_words(values)


def is_fit(kernel: JITFunction, args: Args, grid: Grid, **options: object) -> bool:
    """Whether a launch goes to the program that the engine loads for."""
    found, words = scheduled(kernel, args, **options)
    assert found.metadata["tensor_maps"], found.remarks
    return fits(found.metadata, grid, words)


def whole(*shape: int) -> np.ndarray:
    rng = np.random.default_rng(sum(shape))
    return rng.integers(-3, 4, shape).astype(np.float16)


def product_launch(a: np.ndarray, b: np.ndarray) -> tuple[Args, Grid, np.ndarray, np.ndarray]:
    """A product's arguments and grid, the array for its result, and what belongs there."""
    (m, k), n = a.shape, b.shape[1]
    c = np.full((m, n), 9, np.float16)
    strides = (s // 2 for s in (*a.strides, *b.strides, c.strides[0]))
    grid = (-(-m // BLOCKS["BM"]) * -(-n // BLOCKS["BN"]), 1, 1)
    right = (a.astype(np.float32) @ b.astype(np.float32)).astype(np.float16)
    return (a, b, c, m, n, k, *strides), grid, c, right


def check_product(a: np.ndarray, b: np.ndarray, options: Mapping[str, int]) -> bool:
    """Simulate a product; whether the engine loaded."""
    args, grid, c, right = product_launch(a, b)
    product.simulate[grid](*args, **BLOCKS, **options)
    np.testing.assert_array_equal(c, right)
    return is_fit(product, args, grid, **BLOCKS, **options)


@pytest.mark.parametrize("options", [PIPELINED, ROLES, {"num_consumer_groups": 1}])
@pytest.mark.parametrize(("m", "n", "k"), [(256, 128, 192), (200, 88, 104), (130, 72, 8)])
def test_a_product_of_plain_pointers(m: int, n: int, k: int, options: Mapping[str, int]) -> None:
    assert check_product(whole(m, k), whole(k, n), options)


@pytest.mark.parametrize("options", [PIPELINED, ROLES])
@pytest.mark.parametrize("turned", ["a", "b", "ab"])
def test_operands_that_lie_transposed(turned: str, options: Mapping[str, int]) -> None:
    a = whole(104, 136).T if "a" in turned else whole(136, 104)
    b = whole(72, 104).T if "b" in turned else whole(104, 72)
    assert check_product(a, b, options)


def strided(array: np.ndarray, row: int, first: int = 0) -> np.ndarray:
    """The same rows so many elements apart, `first` elements into an aligned array."""
    rows, columns = array.shape
    aligned = np.zeros(rows * row + columns + 64, np.float16)
    aligned = aligned[(-aligned.ctypes.data // 2) % 32 + first :]
    view = np.lib.stride_tricks.as_strided(aligned, (rows, columns), (2 * row, 2))
    view[...] = array
    return view


@pytest.mark.parametrize(
    ("row", "first", "by_engine"),
    [(64, 0, True), (72, 0, True), (72, 8, True), (65, 0, False), (72, 1, False)],
    ids=["dense", "padded", "from the ninth", "odd rows", "not aligned"],
)
@pytest.mark.parametrize("options", [PIPELINED, ROLES])
def test_rows_that_are_not_aligned_go_to_threads(
    row: int, first: int, by_engine: bool, options: Mapping[str, int]
) -> None:
    a = strided(whole(128, 64), row, first)
    assert check_product(a, whole(64, 64), options) is by_engine


@pytest.mark.parametrize("step", [0, 8], ids=["one row", "overlapping rows"])
def test_rows_that_overlap_go_to_threads(step: int) -> None:
    line = np.asarray(strided(whole(1, 128 * 8 + 64), 2048))[0]
    a = np.lib.stride_tricks.as_strided(line, (128, 64), (2 * step, 2))
    assert not check_product(a, whole(64, 64), PIPELINED)


def test_an_empty_sum_goes_to_threads() -> None:
    args, grid, c, _ = product_launch(whole(128, 64), whole(64, 64))
    args = (*args[:5], 0, *args[6:])
    product.simulate[grid](*args, **BLOCKS, **PIPELINED)
    assert not c.any()
    assert not is_fit(product, args, grid, **BLOCKS, **PIPELINED)


def test_programs_beyond_the_last_tile_go_to_threads() -> None:
    """Their numbers of rows and columns may be negative."""
    args, (programs, *_), _, _ = product_launch(whole(256, 64), whole(64, 128))
    assert is_fit(product, args, (programs, 1, 1), **BLOCKS, **ROLES)
    assert not is_fit(product, args, (programs + 4, 1, 1), **BLOCKS, **ROLES)


def test_tensors_too_large_for_offsets_of_32_bits_go_to_threads() -> None:
    args, grid, _, _ = product_launch(whole(128, 64), whole(64, 64))
    # a row of the first operand is 2^25 elements long: 128 of them are 2^32
    args = (*args[:6], 1 << 25, *args[7:])
    assert not is_fit(product, args, grid, **BLOCKS, **PIPELINED)


@pytest.mark.parametrize("layout", ["heads first", "rows first"])
@pytest.mark.parametrize(("length", "masked"), [(256, False), (200, True)])
@pytest.mark.parametrize("options", [{"num_stages": 2}, ROLES])
def test_attention_of_plain_pointers(
    layout: str, length: int, masked: bool, options: Mapping[str, int]
) -> None:
    batches, heads, dim = 2, 3, 64
    rng = np.random.default_rng(length)
    q, k, v, out = (
        rng.standard_normal((batches, heads, length, dim)).astype(np.float16) for _ in range(4)
    )
    if layout == "rows first":
        q, k, v, out = (
            np.ascontiguousarray(x.swapaxes(1, 2)).swapaxes(1, 2) for x in (q, k, v, out)
        )
    strides = (s // 2 for s in q.strides[:3])
    meta = {"BM": 128, "BN": 64, "D": dim, "MASKED": masked}
    args, grid = (q, k, v, out, *strides, heads, length, 0.125), (2, batches * heads, 1)
    assert is_fit(attention, args, grid, **meta, **options)
    if options is ROLES:  # what lies behind a batch and a head goes out in chunks of its rows
        found, _ = scheduled(attention, args, **meta, **options)
        assert any("the copy engine makes the store" in remark for remark in found.remarks)
        assert not any("is made whole" in remark for remark in found.remarks)
    attention.simulate[grid](*args, **meta, **options)
    scores = np.einsum("bhmd,bhnd->bhmn", q.astype(np.float32), k.astype(np.float32)) * 0.125
    weights = np.exp2(scores - scores.max(-1, keepdims=True))
    weights /= weights.sum(-1, keepdims=True)
    right = np.einsum("bhmn,bhnd->bhmd", weights, v.astype(np.float32))
    np.testing.assert_allclose(out, right, atol=2e-3, rtol=2e-2)


def test_what_the_kernel_writes_stays_plain() -> None:
    a, b = whole(5 * 64, 64), whole(5 * 64, 64)
    for same in (True, False):
        found, _ = scheduled(updated, (a, b, 4), BLOCK=64, SAME=same, num_stages=2)
        assert bool(found.metadata["tensor_maps"]) is not same
        assert ("may write what it reads" in found.remarks[0]) is same


@pytest.mark.parametrize(
    ("options", "num_maps"),
    [
        ({}, 0),
        ({"num_stages": 1}, 0),
        ({"num_stages": 2}, 2),
        ({"num_stages": 2, "bulk_access": "never"}, 0),
        ({"num_stages": 2, "descriptors": "pointers"}, 0),
        ({"bulk_access": "always"}, 2),
        ({"num_consumer_groups": 1}, 3),
    ],
)
def test_the_engine_loads_and_stores_where_the_author_asks_for_more(
    options: Mapping[str, object], num_maps: int
) -> None:
    args, _, _, _ = product_launch(whole(128, 64), whole(64, 64))
    found, _ = scheduled(product, args, **BLOCKS, **options)
    assert len(found.metadata["tensor_maps"]) == num_maps  # type: ignore[arg-type]  # a list
    assert bool(found.metadata["launch_guards"]) is bool(num_maps)


def test_each_load_says_who_makes_it() -> None:
    args, _, _, _ = product_launch(whole(128, 64), whole(64, 64))
    found, _ = scheduled(product, args, **BLOCKS, **PIPELINED)
    said = [remark for remark in found.remarks if "bulk_kernels.py" in remark]
    assert len(said) == 2 and all("the copy engine makes the load where" in r for r in said)
    assert "a_row is at least 1" in said[0] and "b_row is at least 1" in said[1]


def test_pointers_run_as_roles() -> None:
    args, _, _, _ = product_launch(whole(128, 64), whole(64, 64))
    found, _ = scheduled(product, args, **BLOCKS, **ROLES)
    assert find_roles(find_kernel(found.module)) is not None


def test_schedules_of_plain_pointers_have_roles_and_rings_of_the_engine() -> None:
    args, grid, c, right = product_launch(whole(128, 128), whole(128, 64))
    call = product.specialize_call(args, BLOCKS)
    machine, place = named_machine("sm_90a"), DevicePlacement("nvidia")
    found = schedules(make_request(call.source, call.specialization, call.options, place, machine))
    texts = [str(options.get("schedule", "")) for options in found]
    in_roles = [text for text in texts if text.startswith("roles")]
    pipelined = [text for text in texts if text.startswith("ring")]
    assert in_roles and pipelined and all("tma" in text for text in (*in_roles, *pipelined))
    for text in (in_roles[0], pipelined[0]):
        c[...] = 9
        assert is_fit(product, args, grid, **BLOCKS, schedule=text)
        product.simulate[grid](*args, **BLOCKS, schedule=text)
        np.testing.assert_array_equal(c, right)


def test_a_schedule_gives_way_where_the_engine_does_not_load() -> None:
    a = strided(whole(128, 64), 65)
    args, grid, c, right = product_launch(a, whole(64, 64))
    text = "ring ab tiles load#0 load#1 slots 2 tma; loop for#0 load#0 @0.0 load#1 @0.0 dot#0 @1.1"
    assert not is_fit(product, args, grid, **BLOCKS, schedule=text)
    product.simulate[grid](*args, **BLOCKS, schedule=text)
    np.testing.assert_array_equal(c, right)


@pytest.mark.parametrize("options", [PIPELINED, {"num_consumer_groups": 1}])
def test_a_tile_that_crosses_the_end_of_a_row_goes_on_in_the_next(
    options: Mapping[str, int],
) -> None:
    row, steps = 96, 3
    memory, b = whole(130, row), whole(64 * steps, 64)
    c = np.zeros((128, 64), np.float32)
    meta = {"BLOCK": 64, **options}
    args: Args = (memory, b, c, steps, row)
    assert is_fit(crossed, args, (2, 1, 1), **meta)
    crossed.simulate[(2,)](*args, **meta)
    seen = np.lib.stride_tricks.as_strided(memory, (128, 64 * steps), (2 * row, 2))
    np.testing.assert_array_equal(c, seen.astype(np.float32) @ b.astype(np.float32))


def test_rows_of_three_groups_say_what_a_launch_without_groups_lacks() -> None:
    args, grid, c, right = product_launch(whole(192, 64), whole(64, 64))
    blocks = {**BLOCKS, "BM": 192, "num_consumer_groups": 3}
    product.simulate[(1, 1, 1)](*args, **blocks)
    np.testing.assert_array_equal(c, right)
    ragged, *_ = product_launch(whole(192, 65)[:, :64], whole(64, 64))
    with pytest.raises(NotPowerOfTwo) as refused:
        product.simulate[grid](*ragged, **blocks)
    assert "if a_row is a multiple of 8; or choose a power of two" in refused.value.hint


def test_a_schedule_without_room_for_what_is_stored_leaves_heads_to_threads() -> None:
    q, k, v, out = (whole(2, 3, 200, 64) for _ in range(4))
    args = (q, k, v, out, *(s // 2 for s in q.strides[:3]), 3, 200, 0.125)
    meta = {"BM": 128, "BN": 64, "D": 64, "MASKED": True}
    given, _ = scheduled(attention, args, **meta, **ROLES)
    text = str(schedule_of(find_kernel(given.module)))
    assert "epilogue tma" in text
    without = re.sub(r"; epilogue[^;]*", "", text)
    for schedule, stores in ((text, True), (without, False)):
        found, _ = scheduled(attention, args, **meta, schedule=schedule)
        made = any("the copy engine makes the store" in remark for remark in found.remarks)
        assert made is stores
