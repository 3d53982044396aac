"""Products on AMX's tile registers: every bit, every sign, every shape; and the code itself."""

from __future__ import annotations

import re

import ml_dtypes
import numpy as np
import pytest

from tests.asm.amx_host import AMX_FEATURES, compile_here, has_amx
from tests.asm.amx_model import modelled
from tests.asm.dot_harness import (
    AVX512,
    Machine,
    Native,
    aligned,
    assemble,
    export,
    pack_panels,
    pack_rows,
    random_tile,
)
from tilewright.codegen.link import load_object
from tilewright.codegen.llvm_builder import FunctionBuilder, ModuleBuilder
from tilewright.targets.cpu.dot.amx_tiles import FULL_TILES, TileShape, tile_shape
from tilewright.targets.cpu.dot.microkernel import emit_dot
from tilewright.targets.cpu.dot.panels import VectorUnit
from tilewright.targets.cpu.dot.spec import DotSpec
from tilewright.targets.cpu.dot.units import MIN_AMX_ROWS, choose_unit
from tilewright.targets.cpu.dot.vectors import counted_loop, element_address, scaled
from tilewright.targets.cpu.dot.widen import emit_half_part

FEATURES = AVX512 | {"avx512vnni", "avx512bf16"} | {name[1:] for name in AMX_FEATURES}
SAPPHIRE_RAPIDS = Machine("amx", "sapphirerapids", VectorUnit(FEATURES, 64))
UNITS = ["model", *(["hardware"] if has_amx() else [])]
BYTES = [("i8", "i8"), ("u8", "u8"), ("i8", "u8"), ("u8", "i8")]
# Few rows, few columns, little depth; whole tiles; rows that are copied; several steps of k.
SHAPES = [
    *[(1, 16, 32), (8, 4, 16), (16, 8, 4), (4, 64, 64), (16, 16, 64), (16, 32, 128)],
    *[(32, 16, 64), (64, 64, 64), (96, 64, 192), (32, 256, 64), (64, 288, 512)],
]


def amx_spec(shape: tuple[int, int, int], a: str, b: str, **options: object) -> DotSpec:
    return DotSpec(*shape, a, b, FEATURES, 64, is_amx=True, **options)  # type: ignore[arg-type]


def arguments(spec: DotSpec) -> tuple[str, ...]:
    stride = ("i64",) * spec.a_in_place
    limits = ("i64",) * 3 * spec.is_limited
    return ("ptr", "ptr", "ptr", *stride, *("ptr",) * bool(spec.room_bytes), *limits)


def link(specs: list[DotSpec], unit: str) -> list[tuple[DotSpec, str, Native]]:
    module = ModuleBuilder()
    functions = {emit_dot(module, spec): arguments(spec) for spec in specs}
    export(module, functions)
    text = modelled(module.text()) if unit == "model" else module.text()
    compiled = compile_here(text)
    names = [f"export.{name[1:]}" for name in functions]
    native = Native(load_object(compiled.object, *names), functions)
    return [(spec, name, native) for spec, name in zip(specs, functions, strict=True)]


def run(
    case: tuple[DotSpec, str, Native],
    a: np.ndarray,
    b: np.ndarray,
    acc: np.ndarray,
    limits: tuple[int, ...] = (),
) -> np.ndarray:
    """The result of a product of packed operands, and of A in place with rows far apart."""
    spec, name, native = case
    panels = pack_panels(spec.b_layout, b)
    b_buffer, result = aligned(panels.shape, panels.dtype), aligned(acc.shape, acc.dtype)
    b_buffer[...], result[...] = panels, acc
    room = aligned(max(spec.room_bytes, 1), np.dtype(np.uint8), b"\xa5")
    if spec.a_in_place:
        wide = np.full((a.shape[0], a.shape[1] + 7), 99, a.dtype)
        wide[:, 1 : 1 + a.shape[1]] = a
        place = [wide.ctypes.data + a.itemsize, wide.shape[1]]
    else:
        wide = pack_rows(spec.a_layout, a)
        place = [wide.ctypes.data]
    values = [place[0], b_buffer.ctypes.data, result.ctypes.data, *place[1:], room.ctypes.data]
    native.call(name, *values[: len(arguments(spec)) - len(limits)], *limits)
    return result


