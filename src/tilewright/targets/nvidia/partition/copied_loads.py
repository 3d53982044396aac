"""Which loads the threads of a role can copy to slots of a ring: operands of products (T0).

The copy engine takes boxes of a tensor. Rows that indices gather, and those that no launch proves
to begin at multiples of 16 bytes, threads copy by `cp.async`: 4, 8 or 16 bytes at once, and zeros
under a mask.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import prod

from xdsl.dialects.builtin import TensorType
from xdsl.ir import Operation, SSAValue

from tilewright.analysis.facts import MAX_ACCESS_BYTES, AxisFacts
from tilewright.ir.types import shape_of, storage_bytes
from tilewright.ops.function import FuncOp
from tilewright.ops.matmul.ir import ProductOp
from tilewright.ops.memory.ir import LoadOp
from tilewright.ops.shape.ir import PermutingOp
from tilewright.schedule.plan.copies import is_volatile, is_zero
from tilewright.support.powers_of_two import is_power_of_two

REGISTERS = {1: (96, 240), 2: (72, 216), 3: (56, 152)}
"""Of a thread that copies, which knows the addresses of its part of a tile, and of one that
multiplies, by the number of groups. Source: ptxas 13.0: no gathered product of 14 sizes spills."""
# By definition: a role that loads is one group of warps.
_THREADS = 128
# Source: PTX ISA 8.8, cp.async: the fewest bytes of a copy.
_FEWEST_BYTES = 4
_MOST_COPIES = 16
"""Of one tile by a thread, which holds an address of each. Source: ptxas 13.0: with the registers
of `decide.py` 16 of one operand beside 8 of the other do not spill, and 32 do."""
# Source: PTX ISA 8.8, wgmma: rows of operands lie in multiples of 16 bytes.
_ROW_BYTES = 16


def copied_loads(kernel: FuncOp) -> list[LoadOp]:
    """The loads by pointers that feed products alone, in order, if threads can copy all of them.

    Where they cannot, groups would load the rest themselves, each all of it.
    """
    return [] if first_problem(kernel) else loads_of_products(kernel)


def gathered_operand(kernel: FuncOp) -> LoadOp | None:
    """The one load that threads copy, 16 bytes at once, of a kernel whose others are boxes.

    Such kernels are in roles though nobody asks. Measured on an H200, 2026-11-23, TFLOP/s of
    a[rows] @ b, bfloat16, 8192 x 4096 x 4096 and 8192 x 8192 x 1024: tiles of 128 x 256 by two
    groups 752 and 701, pipelined by eight warps 690 and 504 at best, Triton's 611 and 565.
    """
    loads = copied_loads(kernel)
    return loads[0] if len(loads) == 1 and are_copied_whole(kernel, loads) else None


def are_copied_whole(kernel: FuncOp, loads: Iterable[LoadOp]) -> bool:
    """Whether threads can copy each of some loads, 16 bytes at once."""
    facts = AxisFacts(kernel)
    return all(
        feeds_products(load.result)
        and not _problem(load, facts)
        and _width(load, facts) == MAX_ACCESS_BYTES
        for load in loads
    )


def first_problem(kernel: FuncOp) -> tuple[LoadOp, str] | None:
    """The first load of an operand that threads cannot copy, and why; None where they can all."""
    loads = loads_of_products(kernel)
    facts = AxisFacts(kernel) if loads else None
    for load in loads:
        problem = "" if facts is None else _problem(load, facts)
        if problem:
            return load, problem
    return None


def loads_of_products(kernel: FuncOp) -> list[LoadOp]:
    """The loads by pointers that feed products alone, in order."""
    return [op for op in kernel.walk() if isinstance(op, LoadOp) and feeds_products(op.result)]


def feeds_products(value: SSAValue) -> bool:
    """Whether a tile is an operand of products, as it is or transposed, and nothing else."""
    if not isinstance(value.type, TensorType) or value.first_use is None:
        return False
    return all(_takes(use.operation, use.index) for use in value.uses)


def _takes(user: Operation, index: int) -> bool:
    if isinstance(user, ProductOp):
        return index < 2
    return isinstance(user, PermutingOp) and feeds_products(user.result)


def why_not_copied(kernel: FuncOp, load: Operation) -> str:
    """Why threads cannot copy a load that a ring is to bring; '' where they can."""
    if not isinstance(load, LoadOp):
        return "it is no load by pointers"
    if not feeds_products(load.result):
        return "what it loads is no operand of products alone"
    return _problem(load, AxisFacts(kernel))


def _problem(load: LoadOp, facts: AxisFacts) -> str:
    shape, size = shape_of(load.result.type), storage_bytes(load.result.type)
    if len(shape) != 2:
        return f"its tile has {len(shape)} dims"
    if is_volatile(load):
        return "it is volatile"
    if load.other is not None and not is_zero(load.other):
        return "a copy fills in zeros only"
    order = facts.coalesce_order(load.ptr)
    if order[0] != 1:
        return "its elements are adjacent along rows: load it transposed"
    if not all(map(is_power_of_two, shape)):
        return f"a tile of {shape[0]} x {shape[1]} has no place in registers"
    if shape[1] * size % _ROW_BYTES or prod(shape) % _THREADS:
        return f"{shape[0]} rows of {shape[1] * size} bytes are not shared evenly"
    width = _width(load, facts)
    if width < _FEWEST_BYTES:
        return f"{width} bytes are known to be adjacent, aligned and under one mask"
    count = prod(shape) * size // _THREADS // width
    if count > _MOST_COPIES:
        return f"a thread would make {count} copies of {width} bytes, at most {_MOST_COPIES}"
    return ""


def _width(load: LoadOp, facts: AxisFacts) -> int:
    """The bytes of a copy."""
    shape, size = shape_of(load.result.type), storage_bytes(load.result.type)
    limit = min(MAX_ACCESS_BYTES // size, shape[1], prod(shape) // _THREADS)
    return size * facts.vector_width(load, 1 << (limit.bit_length() - 1), 1)
