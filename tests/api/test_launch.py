"""Launching kernels: argument forms, grids, specialisation, the warm path and the disk cache."""

from __future__ import annotations

import functools
import gc
import sys
import weakref

import numpy as np
import pytest

import tilewright
import tilewright.language as tl
from tilewright.support import errors


@tilewright.jit
def add_kernel(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    pid = tl.program_id(0)
    offsets = pid * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask)
    y = tl.load(y_ptr + offsets, mask=mask)
    tl.store(out_ptr + offsets, x + y, mask=mask)


@tilewright.jit
def scale_kernel(x_ptr, out_ptr, n, factor, BLOCK: tl.constexpr = 64, bias=None):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask, other=0.0) * factor
    if bias is not None:
        x += bias
    tl.store(out_ptr + offsets, x, mask=mask)


@tilewright.jit
def grid_kernel(out_ptr):
    x, y, z = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    nx, ny = tl.num_programs(0), tl.num_programs(1)
    tl.store(out_ptr + (z * ny + y) * nx + x, x + 10 * y + 100 * z)


def arrays(n, dtype=np.float32):
    rng = np.random.default_rng(n)
    return (
        rng.standard_normal(n).astype(dtype),
        rng.standard_normal(n).astype(dtype),
        np.zeros(n, dtype),
    )


@pytest.mark.parametrize("n", [1, 63, 64, 65, 1000, 4096, 98432])
def test_vector_add_is_exact_at_every_length(n):
    x, y, out = arrays(n)
    add_kernel[(tilewright.cdiv(n, 1024),)](x, y, out, n, BLOCK=1024)
    np.testing.assert_array_equal(out, x + y)


@pytest.mark.parametrize("dtype", [np.float64, np.float16, np.int8, np.int32, np.int64, np.uint16])
def test_vector_add_takes_every_dtype(dtype):
    rng = np.random.default_rng(0)
    x = rng.integers(-100, 100, 1000).astype(dtype)
    y = rng.integers(-100, 100, 1000).astype(dtype)
    out = np.zeros(1000, dtype)
    add_kernel[(4,)](x, y, out, 1000, BLOCK=256)
    np.testing.assert_array_equal(out, x + y)


def test_the_last_elements_beyond_n_are_not_touched():
    x, y, out = arrays(1024)
    out[:] = 7
    add_kernel[(4,)](x, y, out, 900, BLOCK=256)
    np.testing.assert_array_equal(out[:900], (x + y)[:900])
    assert (out[900:] == 7).all()


def test_keywords_in_any_order_and_callable_grids():
    x, y, out = arrays(5000)

    def grid(meta):
        return (tilewright.cdiv(meta["n"], meta["BLOCK"]),)

    for _ in range(3):
        out[:] = 0
        add_kernel[grid](BLOCK=512, n=5000, out_ptr=out, y_ptr=y, x_ptr=x)
        np.testing.assert_array_equal(out, x + y)


def test_repeated_launches_see_new_arguments():
    for n in (128, 256, 300, 16, 17, 128):
        x, y, out = arrays(n)
        add_kernel[(tilewright.cdiv(n, 64),)](x, y, out, n, 64)
        np.testing.assert_array_equal(out, x + y)


def test_a_misaligned_array_takes_another_specialisation():
    x, y, out = arrays(1025)
    for offset in (0, 1, 2, 0):
        out[:] = 0
        m = 1025 - offset
        add_kernel[(3,)](x[offset:], y[offset:], out[offset:], m, 512)
        np.testing.assert_array_equal(out[offset:], (x + y)[offset:])


def test_defaults_and_none_arguments():
    x, _, out = arrays(100)
    scale_kernel[(2,)](x, out, 100, 2.0)
    np.testing.assert_array_equal(out, x * np.float32(2))
    scale_kernel[(2,)](x, out, 100, 2.0, bias=1.0)
    np.testing.assert_array_equal(out, x * np.float32(2) + np.float32(1))


def test_integer_one_is_a_constant_and_still_right():
    x, y, out = arrays(1)
    add_kernel[(1,)](x, y, out, 1, 16)
    np.testing.assert_array_equal(out, x + y)


def test_three_axes_of_the_grid():
    out = np.zeros(2 * 3 * 5, np.int32)
    grid_kernel[(5, 3, 2)](out)
    expected = [x + 10 * y + 100 * z for z in range(2) for y in range(3) for x in range(5)]
    assert out.tolist() == expected


def test_an_empty_grid_runs_nothing():
    out = np.full(4, -1, np.int32)
    grid_kernel[(0, 1, 1)](out)
    assert (out == -1).all()


