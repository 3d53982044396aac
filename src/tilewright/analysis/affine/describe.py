"""Accesses, and what they are for a copy engine or as views of memory, in one line each."""

from __future__ import annotations

from collections.abc import Iterable

from tilewright.analysis.affine.access import AccessDim, TileAccess
from tilewright.analysis.affine.expression import Expression
from tilewright.analysis.affine.memref import MemrefView, ViewDim
from tilewright.analysis.affine.nest import NestAccess
from tilewright.analysis.affine.tensor_box import BoxDim, TensorBox
from tilewright.analysis.affine.text import name_of, text_of


def describe_access(access: TileAccess) -> str:
    """An access in one line, dimension by dimension."""
    parts = [f"{name_of(access.base)} + {text_of(access.offset)}"]
    parts += [_describe_dim(dim) for dim in access.dims]
    mask = access.mask
    parts += [f"where {text_of(number)} > 0" for number in mask.positive]
    parts += [f"where {name_of(condition)}" for condition in mask.conditions]
    parts += ["where a mask says so"] * bool(mask.opaque)
    return "; ".join(parts)


def _describe_dim(dim: AccessDim) -> str:
    """`128 of stride K from 128*pid_m to M`: what stands behind `to` is no longer accessed."""
    text = f"{dim.extent} of stride {text_of(dim.stride)} from {text_of(dim.start)}"
    if dim.indices is not None:
        text += f" + {name_of(dim.indices)}[i]"
    if dim.modulus is not None:
        text += f" mod {text_of(dim.modulus)}"
    text += "".join(f" not below {text_of(dim.start.plus(low))}" for low in dim.lower)
    return text + "".join(f" to {text_of(dim.start.plus(high))}" for high in dim.upper)


def describe_box(box: TensorBox) -> str:
    """`box of a: 64 of stride s from 64*pid to M; … if s is a multiple of 8`."""
    turned = list(box.order) != sorted(box.order)
    parts = [f"box of {name_of(box.base)}{_moved(box.offset)}{' transposed' * turned}"]
    parts += [_describe_box_dim(dim) for dim in box.dims]
    text = "; ".join(parts)
    if box.guards:
        text += f"; if {', '.join(map(str, box.guards))}"
    if box.within:
        text += f"; in every tile {', '.join(map(str, box.within))}"
    return text


def _moved(offset: Expression) -> str:
    return "" if offset.is_zero() else f" + {text_of(offset)}"


def _describe_box_dim(dim: BoxDim) -> str:
    text = f"{dim.extent} of stride {text_of(dim.stride)} from {text_of(dim.start)}"
    text += "" if dim.modulus is None else f" mod {text_of(dim.modulus)}"
    text += f" to {_least(dim.sizes)}" if dim.sizes else ""
    return text + ", where the rest is cut off" * dim.is_cut


def _least(numbers: Iterable[Expression]) -> str:
    texts = [text_of(number) for number in numbers]
    return texts[0] if len(texts) == 1 else f"min({', '.join(texts)})"


def describe_view(view: MemrefView) -> str:
    """`reinterpret_cast a to offset: [o], sizes: [64], strides: [1], copied [min(n - o, 64)]`."""
    sizes = ", ".join(str(dim.size) for dim in view.dims)
    strides = ", ".join(text_of(dim.stride) for dim in view.dims)
    text = f"reinterpret_cast {name_of(view.base)} to offset: [{text_of(view.offset)}]"
    text += f", sizes: [{sizes}], strides: [{strides}]"
    for number, dim in enumerate(view.dims):
        text += _describe_view_dim(number, dim)
    if view.looked_up is not None:
        number, indices = view.looked_up
        text += f", dimension {number} at {name_of(indices)}"
    return text


def _describe_view_dim(number: int, dim: ViewDim) -> str:
    text = ""
    if dim.modulus is not None:
        text += f", dimension {number} wraps from {text_of(dim.start)} at {text_of(dim.modulus)}"
    if dim.lower:
        text += f", dimension {number} not below {', '.join(map(text_of, dim.lower))}"
    return text + (f", dimension {number} below {_least(dim.upper)}" if dim.upper else "")


def describe_nest(access: NestAccess) -> str:
    """`strides s, 1 (jumps)`."""
    texts = [text_of(stride.value) + " (jumps)" * stride.jumps for stride in access.strides]
    return f"strides {', '.join(texts)}"
