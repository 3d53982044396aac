"""The table of a native launch: one row per argument, which says what the argument must be.

The code that walks it is LLVM text (`codegen/launch_guards.py`); this module holds the layout that
both sides agree on, and the guards that become rows.
"""

from __future__ import annotations

import ctypes
import struct
import sys
from typing import TYPE_CHECKING

from tilewright.support.dataclass import dataclass, replace
from tilewright.support.errors import InternalError

if TYPE_CHECKING:
    import numpy as np

    from tilewright.runtime.accessors import TensorAccessors
    from tilewright.runtime.driver import IntegerClass

# Byte offsets in the table, all fields 8 bytes.
TABLE_FIELDS: dict[str, int] = {
    "record": 0,
    "sentinel": 8,
    "handler": 16,
    "num_rows": 24,
    "num_slots": 32,
    "data_ptr_name": 40,
    "dtype_name": 48,
    "is_cpu_name": 56,
    "ndarray_type": 64,
    "int_type": 72,
    "float_type": 80,
    "none": 88,
    "true": 96,
    "false": 104,
    "invalid_grid": 112,
    "get_device_name": 120,
    "gate": 128,
    "run": 136,
    "warm": 144,
    "tuple_type": 152,
    "function_type": 160,
    "base_name": 168,
    "shape_name": 176,
    "strides_name": 184,
    "block_shape_name": 192,
    "padding_name": 200,
    "run_calls": 208,
    "list_type": 216,
}
TABLE_HEADER_BYTES = 256

# Byte offsets in a row; `kind` and `flags` are 4 bytes, the rest 8.
ROW_FIELDS: dict[str, int] = {
    "kind": 0,
    "flags": 4,
    "slot": 8,
    "type": 16,
    "object": 24,
    "lower": 32,
    "upper": 40,
    "bits": 48,
    "position": 56,
}
ROW_BYTES = 64

KINDS: dict[str, int] = {
    "ignored": 0,
    "numpy": 1,
    "tensor": 2,
    "integer": 3,
    "float32": 4,
    "float64": 5,
    "boolean": 6,
    "identical": 7,
    "equal": 8,
    "same_float": 9,
    "device_tensor": 10,
    "typed_tensor": 11,
    "fixed": 12,
    "descriptor": 13,
    "empty": 14,
}

# Offsets in `TensorAccessors`: functions, each followed by its second argument.
ACCESSOR_FIELDS: dict[str, int] = {
    "dtype": 0,
    "place": 16,
    "data_ptr": 32,
    # Of a negated view the word at `keys` of what the word at `body` points to has the bit.
    "body": 48,
    "keys": 56,
    "negated": 64,
    # Of a tensor that lies plainly in the CPU's memory, the bits `care` of that word are `plain`;
    # the 16 bits at `dtype_code` stand for its dtype. A `care` of 0 is of a type without these.
    "care": 72,
    "plain": 80,
    "dtype_code": 88,
}

FLAGS: dict[str, int] = {
    "check_alignment": 1,
    "is_aligned": 2,
    "check_class": 4,
    "outside_i32": 8,
    "is_unsigned": 16,
    "check_is_cpu": 32,
    "excludes_one": 64,
    "may_be_null": 128,
}

# Offsets in the state of a kernel's warm calls, and in each way of calling it that is known.
WARM_FIELDS: dict[str, int] = {"fallback": 0, "count": 8, "entries": 16}
WAY_FIELDS: dict[str, int] = {
    "names": 0,
    "num_args": 8,
    "table": 16,
    "kernel": 24,
    "owner": 32,
    "parameters": 40,
    "positions": 48,
    "defaults": 56,
}
WAY_BYTES = 64

# Offsets in CPython's and NumPy's objects. They are checked at start-up against live objects;
# where they do not hold, no launcher is made.
OBJECT_FIELDS: dict[str, int] = {
    "type": 8,
    "array_data": 16,
    "array_dtype": 56,
    "array_flags": 64,
    "size": 16,
}

# NumPy's bits in an array's flags word.
ARRAY_ALIGNED = 0x100
ARRAY_WRITEABLE = 0x400

_INT64 = (-(1 << 63), (1 << 63) - 1)
_INT32 = (-(1 << 31), (1 << 31) - 1)


@dataclass(frozen=True)
class Guard:
    """What one argument must be for a compiled kernel to fit, and the slot that it fills.

    Made by the functions below. `slot` is the index in the kernel's argument slots, None for
    an argument that the kernel does not get. `type` and `object` are held by reference, and so
    is what `owned` holds: the numbers may be its addresses.
    """

    kind: str
    slot: int | None = None
    flags: int = 0
    type: type | None = None
    object: object = None
    lower: int = 0
    upper: int = 0
    bits: int = 0
    owned: object = None
    num_slots: int = 1

    def pack(self, spare_slot: int, position: int) -> bytes:
        """The row of this guard in the launch table; without a slot it gets the spare one.

        `position` is the index of the argument among those of the call, -1 without one.
        """
        slot = spare_slot if self.slot is None else self.slot
        return struct.pack(
            "iiqqqqqqq",
            *(KINDS[self.kind], self.flags, slot, id(self.type), id(self.object)),
            *(self.lower, self.upper, self.bits, position),
        )


def numpy_pointer(
    slot: int, dtype: np.dtype[np.generic], is_aligned: bool | None, is_written: bool = False
) -> Guard:
    """An array of exactly the type `numpy.ndarray` with this dtype, aligned to its items.

    `is_aligned` says whether the data address is a multiple of 16 bytes (None: either).
    """
    required = ARRAY_ALIGNED | (ARRAY_WRITEABLE if is_written else 0)
    return Guard("numpy", slot, _alignment(is_aligned), object=dtype, bits=required)


