"""Asynchronous products of a warp group: operands, layouts, and the order they demand."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from tests.unit.interp.simt.programs import BARRIER, FENCE, copy_in, run, store_registers
from tilewright.interp.simt.faults import ProxyRace, SharedRace, UnfinishedOperation

BF16 = ml_dtypes.bfloat16
N = 32
B_BASE = 16384
CODES = {0: 0, 128: 1, 64: 2, 32: 3}
START = "  call void @llvm.nvvm.wgmma.fence.sync.aligned()\n"
COMMIT = "  call void @llvm.nvvm.wgmma.commit_group.sync.aligned()\n"
WAIT = "  call void @llvm.nvvm.wgmma.wait_group.sync.aligned(i64 0)\n"


def image(matrix: np.ndarray, swizzle: int, *, is_transposed: bool) -> tuple[np.ndarray, int]:
    """Shared memory with an operand [outer, K], and the descriptor's fields but for its start.

    Rows of `swizzle` bytes, eight of them an atom; panels of rows follow each other.
    """
    fast = matrix.T if is_transposed else matrix
    slow_size, row_bytes = fast.shape[0], fast.shape[1] * matrix.itemsize
    width = swizzle or 16
    panel_bytes = slow_size * width
    raw = np.zeros(16384, np.uint8)
    rows = np.ascontiguousarray(fast).view(np.uint8)
    for row in range(slow_size):
        for column in range(0, row_bytes, 16):
            panel, inner = divmod(column, width)
            address = panel * panel_bytes + row * width + inner
            mask = swizzle // 16 - 1 if swizzle else 0
            address ^= ((address >> 7) & mask) << 4
            raw[address : address + 16] = rows[row, column : column + 16]
    leading, stride = panel_bytes, 8 * width
    if not swizzle and is_transposed:
        leading, stride = stride, leading
    return raw, (leading >> 4) << 16 | (stride >> 4) << 32 | CODES[swizzle] << 62


def descriptor(name: str, offset: int, fields: int) -> str:
    constant = fields - (1 << 64) if fields >> 63 else fields
    return f"""  %base{name} = ptrtoint ptr addrspace(3) @shared to i64
  %at{name} = add i64 %base{name}, {offset}
  %low{name} = lshr i64 %at{name}, 4
  %d{name} = or i64 %low{name}, {constant}
