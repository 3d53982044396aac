"""Matrix instructions of a warp: ldmatrix, stmatrix, mma; and the waits of a warp group's."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np

from tilewright.interp.simt import types as t
from tilewright.interp.simt.calls import Call, Compute, intrinsic
from tilewright.interp.simt.fragments import (
    a_matrix,
    accumulator_matrix,
    accumulator_registers,
    b_matrix,
    multiply_add,
)
from tilewright.interp.simt.machine import Machine
from tilewright.interp.simt.statistics import WARP
from tilewright.interp.simt.syntax import Site
from tilewright.interp.simt.types import width_bits
from tilewright.interp.simt.values import Value, bit_cast
from tilewright.ir.op import Array
from tilewright.support.errors import UnsupportedError

_LANES = np.arange(WARP)


def _spaces_of(call: Call) -> int:
    pointer = call.argument_type(0)
    assert isinstance(pointer, t.PointerType)
    return pointer.space


def row_owners(machine: Machine, count: int) -> Array:
    """The threads whose addresses name the rows of `count` 8×8 matrices, per executing warp."""
    warps = machine.require_whole_warps("ldmatrix or stmatrix")
    return (warps[:, None] * WARP + np.arange(8 * count)).ravel()


def load_matrices(
    machine: Machine, space: int, addresses: Array, count: int, site: Site, *, transposes: bool
) -> list[Array]:
    """`ldmatrix`: register i of a lane is its pair of matrix i."""
    owners = row_owners(machine, count)
    rows = machine.gather(space, addresses[owners], owners, 16, 16, site)
    halves = np.ascontiguousarray(rows).view(np.uint16).reshape(-1, count, 8, 8)
    if transposes:
        halves = halves.transpose(0, 1, 3, 2)
    pairs = np.ascontiguousarray(halves).view(np.uint32)  # [warps, count, 8, 4]
    lanes = pairs[:, :, _LANES // 4, _LANES % 4]
    result: list[Array] = []
    members = (owners.reshape(-1, 8 * count)[:, :1] // WARP * WARP + _LANES).ravel()
    for index in range(count):
        register = np.zeros(machine.threads, np.uint32)
        register[members] = lanes[:, index].ravel()
        result.append(register)
    return result


def store_matrices(
    machine: Machine,
    space: int,
    addresses: Array,
    registers: Sequence[Array],
    site: Site,
    *,
    transposes: bool,
) -> None:
    """`stmatrix`: the inverse of `load_matrices`."""
    count = len(registers)
    owners = row_owners(machine, count)
    warps = owners.reshape(-1, 8 * count)[:, 0] // WARP
    stacked = np.stack([r.reshape(-1, WARP)[warps] for r in registers], 1)
    pairs = np.zeros((len(warps), count, 8, 4), np.uint32)
    pairs[:, :, _LANES // 4, _LANES % 4] = stacked
    halves = pairs.view(np.uint16).reshape(-1, count, 8, 8)
    if transposes:
        halves = halves.transpose(0, 1, 3, 2)
    rows = np.ascontiguousarray(halves).reshape(-1, 8).view(np.uint8)
    machine.scatter(space, addresses[owners], owners, rows, 16, site)


def matrix_count(words: Sequence[str]) -> int:
    """The number of matrices that `x1`, `x2` or `x4` says."""
    return next(int(word[1:]) for word in words if re.fullmatch(r"x[124]", word))


@intrinsic("llvm.nvvm.ldmatrix.sync.aligned.m8n8", words="x1 x2 x4 trans b16")
def _load_matrix(call: Call) -> Compute:
    words = call.name.split(".")
    count, transposes, space = matrix_count(words), "trans" in words, _spaces_of(call)

    def compute() -> Value:
        registers = load_matrices(
            call.machine, space, call.array(0), count, call.site, transposes=transposes
        )
        return tuple(registers) if count > 1 else registers[0]

    return compute


@intrinsic("llvm.nvvm.stmatrix.sync.aligned.m8n8", words="x1 x2 x4 trans b16")
def _store_matrix(call: Call) -> Compute:
    words = call.name.split(".")
    count, transposes, space = matrix_count(words), "trans" in words, _spaces_of(call)

    def compute() -> None:
        registers = [call.array(1 + i) for i in range(count)]
        store_matrices(
            call.machine, space, call.array(0), registers, call.site, transposes=transposes
        )

    return compute


def warp_product(
    a: Sequence[Array], b: Sequence[Array], c: Sequence[Array], kinds: tuple[str, str]
) -> list[Array]:
    """`mma`: D = A·B + C of every warp; C's registers are of its element type."""
    block = np.stack(c)
    result = multiply_add(
        a_matrix(a, kinds[0]), b_matrix(b, kinds[1]), accumulator_matrix(block, 8)
    )
    registers = accumulator_registers(result, len(c))
    return list(np.ascontiguousarray(registers))


