"""The register-blocked `dot`: right for every shape, dtype and machine, and free of spills."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest

from benchmarks.multiply_peak import NUM_CHAINS, emit_peak_loop
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
from tilewright.machine.cpus import LINE_BYTES
from tilewright.targets.cpu.dot.block_runs import MAX_ADDRESSES, split_panels, split_rows
from tilewright.targets.cpu.dot.block_spec import UNROLL
from tilewright.targets.cpu.dot.microkernel import emit_dot
from tilewright.targets.cpu.dot.panels import (
    Instruction,
    PanelLayout,
    VectorUnit,
    choose_multiply,
)
from tilewright.targets.cpu.dot.spec import DotSpec, SourceTile

ARGUMENTS = ("ptr", "ptr", "ptr")
SHAPES = [
    *[(1, 1, 1), (1, 5, 3), (2, 64, 16), (3, 200, 9), (4, 16, 32), (13, 48, 8)],
    *[(16, 2, 5), (37, 50, 24), (64, 64, 64), (128, 176, 16), (5, 80, 33)],
]
LARGEST = {"i8": -128, "u8": 255}
HOST_MACHINES = runnable_machines()
DTYPES = [("f32", "f32"), ("f64", "f64"), ("bf16", "bf16"), ("f16", "f16"), ("f32", "f64")]
BYTES = [("i8", "i8"), ("u8", "u8"), ("i8", "u8"), ("u8", "i8")]

each_machine = pytest.mark.parametrize("machine", HOST_MACHINES, ids=lambda each: each.label)


def dot_spec(
    machine: Machine, shape: tuple[int, int, int], a: str, b: str, **options: bool
) -> DotSpec:
    m, n, k = shape
    unit = machine.unit
    bf16_dot = "bf16" in machine.label
    return DotSpec(m, n, k, a, b, unit.features, unit.vector_bytes, bf16_dot=bf16_dot, **options)


def kept(tile: np.ndarray, element: str) -> np.ndarray:
    return tile.astype(NUMPY_DTYPE[element])


def run_dot(
    native: Native, name: str, spec: DotSpec, a: np.ndarray, b: np.ndarray, acc: np.ndarray
) -> np.ndarray:
    rows = pack_rows(spec.a_layout, kept(a, spec.a_layout.element))
    panels = pack_panels(spec.b_layout, kept(b, spec.b_layout.element))
    a_buffer, b_buffer = aligned(rows.shape, rows.dtype), aligned(panels.shape, panels.dtype)
    result = aligned(acc.shape, acc.dtype)
    a_buffer[...], b_buffer[...], result[...] = rows, panels, acc
    native.call(name, a_buffer.ctypes.data, b_buffer.ctypes.data, result.ctypes.data)
    return result


@each_machine
@pytest.mark.parametrize(("a_dtype", "b_dtype"), BYTES, ids=lambda dtype: dtype)
def test_byte_products_are_exact(
    a_dtype: str, b_dtype: str, machine: Machine, rng: np.random.Generator
) -> None:
    module = ModuleBuilder()
    cases = [
        (spec, emit_dot(module, spec))
        for shape in SHAPES
        for spec in [dot_spec(machine, shape, a_dtype, b_dtype)]
    ]
    native = link(module, machine, {name: ARGUMENTS for _, name in cases})
    for spec, name in cases:
        a = random_tile(rng, (spec.m, spec.k), a_dtype)
        b = random_tile(rng, (spec.k, spec.n), b_dtype)
        # The largest magnitudes, where a saturating instruction would show.
        a[: spec.m // 2], b[:, : spec.n // 2] = LARGEST[a_dtype], LARGEST[b_dtype]
        acc = rng.integers(-1000, 1000, (spec.m, spec.n), np.int32)
        want = acc + a.astype(np.int32) @ b.astype(np.int32)
        np.testing.assert_array_equal(run_dot(native, name, spec, a, b, acc), want)


@each_machine
@pytest.mark.parametrize("zero_init", [False, True], ids=["add", "overwrite"])
@pytest.mark.parametrize(("a_dtype", "b_dtype"), DTYPES, ids=lambda dtype: dtype)
def test_float_products_stay_within_the_bound_of_their_accumulation(
    a_dtype: str, b_dtype: str, zero_init: bool, machine: Machine, rng: np.random.Generator
) -> None:
    module = ModuleBuilder()
    cases = [
        (spec, emit_dot(module, spec))
        for shape in SHAPES
        for spec in [dot_spec(machine, shape, a_dtype, b_dtype, zero_init=zero_init)]
    ]
    native = link(module, machine, {name: ARGUMENTS for _, name in cases})
    for spec, name in cases:
        a = random_tile(rng, (spec.m, spec.k), a_dtype)
        b = random_tile(rng, (spec.k, spec.n), b_dtype)
        acc_dtype = NUMPY_DTYPE[spec.acc_dtype]
        acc = rng.standard_normal((spec.m, spec.n)).astype(acc_dtype)
        start = np.full_like(acc, np.nan) if zero_init else acc
        wide_a, wide_b = a.astype(np.longdouble), b.astype(np.longdouble)
        base = 0 if zero_init else acc.astype(np.longdouble)
        want = wide_a @ wide_b + base
        bound = np.abs(wide_a) @ np.abs(wide_b) + np.abs(base)
        got = run_dot(native, name, spec, a, b, start)
        limit = (spec.k + 2) * np.finfo(acc_dtype).eps / 2 * bound
        assert (np.abs(got - want) <= limit).all(), spec


@each_machine
def test_separate_rounding_equals_numpy_step_by_step(
    machine: Machine, rng: np.random.Generator
) -> None:
    module = ModuleBuilder()
    spec = dot_spec(machine, (7, 19, 11), "f32", "f32", contract=False)
    native = link(module, machine, {emit_dot(module, spec): ARGUMENTS})
    (name,) = native.arguments
    a = random_tile(rng, (spec.m, spec.k), "f32")
    b = random_tile(rng, (spec.k, spec.n), "f32")
    acc = random_tile(rng, (spec.m, spec.n), "f32")
    total = np.zeros_like(acc)
    for k in range(spec.k):
        total = total + a[:, k, None] * b[None, k]
    np.testing.assert_array_equal(run_dot(native, name, spec, a, b, acc), acc + total)


@each_machine
def test_strides_leave_the_elements_between_rows_alone(
    machine: Machine, rng: np.random.Generator
) -> None:
    unit = machine.unit
    spec = DotSpec(9, 21, 6, "f32", "f32", unit.features, unit.vector_bytes, lda=10, ldc=40)
    module = ModuleBuilder()
    name = emit_dot(module, spec)
    native = link(module, machine, {name: ARGUMENTS})
    a, b = random_tile(rng, (9, 10), "f32"), random_tile(rng, (6, 21), "f32")
    acc = random_tile(rng, (9, 40), "f32")
    result, panels = acc.copy(), pack_panels(spec.b_layout, b)
    native.call(name, a.ctypes.data, panels.ctypes.data, result.ctypes.data)
    np.testing.assert_array_equal(result[:, 21:], acc[:, 21:])
    np.testing.assert_allclose(result[:, :21], acc[:, :21] + a[:, :6] @ b, rtol=1e-4, atol=1e-5)


@each_machine
def test_infinities_and_nans_reach_only_their_own_row_and_column(machine: Machine) -> None:
    spec = dot_spec(machine, (8, 20, 5), "f32", "f32")
    module = ModuleBuilder()
    name = emit_dot(module, spec)
    native = link(module, machine, {name: ARGUMENTS})
    a, b = np.ones((8, 5), np.float32), np.ones((5, 20), np.float32)
    a[2, 3], b[1, 17] = np.nan, np.inf
    got = run_dot(native, name, spec, a, b, np.zeros((8, 20), np.float32))
    with np.errstate(invalid="ignore"):
        np.testing.assert_array_equal(got, a @ b)


def inner_loops(assembly: str) -> list[str]:
    """The bodies of the innermost loops of the assembly's microkernels."""
    blocks = re.split(r"\n(?=\.LBB\d+_\d+:)", assembly)
    return [
        block
        for block in blocks
        if re.search(r"\n\tj\w+\t" + re.escape(block.split(":")[0].strip()) + r"\b", block)
        and re.search(r"vfmadd|vdpbf16|vpdpbusd|vpmaddwd|mulps", block)
    ]