def test_the_compiled_kernel_shows_every_stage():
    x, y, out = arrays(64)
    kernel = add_kernel.warmup(x, y, out, 64, BLOCK=64, grid=(1,))
    assert "tt.load" in kernel.asm["ttir"]
    assert "cpu.nest" in kernel.asm["nests"]
    assert "define" in kernel.asm["llir"]
    assert kernel.asm["source"].startswith("@tilewright.jit") or "def add" in kernel.asm["source"]
    assert "ret" in kernel.asm["asm"]
    assert kernel.asm["object"][:4] == b"\x7fELF"
    assert kernel.name == "add_kernel"


def test_a_warm_up_that_was_made_before_finds_its_kernel_and_runs_nothing(monkeypatch):
    x, y, out = arrays(64)
    out[:] = -1
    kernel = add_kernel.warmup(x, y, out, 64, BLOCK=64, grid=(1,))
    with monkeypatch.context() as patch:
        patch.setattr(type(add_kernel), "specialize_call", None)
        assert add_kernel.warmup(x, y, out, 64, BLOCK=64, grid=(1,)) is kernel
    assert (out == -1).all()
    longer = add_kernel.warmup(*arrays(128), 64, BLOCK=128, grid=(1,))
    assert longer is not kernel
    other = add_kernel.warmup(*(array.astype(np.float64) for array in (x, y, out)), 64, BLOCK=64)
    assert other not in (kernel, longer)
    assert add_kernel.warmup(x, y, out, 64, BLOCK=64) is kernel
    add_kernel[(1,)](x, y, out, 64, BLOCK=64)
    np.testing.assert_array_equal(out, x + y)


def test_every_launch_returns_the_compiled_kernel():
    x, y, out = arrays(64)
    kernels = [add_kernel[(1,)](x, y, out, 64, BLOCK=64) for _ in range(3)]
    assert kernels[0] is kernels[1] is kernels[2]
    assert repr(kernels[0]).startswith("<CompiledKernel add_kernel for cpu, key ")


@pytest.mark.parametrize(
    ("grid", "error"),
    [
        ((1.5,), errors.InvalidGrid),
        ((1, 2, 3, 4), errors.InvalidGrid),
        (((1 << 31) - 1,) * 3, errors.InvalidGrid),
        ((-1,), errors.InvalidGrid),
        (("a",), errors.InvalidGrid),
        ((), errors.InvalidGrid),
        (np.array([1]), errors.InvalidGrid),
        (np.array([1, 2]), errors.InvalidGrid),
    ],
)
def test_bad_grids_are_named(grid, error):
    x, y, out = arrays(64)
    with pytest.raises(error):
        add_kernel[grid](x, y, out, 64, BLOCK=64)


@pytest.mark.parametrize("thing", [5, "kernel", functools.partial(print, 1)])
def test_what_is_no_function_is_no_kernel(thing):
    with pytest.raises(errors.SourceNotAvailable, match=f"of type {type(thing).__name__}"):
        tilewright.jit(thing)


def test_bad_grids_are_named_on_the_warm_path_too():
    x, y, out = arrays(64)
    add_kernel[(1,)](x, y, out, 64, BLOCK=64)
    with pytest.raises(errors.InvalidGrid):
        add_kernel[(1.5,)](x, y, out, 64, BLOCK=64)
    with pytest.raises(errors.InvalidGrid):
        add_kernel[(-3,)](x, y, out, 64, BLOCK=64)


def test_wrong_arguments_name_the_parameter():
    x, y, out = arrays(64)
    with pytest.raises(errors.CompileError, match="out_ptr"):
        add_kernel[(1,)](x, y, BLOCK=64, n=64)
    with pytest.raises(errors.CompileError, match="x_ptr"):
        add_kernel[(1,)]([1, 2], y, out, 64, BLOCK=64)
    with pytest.raises(errors.CompileError, match="BLOK"):
        add_kernel[(1,)](x, y, out, 64, BLOK=64)


def test_a_kernel_is_not_called_directly():
    with pytest.raises(errors.NotAKernelLaunch):
        add_kernel(1, 2, 3)


@tilewright.jit
def double(x):
    return x * 2


@tilewright.jit
def square(x):
    return x * x


