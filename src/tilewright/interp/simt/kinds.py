"""PTX's types, and what a register's bits are when an instruction reads them as one."""

from __future__ import annotations

from functools import cache

import ml_dtypes
import numpy as np

from tilewright.ir.op import Array
from tilewright.support.errors import UnsupportedError

FLOATS = {
    "f16": np.dtype(np.float16),
    "bf16": np.dtype(ml_dtypes.bfloat16),
    "f32": np.dtype(np.float32),
    "f64": np.dtype(np.float64),
    "tf32": np.dtype(np.float32),
}
PACKED = {
    "f16x2": np.dtype(np.float16),
    "bf16x2": np.dtype(ml_dtypes.bfloat16),
    "e4m3x2": np.dtype(ml_dtypes.float8_e4m3fn),
    "e5m2x2": np.dtype(ml_dtypes.float8_e5m2),
}


@cache
def dtype_of_kind(kind: str) -> np.dtype:
    """The dtype that a PTX type is read as; packed types give their elements'."""
    if kind == "pred":
        return np.dtype(np.bool_)
    known = FLOATS.get(kind) or PACKED.get(kind)
    if known is not None:
        return known
    if kind[0] in "bus" and kind[1:] in ("8", "16", "32", "64"):
        return np.dtype(f"{'i' if kind[0] == 's' else 'u'}{int(kind[1:]) // 8}")
    raise UnsupportedError(f"the simulator does not know the PTX type '.{kind}'")


def is_kind(word: str) -> bool:
    """Whether a modifier is a type."""
    if word in FLOATS or word in PACKED or word == "pred":
        return True
    return word[:1] in ("b", "u", "s") and word[1:] in ("8", "16", "32", "64")


def as_kind(bits: Array, kind: str) -> Array:
    """What a register holds, read as a type; packed types give [2, threads]."""
    dtype = dtype_of_kind(kind)
    if bits.dtype == dtype:
        return bits if kind not in PACKED else _unpacked(bits, dtype)
    if kind in PACKED:
        return _unpacked(bits, dtype)
    if bits.dtype == np.bool_ or dtype == np.bool_:
        return bits.astype(dtype)
    if bits.dtype.itemsize != dtype.itemsize:
        unsigned = bits.view(f"u{bits.dtype.itemsize}")
        bits = unsigned.astype(f"u{dtype.itemsize}")
    return bits.view(dtype)


def _unpacked(bits: Array, dtype: np.dtype) -> Array:
    if bits.ndim == 2:
        return bits.view(dtype)
    return np.ascontiguousarray(bits).view(dtype).reshape(-1, 2).T


def packed(value: Array) -> Array:
    """Elements [2, threads] as one register, the first element lowest."""
    lanes = np.ascontiguousarray(value.T)
    return lanes.view(f"u{2 * lanes.dtype.itemsize}")[:, 0]