PERFORMANCE = [
    ("f32", 24, "vfmadd231ps"),
    ("f64", 24, "vfmadd231pd"),
    ("bf16", 24, "vdpbf16ps"),
    ("i8", 24, "vpdpbusd"),
]


@pytest.mark.parametrize(("dtype", "products", "mnemonic"), PERFORMANCE)
def test_the_avx512_inner_loop_has_no_spill_and_whole_registers(
    dtype: str, products: int, mnemonic: str
) -> None:
    machine = next(each for each in MACHINES if each.label == "avx512-bf16")
    module = ModuleBuilder()
    name = emit_dot(module, dot_spec(machine, (96, 128, 64), dtype, dtype))
    loops = inner_loops(assemble(module, machine, {name: ARGUMENTS}))
    assert loops
    for loop in loops:
        body = loop[: loop.index("\tj")]
        assert "rsp" not in body
        assert body.count(mnemonic) == len(re.findall(rf"{mnemonic}\t.*%zmm", body)) >= products - 4


def test_the_avx2_inner_loop_has_no_spill() -> None:
    machine = next(each for each in MACHINES if each.label == "avx2")
    module = ModuleBuilder()
    name = emit_dot(module, dot_spec(machine, (96, 128, 64), "f32", "f32"))
    loops = inner_loops(assemble(module, machine, {name: ARGUMENTS}))
    assert loops
    for loop in loops:
        body = loop[: loop.index("\tj")]
        assert "rsp" not in body
        assert body.count("vfmadd231ps") == 12 * UNROLL