@tilewright.jit
def apply_kernel(function, x_ptr, out_ptr, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    tl.store(out_ptr + offsets, function(tl.load(x_ptr + offsets)))


def test_a_jit_function_is_an_argument():
    x, _, out = arrays(64)
    for function, expected in ((double, x * 2), (square, x * x), (double, x * 2)):
        apply_kernel[(1,)](function, x, out, BLOCK=64)
        np.testing.assert_array_equal(out, expected)


def test_a_plain_function_is_no_argument():
    x, _, out = arrays(64)
    with pytest.raises(errors.CompileError, match="function"):
        apply_kernel[(1,)](lambda v: v, x, out, BLOCK=64)


FACTOR = tl.constexpr(3)


@tilewright.jit
def factor_kernel(x_ptr, out_ptr, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    tl.store(out_ptr + offsets, tl.load(x_ptr + offsets) * FACTOR)


def test_a_changed_global_is_noticed_on_the_warm_path(monkeypatch):
    x, _, out = arrays(64)
    for _ in range(3):
        factor_kernel[(1,)](x, out, BLOCK=64)
    np.testing.assert_array_equal(out, x * np.float32(3))
    monkeypatch.setitem(globals(), "FACTOR", tl.constexpr(4))
    with pytest.raises(errors.CapturedValueChanged, match="FACTOR"):
        factor_kernel[(1,)](x, out, BLOCK=64)


def launchers_of(kernel):
    return [launcher for shape in kernel._shapes.values() for launcher in shape.launchers]


def test_launches_with_defaults_and_options_take_the_native_path():
    @tilewright.jit
    def shift_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr = 64, by=3):
        offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        mask = offsets < n
        tl.store(out_ptr + offsets, tl.load(x_ptr + offsets, mask=mask) + by, mask=mask)

    x = np.arange(100, dtype=np.int32)
    for _ in range(3):
        out = np.zeros_like(x)
        shift_kernel[(2,)](x, out, 100)
        np.testing.assert_array_equal(out, x + 3)
        out = np.zeros_like(x)
        shift_kernel[(2,)](x, out, 100, by=5, num_warps=8, enable_fp_fusion=False)
        np.testing.assert_array_equal(out, x + 5)
    assert len(launchers_of(shift_kernel)) == 2


def test_an_option_that_changes_the_code_finds_its_own_kernel():
    x, y, out = arrays(64)
    for fusion in (True, False, True):
        add_kernel[(1,)](x, y, out, 64, BLOCK=64, enable_fp_fusion=fusion)
    fused = add_kernel[(1,)](x, y, out, 64, BLOCK=64, enable_fp_fusion=True)
    plain = add_kernel[(1,)](x, y, out, 64, BLOCK=64, enable_fp_fusion=False)
    assert fused is not plain


def test_launch_hooks_are_called_around_each_launch():
    from tilewright.runtime.hooks import LAUNCH_HOOKS

    x, y, out = arrays(64)
    seen = []
    add_kernel[(1,)](x, y, out, 64, BLOCK=64)

    def enter(info):
        seen.append((info.name, info.grid, info.target))

    LAUNCH_HOOKS.add(enter=enter)
    try:
        add_kernel[(1,)](x, y, out, 64, BLOCK=64)
        add_kernel[(2,)](x, y, out, 64, BLOCK=64)
    finally:
        LAUNCH_HOOKS.remove(enter=enter)
    add_kernel[(3,)](x, y, out, 64, BLOCK=64)
    assert seen == [("add_kernel", (1, 1, 1), "cpu"), ("add_kernel", (2, 1, 1), "cpu")]


def test_a_function_keeps_a_bounded_number_of_compiled_variants(monkeypatch) -> None:
    monkeypatch.setattr(sys.modules["tilewright.jit"], "_MAX_KERNELS", 4)
    monkeypatch.setattr(sys.modules["tilewright.jit"], "_MAX_LAUNCHERS", 4)

    @tilewright.jit
    def variants(out, K: tl.constexpr):
        tl.store(out, K)

    out = np.zeros(1, np.int32)
    loaded = []
    for k in range(2, 16):
        loaded.append(weakref.ref(variants[(1,)](out, K=k).loaded.code))
        variants[(1,)](out, K=2)
        assert out[0] == 2
    assert len(variants._kernels) == 4
    for k in (15, 3, 2):
        variants[(1,)](out, K=k)
        assert out[0] == k
    gc.collect()
    # The last ways of calling keep theirs; what nobody can reach any more is unloaded.
    assert sum(code() is not None for code in loaded) <= 4 + 8


@tilewright.jit
def says_in_turn_kernel(x_ptr, BLOCK: tl.constexpr):
    x = tl.load(x_ptr + tl.arange(0, BLOCK))
    tl.device_print("first", x)
    tl.device_print("second", 3)
    tl.device_print("third", x + 1)
    tl.device_print("fourth", tl.program_id(0))


def test_prints_of_tiles_and_of_numbers_come_in_turn(capfd: pytest.CaptureFixture[str]) -> None:
    says_in_turn_kernel[(1,)](np.ones(4, np.float32), 4)
    said = [
        line.split(") ")[-1].split(":")[0].strip() for line in capfd.readouterr().out.splitlines()
    ]
    assert said == ["first"] * 4 + ["second"] + ["third"] * 4 + ["fourth"]
