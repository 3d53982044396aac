"""Few rows by a matrix that lies transposed, two rows by two columns at once, under qemu."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.aarch64.functions import Call, call_functions
from tests.aarch64.machines import NEOVERSE_V2
from tests.aarch64.test_2x2_products import FEATURES, SIGNS, values
from tests.asm.dot_harness import NUMPY_DTYPE
from tests.corpus.case import Array
from tests.holes import before_a_hole
from tilewright.codegen.llvm_builder import ModuleBuilder
from tilewright.support.dataclass import replace
from tilewright.targets.cpu.dot.microkernel import emit_dot
from tilewright.targets.cpu.dot.packing import emit_pack
from tilewright.targets.cpu.dot.spec import DotSpec, SourceTile

pytestmark = pytest.mark.aarch64

# Rows of each block and none of them, whole and partial lines of k, four columns and more.
SHAPES = [
    (2, 16, 1),
    (1, 4, 16),
    (3, 32, 17),
    (4, 16, 64),
    (8, 64, 31),
    (13, 16, 96),
    (16, 32, 130),
]
# Rows, columns and depth that are seen, of 16 by 64 by 96.
LIMITS = [(1, 64, 96), (2, 17, 96), (5, 33, 7), (9, 64, 95), (16, 1, 1), (16, 63, 65)]


def multiplied(
    spec: DotSpec, operands: tuple[Array, Array, Array], folder: Path, limits: tuple[int, ...] = ()
) -> Array:
    """The result of a product; its B is at the end of memory, as far as it is read."""
    a, b, acc = operands
    module, result = ModuleBuilder(), acc.copy()
    packed = np.zeros(spec.a_layout.size_elems(spec.m, spec.k), a.dtype)
    pack = Call(emit_pack(module, spec.pack_spec("a")), (a, a.shape[1], packed))
    source = before_a_hole(np.ascontiguousarray(b.T))
    fetched = (acc, acc.shape[1]) if spec.next_b is not None else ()
    rest = (*fetched, source, source.shape[1], *limits)
    dot = Call(emit_dot(module, spec), (packed, acc, result, *rest))
    call_functions(module, [pack, dot], NEOVERSE_V2, folder)
    return result


def check(got: Array, operands: tuple[Array, Array, Array]) -> None:
    """Integers are exact, floats within the bound of their sums."""
    a, b, acc = (x.astype(np.int64 if got.dtype == np.int32 else np.float64) for x in operands)
    if got.dtype == np.int32:
        np.testing.assert_array_equal(got, (acc + a @ b).astype(np.int32))
        return
    bound = np.abs(a) @ np.abs(b) + np.abs(acc)
    limit = (a.shape[1] + 4) * np.finfo(np.float32).eps * bound
    assert (np.abs(got - (acc + a @ b)) <= limit).all()


@pytest.mark.parametrize("types", [*SIGNS, ("bf16", "bf16")], ids="-".join)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_products_are_numpys(
    shape: tuple[int, int, int], types: tuple[str, str], tmp_path: Path, rng: np.random.Generator
) -> None:
    m, n, k = shape
    spec = DotSpec(m, n, k, *types, FEATURES, 16, is_2x2=True, transposed_b=True)
    spec = replace(spec, next_b=SourceTile(1, 1) if k > 64 else None)
    assert spec.can_read_transposed_b
    a, b = values(rng, (m, k), types[0]), values(rng, (k, n), types[1])
    acc = values(rng, (m, n), spec.acc_dtype)
    check(multiplied(spec, (a, b, acc), tmp_path), (a, b, acc))


@pytest.mark.parametrize("types", [("i8", "i8"), ("i8", "u8"), ("bf16", "bf16")], ids="-".join)
@pytest.mark.parametrize("limits", LIMITS, ids=str)
def test_what_is_beyond_the_limits_is_neither_read_nor_summed(
    limits: tuple[int, int, int],
    types: tuple[str, str],
    tmp_path: Path,
    rng: np.random.Generator,
) -> None:
    spec = DotSpec(16, 64, 96, *types, FEATURES, 16, is_2x2=True)
    spec = replace(spec, transposed_b=True, is_limited=True)
    rows, columns, depth = limits
    a, b = values(rng, (16, 96), types[0]), values(rng, (96, 64), types[1])
    a[:, depth:] = 0  # as a masked load leaves it
    acc = values(rng, (16, 64), spec.acc_dtype)
    seen = np.ascontiguousarray(b[:depth, :columns])
    got = multiplied(spec, (a, seen, acc), tmp_path, limits)[:rows, :columns]
    check(got, (a[:rows, :depth], seen, acc[:rows, :columns]))


def test_the_sums_of_bf16_are_those_of_panels(tmp_path: Path, rng: np.random.Generator) -> None:
    plain = DotSpec(7, 12, 52, "bf16", "bf16", FEATURES, 16, is_2x2=True)
    a, b, acc = (values(rng, size, "bf16") for size in ((7, 52), (52, 12), (7, 12)))
    acc = acc.astype(np.float32)
    across = multiplied(replace(plain, transposed_b=True), (a, b, acc), tmp_path)
    module, result = ModuleBuilder(), acc.copy()
    rows = np.zeros(plain.a_layout.size_elems(7, 52), NUMPY_DTYPE["bf16"])
    panels = np.zeros(plain.b_layout.size_elems(52, 12), NUMPY_DTYPE["bf16"])
    calls = [
        Call(emit_pack(module, plain.pack_spec("a")), (a, 52, rows)),
        Call(emit_pack(module, plain.pack_spec("b")), (b, 12, panels)),
        Call(emit_dot(module, plain), (rows, panels, result)),
    ]
    call_functions(module, calls, NEOVERSE_V2, tmp_path)
    np.testing.assert_array_equal(across, result)