@pytest.mark.parametrize(("label", "columns"), [("avx2", 8), ("avx512", 16)])
def test_a_block_of_one_vector_keeps_the_addresses_of_its_rows(label: str, columns: int) -> None:
    machine = next(each for each in MACHINES if each.label == label)
    module = ModuleBuilder()
    spec = dot_spec(machine, (96, columns, 32), "f32", "f32", packs_b=True, is_limited=True)
    name = emit_dot(module, replace(spec, a_in_place=True))
    more = (*ARGUMENTS, "i64", "ptr", "i64", "i64", "i64", "i64")
    loops = inner_loops(assemble(module, machine, {name: more}))
    assert loops
    for loop in loops:
        body = loop[: loop.index("\tj")]
        # The first rows also read B where it lies, and pack it, a step at a time.
        is_unrolled = body.count("vfmadd231ps") > MAX_ADDRESSES
        assert body.count("rsp") <= (0 if is_unrolled else 3)


def test_neon_multiplies_by_fused_lanes_without_spills() -> None:
    module = ModuleBuilder()
    name = emit_dot(module, dot_spec(NEON, (96, 128, 64), "f32", "f32"))
    assembly = assemble(module, NEON, {name: ARGUMENTS})
    assert assembly.count("fmla\t") >= 24
    assert not re.search(r"(ldr|str|ldp|stp)\tq\d+.*\[sp", assembly)


def test_code_does_not_grow_with_the_tile() -> None:
    machine = next(each for each in MACHINES if each.label == "avx512")
    small, large = ModuleBuilder(), ModuleBuilder()
    emit_dot(small, dot_spec(machine, (96, 256, 64), "f32", "f32"))
    emit_dot(large, dot_spec(machine, (960, 2560, 640), "f32", "f32"))
    assert len(large.text()) < 1.1 * len(small.text())


def test_rows_are_split_into_nearly_equal_blocks() -> None:
    assert [(run.count, run.size) for run in split_rows(64, 13)] == [(4, 13), (1, 12)]
    for m in range(1, 200):
        runs = split_rows(m, 6)
        assert sum(run.count * run.size for run in runs) == m
        assert {run.size for run in runs} <= {runs[0].size, runs[0].size - 1}


def test_panels_are_split_into_groups_and_a_rest() -> None:
    assert [(run.first, run.count, run.size) for run in split_panels(7, 2)] == [
        (0, 3, 2),
        (6, 1, 1),
    ]


