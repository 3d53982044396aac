"""Attention of small heads, of which a multiprocessor runs two programs of two groups at once.

Two groups of 64 rows each hold 64 registers of results a thread, which leaves room for as many
warps again; a program alone has nothing to do while its products and its softmax wait for each
other.
"""

from __future__ import annotations

from tilewright.ir.regions import loops_around
from tilewright.ir.types import element_of, shape_of, width_bits
from tilewright.ops.function import FuncOp
from tilewright.targets.nvidia.partition.gradients import num_products
from tilewright.targets.nvidia.partition.order import Pair, pairs_of

# By definition: what the registers below are for.
PROGRAMS = 2
REGISTERS = (24, 104)
"""Of a thread that loads, and of one that multiplies: 384 threads start with 80 each, and 768 with
61440 in all. Measured on an H200, 2026-11-23, tutorial 06, fp16 (4, 32, 4096, 64), 128 x 64, us of
a cold call: so 1155, with (40, 232) and one program at once 1475, without roles 1326 by four warps
and 1222 by eight; causal 645, 826, 757 and 674."""
# By definition: the results and operands that were measured.
_SCORES, _SUMS, _OPERAND_BITS = (128, 64), (128, 64), 16


def fits_twice(pair: Pair) -> bool:
    """Whether a loop is like those that were measured: tiles, their dtype, no loop around it."""
    shapes = tuple(shape_of(product.result.type) for product in (pair.first, pair.second))
    operands = [product.operands[0].type for product in (pair.first, pair.second)]
    is_small = all(width_bits(element_of(type_)) == _OPERAND_BITS for type_ in operands)
    return shapes == (_SCORES, _SUMS) and is_small and next(loops_around(pair.loop), None) is None


def runs_twice(kernel: FuncOp) -> bool:
    """Whether all products of a kernel are in such loops."""
    pairs = list(pairs_of(kernel))
    return bool(pairs) and num_products(kernel) == 2 * len(pairs) and all(map(fits_twice, pairs))
