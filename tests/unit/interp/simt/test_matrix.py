"""Matrix instructions of a warp against NumPy."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from tests.unit.interp.simt.programs import (
    BARRIER,
    copy_in,
    random_bits,
    run,
    shared_at,
    store_registers,
)

LANE = np.arange(32)
GROUP, THREAD = LANE // 4, LANE % 4


def extracted(value: str, count: int, kind: str = "i32") -> tuple[str, list[str]]:
    struct = "{" + ", ".join([kind] * count) + "}"
    names = [f"%{value}_{i}" for i in range(count)]
    lines = [f"  {n} = extractvalue {struct} %{value}, {i}" for i, n in enumerate(names)]
    return "\n".join(lines) + "\n", names


@pytest.mark.parametrize("transposes", [False, True])
def test_ldmatrix_gives_each_lane_its_pairs(transposes: bool) -> None:
    x, out = random_bits(128, 1), np.zeros((32, 4), np.uint32)
    trans = ".trans" if transposes else ""
    take, names = extracted("r", 4)
    row = "  %off = mul i32 %tid, 16\n" + shared_at("p", "%off")
    body = copy_in("x", 512, 32) + BARRIER + row
    body += (
        "  %r = call {i32, i32, i32, i32} "
        f"@llvm.nvvm.ldmatrix.sync.aligned.m8n8.x4{trans}.b16.p3(ptr addrspace(3) %p)\n"
    )
    run(body + take + store_registers(names, "out"), "x; out", x, out, threads=32)
    halves = x.view(np.uint16).reshape(4, 8, 8)
    if transposes:
        halves = halves.transpose(0, 2, 1)
    pairs = np.ascontiguousarray(halves).view(np.uint32)
    np.testing.assert_array_equal(out, pairs[:, GROUP, THREAD].T)


@pytest.mark.parametrize("trans", ["", ".trans"])
def test_stmatrix_undoes_ldmatrix(trans: str) -> None:
    x, out = random_bits(128, 2), np.zeros(128, np.uint32)
    call = f"sync.aligned.m8n8.x4{trans}.b16.p3(ptr addrspace(3)"
    take, names = extracted("r", 4)
    row = "  %off = mul i32 %tid, 16\n" + shared_at("p", "%off")
    row += "  %off2 = add i32 %off, 1024\n" + shared_at("q", "%off2")
    body = copy_in("x", 512, 32) + BARRIER + row
    body += f"  %r = call {{i32, i32, i32, i32}} @llvm.nvvm.ldmatrix.{call} %p)\n" + take
    values = ", ".join(f"i32 {name}" for name in names)
    body += f"  call void @llvm.nvvm.stmatrix.{call} %q, {values})\n" + BARRIER
    loads = "  %w = load <4 x i32>, ptr addrspace(3) %q\n"
    loads += "".join(f"  %w{i} = extractelement <4 x i32> %w, i32 {i}\n" for i in range(4))
    body += loads + store_registers([f"%w{i}" for i in range(4)], "out")
    run(body, "x; out", x, out, threads=32)
    np.testing.assert_array_equal(out, x)


FORMS = [
    # name of the intrinsic behind `mma.`, dtype of the operands, K, LLVM types of A/B and C
    ("m16n8k16.row.col.bf16", ml_dtypes.bfloat16, 16, "i32", "float"),
    ("m16n8k16.row.col.f32.f32", np.float16, 16, "<2 x half>", "float"),
    ("m16n8k8.row.col.tf32", np.float32, 8, "i32", "float"),
    ("m16n8k32.row.col.s8", np.int8, 32, "i32", "i32"),
    ("m16n8k32.row.col.f32.e4m3.e4m3.f32", ml_dtypes.float8_e4m3fn, 32, "i32", "float"),
]


def fragment(matrix: np.ndarray, *, is_left: bool) -> np.ndarray:
    """The registers [32, count] of an A [16, K] or B [K, 8] operand."""
    per_word = 4 // matrix.itemsize
    depth = matrix.shape[1] if is_left else matrix.shape[0]
    registers = []
    for step in range(0, depth, 4 * per_word):
        for row in (0, 8) if is_left else (0,):
            k = step + per_word * THREAD[:, None] + np.arange(per_word)
            lanes = matrix[GROUP[:, None] + row, k] if is_left else matrix[k, GROUP[:, None]]
            registers.append(np.ascontiguousarray(lanes).view(np.uint32)[:, 0])
    return np.stack(registers, 1)


def accumulator(matrix: np.ndarray) -> np.ndarray:
    """The registers [32, 4] of a 16×8 accumulator."""
    row = GROUP[:, None] + np.array([0, 0, 8, 8])
    column = 2 * THREAD[:, None] + np.array([0, 1, 0, 1])
    return np.ascontiguousarray(matrix[row, column])


@pytest.mark.parametrize(("name", "dtype", "depth", "kind", "sum_kind"), FORMS)
def test_mma_multiplies(name: str, dtype: type, depth: int, kind: str, sum_kind: str) -> None:
    rng = np.random.default_rng(3)
    a = rng.integers(-4, 5, (16, depth)).astype(dtype)
    b = rng.integers(-4, 5, (depth, 8)).astype(dtype)
    sum_type = np.float32 if sum_kind == "float" else np.int32
    c = rng.integers(-4, 5, (16, 8)).astype(sum_type)
    left, right, start = fragment(a, is_left=True), fragment(b, is_left=False), accumulator(c)
    out = np.zeros((32, 4), sum_type)
    lines, arguments = [], []
    for array, width, element in (
        ("l", left.shape[1], kind),
        ("r", right.shape[1], kind),
        ("s", 4, sum_kind),
    ):
        lines.append(f"  %row{array} = mul i32 %tid, {width}")
        for i in range(width):
            lines += [
                f"  %i{array}{i} = add i32 %row{array}, {i}",
                f"  %p{array}{i} = getelementptr i32, ptr addrspace(1) %{array}, i32 %i{array}{i}",
                f"  %v{array}{i} = load {element}, ptr addrspace(1) %p{array}{i}, align 4",
            ]
            arguments.append(f"{element} %v{array}{i}")
    struct = "{" + ", ".join([sum_kind] * 4) + "}"
    lines.append(f"  %d = call {struct} @llvm.nvvm.mma.{name}({', '.join(arguments)})")
    take, names = extracted("d", 4, sum_kind)
    body = "\n".join(lines) + "\n" + take + store_registers(names, "out", sum_kind)
    run(body, "l; r; s; out", left, right, start, out, threads=32)
    exact = a.astype(np.float64) @ b.astype(np.float64) + c
    np.testing.assert_array_equal(out, accumulator(exact.astype(sum_type)))


def test_mma_in_assembly_gives_the_same() -> None:
    rng = np.random.default_rng(4)
    a = rng.integers(-4, 5, (16, 16)).astype(np.float16)
    b = rng.integers(-4, 5, (16, 8)).astype(np.float16)
    left, right = fragment(a, is_left=True), fragment(b, is_left=False)
    both = np.concatenate([left, right], axis=1)
    out = np.zeros((32, 4), np.float32)
    loads = "  %row = mul i32 %tid, 6\n"
    for i in range(6):
        loads += f"  %i{i} = add i32 %row, {i}\n"
        loads += f"  %p{i} = getelementptr i32, ptr addrspace(1) %x, i32 %i{i}\n"
        loads += f"  %v{i} = load i32, ptr addrspace(1) %p{i}\n"
    asm = (
        "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
        "{$0, $1, $2, $3}, {$4, $5, $6, $7}, {$8, $9}, {$10, $10, $10, $10};"
    )
    take, names = extracted("d", 4, "float")
    values = ", ".join(f"i32 %v{i}" for i in range(6))
    call = (
        f'  %d = call {{float, float, float, float}} asm sideeffect "{asm}", '
        f'"=f,=f,=f,=f,r,r,r,r,r,r,f"({values}, float 1.0)\n'
    )
    run(
        loads + call + take + store_registers(names, "out", "float"),
        "x; out",
        both,
        out,
        threads=32,
    )
    expected = a.astype(np.float64) @ b.astype(np.float64) + 1
    np.testing.assert_array_equal(out, accumulator(expected.astype(np.float32)))