def test_offsets_agree_with_the_packed_array(rng: np.random.Generator) -> None:
    for layout in (PanelLayout("f32", 48, 1, 16), PanelLayout("i8", 32, 4, 16)):
        b = rng.integers(0, 100, (10, 70))
        panels = pack_panels(layout, b)
        for k, n in np.ndindex(10, 70):
            assert panels[layout.offset(k, n, 10)] == b[k, n]
        assert panels.size == layout.size_elems(10, 70)


def test_a_tile_of_one_panel_is_its_own_packing(rng: np.random.Generator) -> None:
    spec = DotSpec(8, 64, 16, "f32", "f32", frozenset({"avx512f", "fma"}), 64)
    b = random_tile(rng, (16, 64), "f32")
    np.testing.assert_array_equal(pack_panels(spec.b_layout, b), b.reshape(-1))


def test_the_bf16_instruction_is_a_choice_and_needs_its_feature() -> None:
    with_dot = VectorUnit(frozenset({"avx512f", "avx512vl", "avx512bf16", "sse4a"}), 64)
    slow_dot = VectorUnit(frozenset({"avx512f", "avx512vl", "avx512bf16"}), 64)
    without = VectorUnit(frozenset({"avx512f", "avx512vl"}), 64)
    assert choose_multiply("bf16", "bf16", with_dot).instruction is Instruction.BF16_DOT
    assert choose_multiply("bf16", "bf16", without).instruction is Instruction.FMA
    assert choose_multiply("bf16", "bf16", slow_dot).instruction is Instruction.FMA
    forced = choose_multiply("bf16", "bf16", slow_dot, bf16_dot=True)
    assert forced.instruction is Instruction.BF16_DOT
    assert choose_multiply("bf16", "bf16", with_dot, contract=False).k_group == 1


def test_an_arm_core_multiplies_what_its_features_say() -> None:
    base = frozenset({"neon", "dotprod"})
    n1, v2 = VectorUnit(base, 16), VectorUnit(base | {"bf16", "i8mm"}, 16)
    assert choose_multiply("bf16", "bf16", n1).instruction is Instruction.FMA
    assert choose_multiply("bf16", "bf16", v2).instruction is Instruction.BF16_DOT_NEON
    assert choose_multiply("bf16", "bf16", v2, contract=False).k_group == 1
    assert choose_multiply("i8", "u8", n1).instruction is Instruction.I32
    assert choose_multiply("i8", "u8", v2).instruction is Instruction.I8_DOT_NEON


@pytest.mark.parametrize(
    ("types", "name"),
    [
        (("i8", "u8"), "usdot"),
        (("u8", "i8"), "usdot"),
        (("i8", "i8"), "sdot"),
        (("bf16", "bf16"), "bfdot"),
    ],
)
def test_neon_has_an_instruction_for_each_pair_of_types(types: tuple[str, str], name: str) -> None:
    features = frozenset({"neon", "dotprod", "i8mm", "bf16"})
    machine = replace(NEON, cpu="neoverse-v2", unit=VectorUnit(features, 16))
    module, spec = ModuleBuilder(), DotSpec(8, 16, 32, *types, features, 16)
    words = assemble(module, machine, {emit_dot(module, spec): ARGUMENTS}).split()
    assert {word for word in words if word.endswith("dot")} == {name}


@each_machine
@pytest.mark.parametrize("shape", [(1, 1, 1), (13, 48, 8), (37, 50, 24), (128, 176, 16)])
def test_a_read_in_place_gives_the_same_bits(
    shape: tuple[int, int, int], machine: Machine, rng: np.random.Generator
) -> None:
    packed = dot_spec(machine, shape, "f32", "f32")
    next_b = SourceTile(rows=packed.k, element_bytes=4)
    in_place = replace(packed, a_in_place=True, next_b=next_b)
    module = ModuleBuilder()
    names = emit_dot(module, packed), emit_dot(module, in_place)
    more = (*ARGUMENTS, "i64", "ptr", "i64")
    native = link(module, machine, {names[0]: ARGUMENTS, names[1]: more})
    a = random_tile(rng, (packed.m, packed.k + 3), "f32")
    b = random_tile(rng, (packed.k, packed.n), "f32")
    acc = random_tile(rng, (packed.m, packed.n), "f32")
    want = run_dot(native, names[0], packed, a[:, : packed.k], b, acc)
    panels = pack_panels(packed.b_layout, b)
    operands = (a.ctypes.data, panels.ctypes.data, acc.ctypes.data)
    native.call(names[1], *operands, a.shape[1], b.ctypes.data, b.shape[1])
    np.testing.assert_array_equal(acc, want)


