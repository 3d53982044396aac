"""Gives loops of gradients the warps that they are faster with (T0 to T0).

    func k { for … { s = dot k, q; …; dv = dot p, g, dv; …; dk = dot d, q, dk } }
      ⇒   func k attributes {tt.num_warps = 8} …

Two groups of warps share the rows of what such loops add up. With one group each thread holds twice
as much, which leaves it no registers for two steps at once. It is done where four warps are asked
for and nobody says how the loops run: a launch keeps its warps by `num_consumer_groups=0`.

Behind `ask-roles`, whose roles have warps of their own.
"""

from __future__ import annotations

from xdsl.dialects.builtin import ModuleOp

from tilewright.ir.locations import describe
from tilewright.ir.passes import Pass
from tilewright.ir.types import element_of, shape_of, width_bits
from tilewright.ops.function import FuncOp, find_kernel
from tilewright.schedule.partition.warps import set_warps
from tilewright.support.dataclass import dataclass
from tilewright.targets.nvidia.partition.decide import ROLES_HINT
from tilewright.targets.nvidia.partition.gradients import (
    GradientLoop,
    gradient_loops,
    num_products,
)
from tilewright.targets.nvidia.tma.select_tensor_maps import add_remarks

_ASKED, _FASTER = 4, 8
"""Measured on an H200, 2026-11-23, tutorial 06 backward as it is, fp16 (4, 32, 4096, 64), us:
eight warps 3808, four 4090, roles of two groups 4886; causal 2147, 2273 and 2961."""
# By definition: the sizes that were measured, and float16 and bfloat16.
_ROWS, _COLUMNS, _OPERAND_BITS = 128, 64, 16


@dataclass(frozen=True)
class AskWarps(Pass):
    """The pass; see the module. `num_warps` are those that the launch asks for."""

    num_warps: int = _ASKED
    name = "ask-warps"
    after = ("ask-roles",)

    def apply(self, module: ModuleOp) -> None:
        """Say how many warps the kernel runs with, and why."""
        kernel = find_kernel(module)
        loops = list(gradient_loops(kernel))
        if self.num_warps != _ASKED or not loops or not _has_no_other_products(kernel, loops):
            return
        if any(ROLES_HINT in found.loop.attributes for found in loops):
            return
        if all(map(_is_measured, loops)):
            set_warps(kernel, _FASTER)
            text = f"{_FASTER} warps, as these products are faster so"
            where = describe(loops[0].loop)
            add_remarks(kernel, [f"{where}: {text}; num_consumer_groups=0 keeps {_ASKED}"])


def _has_no_other_products(kernel: FuncOp, loops: list[GradientLoop]) -> bool:
    return sum(len(found.products) for found in loops) == num_products(kernel)


def _is_measured(found: GradientLoop) -> bool:
    """Whether what a loop adds up has the sizes and dtypes that were measured."""
    sums = [shape_of(product.result.type) for product in found.sums]
    operands = [product.operands[0].type for product in found.products]
    is_sized = all(shape == (_ROWS, _COLUMNS) for shape in sums)
    return is_sized and all(width_bits(element_of(type_)) == _OPERAND_BITS for type_ in operands)