def tensor_pointer(
    slot: int, tensor_type: type, dtype: object, is_aligned: bool | None, check_is_cpu: bool
) -> Guard:
    """An object of exactly `tensor_type` whose `dtype` is this object, with `data_ptr()`.

    `check_is_cpu` asks its `is_cpu` as well: a tensor on a device has the same type.
    """
    flags = _alignment(is_aligned) | (FLAGS["check_is_cpu"] if check_is_cpu else 0)
    return Guard("tensor", slot, flags, type=tensor_type, object=dtype)


def device_tensor(
    slot: int, tensor_type: type, dtype: object, is_aligned: bool | None, device: int
) -> Guard:
    """A tensor as above whose `get_device()` is the number `device`."""
    flags = _alignment(is_aligned)
    return Guard("device_tensor", slot, flags, type=tensor_type, object=dtype, lower=device)


def typed_tensor(
    slot: int,
    tensor_type: type,
    dtype: object,
    is_aligned: bool | None,
    accessors: TensorAccessors,
    place: object,
    dtype_code: int = 0,
) -> Guard:
    """A tensor as above whose accessors are known; the one for its place must give `place`.

    `place` is compared by identity: True, or a small int. `dtype_code` stands for the dtype where
    the accessors say that tensors of the type have such numbers.
    """
    return Guard(
        "typed_tensor",
        slot,
        _alignment(is_aligned),
        type=tensor_type,
        object=dtype,
        lower=id(place),
        upper=ctypes.addressof(accessors),
        bits=dtype_code,
        owned=(accessors, place),
    )


def also_null(tensor: Guard) -> Guard:
    """The guard of a tensor that admits one without memory: the recorded one had none either.

    Others leave such a tensor to the slow path, which refuses it unless it is empty.
    """
    return replace(tensor, flags=tensor.flags | FLAGS["may_be_null"])


def descriptor(
    slot: int, descriptor_type: type, block_shape: tuple[int, ...], padding: str, base: Guard
) -> Guard:
    """A tensor descriptor with this block and padding, whose array the guard `base` takes.

    It fills the slot of `base`, which is its first, and one for each extent and each stride.
    """
    row = base.pack(slot, -1)
    rank = len(block_shape)
    return Guard(
        "descriptor",
        slot,
        type=descriptor_type,
        object=block_shape,
        lower=id(padding),
        upper=address_of(row),
        bits=rank,
        owned=(row, base, padding),
        num_slots=1 + 2 * rank,
    )


def address_of(data: bytes) -> int:
    """The address of the first byte, valid while `data` is referenced."""
    return ctypes.cast(ctypes.c_char_p(data), ctypes.c_void_p).value or 0


def integer(slot: int | None, dtype: str, integers: IntegerClass | None = None) -> Guard:
    """An `int` that the specialisation types as `dtype` (`i32`, `i64`, `u64`).

    `i64` takes what does not fit in `i32`, `u64` what does not fit in `i64`; `any_i64` takes
    every value of 64 bits, for a parameter that is annotated. `integers` are those that the kernel
    was compiled for (None: all).
    """
    lower, upper = _INT32 if dtype == "i32" else _INT64
    flags = {"i64": FLAGS["outside_i32"], "u64": FLAGS["is_unsigned"]}.get(dtype, 0)
    bits = 0
    if integers is not None:
        flags |= FLAGS["check_class"] | (0 if integers.takes_one else FLAGS["excludes_one"])
        bits = integers.divisor - 1 | max(0, integers.larger - 1) << 32
    return Guard("integer", slot, flags, lower=lower, upper=upper, bits=bits)


def float32(slot: int) -> Guard:
    """A `float`, rounded to 32 bits in the low half of its slot."""
    return Guard("float32", slot)


def float64(slot: int) -> Guard:
    """A `float`, as it is."""
    return Guard("float64", slot)


def boolean(slot: int) -> Guard:
    """True or False, as 1 or 0."""
    return Guard("boolean", slot)


def constant(value: object) -> Guard:
    """The value of a constexpr parameter that the kernel was compiled for.

    Integers and strings by type and value, floats by their bits, everything else by
    identity (`True` is not 1, a tuple that holds 1 may equal one that holds True).
    """
    if type(value) is float:
        (bits,) = struct.unpack("q", struct.pack("d", value))
        return Guard("same_float", bits=bits)
    if type(value) in (int, str, bytes):
        return Guard("equal", type=type(value), object=value)
    return Guard("identical", object=value)


def none() -> Guard:
    """The argument None."""
    return Guard("identical", object=None)


def fixed(slot: int, word: int) -> Guard:
    """No argument: the slot always gets this word."""
    return Guard("fixed", slot, bits=word)


def ignored() -> Guard:
    """Any argument; the kernel does not depend on it."""
    return Guard("ignored")


def empty(cls: type, attribute: str, offset: int = 0) -> Guard:
    """None, or an object of exactly the type `cls` whose `attribute` is false.

    `offset` is where its objects hold the attribute (0: not known); an empty list is seen there.
    """
    return Guard("empty", type=cls, object=sys.intern(attribute), lower=offset)


def _alignment(is_aligned: bool | None) -> int:
    if is_aligned is None:
        return 0
    return FLAGS["check_alignment"] | (FLAGS["is_aligned"] if is_aligned else 0)


if struct.calcsize("iiqqqqqqq") != ROW_BYTES:
    raise InternalError("a guard's row does not have the size that the native code steps by")
