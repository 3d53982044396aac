"""Matrix products of tiles."""

from __future__ import annotations

import numpy as np
from xdsl.dialects.builtin import IntegerAttr
from xdsl.ir import Attribute
from xdsl.irdl import irdl_op_definition, operand_def, opt_prop_def, result_def, traits_def
from xdsl.traits import Pure
from xdsl.utils.exceptions import VerifyException

from tilewright.ir.encoding import SharedType
from tilewright.ir.op import AccumulatingOp, Array
from tilewright.ir.types import element_of, is_float, shape_of, width_bits
from tilewright.support.options import INPUT_PRECISIONS


class ProductOp(AccumulatingOp):
    """The facet of ops that compute result = a @ b + c.

    Shapes: a [..., M, K], b [..., K, N], c and result [..., M, N]. `inputPrecision` indexes
    `support.options.INPUT_PRECISIONS`; `maxNumImpreciseAcc` matters for fp8 on Hopper only.
    """

    a = operand_def()
    b = operand_def()
    c = operand_def()
    input_precision = opt_prop_def(IntegerAttr, prop_name="inputPrecision")
    max_num_imprecise_acc = opt_prop_def(IntegerAttr, prop_name="maxNumImpreciseAcc")
    result = result_def()

    def verify_(self) -> None:
        """K of a and b agree; c and the result are [..., M, N]; elements are of one class."""
        a, b, c = (_extents(v.type) for v in (self.a, self.b, self.c))
        if len(a) < 2 or not len(a) == len(b) == len(c):
            raise VerifyException(
                f"{self.name}: shapes {a}, {b} and {c} are no matrices of one rank"
            )
        if a[-1] != b[-2] or (*a[:-1], b[-1]) != c or a[:-2] != b[:-2]:
            raise VerifyException(f"{self.name}: shapes {a} @ {b} + {c} do not fit")
        if self.result.type != self.c.type:
            raise VerifyException(f"{self.name}: the result's type is not the accumulator's")
        x, y, z = (_element(v.type) for v in (self.a, self.b, self.c))
        is_one = x == y or (is_float(x) and is_float(y) and width_bits(x) == width_bits(y) == 8)
        if not is_one or is_float(x) != is_float(z) or width_bits(x) > width_bits(z):
            raise VerifyException(f"{self.name}: elements {x} @ {y} + {z} do not fit")
        precision = self.input_precision
        if precision is not None and not 0 <= precision.value.data < len(INPUT_PRECISIONS):
            raise VerifyException(
                f"{self.name}: inputPrecision is {precision.value.data}; it is one of "
                + ", ".join(f"{index} ({name})" for index, name in enumerate(INPUT_PRECISIONS))
            )

    def accumulator_index(self) -> int:
        """`c`."""
        return 2


def _extents(type_: Attribute) -> tuple[int, ...]:
    return type_.extents() if isinstance(type_, SharedType) else shape_of(type_)


def _element(type_: Attribute) -> Attribute:
    return type_.element if isinstance(type_, SharedType) else element_of(type_)


@irdl_op_definition
class DotOp(ProductOp):
    """A product of tiles."""

    name = "tt.dot"
    traits = traits_def(Pure())

    def reference(self, a: Array, b: Array, c: Array) -> Array:
        return multiply_add(a, b, c)


def multiply_add(a: Array, b: Array, c: Array) -> Array:
    """a @ b + c in the dtype of c: integers wrap around, floats go through a wider type."""
    if a.dtype.kind in "iu":
        product = np.matmul(a.astype(np.int64), b.astype(np.int64))
        return (product + c).astype(c.dtype)
    wide = np.longdouble if a.dtype == np.float64 else np.float64
    return (np.matmul(a.astype(wide), b.astype(wide)) + c).astype(c.dtype)
