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
from tilewright.targets.cpu.dot.packing import PackSpec, emit_pack
from tilewright.targets.cpu.dot.panels import (
    RowLayout,
    VectorUnit,
)
from tilewright.targets.cpu.dot.spec import DotSpec

ARGUMENTS = ("ptr", "i64", "ptr")
SHAPES = [(1, 1), (3, 5), (16, 16), (64, 8), (37, 50), (128, 176)]
MACHINES = runnable_machines()


def pack_specs(dtype: str, unit: VectorUnit, extent: int, k: int) -> list[tuple[str, PackSpec]]:
    spec = DotSpec(extent, extent, k, dtype, dtype, unit.features, unit.vector_bytes, bf16_dot=True)
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
