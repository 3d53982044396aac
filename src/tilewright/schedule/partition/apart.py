"""Whether two stores of one program through a descriptor write blocks of their own.

    descriptor_store %d[%i, %j], %left : 128x64
    descriptor_store %d[%i, %j + 64], %right : 128x64

Along one dimension the second block starts behind the first one, or ends in front of it, and along
the others both start at the same index. So the rows of either that one replica stores are none
that another one stores.
"""

from __future__ import annotations

from xdsl.ir import Operation

from tilewright.analysis.affine.scalars import Scalars
from tilewright.ir.types import DescriptorType, shape_of
from tilewright.ops.descriptors.ir import DescriptorStoreOp


def are_apart(first: Operation, second: Operation) -> bool:
    """Whether two ops store blocks of one tensor that have no element in common."""
    if not isinstance(first, DescriptorStoreOp) or not isinstance(second, DescriptorStoreOp):
        return False
    if first.desc is not second.desc:
        return False
    assert isinstance(first.desc.type, DescriptorType)
    scalars, extents = Scalars(), shape_of(first.desc.type.block)
    pairs = zip(first.indices, second.indices, strict=True)
    steps = [scalars.of(there).minus(scalars.of(here)).as_int() for here, there in pairs]
    moved = [dim for dim, step in enumerate(steps) if step != 0]
    if len(moved) != 1:
        return False
    step = steps[moved[0]]
    return step is not None and abs(step) >= extents[moved[0]]