def in_pair_order(a: np.ndarray, b: np.ndarray, acc: np.ndarray) -> np.ndarray:
    """The product as the manual defines `tdpbf16ps`, 32 of k after another."""

    def flushed(x: np.ndarray) -> np.ndarray:
        return np.where(np.abs(x) < np.finfo(np.float32).tiny, np.copysign(np.float32(0), x), x)

    x, y, total = flushed(a.astype(np.float32)), flushed(b.astype(np.float32)), flushed(acc)
    with np.errstate(all="ignore"):
        for start in range(0, a.shape[1], 32):
            sums = [np.zeros_like(acc), np.zeros_like(acc)]
            for k in range(start, min(start + 32, a.shape[1])):
                # The product of two bf16 is an f32, so that adding it rounds once.
                sums[k % 2] = flushed(sums[k % 2] + x[:, k, None] * y[None, k])
            total = flushed(total + flushed(sums[0] + sums[1]))
    return total


@pytest.mark.parametrize("unit", UNITS)
@pytest.mark.parametrize(("a_dtype", "b_dtype"), BYTES)
def test_byte_products_are_exact(
    a_dtype: str, b_dtype: str, unit: str, rng: np.random.Generator
) -> None:
    specs = [amx_spec(shape, a_dtype, b_dtype) for shape in SHAPES]
    for case in link(specs, unit):
        spec = case[0]
        a = random_tile(rng, (spec.m, spec.k), a_dtype)
        b = random_tile(rng, (spec.k, spec.n), b_dtype)
        acc = rng.integers(-(2**31), 2**31, (spec.m, spec.n)).astype(np.int32)
        want = acc + a.astype(np.int32) @ b.astype(np.int32)
        np.testing.assert_array_equal(run(case, a, b, acc), want)


@pytest.mark.parametrize("unit", UNITS)
@pytest.mark.parametrize("zero_init", [False, True], ids=["add", "overwrite"])
@pytest.mark.parametrize("in_place", [False, True], ids=["packed", "in place"])
def test_bf16_products_have_the_bits_of_the_pair_order(
    in_place: bool, zero_init: bool, unit: str, rng: np.random.Generator
) -> None:
    shapes = [shape for shape in SHAPES if shape[2] % 2 == 0]
    options = {"zero_init": zero_init, "a_in_place": in_place}
    for case in link([amx_spec(shape, "bf16", "bf16", **options) for shape in shapes], unit):
        spec = case[0]
        a = random_tile(rng, (spec.m, spec.k), "bf16")
        b = random_tile(rng, (spec.k, spec.n), "bf16")
        acc = rng.standard_normal((spec.m, spec.n)).astype(np.float32)
        got = run(case, a, b, np.full_like(acc, np.nan) if zero_init else acc)
        want = in_pair_order(a, b, np.zeros_like(acc) if zero_init else acc)
        np.testing.assert_array_equal(got.view(np.uint32), want.view(np.uint32), str(spec))
        exact = a.astype(float) @ b.astype(float) + (0 if zero_init else acc)
        size = np.abs(a.astype(float)) @ np.abs(b.astype(float)) + np.abs(acc)
        assert (np.abs(got - exact) <= (spec.k + 2) * 2.0**-24 * size).all()


