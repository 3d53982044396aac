"""Ops that look elements up, order them or count them."""

from __future__ import annotations

import numpy as np
from xdsl.dialects.builtin import IntegerAttr, UnitAttr
from xdsl.irdl import (
    irdl_op_definition,
    operand_def,
    opt_operand_def,
    opt_prop_def,
    prop_def,
    result_def,
    traits_def,
)
from xdsl.traits import Pure
from xdsl.utils.exceptions import VerifyException

from tilewright.ir.op import EXCHANGES, Array, ByHalvesOp, TileOp, require_one_element
from tilewright.ir.types import element_of, is_integer, shape_of


@irdl_op_definition
class GatherOp(TileOp):
    """result[..., i, ...] = src[..., indices[..., i, ...], ...] along `axis`."""

    name = "tt.gather"
    src = operand_def()
    indices = operand_def()
    axis = prop_def(IntegerAttr)
    efficient_layout = opt_prop_def(UnitAttr)
    result = result_def()
    traits = traits_def(Pure(), EXCHANGES)

    def verify_(self) -> None:
        """Indices are integers; the elements keep their type."""
        require_one_element(self, (self.src, self.result))
        if not is_integer(self.indices.type):
            raise VerifyException(f"tt.gather: {element_of(self.indices.type)} is no integer")

    def reference(self, src: Array, indices: Array) -> Array:
        return np.take_along_axis(src, indices.astype(np.int64), axis=self.axis.value.data)


@irdl_op_definition
class HistogramOp(ByHalvesOp):
    """result[b] = number of i with src[i] == b (and mask[i]); values outside are ignored."""

    name = "tt.histogram"
    src = operand_def()
    mask = opt_operand_def()
    result = result_def()
    traits = traits_def(Pure(), EXCHANGES)

    def verify_(self) -> None:
        """What is counted are integers."""
        if not is_integer(self.src.type):
            raise VerifyException(f"tt.histogram: {element_of(self.src.type)} is no integer")

    def reference(self, src: Array, mask: Array | None = None) -> Array:
        (bins,) = shape_of(self.result.type)
        kept = src if mask is None else src[mask]
        kept = kept[(kept >= 0) & (kept < bins)]
        return np.bincount(kept, minlength=bins).astype(np.int32)


@irdl_op_definition
class SortOp(ByHalvesOp):
    """`src` sorted along its last dimension and the i32 positions the values came from.

    Ascending unless `descending`; equal values keep their order (stable). NaN sorts as the
    greatest value. Of both results only the first `kept` elements along the last dimension are
    defined, where that is given: from 1 to the dimension's size.
    """

    name = "tw.sort"
    src = operand_def()
    descending = opt_prop_def(UnitAttr)
    kept = opt_prop_def(IntegerAttr)
    result = result_def()
    indices = result_def()
    traits = traits_def(Pure(), EXCHANGES)

    def reference(self, src: Array) -> tuple[Array, ...]:
        if self.descending is None:
            order = np.argsort(src, axis=-1, kind="stable")
        else:
            flipped = np.argsort(src[..., ::-1], axis=-1, kind="stable")[..., ::-1]
            order = src.shape[-1] - 1 - flipped
        return np.take_along_axis(src, order, axis=-1), order.astype(np.int32)

    def verify_(self) -> None:
        """What is kept is part of a row."""
        size = shape_of(self.src.type)[-1]
        if self.kept is not None and not 1 <= self.kept.value.data <= size:
            raise VerifyException(f"tw.sort: {self.kept.value.data} of {size} elements are kept")
