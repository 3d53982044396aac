"""Matrix products of tiles."""

from __future__ import annotations

import numpy as np
from xdsl.dialects.builtin import IntegerAttr
from xdsl.irdl import irdl_op_definition, operand_def, opt_prop_def, result_def, traits_def
from xdsl.traits import Pure
from xdsl.utils.exceptions import VerifyException

from tilewright.ir.op import AccumulatingOp, Array
from tilewright.ir.types import shape_of


@irdl_op_definition
class DotOp(AccumulatingOp):
    """result = a @ b + c.

    Shapes: a [..., M, K], b [..., K, N], c and result [..., M, N]. `inputPrecision` indexes
    `support.options.INPUT_PRECISIONS`; `maxNumImpreciseAcc` matters for fp8 on Hopper only.
    """

    name = "tt.dot"
    a = operand_def()
    b = operand_def()
    c = operand_def()
    input_precision = opt_prop_def(IntegerAttr, prop_name="inputPrecision")
    max_num_imprecise_acc = opt_prop_def(IntegerAttr, prop_name="maxNumImpreciseAcc")
    result = result_def()
    traits = traits_def(Pure())

    def verify_(self) -> None:
        """K of a and b agree; c and the result are [..., M, N]."""
        a, b, c = (shape_of(v.type) for v in (self.a, self.b, self.c))
        if a[-1] != b[-2] or (*a[:-1], b[-1]) != c or a[:-2] != b[:-2]:
            raise VerifyException(f"tt.dot: shapes {a} @ {b} + {c} do not fit")
        if self.result.type != self.c.type:
            raise VerifyException("tt.dot: the result's type is not the accumulator's")

    def accumulator_index(self) -> int:
        """`c`."""
        return 2

    def reference(self, a: Array, b: Array, c: Array) -> Array:
        return multiply_add(a, b, c)


def multiply_add(a: Array, b: Array, c: Array) -> Array:
    """a @ b + c in the dtype of c: integers wrap around, floats go through a wider type."""
    if a.dtype.kind in "iu":
        product = np.matmul(a.astype(np.int64), b.astype(np.int64))
        return (product + c).astype(c.dtype)
    wide = np.longdouble if a.dtype == np.float64 else np.float64
    return (np.matmul(a.astype(wide), b.astype(wide)) + c).astype(c.dtype)
