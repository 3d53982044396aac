"""Products of two rows by two columns on AArch64: equal to NumPy's, at every ragged end."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from tests.aarch64.functions import Call, call_functions
from tests.aarch64.machines import NEOVERSE_V2
from tests.asm.dot_harness import NUMPY_DTYPE
from tests.corpus.case import Array
from tilewright.codegen.llvm_builder import ModuleBuilder
from tilewright.support.dataclass import replace
from tilewright.targets.cpu.dot.block_runs import row_runs
from tilewright.targets.cpu.dot.microkernel import emit_dot
from tilewright.targets.cpu.dot.packing import emit_pack
from tilewright.targets.cpu.dot.panels import Instruction
from tilewright.targets.cpu.dot.spec import DotSpec

pytestmark = pytest.mark.aarch64

FEATURES = NEOVERSE_V2.machine.enabled_features
# One of each end: a last row without another, a last column, k that fill no group, blocks of all
# heights, panels of two to eight columns, several of them, rows that would share cache sets.
SHAPES = [
    *[(17, 33, 65), (1, 64, 64), (128, 128, 100), (1, 1, 1), (2, 2, 8), (3, 5, 7), (5, 12, 24)],
    *[(50, 37, 70), (33, 64, 200), (32, 16, 4), (23, 20, 33), (9, 8, 2048)],
]
EXTREMES = {"i8": (-128, 127), "u8": (0, 255)}
SIGNS = list(itertools.product(EXTREMES, repeat=2))
WAYS = list(itertools.product((False, True), repeat=2))


@dataclass(frozen=True)
class Product:
    """One product with its operands; `ways`: whether A and B lie transposed in memory."""

    spec: DotSpec
    a: Array
    b: Array
    acc: Array
    ways: tuple[bool, bool]
    result: Array

    def emit(self, module: ModuleBuilder, *limits: int) -> list[Call]:
        """The calls that pack both operands and multiply them, with limits if there are any."""
        spec, calls, packed = self.spec, list[Call](), list[Array]()
        sizes = (
            spec.a_layout.size_elems(spec.m, spec.k),
            spec.b_layout.size_elems(spec.k, spec.n),
        )
        for role, operand, size, is_across in zip(
            "ab", (self.a, self.b), sizes, self.ways, strict=True
        ):
            source = np.ascontiguousarray(operand.T if is_across else operand)
            # What is read though nobody wrote it shows: -1, or a NaN.
            place = np.frombuffer(bytearray(b"\xff" * size * operand.itemsize), operand.dtype)
            name = emit_pack(module, spec.pack_spec("a" if role == "a" else "b", is_across))
            calls.append(Call(name, (source, source.shape[1], place)))
            packed.append(place)
        return [*calls, Call(emit_dot(module, spec), (*packed, self.result, *limits))]


def products(rng: np.random.Generator, types: tuple[str, str], **options: bool) -> list[Product]:
    found: list[Product] = []
    for (m, n, k), ways in itertools.product(SHAPES, WAYS):
        spec = replace(DotSpec(m, n, k, *types, FEATURES, 16, is_2x2=True), **options)
        a, b = values(rng, (m, k), types[0]), values(rng, (k, n), types[1])
        acc = values(rng, (m, n), spec.acc_dtype)
        found.append(Product(spec, a, b, acc, ways, acc.copy()))
    return found


def values(rng: np.random.Generator, shape: tuple[int, int], dtype: str) -> Array:
    """Random values; of bytes with both extremes in whole rows and columns."""
    kind = NUMPY_DTYPE[dtype]
    if dtype not in EXTREMES:
        big = rng.integers(-1000, 1000, shape) if dtype == "i32" else rng.standard_normal(shape)
        return big.astype(kind)
    found = rng.integers(*EXTREMES[dtype], shape, kind, endpoint=True)
    found[: shape[0] // 3] = EXTREMES[dtype][0]
    found[:, shape[1] // 2 :: 3] = EXTREMES[dtype][1]
    return found


def run(found: list[Product], folder: Path, *limits: int) -> None:
    module = ModuleBuilder()
    calls = [call for product in found for call in product.emit(module, *limits)]
    call_functions(module, calls, NEOVERSE_V2, folder)


@pytest.mark.parametrize("zero_init", [False, True], ids=["add", "overwrite"])
@pytest.mark.parametrize("types", SIGNS, ids="-".join)
def test_products_of_bytes_of_any_sign_are_exact(
    types: tuple[str, str], zero_init: bool, tmp_path: Path, rng: np.random.Generator
) -> None:
    found = products(rng, types, zero_init=zero_init)
    run(found, tmp_path)
    for each in found:
        base = 0 if zero_init else each.acc
        want = base + each.a.astype(np.int32) @ each.b.astype(np.int32)
        np.testing.assert_array_equal(each.result, want, f"{each.spec} {each.ways}")


def test_products_of_bf16_round_as_those_of_pairs(tmp_path: Path, rng: np.random.Generator) -> None:
    """An instruction is two `bfdot` one after the other, down to sums that are flushed to zero."""
    found = products(rng, ("bf16", "bf16"))
    for number, each in enumerate(found):
        if number % 3 == 0:
            each.a[...] = each.a * 2.0 ** rng.integers(-110, -90, each.a.shape)
            each.b[...] = each.b * 2.0 ** rng.integers(-30, -15, each.b.shape)
            each.acc[...] = each.result[...] = 0
    pairs = [
        replace(each, spec=replace(each.spec, is_2x2=False), result=each.acc.copy())
        for each in found
    ]
    run([*found, *pairs], tmp_path)
    for each, pair in zip(found, pairs, strict=True):
        assert pair.spec.multiply.instruction is Instruction.BF16_DOT_NEON
        np.testing.assert_array_equal(each.result, pair.result, f"{each.spec} {each.ways}")
    assert any((np.abs(each.result) < 2.0**-100).any() for each in found)


def test_products_of_bf16_stay_within_the_bound_of_their_accumulation(
    tmp_path: Path, rng: np.random.Generator
) -> None:
    found = products(rng, ("bf16", "bf16"))
    run(found, tmp_path)
    for each in found:
        a, b, acc = (x.astype(np.float64) for x in (each.a, each.b, each.acc))
        # Rounded to odd, each of a pair's two sums is off by less than a whole unit.
        limit = (each.spec.k + 4) * np.finfo(np.float32).eps * (np.abs(a) @ np.abs(b) + np.abs(acc))
        assert (np.abs(each.result - (a @ b + acc)) <= limit).all(), f"{each.spec} {each.ways}"


def test_rows_of_a_result_are_left_alone_between_its_columns(
    tmp_path: Path, rng: np.random.Generator
) -> None:
    spec = DotSpec(7, 11, 16, "u8", "i8", FEATURES, 16, ldc=20, is_2x2=True)
    a, b = values(rng, (7, 16), "u8"), values(rng, (16, 11), "i8")
    acc = values(rng, (7, 20), "i32")
    each = Product(spec, a, b, acc, (False, False), acc.copy())
    run([each], tmp_path)
    np.testing.assert_array_equal(each.result[:, 11:], acc[:, 11:])
    want = acc[:, :11] + a.astype(np.int32) @ b.astype(np.int32)
    np.testing.assert_array_equal(each.result[:, :11], want)


def test_rows_beyond_a_limit_are_left_out_by_blocks(
    tmp_path: Path, rng: np.random.Generator
) -> None:
    """A limit counts rows, of which a block has two and two."""
    spec = DotSpec(39, 8, 24, "i8", "i8", FEATURES, 16, has_row_limit=True, is_2x2=True)
    heights = [run.size for run in row_runs(spec, 10) for _ in range(run.count)]
    assert sum(heights) == 39
    a, b, acc = values(rng, (39, 24), "i8"), values(rng, (24, 8), "i8"), values(rng, (39, 8), "i32")
    for rows in (1, 2, heights[0], heights[0] + 1, 38, 39):
        each = Product(spec, a, b, acc, (False, True), acc.copy())
        run([each], tmp_path, rows)
        ends = np.cumsum(heights)
        seen = int(ends[np.searchsorted(ends, rows)])
        want = acc + a.astype(np.int32) @ b.astype(np.int32)
        np.testing.assert_array_equal(each.result[:seen], want[:seen])
        np.testing.assert_array_equal(each.result[seen:], acc[seen:])
