"""What to write in place of a name of NumPy, torch or Python that the language does not have.

An error names the right function or none: a guess that is far from what was meant misleads.
Nothing here imports xDSL: the errors of a launch use it too.
"""

from __future__ import annotations

from collections.abc import Iterable

from tilewright.language import _ops
from tilewright.language.core import DTYPE_NAMES, FOREIGN_DTYPES
from tilewright.language.extra import libdevice

# Below this likeness a close match is another word, not a misspelling.
_LIKENESS = 0.78

# Functions by the last part of their name, whichever package has them.
_FUNCTIONS = {
    "relu": "tl.maximum(x, 0)",
    "silu": "x * tl.sigmoid(x)",
    "square": "x * x",
    "absolute": "tl.abs(x)",
    "fabs": "tl.abs(x)",
    "mod": "x % y",
    "remainder": "x % y",
    "power": "tl.extra.libdevice.pow(x, y)",
    "reciprocal": "1 / x",
    "negative": "-x",
    "sign": "tl.where(x > 0, 1, tl.where(x < 0, -1, 0))",
    "round": "tl.extra.libdevice.rint(x)",
    "mean": "tl.sum(x, axis) / n",
    "var": "tl.sum(x * x, axis) / n - mean * mean",
    "prod": "tl.reduce(x, axis, multiply), with a jit function `multiply(a, b)`",
    "any": "tl.max((x != 0).to(tl.int32), axis)",
    "all": "tl.min((x != 0).to(tl.int32), axis)",
    "matmul": "tl.dot(a, b)",
    "mm": "tl.dot(a, b)",
    "bmm": "tl.dot(a, b)",
    "einsum": "tl.dot(a, b)",
    "ones": "tl.full(shape, 1, dtype)",
    "ones_like": "tl.full(x.shape, 1, x.dtype)",
    "full_like": "tl.full(x.shape, value, x.dtype)",
    "empty": "tl.zeros(shape, dtype)",
    "empty_like": "tl.zeros_like(x)",
    "concat": "tl.cat(x, y)",
    "concatenate": "tl.cat(x, y)",
    "stack": "tl.join(x, y)",
    "transpose": "tl.trans(x)",
    "swapaxes": "tl.permute(x, dims)",
    "astype": "x.to(dtype)",
    "ravel": "x.ravel()",
    "clip": "tl.clamp(x, low, high)",
    "barrier": "tl.debug_barrier()",
    "syncthreads": "tl.debug_barrier()",
    "block_id": "tl.program_id(axis)",
    "atomic_sub": "tl.atomic_add(pointer, -value)",
    "print": "tl.device_print(text, x)",
    "inf": "float('inf')",
    "nan": "float('nan')",
}
_MEMBERS = {
    "astype": "x.to(dtype)",
    "type_as": "x.to(other.dtype)",
    "mean": "x.sum(axis) / n",
    "ndim": "len(x.shape)",
    "dim": "len(x.shape)",
    "size": "x.numel, or x.shape[axis]",
    "transpose": "x.trans()",
    "t": "x.trans()",
    "mT": "x.trans()",
    "flatten": "x.ravel()",
    "expand": "x.broadcast_to(shape)",
    "repeat": "x.broadcast_to(shape)",
    "matmul": "tl.dot(x, y)",
    "mm": "tl.dot(x, y)",
    "dot": "tl.dot(x, y)",
    "pow": "tl.extra.libdevice.pow(x, y)",
    **dict.fromkeys(
        ("clone", "copy", "contiguous", "detach"), "the tile itself: tiles are immutable"
    ),
}
_PARAMETERS = {
    "keepdim": "keep_dims",
    "keepdims": "keep_dims",
    "dim": "axis",
    "axis": "dim",
    "size": "shape",
    "out": "",
    "default": "other",
    "fill": "other",
    "fill_value": "value",
    "block_size": "block_shape",
    "type": "dtype",
    "input": "x",
    "descending": "descending",
    "indices": "index",
    "ptr": "pointer",
}


def of_name(name: str) -> str:
    """What serves as a function or dtype `name` of another package, or ''.

    *Example*

    >>> of_name("exp"), of_name("float32"), of_name("frobnicate")
    ('tl.exp', 'tl.float32', '')
    """
    if name in FOREIGN_DTYPES:
        return f"tl.{FOREIGN_DTYPES[name]}"
    if name in DTYPE_NAMES:
        return f"tl.{DTYPE_NAMES[name]}"
    if name in _FUNCTIONS:
        return _FUNCTIONS[name]
    if name in _ops.__all__:
        return f"tl.{name}"
    return f"tl.extra.libdevice.{name}" if name in libdevice.__all__ else ""


def of_attribute(name: str, members: Iterable[str]) -> str:
    """What to write for an attribute or method `name` that tiles do not have, or ''."""
    if name in _MEMBERS:
        return f"use {_MEMBERS[name]}"
    if name in FOREIGN_DTYPES:
        return f"use x.to(tl.{FOREIGN_DTYPES[name]})"
    near = closest(name, members)
    if near:
        return f"did you mean `.{near}`?"
    serves = of_name(name)
    return f"use {serves if '(' in serves else f'{serves}(x)'}" if serves else ""


def of_parameter(name: str, parameters: Iterable[str]) -> str:
    """The parameter that was meant by the keyword `name`, or ''."""
    names = list(parameters)
    meant = _PARAMETERS.get(name, "")
    return meant if meant in names else closest(name, names)


def closest(name: str, names: Iterable[str]) -> str:
    """The one of `names` that `name` misspells, or ''."""
    from difflib import get_close_matches  # a millisecond that a right program does not pay

    found = get_close_matches(name, list(names), n=1, cutoff=_LIKENESS)
    return found[0] if found else ""