@each_machine
@pytest.mark.parametrize("dtype", ["f32", "f16", "f64"])
@pytest.mark.parametrize("shape", [(1, 1, 1), (3, 200, 8), (37, 50, 24), (64, 128, 16)])
def test_b_read_as_rows_gives_the_same_bits_and_the_same_panels(
    shape: tuple[int, int, int], dtype: str, machine: Machine, rng: np.random.Generator
) -> None:
    packed = dot_spec(machine, shape, dtype, dtype)
    next_b = SourceTile(rows=packed.k, element_bytes=4)
    by_rows = replace(packed, packs_b=True, next_b=next_b)
    module = ModuleBuilder()
    names = emit_dot(module, packed), emit_dot(module, by_rows)
    more = (*ARGUMENTS, "ptr", "i64", "ptr", "i64")
    native = link(module, machine, {names[0]: ARGUMENTS, names[1]: more})
    a = random_tile(rng, (packed.m, packed.k), dtype)
    b = random_tile(rng, (packed.k, packed.n + 5), dtype)
    inside = np.ascontiguousarray(b[:, : packed.n])
    acc = random_tile(rng, (packed.m, packed.n), packed.acc_dtype)
    want = run_dot(native, names[0], packed, a, inside, acc)
    rows = pack_rows(packed.a_layout, kept(a, packed.a_layout.element))
    panels = pack_panels(packed.b_layout, kept(inside, packed.b_layout.element))
    room = np.full_like(panels, -1)
    operands = (rows.ctypes.data, room.ctypes.data, acc.ctypes.data)
    native.call(names[1], *operands, b.ctypes.data, b.shape[1], b.ctypes.data, b.shape[1])
    np.testing.assert_array_equal(acc, want)
    if packed.m > 28:
        valid = pack_panels(packed.b_layout, np.ones_like(inside, panels.dtype)) == 1
        np.testing.assert_array_equal(room[valid], panels[valid])


@each_machine
@pytest.mark.parametrize("dtype", ["f16", "bf16", "i8"])
@pytest.mark.parametrize("packs_b", [False, True], ids=["packed", "packs"])
@pytest.mark.parametrize("shape", [(37, 176, 24), (16, 176, 24), (7, 150, 23)])
def test_rows_alone_are_left_out_in_whole_blocks(
    shape: tuple[int, int, int],
    packs_b: bool,
    dtype: str,
    machine: Machine,
    rng: np.random.Generator,
) -> None:
    m, n, k = shape
    packed = dot_spec(machine, shape, dtype, dtype)
    if packs_b and not packed.can_pack_b:
        return  # no such product is asked of it
    module, limited = ModuleBuilder(), replace(packed, packs_b=packs_b, has_row_limit=True)
    names = emit_dot(module, packed), emit_dot(module, limited)
    more = (*ARGUMENTS, *("ptr", "i64") * packs_b, "i64")
    native = link(module, machine, {names[0]: ARGUMENTS, names[1]: more})
    a, b = random_tile(rng, (m, k), dtype), before_a_hole(random_tile(rng, (k, n), dtype))
    acc = random_tile(rng, (m, n), packed.acc_dtype)
    want = run_dot(native, names[0], packed, a, b, acc.copy())
    rows = pack_rows(packed.a_layout, kept(a, packed.a_layout.element))
    panels = pack_panels(packed.b_layout, kept(b, packed.b_layout.element))
    for seen in [each for each in (1, 2, 4, 5, 7, 8, 9, 16, 28, 29, 36, 37) if each <= m]:
        sums, room = acc.copy(), np.full_like(panels, -1) if packs_b else panels
        operands = (rows.ctypes.data, room.ctypes.data, sums.ctypes.data)
        source = (b.ctypes.data, b.shape[1]) if packs_b else ()
        native.call(names[1], *operands, *source, seen)
        np.testing.assert_array_equal(sums[:seen], want[:seen])
        assert ((sums == acc) | (sums == want)).all()
        assert seen > 1 or m == 7 or (sums[-1] == acc[-1]).all()