@pytest.mark.parametrize("unit", UNITS)
@pytest.mark.parametrize("in_place", [False, True], ids=["packed", "in place"])
def test_limits_leave_out_what_nobody_sees(
    in_place: bool, unit: str, rng: np.random.Generator
) -> None:
    """Behind the limits are NaNs, up to the end of a step of k zeros; the rest of C may be any."""
    shapes = [shape for shape in SHAPES if amx_spec(shape, "bf16", "bf16").has_amx_limits]
    assert len(shapes) >= 4
    options = {"is_limited": True, "a_in_place": in_place}
    for case in link([amx_spec(shape, "bf16", "bf16", **options) for shape in shapes], unit):
        m, n, k = case[0].m, case[0].n, case[0].k
        for rows, columns, depth in ((m, n, k), (1, 1, 1), (m - 31, n - 5, k - 33), (32, n, k)):
            a, b = (random_tile(rng, shape, "bf16") for shape in ((m, k), (k, n)))
            acc = rng.standard_normal((m, n)).astype(np.float32)
            a[:, depth:], b[depth:] = 0, 0
            a[rows:], b[:, columns:] = np.nan, np.nan
            step = -(-depth // 32) * 32
            a[:, step:], b[step:] = np.nan, np.nan
            got = run(case, a, b, acc, (rows, columns, depth))[:rows, :columns]
            want = in_pair_order(a[:rows, :step], b[:step, :columns], acc[:rows, :columns])
            np.testing.assert_array_equal(got.view(np.uint32), want.view(np.uint32), str(case[0]))


@pytest.mark.parametrize("unit", UNITS)
def test_bf16_products_of_integers_are_exact(unit: str, rng: np.random.Generator) -> None:
    (case,) = link([amx_spec((64, 256, 128), "bf16", "bf16")], unit)
    a, b = (rng.integers(-16, 17, shape) for shape in ((64, 128), (128, 256)))
    got = run(
        case,
        a.astype(ml_dtypes.bfloat16),
        b.astype(ml_dtypes.bfloat16),
        np.zeros((64, 256), np.float32),
    )
    np.testing.assert_array_equal(got, a @ b)


@pytest.mark.parametrize("unit", UNITS)
def test_denormals_are_zeros_and_infinities_stay_in_their_row_and_column(unit: str) -> None:
    (case,) = link([amx_spec((32, 32, 64), "bf16", "bf16")], unit)
    a, b = np.ones((32, 64), ml_dtypes.bfloat16), np.ones((64, 32), ml_dtypes.bfloat16)
    a[0], a[2, 3], b[1, 17] = 2.0**-130, np.nan, np.inf
    a[5], b[:, 9] = 2.0**-70, 2.0**-70  # each product is a denormal number
    b[1, 9] = 1
    acc = np.zeros((32, 32), np.float32)
    acc[7, 7] = 2.0**-130
    got = run(case, a, b, acc)
    want = in_pair_order(a, b, acc)
    np.testing.assert_array_equal(got, want)
    assert got[0, 0] == 0 and np.isnan(got[0, 17])  # zero by infinity
    assert got[5, 9] == 2.0**-70 and got[7, 7] == 64
    assert np.isnan(got[2]).all() and np.isinf(got[1, 17]) and got[1, 16] == 64


def test_every_finite_half_is_the_sum_of_its_parts() -> None:
    module = ModuleBuilder()
    places = ("%upper", "%finite", "%rest")
    header = "define internal void @parts(ptr %x, ptr %upper, ptr %finite, ptr %rest)"
    fn = FunctionBuilder(module, header)

    def sixteen(index: str) -> None:
        at = element_address(fn, "i16", "%x", scaled(fn, index, 16))
        value = fn.value(f"load <16 x i16>, ptr {at}, align 2")
        for number, place in enumerate(places):
            to = element_address(fn, "i16", place, scaled(fn, index, 16))
            bits = emit_half_part(fn, number, 16, value)
            fn.emit(f"store <16 x i16> {bits}, ptr {to}, align 2")

    counted_loop(fn, 4096, sixteen)
    fn.emit("ret void")
    module.add_function("parts", fn.text())
    types = {"@parts": ("ptr",) * 4}
    export(module, types)
    compiled = compile_here(module.text())
    native = Native(load_object(compiled.object, "export.parts"), types)
    halves = np.arange(1 << 16, dtype=np.uint16)
    parts = np.zeros((3, 1 << 16), np.uint16)
    native.call("@parts", halves.ctypes.data, *(part.ctypes.data for part in parts))
    x = halves.view(np.float16).astype(np.float32)
    upper, finite, rest = parts.view(ml_dtypes.bfloat16).astype(np.float32)
    is_finite = np.isfinite(x)
    np.testing.assert_array_equal((upper + rest)[is_finite], x[is_finite])
    np.testing.assert_array_equal(finite, np.where(is_finite, upper, 0))
    np.testing.assert_array_equal(upper[~is_finite], x[~is_finite])
    assert (rest[~is_finite] == 0).all() and ((upper == 0) == (x == 0)).all()


def test_whole_products_name_their_registers_and_configure_once() -> None:
    module = ModuleBuilder()
    name = emit_dot(module, amx_spec((64, 512, 512), "bf16", "bf16", a_in_place=True))
    types = ("ptr", "ptr", "ptr", "i64", "ptr")
    assembly = assemble(module, SAPPHIRE_RAPIDS, {name: types})
    assert assembly.count("ldtilecfg") == assembly.count("tilerelease") == 1
    products = re.findall(r"tdpbf16ps\t%tmm(\d), %tmm(\d), %tmm(\d)", assembly)
    # LLVM's text has the destination last.
    assert products == [("6", "4", "0"), ("7", "4", "1"), ("6", "5", "2"), ("7", "5", "3")]
    assert sorted(re.findall(r"tileloaddt1\t.*%tmm(\d)", assembly)) == ["6", "7"]
    assert sorted(re.findall(r"tileloadd\t.*%tmm(\d)", assembly)) == list("012345")
    assert sorted(re.findall(r"tilestored\t%tmm(\d)", assembly)) == list("0123")
    inner = assembly[assembly.rindex("\n.LBB", 0, assembly.index("tdpbf16ps")) :]
    assert "rsp" not in inner[: inner.index("\tj")]


@pytest.mark.parametrize(("a", "b"), BYTES)
def test_signs_of_bytes_choose_the_instruction(a: str, b: str) -> None:
    module = ModuleBuilder()
    name = emit_dot(module, amx_spec((32, 32, 64), a, b))
    assembly = assemble(module, SAPPHIRE_RAPIDS, {name: ("ptr",) * 3})
    sign = {"i8": "s", "u8": "u"}
    assert assembly.count(f"tdpb{sign[a]}{sign[b]}d") == assembly.count("tdpb") == 4


def test_code_does_not_grow_with_the_tile() -> None:
    sizes = []
    for shape in ((64, 512, 512), (1024, 4096, 512)):
        module = ModuleBuilder()
        emit_dot(module, amx_spec(shape, "bf16", "bf16"))
        sizes.append(len(module.text()))
    assert sizes[1] < 1.1 * sizes[0]


def test_registers_are_as_large_as_the_product_needs() -> None:
    assert tile_shape(64, 64, 64, 2) == tile_shape(512, 128, 32, 2) == FULL_TILES
    assert tile_shape(8, 64, 16, 2) == TileShape(8, 16, 32)
    assert tile_shape(1, 4, 4, 1) == TileShape(1, 4, 4)
    uncovered = [(48, 64, 64), (64, 24, 64), (64, 64, 48), (64, 64, 1), (64, 2, 64), (16, 12, 32)]
    assert not any(tile_shape(*shape, 2) for shape in uncovered)
    config = TileShape(8, 4, 24).configuration()
    widths = np.frombuffer(config[16:32], np.uint16).tolist()
    assert config[0] == 1 and widths == [16, 16, 16, 16, 24, 24, 16, 16]
    assert list(config[48:56]) == [8, 8, 8, 8, 8, 8, 6, 6]


def test_the_choice_says_why_amx_does_not_multiply() -> None:
    def choice(shape: tuple[int, int, int], dtype: str, features: frozenset[str] = FEATURES) -> str:
        found = choose_unit(DotSpec(*shape, dtype, dtype, features, 64))
        assert found.spec.is_amx == (not found.why_not_amx)
        return found.why_not_amx

    assert not choice((64, 64, 64), "bf16") and not choice((MIN_AMX_ROWS, 64, 64), "i8")
    assert "rows" in choice((MIN_AMX_ROWS // 2, 64, 64), "bf16")
    assert "not f64" in choice((64, 64, 64), "f64")
    assert "cover" in choice((64, 64, 48), "bf16")
    assert "permit" in choice((64, 64, 64), "bf16", AVX512 | {"avx512bf16"})
    assert "permit" in choice((64, 64, 64), "i8", FEATURES - {"amx-int8"})
    narrow = choose_unit(DotSpec(64, 64, 64, "bf16", "bf16", FEATURES, 32))
    assert not narrow.spec.is_amx
