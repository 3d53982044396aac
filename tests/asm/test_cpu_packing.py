"""Packed operands are bit for bit what the NumPy definition of the layouts says."""

from __future__ import annotations

import ctypes
import mmap

import numpy as np
import pytest

from tests.asm.dot_harness import (
    NUMPY_DTYPE,
    Machine,
    aligned,
    link,
    pack_panels,
    pack_rows,
    random_tile,
    runnable_machines,
)
from tilewright.codegen.llvm_builder import ModuleBuilder
from tilewright.support.dataclass import replace
from tilewright.targets.cpu.dot.pack_spec import PackSpec
from tilewright.targets.cpu.dot.packing import emit_pack
from tilewright.targets.cpu.dot.panels import (
    RowLayout,
    VectorUnit,
)
from tilewright.targets.cpu.dot.spec import DotSpec

ARGUMENTS = ("ptr", "i64", "ptr")
SHAPES = [(1, 1), (3, 5), (16, 16), (64, 8), (37, 50), (128, 176)]
MACHINES = runnable_machines()


def pack_specs(
    dtype: str, unit: VectorUnit, extent: int, k: int, is_amx: bool = False
) -> list[tuple[str, PackSpec]]:
    types, vectors = (dtype, dtype), (unit.features, unit.vector_bytes)
    spec = DotSpec(extent, extent, k, *types, *vectors, bf16_dot=True, is_amx=is_amx)
    return [
        (role, spec.pack_spec(role, transposed))
        for role in ("a", "b")
        for transposed in (False, True)
    ]


def at_end_of_page(tile: np.ndarray) -> np.ndarray:
    """A copy of `tile` whose last element ends at a page that may not be read."""
    page = mmap.PAGESIZE
    whole = -(-tile.nbytes // page) * page
    region = mmap.mmap(-1, whole + page)
    view = np.frombuffer(region, np.uint8)
    libc = ctypes.CDLL(None, use_errno=True)
    protect = libc.mprotect
    protect.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)
    assert protect(view.ctypes.data + whole, page, 0) == 0
    copy = view[whole - tile.nbytes : whole].view(tile.dtype).reshape(tile.shape)
    copy[...] = tile
    return copy


def expected(role: str, spec: PackSpec, tile: np.ndarray) -> np.ndarray:
    kept = tile.astype(NUMPY_DTYPE[spec.layout.element])
    if isinstance(spec.layout, RowLayout):
        return pack_rows(spec.layout, kept)
    return pack_panels(spec.layout, kept)


def defined(role: str, spec: PackSpec) -> np.ndarray:
    """Where the layout promises a value: whole k-groups of rows, whole vectors of panels."""
    if isinstance(spec.layout, RowLayout):
        mask = np.zeros((spec.extent, spec.layout.stride_elems(spec.k)), bool)
        mask[:, : -(-spec.k // spec.group) * spec.group] = True
        return mask
    whole = -(-spec.extent // spec.layout.lanes) * spec.layout.lanes
    wide = np.ones((-(-spec.k // spec.group) * spec.group, whole), bool)
    return pack_panels(spec.layout, wide)


@pytest.mark.parametrize("machine", MACHINES, ids=lambda machine: machine.label)
@pytest.mark.parametrize("dtype", ["f32", "f64", "f16", "bf16", "i8", "u8", "f8E4M3FN", "f8E5M2"])
def test_packed_operands_equal_the_definition(
    dtype: str, machine: Machine, rng: np.random.Generator
) -> None:
    module = ModuleBuilder()
    cases = [
        (role, spec, emit_pack(module, spec))
        for extent, k in SHAPES
        for role, spec in pack_specs(dtype, machine.unit, extent, k)
    ]
    native = link(module, machine, {name: ARGUMENTS for _, _, name in cases})
    for role, spec, name in cases:
        shape = (spec.extent, spec.k) if role == "a" else (spec.k, spec.extent)
        tile = random_tile(rng, shape, dtype)
        in_memory = np.ascontiguousarray(tile.T if spec.transposed else tile)
        source = at_end_of_page(in_memory)
        want = expected(role, spec, tile)
        packed = aligned(want.shape, want.dtype, b"\xff")
        native.call(name, source.ctypes.data, in_memory.shape[1], packed.ctypes.data)
        mask = defined(role, spec)
        assert packed[mask].tobytes() == want[mask].tobytes(), (role, spec.name)


@pytest.mark.parametrize("dtype", ["f32", "f64", "f16", "bf16", "i8", "u8", "f8E4M3FN"])
def test_a_limited_copy_finds_zeros_behind_what_there_is(
    dtype: str, rng: np.random.Generator
) -> None:
    """As a whole copy of a tile with zeros there; memory ends where the operand does."""
    machine, module = MACHINES[-1], ModuleBuilder()
    specs = [each for shape in SHAPES for each in pack_specs(dtype, machine.unit, *shape)]
    if dtype in ("bf16", "f16", "i8", "u8"):
        specs += pack_specs(dtype, machine.unit, 64, 128, is_amx=True)
    cases = [
        (role, spec, emit_pack(module, spec), emit_pack(module, replace(spec, is_limited=True)))
        for role, spec in specs
    ]
    arguments = {whole: ARGUMENTS for *_, whole, _ in cases}
    arguments |= {limited: (*ARGUMENTS, *(("i64",) * 4)) for *_, limited in cases}
    native = link(module, machine, arguments)
    for role, spec, whole, limited in cases:
        for extent, depth in parts_of(spec.extent, spec.k):
            there = (extent, depth) if role == "a" else (depth, extent)
            tile = np.zeros((spec.extent, spec.k) if role == "a" else (spec.k, spec.extent))
            tile = tile.astype(NUMPY_DTYPE[dtype])
            tile[: there[0], : there[1]] = random_tile(rng, there, dtype)
            stored = np.ascontiguousarray(tile.T if spec.transposed else tile)
            rows, columns = there[::-1] if spec.transposed else there
            source = at_end_of_page(np.ascontiguousarray(stored[:rows, :columns]))
            size, kept = spec.layout.size_elems(*tile.shape), NUMPY_DTYPE[spec.layout.element]
            packed, want = (aligned((size,), kept, b"\xff") for _ in range(2))
            native.call(whole, stored.ctypes.data, stored.shape[1], want.ctypes.data)
            there = source.ctypes.data, columns
            native.call(limited, *there, packed.ctypes.data, extent, depth, spec.extent, spec.k)
            assert packed.tobytes() == want.tobytes(), (role, limited, extent, depth)
            # Where no zeros are asked for, what there is lies where it was.
            packed, ones = (aligned((size,), kept, b"\0") for _ in range(2))
            native.call(limited, *there, packed.ctypes.data, extent, depth, extent, depth)
            is_there = np.ascontiguousarray((stored != 0).astype(stored.dtype))
            native.call(whole, is_there.ctypes.data, stored.shape[1], ones.ctypes.data)
            is_one = ones.view(f"u{kept.itemsize}") != zero_of(spec)
            assert packed[is_one].tobytes() == want[is_one].tobytes(), (role, limited)


def zero_of(spec: PackSpec) -> int:
    """What a copy makes of zero, as bits."""
    return 128 if isinstance(spec.layout, RowLayout) and spec.layout.bias else 0


def parts_of(extent: int, k: int) -> list[tuple[int, int]]:
    """How much of an operand there is: all, one row short, one element, an odd part."""
    parts = {(extent, k), (max(1, extent - 1), k), (extent, max(1, k - 1)), (1, 1)}
    return sorted(parts | {(-(-extent // 2) + 1 if extent > 2 else 1, -(-k // 3))})