@each_machine
@pytest.mark.parametrize("dtype", ["f32", "f64"])
@pytest.mark.parametrize("zero_init", [False, True], ids=["add", "overwrite"])
@pytest.mark.parametrize("m", [16, 37])
def test_limits_change_no_bit_of_what_is_seen_and_nothing_beyond_is_read(
    m: int, zero_init: bool, dtype: str, machine: Machine, rng: np.random.Generator
) -> None:
    if machine.unit.features.isdisjoint(("avx2", "avx512f")):
        return  # no such product is asked of it
    packed = dot_spec(machine, (m, 176, 24), dtype, dtype, zero_init=zero_init)
    fetched = SourceTile(rows=packed.k, element_bytes=4)
    limited = replace(packed, a_in_place=True, packs_b=True, next_b=fetched, is_limited=True)
    module = ModuleBuilder()
    names = emit_dot(module, packed), emit_dot(module, limited)
    more = (*ARGUMENTS, "i64", "ptr", "i64", "ptr", "i64", "i64", "i64", "i64")
    native = link(module, machine, {names[0]: ARGUMENTS, names[1]: more})
    extents = [(1, 1, 1), (m, 176, 24), (4, 64, 8), (8, 65, 9), (m - 1, 127, 23), (9, 150, 3)]
    for rows, columns, depth in [*extents, (1, 129, 5), (3, 128, 24), (5, 47, 24)]:
        a = before_a_hole(random_tile(rng, (rows, depth), dtype))
        b = before_a_hole(random_tile(rng, (depth, columns), dtype))
        acc = random_tile(rng, (packed.m, packed.n), dtype)
        whole_a = np.zeros((packed.m, packed.k), a.dtype)
        whole_b = np.zeros((packed.k, packed.n), b.dtype)
        whole_a[:rows, :depth], whole_b[:depth, :columns] = a, b
        want = run_dot(native, names[0], packed, whole_a, whole_b, acc)
        room = np.full(packed.b_layout.size_elems(packed.k, packed.n), np.nan, b.dtype)
        operands = (a.ctypes.data, room.ctypes.data, acc.ctypes.data, depth)
        sources = (b.ctypes.data, columns, b.ctypes.data, columns)
        native.call(names[1], *operands, *sources, rows, columns, depth)
        np.testing.assert_array_equal(acc[:rows, :columns], want[:rows, :columns])