"""


def product(form: str, n: int, flags: str, kind: str = "float", scale_d: int = 0) -> str:
    """A product into fresh registers `%d_i`; the accumulators start at 1 where it adds."""
    count = n // 2
    code = "f" if kind == "float" else "r"
    one = "1.0" if kind == "float" else "1"
    registers = ", ".join(f"${i}" for i in range(count))
    asm = (
        f"{{ .reg .pred p; setp.ne.b32 p, ${2 * count + 2}, 0; wgmma.mma_async.sync.aligned."
        f"{form} {{{registers}}}, ${2 * count}, ${2 * count + 1}, p{flags}; }}"
    )
    constraints = [f"={code}"] * count + [str(i) for i in range(count)] + ["l", "l", "r"]
    values = ", ".join([f"{kind} {one}"] * count)
    struct = "{" + ", ".join([kind] * count) + "}"
    lines = [
        f'  %w = call {struct} asm sideeffect "{asm}", "{",".join(constraints)}"'
        f"({values}, i64 %da, i64 %db, i32 {scale_d})"
    ]
    lines += [f"  %d_{i} = extractvalue {struct} %w, {i}" for i in range(count)]
    return "\n".join(lines) + "\n"


def accumulator(matrix: np.ndarray) -> np.ndarray:
    """The registers [128, N / 2] of a 64×N accumulator."""
    thread, register = np.arange(128)[:, None], np.arange(matrix.shape[1] // 2)
    row = thread // 32 * 16 + thread % 32 // 4 + 8 * (register // 2 % 2)
    column = register // 4 * 8 + thread % 4 * 2 + register % 2
    return matrix[row, column]


def small(shape: tuple[int, int], dtype: type, seed: int) -> np.ndarray:
    return np.random.default_rng(seed).integers(-4, 5, shape).astype(dtype)


def launch(a: np.ndarray, b: np.ndarray, body: str, out: np.ndarray, *, fence: str = FENCE) -> None:
    """Copy two images in and run a body behind the barrier."""
    copies = copy_in("a", 16384, 128) + copy_in("b", 16384, 128, B_BASE)
    run(copies + fence + BARRIER + body, "a; b; out", a, b, out, threads=128, shared_bytes=32768)


def multiplied(
    a: np.ndarray,
    b: np.ndarray,
    form: str,
    swizzles: tuple[int, int],
    transposes: tuple[int, int],
    *,
    scale_d: int = 0,
) -> np.ndarray:
    """What the simulator makes of A [64, K] and B [N, K]."""
    image_a, fields_a = image(a, swizzles[0], is_transposed=bool(transposes[0]))
    image_b, fields_b = image(b, swizzles[1], is_transposed=bool(transposes[1]))
    is_integer = ".s32." in form
    flags = "" if is_integer else ", 1, 1"
    if a.itemsize == 2:
        flags += f", {transposes[0]}, {transposes[1]}"
    kind = "i32" if is_integer else "float"
    out = np.zeros((128, len(b) // 2), np.int32 if is_integer else np.float32)
    body = descriptor("a", 0, fields_a) + descriptor("b", B_BASE, fields_b) + START
    body += product(form, len(b), flags, kind, scale_d) + COMMIT + WAIT
    body += store_registers([f"%d_{i}" for i in range(len(b) // 2)], "out", kind)
    launch(image_a, image_b, body, out)
    return out


@pytest.mark.parametrize("swizzle", [0, 32, 64, 128])
@pytest.mark.parametrize("transposes", [(0, 0), (1, 0), (0, 1), (1, 1)])
def test_every_layout_of_16_bit_operands(swizzle: int, transposes: tuple[int, int]) -> None:
    a, b = small((64, 16), BF16, 1), small((64, 16), BF16, 2)
    form = "m64n64k16.f32.bf16.bf16"
    got = multiplied(a, b, form, (swizzle, swizzle), transposes)
    exact = a.astype(np.float32) @ b.astype(np.float32).T
    np.testing.assert_array_equal(got, accumulator(exact))


@pytest.mark.parametrize(
    ("form", "dtype", "depth"),
    [
        (f"m64n{N}k16.f32.f16.f16", np.float16, 16),
        (f"m64n{N}k8.f32.tf32.tf32", np.float32, 8),
        (f"m64n{N}k32.f32.e4m3.e4m3", ml_dtypes.float8_e4m3fn, 32),
        (f"m64n{N}k32.f32.e5m2.e4m3", ml_dtypes.float8_e5m2, 32),
        (f"m64n{N}k32.s32.s8.s8", np.int8, 32),
    ],
)
def test_every_type_of_operand(form: str, dtype: type, depth: int) -> None:
    a = small((64, depth), dtype, 3)
    right = ml_dtypes.float8_e4m3fn if "e4m3" in form else dtype
    b = small((N, depth), right, 4)
    got = multiplied(a, b, form, (32, 32), (0, 0))
    exact = a.astype(np.float64) @ b.astype(np.float64).T
    np.testing.assert_array_equal(got, accumulator(exact))


def test_scale_d_adds_to_the_accumulators() -> None:
    a, b = small((64, 16), BF16, 5), small((N, 16), BF16, 6)
    got = multiplied(a, b, f"m64n{N}k16.f32.bf16.bf16", (32, 32), (0, 0), scale_d=1)
    exact = a.astype(np.float32) @ b.astype(np.float32).T + 1
    np.testing.assert_array_equal(got, accumulator(exact))


def test_the_left_operand_may_come_from_registers() -> None:
    a, b = small((64, 16), BF16, 7), small((N, 16), BF16, 8)
    thread, register = np.arange(128)[:, None, None], np.arange(4)[:, None]
    row = thread // 32 * 16 + thread % 32 // 4 + 8 * (register % 2)
    column = thread % 4 * 2 + np.arange(2) + 8 * (register // 2)
    fragment = np.ascontiguousarray(a[row + 0 * column, column]).view(np.uint32)[..., 0]
    words = np.zeros(4096, np.uint32)
    words[:512] = fragment.ravel()
    image_b, fields = image(b, 32, is_transposed=False)
    count = N // 2
    loads = "  %r = mul i32 %tid, 4\n"
    for i in range(4):
        loads += f"  %ri{i} = add i32 %r, {i}\n"
        loads += f"  %rp{i} = getelementptr i32, ptr addrspace(1) %a, i32 %ri{i}\n"
        loads += f"  %a{i} = load i32, ptr addrspace(1) %rp{i}\n"
    asm = (
        f"wgmma.mma_async.sync.aligned.m64n{N}k16.f32.bf16.bf16 "
        f"{{{', '.join(f'${i}' for i in range(count))}}}, "
        f"{{{', '.join(f'${count + i}' for i in range(4))}}}, ${count + 4}, 0, 1, 1, 0;"
    )
    struct = "{" + ", ".join(["float"] * count) + "}"
    call = f'  %w = call {struct} asm sideeffect "{asm}", "{",".join(["=f"] * count)},r,r,r,r,l"'
    call += "(i32 %a0, i32 %a1, i32 %a2, i32 %a3, i64 %db)\n"
    call += "".join(f"  %d_{i} = extractvalue {struct} %w, {i}\n" for i in range(count))
    out = np.zeros((128, count), np.float32)
    body = loads + descriptor("b", B_BASE, fields) + START + call + COMMIT + WAIT
    body += store_registers([f"%d_{i}" for i in range(count)], "out", "float")
    launch(words, image_b, body, out)
    exact = a.astype(np.float32) @ b.astype(np.float32).T
    np.testing.assert_array_equal(out, accumulator(exact))


def body_of(after: str) -> tuple[np.ndarray, np.ndarray, str]:
    """Images of two operands and a product that `after` follows."""
    image_a, fields_a = image(small((64, 16), BF16, 1), 32, is_transposed=False)
    image_b, fields_b = image(small((N, 16), BF16, 2), 32, is_transposed=False)
    body = descriptor("a", 0, fields_a) + descriptor("b", B_BASE, fields_b) + START
    body += product(f"m64n{N}k16.f32.bf16.bf16", N, ", 1, 1, 0, 0") + COMMIT + after
    return image_a, image_b, body


def test_accumulators_are_not_read_before_the_wait() -> None:
    a, b, body = body_of(store_registers(["%d_3"], "out", "float"))
    with pytest.raises(UnfinishedOperation, match=r"before wgmma\.wait_group"):
        launch(a, b, body, np.zeros((128, 1), np.float32))


def test_waiting_for_an_older_group_is_not_enough() -> None:
    one_left = WAIT.replace("i64 0", "i64 1")
    a, b, body = body_of(one_left + store_registers(["%d_3"], "out", "float"))
    with pytest.raises(UnfinishedOperation):
        launch(a, b, body, np.zeros((128, 1), np.float32))


def test_generic_writes_need_a_fence_before_the_product() -> None:
    a, b, body = body_of(WAIT)
    with pytest.raises(ProxyRace, match=r"without fence\.proxy\.async"):
        launch(a, b, body, np.zeros((128, 1), np.float32), fence="")


def test_operands_stay_until_the_product_is_done() -> None:
    overwrite = """  %mine = getelementptr i32, ptr addrspace(3) @shared, i32 %tid
  store i32 -1, ptr addrspace(3) %mine
"""
    a, b, body = body_of(overwrite)
    out = np.zeros((128, 1), np.float32)
    with pytest.raises(SharedRace, match="wgmma of warp group 0"):
        launch(a, b, body, out)
    a, b, body = body_of(WAIT + overwrite)
    launch(a, b, body, out)
