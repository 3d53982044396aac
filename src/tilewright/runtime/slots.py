"""What an argument is to compiled code: the 8 bytes of its slot. Nothing here needs NumPy."""

from __future__ import annotations

import math
import operator
import struct
from typing import SupportsFloat, SupportsIndex, cast

_FLOAT_FORMATS = {"half": "<exxxxxx", "float": "<fxxxx", "double": "<d"}


def pack_slot(type_: str, value: object) -> bytes:
    """The 8 bytes of one argument of an LLVM type: pointers by address, floats in their bits.

    A number beyond the range of a float type is infinite.
    """
    if type_ in _FLOAT_FORMATS:
        return _float_slot(_FLOAT_FORMATS[type_], float(cast("SupportsFloat", value)))
    if type_ == "bfloat":
        (bits,) = struct.unpack("<Q", pack_slot("float", value))
        rounded = bits + 0x7FFF + (bits >> 16 & 1)
        return struct.pack("<Q", rounded >> 16 & 0xFFFF)
    integer = operator.index(cast("SupportsIndex", value))
    return struct.pack("<Q", integer & (1 << 64) - 1)


def _float_slot(form: str, number: float) -> bytes:
    try:
        return struct.pack(form, number)
    except OverflowError:  # where rounding leaves the type
        return struct.pack(form, math.copysign(math.inf, number))