@each_machine
@pytest.mark.parametrize("is_first", [0, 1], ids=["add", "first"])
@pytest.mark.parametrize("gap", [None, 0, 3], ids=["here", "away", "spaced"])
@pytest.mark.parametrize("m", [16, 37])
def test_a_target_gets_the_sums_within_the_limits_and_no_other_byte(
    m: int, gap: int | None, is_first: int, machine: Machine, rng: np.random.Generator
) -> None:
    if machine.unit.features.isdisjoint(("avx2", "avx512f")):
        return  # no such product is asked of it
    packed = dot_spec(machine, (m, 176, 24), "f32", "f32", zero_init=bool(is_first))
    limited = replace(packed, zero_init=False, a_in_place=True, packs_b=True, is_limited=True)
    limited = replace(limited, has_target=True)
    module = ModuleBuilder()
    names = emit_dot(module, packed), emit_dot(module, limited)
    more = (*ARGUMENTS, "i64", "ptr", "i64", "i64", "i64", "i64", "ptr", "i64", "i1")
    native = link(module, machine, {names[0]: ARGUMENTS, names[1]: more})
    extents = [(1, 1, 1), (m, 176, 24), (7, 65, 9), (m - 1, 150, 23), (4, 17, 3), (1, 130, 24)]
    extents += [(m, 175, 24), (m - 1, 176, 5), (6, 176, 24), (13, 64, 24)]
    for rows, columns, depth in extents:
        a, b = (random_tile(rng, size, "f32") for size in ((rows, depth), (depth, columns)))
        arena = before_a_hole(random_tile(rng, (packed.m + 1, packed.n), "f32"))
        first_row, acc = arena[0].copy(), arena[1:]
        whole_a = np.zeros((packed.m, packed.k), a.dtype)
        whole_b = np.zeros((packed.k, packed.n), b.dtype)
        whole_a[:rows, :depth], whole_b[:depth, :columns] = a, b
        sums = run_dot(native, names[0], packed, whole_a, whole_b, acc)[:rows, :columns]
        around = before_a_hole(np.full((rows, columns + (gap or 0)), 7, np.float32))
        target = acc if gap is None else around[:, gap:]
        room = np.full(packed.b_layout.size_elems(packed.k, packed.n), np.nan, b.dtype)
        operands = (a.ctypes.data, room.ctypes.data, acc.ctypes.data, depth, b.ctypes.data, columns)
        place = (target.ctypes.data, target.strides[0] // 4, is_first)
        native.call(names[1], *operands, rows, columns, depth, *place)
        np.testing.assert_array_equal(target[:rows, :columns], sums)
        np.testing.assert_array_equal(arena[0], first_row)
        assert gap is None or (around[:, :gap] == 7).all()


def test_only_operands_kept_as_they_are_can_be_read_in_place() -> None:
    machine = next(each for each in MACHINES if each.label == "avx512-bf16")
    shape = (16, 64, 32)
    assert dot_spec(machine, shape, "f32", "f32").can_read_a_in_place
    assert dot_spec(machine, shape, "bf16", "bf16").can_read_a_in_place
    assert not dot_spec(machine, (16, 64, 33), "bf16", "bf16").can_read_a_in_place
    assert not dot_spec(machine, shape, "f16", "f16").can_read_a_in_place
    assert not dot_spec(machine, shape, "i8", "i8").can_read_a_in_place


def record_fetches(module: ModuleBuilder, places: np.ndarray) -> None:
    """Note every address that the functions of a module fetch: their number, then each of them."""
    for name, text in module.functions.items():
        module.functions[name] = text.replace("@llvm.prefetch.p0(", "@record(")
    module.add_function(
        "record",
        f"""define internal void @record(ptr %at, i32 %is_write, i32 %level, i32 %is_data) {{
  %places = inttoptr i64 {places.ctypes.data} to ptr
  %count = load i64, ptr %places
  %next = add i64 %count, 1
  %place = getelementptr i64, ptr %places, i64 %next
  store ptr %at, ptr %place
  store i64 %next, ptr %places
  ret void
}}""",
    )


def lines_of(matrix: np.ndarray) -> set[int]:
    """The numbers of the lines in which a matrix has an element."""
    base, (pitch, _), row_bytes = matrix.ctypes.data, matrix.strides, matrix.shape[1] * 4
    return {
        line
        for row in range(matrix.shape[0])
        for line in range(
            (base + row * pitch) // LINE_BYTES,
            (base + row * pitch + row_bytes - 1) // LINE_BYTES + 1,
        )
    }


@each_machine
@pytest.mark.parametrize(
    ("shape", "rows"),
    [((192, 128, 32), 192), ((192, 64, 32), 192), ((192, 256, 96), 192), ((32, 128, 64), 17)],
)
def test_the_next_tile_of_b_and_the_next_rows_of_a_are_fetched_whole_and_nothing_else(
    shape: tuple[int, int, int], rows: int, machine: Machine, rng: np.random.Generator
) -> None:
    if machine.unit.features.isdisjoint(("avx2", "avx512f")):
        return  # no product with limits is asked of it
    spec = dot_spec(machine, shape, "f32", "f32", a_in_place=True, packs_b=True, is_limited=True)
    spec = replace(spec, next_b=SourceTile(rows=spec.k, element_bytes=4))
    module, places = ModuleBuilder(), np.zeros(1 << 16, np.int64)
    name = emit_dot(module, spec)
    record_fetches(module, places)
    more = (*ARGUMENTS, "i64", "ptr", "i64", "ptr", "i64", "i64", "i64", "i64")
    native = link(module, machine, {name: more})
    sizes = ((spec.m + 40, 100), (200, 300), (spec.m, spec.n))
    a, b, acc = (random_tile(rng, size, "f32") for size in sizes)
    room = np.empty(spec.b_layout.size_elems(spec.k, spec.n), np.float32)
    following = b[spec.k :]
    operands = (a.ctypes.data, room.ctypes.data, acc.ctypes.data, a.shape[1])
    sources = (following.ctypes.data, b.shape[1], b.ctypes.data, b.shape[1])
    native.call(name, *operands, *sources, rows, spec.n, spec.k)
    fetched = set((places[1 : places[0] + 1] // LINE_BYTES).tolist())
    tile = lines_of(following[: spec.k, : spec.n])
    # The first blocks, of 24 rows at most, fetch no more than the B that they pack; behind the last
    # block lies what comes next.
    # The last line of a row is fetched with the next step's, which begins in it.
    later = lines_of(a[48:rows, : spec.k - LINE_BYTES // 4])
    anywhere = lines_of(a[: spec.m + 24, : spec.k])
    # Rows that begin with a line are fetched a line too far.
    widened = lines_of(following[: spec.k, : spec.n + LINE_BYTES // 4])
    assert tile <= fetched
    assert later <= fetched or spec.has_columns_outside
    assert fetched <= widened | anywhere | lines_of(b[: spec.k, : spec.n])


@each_machine
@pytest.mark.parametrize("columns", [128, 100, 40])
def test_lines_that_sums_go_to_are_fetched_before_unless_they_are_the_tiles_own(
    columns: int, machine: Machine, rng: np.random.Generator
) -> None:
    if machine.unit.features.isdisjoint(("avx2", "avx512f")):
        return  # no product with a target is asked of it
    shape = (192, 128, 32)
    spec = dot_spec(machine, shape, "f32", "f32", a_in_place=True, packs_b=True, is_limited=True)
    spec = replace(spec, has_target=True)
    module, places = ModuleBuilder(), np.zeros(1 << 16, np.int64)
    name = emit_dot(module, spec)
    record_fetches(module, places)
    more = (*ARGUMENTS, "i64", "ptr", "i64", "i64", "i64", "i64", "ptr", "i64", "i1")
    native = link(module, machine, {name: more})
    a, b, acc = (random_tile(rng, size, "f32") for size in ((192, 32), (32, 128), (192, 128)))
    room = np.empty(spec.b_layout.size_elems(spec.k, spec.n), np.float32)
    target = np.zeros((230, 300), np.float32)
    for place, pitch in ((acc, 128), (target, 300)):
        places[:] = 0
        operands = (a.ctypes.data, room.ctypes.data, acc.ctypes.data, a.shape[1], b.ctypes.data)
        limits = (b.shape[1], 190, columns, 32)
        native.call(name, *operands, *limits, place.ctypes.data, pitch, 1)
        fetched = places[1 : places[0] + 1]
        fetched = fetched[fetched >= target.ctypes.data]
        lines = set((fetched[fetched < target[-1].ctypes.data] // LINE_BYTES).tolist())
        if place is acc:
            assert not lines
            continue
        # A line in which a row begins ends what lies left of it.
        ends = {
            (target[row].ctypes.data + byte) // LINE_BYTES
            for row in range(190)
            for byte in range(LINE_BYTES, 4 * columns, LINE_BYTES)
        }
        # Of one panel, the second block's rows are not.
        assert ends <= lines if columns > 64 else lines


@pytest.mark.parametrize("machine", MACHINES, ids=lambda each: each.label)
def test_the_peak_loop_keeps_its_chains_apart(machine: Machine) -> None:
    module = ModuleBuilder()
    multiply = choose_multiply("f32", "f32", machine.unit)
    name = emit_peak_loop(module, multiply, machine.unit)
    (loop,) = inner_loops(assemble(module, machine, {name: ("i64", "ptr")}))
    assert len(re.findall(r"\t(?:vfmadd\w+ps|mulps)\t", loop)) == NUM_CHAINS
