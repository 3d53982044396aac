"""The kernels' side of `triton.tools.ragged_tma`, which says how a slice becomes a bound."""

# Written in the tile language, whose values have no types that Python knows.
# pyright: reportMissingParameterType=false, reportUnknownParameterType=false
# pyright: reportArgumentType=false, reportCallIssue=false, reportGeneralTypeIssues=false

from __future__ import annotations

from .. import language as tl
from ..runtime.jit import jit


@jit
def create_ragged_descriptor_device_2d(
    ptr,
    shape_0,
    shape_1,
    stride_0,
    stride_1,
    block_shape_0: tl.constexpr,
    block_shape_1: tl.constexpr,
    ragged_dim: tl.constexpr = 0,
):
    """The same inside a kernel, for 2 dimensions of which the first is ragged."""
    tl.static_assert(ragged_dim == 0, "the last dimension cannot be ragged")
    return tl.make_tensor_descriptor(
        ptr - tl.to_tensor(shape_0).to(tl.int64) * stride_0,
        [shape_0 + 1, shape_0, shape_1],
        [stride_0, stride_0, stride_1],
        [1, block_shape_0, block_shape_1],
    )


@jit
def create_ragged_descriptor_device_3d(
    ptr,
    shape_0,
    shape_1,
    shape_2,
    stride_0,
    stride_1,
    stride_2,
    block_shape_0: tl.constexpr,
    block_shape_1: tl.constexpr,
    block_shape_2: tl.constexpr,
    ragged_dim: tl.constexpr = 0,
):
    """The same inside a kernel, for 3 dimensions of which the first or second is ragged."""
    tl.static_assert(ragged_dim < 2, "the last dimension cannot be ragged")
    rows = shape_0 if ragged_dim == 0 else shape_1
    stride = stride_0 if ragged_dim == 0 else stride_1
    return tl.make_tensor_descriptor(
        ptr - tl.to_tensor(rows).to(tl.int64) * stride,
        [rows + 1, shape_0, shape_1, shape_2],
        [stride, stride_0, stride_1, stride_2],
        [1, block_shape_0, block_shape_1, block_shape_2],
    )


@jit
def _place(TMA, batch_offset, batch_size, coords, ragged_dim: tl.constexpr = 0):
    """The place in the descriptor of `coords` in the slice at `batch_offset`."""
    first = TMA.shape[1 + ragged_dim] - batch_size
    indices = (batch_offset + batch_size,)
    for dim in tl.static_range(len(coords)):
        indices = indices + ((coords[dim] + first if dim == ragged_dim else coords[dim]),)
    return indices


@jit
def load_ragged(TMA, batch_offset, batch_size, coords, ragged_dim: tl.constexpr = 0):
    """The block at `coords` in the slice of `batch_size` rows at row `batch_offset`."""
    indices = _place(TMA, batch_offset, batch_size, coords, ragged_dim)
    block = TMA.load(indices)
    return tl.reshape(block, TMA.block_shape[1:])


@jit
def store_ragged(TMA, batch_offset, batch_size, coords, data, ragged_dim: tl.constexpr = 0):
    """Store a block at `coords` in the slice of `batch_size` rows at row `batch_offset`."""
    indices = _place(TMA, batch_offset, batch_size, coords, ragged_dim)
    TMA.store(indices, tl.reshape(data, TMA.block_shape))


@jit
def atomic_add_ragged(TMA, batch_offset, batch_size, coords, data, ragged_dim: tl.constexpr = 0):
    """Add a block to the elements at `coords` in the slice at row `batch_offset`."""
    indices = _place(TMA, batch_offset, batch_size, coords, ragged_dim)
    TMA.atomic_add(indices, tl.reshape(data, TMA.block_shape))