_SHAPE = re.compile(r"m(\d+)n8k(\d+)$")
_ELEMENT_BITS = {"f16": 16, "bf16": 16, "tf32": 32, "f64": 64}


def register_counts(shape: str, kind: str) -> tuple[int, int]:
    """The registers of A and B of an instruction shape such as m16n8k16."""
    found = _SHAPE.match(shape)
    if found is None:
        raise UnsupportedError(f"mma of shape {shape} is not simulated")
    rows, depth = int(found[1]), int(found[2])
    bits = _ELEMENT_BITS.get(kind, 8)
    width = max(bits, 32)
    return rows * depth * bits // WARP // width, 8 * depth * bits // WARP // width


def _mma_kinds(words: list[str], c_type: t.LlvmType) -> tuple[str, str]:
    """The operands' types that an intrinsic's name says."""
    types = [word for word in words if word not in ("row", "col")]
    if len(types) == 4:
        return types[1], types[2]
    if types[-1] in ("f16", "f32"):
        return "f16", "f16"
    if len(types) == 2:
        return types[0], types[1]
    del c_type
    return types[0], types[0]


@intrinsic(
    "llvm.nvvm.mma",
    words="m16n8k4 m16n8k8 m16n8k16 m16n8k32 m8n8k4 m8n8k16 row col tf32 e4m3 e5m2 s8 u8",
)
def _multiply(call: Call) -> Compute:
    words = call.name.split(".")
    kinds = _mma_kinds(words[4:], call.type)
    num_a, num_b = register_counts(words[3], kinds[0])
    result_types = call.type.fields if isinstance(call.type, t.StructType) else (call.type,)
    packs = isinstance(result_types[0], t.VectorType)

    def operand(index: int) -> Array:
        value, type_ = call.array(index), call.argument_type(index)
        return bit_cast(value, type_, t.I32) if isinstance(type_, t.VectorType) else value

    def compute() -> Value:
        call.machine.require_whole_warps("mma.sync")
        a = [operand(i) for i in range(num_a)]
        b = [operand(num_a + i) for i in range(num_b)]
        c = [call.array(num_a + num_b + i) for i in range(len(result_types))]
        if packs:
            halves = [half for pair in c for half in pair]
            flat = warp_product(a, b, halves, kinds)
            return tuple(np.stack(flat[i : i + 2]) for i in range(0, len(flat), 2))
        signed = c[0].dtype.kind == "u"
        parts = [x.view(np.int32) for x in c] if signed else c
        return tuple(x.view(c[0].dtype) for x in warp_product(a, b, parts, kinds))

    assert width_bits(result_types[0]) >= 32
    return compute


@intrinsic("llvm.nvvm.wgmma.fence.sync.aligned")
def _fence(call: Call) -> Compute:
    machine = call.machine
    return lambda: _check_groups(machine)


def _check_groups(machine: Machine) -> None:
    machine.products.warp_groups(machine.active())


@intrinsic("llvm.nvvm.wgmma.commit_group.sync.aligned")
def _commit(call: Call) -> Compute:
    machine = call.machine
    return lambda: machine.products.commit(machine.active())


@intrinsic("llvm.nvvm.wgmma.wait_group.sync.aligned")
def _wait(call: Call) -> Compute:
    machine, pending = call.machine, call.constant(0)
    return lambda: machine.products.wait(machine.active(), pending)
