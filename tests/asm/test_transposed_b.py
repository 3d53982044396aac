"""Products of few rows with a transposed matrix: the bits of the packed way, and nothing beyond."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tests.asm.dot_harness import (
    MACHINES,
    NEON,
    NUMPY_DTYPE,
    Machine,
    Native,
    aligned,
    assemble,
    link,
    pack_panels,
    pack_rows,
    random_tile,
    runnable_machines,
)
from tests.holes import before_a_hole
from tilewright.codegen.llvm_builder import ModuleBuilder
from tilewright.targets.cpu.dot.microkernel import emit_dot
from tilewright.targets.cpu.dot.spec import FEW_ROWS, DotSpec, SourceTile

# Rows of each block and none of them, whole and partial lines of k, one square and several.
SHAPES = [(1, 16, 1), (3, 32, 17), (4, 16, 64), (8, 64, 31), (13, 16, 96), (16, 32, 130)]
LIMITS = [(1, 64, 96), (2, 17, 96), (5, 33, 7), (9, 64, 95), (16, 1, 1), (16, 63, 65)]
DTYPES = ["f32", "f64", "bf16", "f16", "i8", "u8"]

each_machine = pytest.mark.parametrize("machine", runnable_machines(), ids=lambda each: each.label)


def spec_of(machine: Machine, shape: tuple[int, int, int], dtype: str) -> DotSpec:
    unit = machine.unit
    bf16_dot = "bf16" in machine.label
    return DotSpec(*shape, dtype, dtype, unit.features, unit.vector_bytes, bf16_dot=bf16_dot)


def arguments(spec: DotSpec) -> tuple[str, ...]:
    fetch = ("ptr", "i64") * (spec.next_b is not None)
    source = ("ptr", "i64") * spec.transposed_b
    stride = ("i64",) * spec.a_in_place
    return ("ptr", "ptr", "ptr", *stride, *fetch, *source, *("i64",) * (3 * spec.is_limited))


def call(
    native: Native,
    name: str,
    spec: DotSpec,
    a: np.ndarray,
    b: np.ndarray,
    acc: np.ndarray,
    limits: tuple[int, ...] = (),
) -> np.ndarray:
    """The result of a product; a transposed B is at the end of its memory, as far as it is read."""
    result = aligned(acc.shape, acc.dtype)
    result[...] = acc
    rows = pack_rows(spec.a_layout, a.astype(NUMPY_DTYPE[spec.a_layout.element]))
    place, stride = rows.ctypes.data, []
    if spec.a_in_place:
        seen = a[: limits[0], : limits[2]] if limits else a
        near = before_a_hole(np.ascontiguousarray(seen))
        place, stride = near.ctypes.data, [near.shape[1]]
    if not spec.transposed_b:
        panels = pack_panels(spec.b_layout, b.astype(NUMPY_DTYPE[spec.b_layout.element]))
        held = aligned(panels.shape, panels.dtype)
        held[...] = panels
        native.call(name, place, held.ctypes.data, result.ctypes.data, *stride)
        return result
    seen = b[: limits[2], : limits[1]] if limits else b
    source = before_a_hole(np.ascontiguousarray(seen.T))
    at = source.ctypes.data
    fetch = [at, source.shape[1]] * (spec.next_b is not None)
    values = (*stride, *fetch, at, source.shape[1], *limits)
    native.call(name, place, at, result.ctypes.data, *values)
    return result


def link_specs(machine: Machine, specs: list[DotSpec]) -> tuple[Native, list[str]]:
    module = ModuleBuilder()
    names = [emit_dot(module, spec) for spec in specs]
    functions = {name: arguments(spec) for name, spec in zip(names, specs, strict=True)}
    return link(module, machine, functions), names


def random_acc(rng: np.random.Generator, spec: DotSpec) -> np.ndarray:
    return random_tile(rng, (spec.m, spec.n), spec.acc_dtype)


@each_machine
@pytest.mark.parametrize("dtype", DTYPES)
def test_the_sum_has_the_bits_of_the_packed_product(
    dtype: str, machine: Machine, rng: np.random.Generator
) -> None:
    packed = [spec_of(machine, shape, dtype) for shape in SHAPES]
    packed = [spec for spec in packed if spec.can_read_transposed_b]
    across = [replace(spec, transposed_b=True) for spec in packed]
    across[::2] = [replace(spec, next_b=SourceTile(1, 1), zero_init=True) for spec in across[::2]]
    packed[::2] = [replace(spec, zero_init=True) for spec in packed[::2]]
    native, names = link_specs(machine, [*packed, *across])
    for index, spec in enumerate(packed):
        a, b = (random_tile(rng, shape, dtype) for shape in ((spec.m, spec.k), (spec.k, spec.n)))
        acc = random_acc(rng, spec)
        want = call(native, names[index], spec, a, b, acc)
        got = call(native, names[len(packed) + index], across[index], a, b, acc)
        np.testing.assert_array_equal(got, want, str(spec))


def test_who_reads_a_transposed_matrix() -> None:
    by_label = {machine.label: machine for machine in (*MACHINES, NEON)}

    def reads(label: str, dtype: str, shape: tuple[int, int, int] = (16, 64, 64)) -> bool:
        return spec_of(by_label[label], shape, dtype).can_read_transposed_b

    assert all(reads(label, "f32") for label in by_label)
    assert all(reads(label, dtype) for label in ("avx512-bf16", "neon") for dtype in DTYPES[2:5])
    assert not reads("avx512", "i8"), "bytes that are widened to words"
    assert not reads("avx512", "f8E5M2")
    assert not reads("avx512", "f32", (FEW_ROWS + 1, 64, 64))
    assert not reads("avx512", "f32", (16, 24, 64)), "no whole vectors"


@each_machine
@pytest.mark.parametrize("dtype", DTYPES)
def test_what_is_beyond_the_limits_is_neither_read_nor_summed(
    dtype: str, machine: Machine, rng: np.random.Generator
) -> None:
    spec = spec_of(machine, (16, 64, 96), dtype)
    if not spec.can_read_transposed_b:
        assert dtype in ("i8", "u8")
        return
    in_place = spec.can_read_a_in_place and spec.multiply.k_group == 1
    spec = replace(spec, transposed_b=True, is_limited=True, a_in_place=in_place)
    native, (name,) = link_specs(machine, [spec])
    for limits in LIMITS:
        a, b = random_tile(rng, (16, 96), dtype), random_tile(rng, (96, 64), dtype)
        a[:, limits[2] :] = 0  # as a masked load leaves it, where A is packed
        acc = random_acc(rng, spec)
        got = call(native, name, spec, a, b, acc, limits)
        check(got, (a, b, acc), limits)


def check(got: np.ndarray, operands: tuple[np.ndarray, ...], limits: tuple[int, int, int]) -> None:
    """Every element within the bound of its sum; integers exact."""
    rows, columns, depth = limits
    wide = np.int64 if got.dtype == np.int32 else np.float64
    a, b, acc = (x.astype(wide) for x in operands)
    a, b, acc = a[:rows, :depth], b[:depth, :columns], acc[:rows, :columns]
    got, want = got[:rows, :columns], acc + a @ b
    if wide is np.int64:
        np.testing.assert_array_equal(got, want.astype(np.int32))
        return
    bound = (depth + 2) * np.finfo(got.dtype).eps * (np.abs(acc) + np.abs(a) @ np.abs(b))
    assert (np.abs(got - want) <= bound).all(), limits


def test_one_row_holds_its_square_and_sum_in_registers() -> None:
    machine = MACHINES[-1]
    spec = replace(spec_of(machine, (1, 64, 64), "bf16"), transposed_b=True)
    module = ModuleBuilder()
    text = assemble(module, machine, {emit_dot(module, spec): arguments(spec)})
    assert "vdpbf16ps" in text and "vpunpckldq" in text
    inner = text[text.index("vpunpckldq") : text.rindex("vdpbf16ps")]
    assert "zmm" in inner and "vmovups\t%zmm" not in inner


def test_arm_multiplies_columns_of_squares() -> None:
    spec = replace(spec_of(NEON, (16, 64, 64), "f32"), transposed_b=True)
    module = ModuleBuilder()
    text = assemble(module, NEON, {emit_dot(module, spec): arguments(spec)})
    assert "fmla" in text and ("zip1" in text or "trn1" in text)
