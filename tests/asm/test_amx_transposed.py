"""AMX's products of few rows with a transposed matrix: the bits of the packed way."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tests.asm.amx_host import compile_here
from tests.asm.amx_model import modelled
from tests.asm.dot_harness import (
    Native,
    aligned,
    assemble,
    export,
    pack_panels,
    pack_rows,
    random_tile,
)
from tests.asm.test_amx_product import BYTES, SAPPHIRE_RAPIDS, UNITS, amx_spec
from tests.holes import before_a_hole
from tilewright.codegen.link import load_object
from tilewright.codegen.llvm_builder import ModuleBuilder
from tilewright.targets.cpu.dot.microkernel import emit_dot
from tilewright.targets.cpu.dot.spec import DotSpec, SourceTile

SHAPES = [(1, 16, 64), (8, 32, 64), (16, 64, 128), (9, 128, 64), (16, 96, 192)]


def arguments(spec: DotSpec) -> tuple[str, ...]:
    more = ("ptr", "i64") * (spec.next_b is not None) + ("ptr", "i64") * spec.transposed_b
    return ("ptr", "ptr", "ptr", *("ptr",) * bool(spec.room_bytes), *more)


def link(specs: list[DotSpec], unit: str) -> tuple[Native, list[str]]:
    module = ModuleBuilder()
    names = [emit_dot(module, spec) for spec in specs]
    functions = {name: arguments(spec) for name, spec in zip(names, specs, strict=True)}
    export(module, functions)
    text = modelled(module.text()) if unit == "model" else module.text()
    compiled = compile_here(text)
    exported = [f"export.{name[1:]}" for name in names]
    return Native(load_object(compiled.object, *exported), functions), names


def run(
    native: Native, name: str, spec: DotSpec, a: np.ndarray, b: np.ndarray, acc: np.ndarray
) -> np.ndarray:
    """The result; a transposed B ends where its memory does, its rows lie apart."""
    rows, result = pack_rows(spec.a_layout, a), aligned(acc.shape, acc.dtype)
    result[...] = acc
    room = aligned(max(spec.room_bytes, 1), np.dtype(np.uint8), b"\xa5")
    held = [room.ctypes.data] * bool(spec.room_bytes)
    if not spec.transposed_b:
        panels = pack_panels(spec.b_layout, b)
        kept = aligned(panels.shape, panels.dtype)
        kept[...] = panels
        native.call(name, rows.ctypes.data, kept.ctypes.data, result.ctypes.data, *held)
        return result
    wide = np.zeros((b.shape[1], b.shape[0] + 5), b.dtype)
    wide[:, 5:] = b.T
    near = before_a_hole(wide)
    at, stride = near.ctypes.data + 5 * b.itemsize, near.shape[1]
    fetch = (at, stride) * (spec.next_b is not None)
    native.call(name, rows.ctypes.data, at, result.ctypes.data, *held, *fetch, at, stride)
    return result


@pytest.mark.parametrize("unit", UNITS)
@pytest.mark.parametrize(("a_dtype", "b_dtype"), [*BYTES, ("bf16", "bf16")])
def test_sums_have_the_bits_of_the_packed_product(
    a_dtype: str, b_dtype: str, unit: str, rng: np.random.Generator
) -> None:
    # bf16 sums are added to what was there at the end, not before: the same bits from zero.
    is_exact = a_dtype != "bf16"
    packed = [amx_spec(shape, a_dtype, b_dtype, zero_init=not is_exact) for shape in SHAPES]
    across = [replace(spec, transposed_b=True, next_b=SourceTile(1, 1)) for spec in packed]
    native, names = link([*packed, *across], unit)
    for index, spec in enumerate(packed):
        a = random_tile(rng, (spec.m, spec.k), a_dtype)
        b = random_tile(rng, (spec.k, spec.n), b_dtype)
        acc = random_tile(rng, (spec.m, spec.n), spec.acc_dtype)
        want = run(native, names[index], spec, a, b, acc)
        got = run(native, names[len(packed) + index], across[index], a, b, acc)
        np.testing.assert_array_equal(got.view(np.uint32), want.view(np.uint32), str(spec))


@pytest.mark.parametrize("unit", UNITS)
def test_a_sum_is_added_to_what_was_there(unit: str, rng: np.random.Generator) -> None:
    spec = amx_spec((16, 64, 64), "bf16", "bf16", transposed_b=True)
    native, (name,) = link([spec], unit)
    a, b = random_tile(rng, (16, 64), "bf16"), random_tile(rng, (64, 64), "bf16")
    acc = rng.standard_normal((16, 64)).astype(np.float32)
    got = run(native, name, spec, a, b, acc)
    exact = acc + a.astype(np.float64) @ b.astype(np.float64)
    size = np.abs(acc) + np.abs(a.astype(np.float64)) @ np.abs(b.astype(np.float64))
    assert (np.abs(got - exact) <= 66 * 2.0**-24 * size).all()


def test_which_products_read_a_transposed_matrix() -> None:
    reads = [(1, 16, 64), (16, 64, 32), (16, 48, 32)]
    packs = [(17, 64, 64), (32, 64, 64), (16, 8, 64), (16, 64, 48)]
    assert all(amx_spec(shape, "bf16", "bf16").can_read_transposed_b for shape in reads)
    assert not any(amx_spec(shape, "bf16", "bf16").can_read_transposed_b for shape in packs)
    assert not amx_spec((16, 64, 64), "f16", "f16").can_read_transposed_b, "two parts"


def test_weights_are_loaded_where_they_lie_and_configured_once() -> None:
    module = ModuleBuilder()
    spec = amx_spec((16, 128, 512), "bf16", "bf16", transposed_b=True)
    text = assemble(module, SAPPHIRE_RAPIDS, {emit_dot(module, spec): arguments(spec)})
    assert text.count("ldtilecfg") == text.count("tilerelease") == 1
    assert text.count("tdpbf16ps\t") == text.count("tileloaddt1\t") == 4
