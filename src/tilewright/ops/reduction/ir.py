"""Reductions and scans with any combine function, and what is built from them."""

from __future__ import annotations

from xdsl.dialects.builtin import IntegerAttr, UnitAttr
from xdsl.irdl import (
    irdl_op_definition,
    opt_prop_def,
    prop_def,
    region_def,
    traits_def,
    var_operand_def,
    var_result_def,
)
from xdsl.traits import IsTerminator, Pure
from xdsl.utils.exceptions import VerifyException

from tilewright.ir.op import EXCHANGES, TileOp
from tilewright.ir.types import element_of, is_float, shape_of

SCAN_RUN = 64
"""How many elements, or totals of runs, a scan folds one after another where order matters.

Up to 2^8 equal numbers add up exactly in bfloat16; longer runs would lose small elements.
"""

# Float operations that are exact, or give one of their operands: their order does not matter.
_EXACT = frozenset((
    "arith.constant", "arith.cmpf", "arith.select", "arith.negf", "math.absf", "arith.bitcast",
    "arith.maxnumf", "arith.minnumf", "arith.maximumf", "arith.minimumf", "arith.extf",
    "tt.reduce.return", "tt.scan.return", "scf.if", "scf.yield",
))  # fmt: skip


class CombineOp(TileOp):
    """The facet of an op that folds its operands along `axis` with a combine region.

    The region takes 2n scalars (n accumulated, n new) for n operands and returns n. The
    combine function is associative: how elements are grouped is the implementation's choice, and
    for a reduction whose function commutes so is their order.
    """

    axis = prop_def(IntegerAttr)

    def is_reverse(self) -> bool:
        """Whether it folds from the end."""
        return False

    def verify_combine(self) -> None:
        """Tiles of one shape have the axis; the region's arguments are their elements, twice."""
        shapes = {shape_of(v.type) for v in self.operands}
        if len(shapes) != 1 or not 0 <= self.axis.value.data < len(min(shapes)):
            raise VerifyException(f"{self.name}: axis {self.axis.value.data} of {sorted(shapes)}")
        elements = [element_of(v.type) for v in self.operands]
        arguments = [a.type for a in self.regions[0].block.args]
        if arguments != elements * 2:
            raise VerifyException(f"{self.name}: combine region takes {arguments}")

    def rounds(self) -> bool:
        """Whether the combine function may round floats, so that the order of folding shows."""
        return any(
            op.name not in _EXACT
            and any(map(is_float, (v.type for v in (*op.operands, *op.results))))
            for op in self.regions[0].walk()
        )


@irdl_op_definition
class ReduceOp(CombineOp):
    """result = src folded along `axis`; the axis disappears.

    `commutative` promises that the combine function commutes where it does not show.
    """

    name = "tt.reduce"
    srcs = var_operand_def()
    axis = prop_def(IntegerAttr)
    commutative = opt_prop_def(UnitAttr)
    combine = region_def("single_block")
    outputs = var_result_def()
    traits = traits_def(Pure(), EXCHANGES)

    def verify_(self) -> None:
        """Results lose the axis; the region fits."""
        axis = self.axis.value.data
        for src, out in zip(self.srcs, self.outputs, strict=True):
            shape = shape_of(src.type)
            if shape[:axis] + shape[axis + 1 :] != shape_of(out.type):
                raise VerifyException(f"tt.reduce: {shape} does not reduce to {out.type}")
        self.verify_combine()


@irdl_op_definition
class ReduceReturnOp(TileOp):
    """The end of a reduction's combine region."""

    name = "tt.reduce.return"
    values = var_operand_def()
    traits = traits_def(IsTerminator(), Pure())


@irdl_op_definition
class ScanOp(CombineOp):
    """result[i] = src[0] ⊕ … ⊕ src[i] along `axis`, from the end when `reverse`.

    The tree is fixed on the CPU and in the interpreter (`block_sizes`); on GPUs it follows the
    layout.
    """

    name = "tt.scan"
    srcs = var_operand_def()
    axis = prop_def(IntegerAttr)
    reverse = opt_prop_def()
    combine = region_def("single_block")
    outputs = var_result_def()
    traits = traits_def(Pure(), EXCHANGES)

    def is_reverse(self) -> bool:
        """Whether the scan runs from the end."""
        if self.reverse is None:
            return False
        return not isinstance(self.reverse, IntegerAttr) or bool(self.reverse.value.data)

    def block_sizes(self) -> tuple[int, ...]:
        """The sizes of the blocks in which elements are folded, the innermost first.

        Each block is folded from its first part on; what stands before a block is combined with
        its prefixes from the left. One block holds all where the function does not round.
        """
        extent = shape_of(self.operands[0].type)[self.axis.value.data]
        sizes: list[int] = []
        size = SCAN_RUN
        while size < extent and self.rounds():
            sizes.append(size)
            size *= SCAN_RUN
        return (*sizes, extent)

    def verify_(self) -> None:
        """Results have the sources' types; the region fits."""
        if [s.type for s in self.srcs] != [o.type for o in self.outputs]:
            raise VerifyException("tt.scan: results and sources differ in type")
        self.verify_combine()


@irdl_op_definition
class ScanReturnOp(TileOp):
    """The end of a scan's combine region."""

    name = "tt.scan.return"
    values = var_operand_def()
    traits = traits_def(IsTerminator(), Pure())
