"""The guarded native launch: what the arguments must look like, and the callable that checks."""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Callable, Sequence
from typing import Final

import numpy as np

from tilewright.support.dataclass import dataclass
from tilewright.support.errors import InternalError
from tilewright.targets.cpu.launcher_ir import (
    FLAGS,
    INTEGER_CLASSES,
    KINDS,
    OBJECT_FIELDS,
    ROW_BYTES,
    TABLE_HEADER_BYTES,
)
from tilewright.targets.cpu.link import LoadedCode
from tilewright.targets.cpu.pool import KernelRecord

Launch = Callable[..., object]

# NumPy's bits in an array's flags word.
_ARRAY_ALIGNED = 0x100
_ARRAY_WRITEABLE = 0x400

_INT64 = (-(1 << 63), (1 << 63) - 1)
_INT32 = (-(1 << 31), (1 << 31) - 1)
_METH_FASTCALL = 0x80


class _SlowPath:
    """The type of `SLOW_PATH`."""

    def __repr__(self) -> str:
        return "SLOW_PATH"


# What a launcher returns when a guard fails: nothing ran, the caller decides what to do.
SLOW_PATH: Final = _SlowPath()


@dataclass(frozen=True)
class Guard:
    """What one argument must be for a compiled kernel to fit, and the slot that it fills.

    Made by the functions below. `slot` is the index in the kernel's argument slots, None for
    an argument that the kernel does not get. `type` and `object` are held by reference.
    """

    kind: str
    slot: int | None = None
    flags: int = 0
    type: type | None = None
    object: object = None
    lower: int = 0
    upper: int = 0
    bits: int = 0

    def pack(self, spare_slot: int) -> bytes:
        """The row of this guard in the launch table; without a slot it gets the spare one."""
        slot = spare_slot if self.slot is None else self.slot
        return struct.pack(
            "iiqqqqqqq",
            *(KINDS[self.kind], self.flags, slot, id(self.type), id(self.object)),
            *(self.lower, self.upper, self.bits, 0),
        )


def numpy_pointer(
    slot: int, dtype: np.dtype[np.generic], is_aligned: bool | None, is_written: bool = False
) -> Guard:
    """An array of exactly the type `numpy.ndarray` with this dtype, aligned to its items.

    `is_aligned` says whether the data address is a multiple of 16 bytes (None: either).
    """
    required = _ARRAY_ALIGNED | (_ARRAY_WRITEABLE if is_written else 0)
    return Guard("numpy", slot, _alignment(is_aligned), object=dtype, bits=required)


def tensor_pointer(
    slot: int, tensor_type: type, dtype: object, is_aligned: bool | None, check_is_cpu: bool
) -> Guard:
    """An object of exactly `tensor_type` whose `dtype` is this object, with `data_ptr()`.

    `check_is_cpu` asks its `is_cpu` as well: a tensor on a device has the same type.
    """
    flags = _alignment(is_aligned) | (FLAGS["check_is_cpu"] if check_is_cpu else 0)
    return Guard("tensor", slot, flags, type=tensor_type, object=dtype)


def integer(slot: int | None, dtype: str, value_class: str | None = None) -> Guard:
    """An `int` that the specialisation types as `dtype` (`i32`, `i64`, `u64`).

    `i64` takes what does not fit in `i32`, `u64` what does not fit in `i64`; `any_i64` takes
    every value of 64 bits, for a parameter that is annotated. `value_class` is one of
    `one`, `multiple_of_16`, `other` (None: any).
    """
    lower, upper = _INT32 if dtype == "i32" else _INT64
    flags = {"i64": FLAGS["outside_i32"], "u64": FLAGS["is_unsigned"]}.get(dtype, 0)
    bits = 0
    if value_class is not None:
        flags |= FLAGS["check_class"]
        bits = INTEGER_CLASSES[value_class]
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


def ignored() -> Guard:
    """Any argument; the kernel does not depend on it."""
    return Guard("ignored")


def _alignment(is_aligned: bool | None) -> int:
    if is_aligned is None:
        return 0
    return FLAGS["check_alignment"] | (FLAGS["is_aligned"] if is_aligned else 0)


class LauncherFactory:
    """Makes the native callables of one loaded launcher module."""

    def __init__(self, code: LoadedCode) -> None:
        self._code = code
        self._methods = {
            name: _PyMethodDef(name.encode(), code.addresses[name], _METH_FASTCALL, None)
            for name in ("launch", "launch_raw")
        }
        self.launch_raw: Launch = self._make("launch_raw", (_pack_header(None, 0, 0, None),))

    def make(
        self,
        guards: Sequence[Guard],
        record: KernelRecord,
        on_status: Callable[[], object] | None = None,
        keepalive: object = None,
    ) -> Launch:
        """The callable `launch(grid_x, grid_y, grid_z, *args)` for one compiled kernel.

        It returns None after the launch, or `SLOW_PATH`, having run nothing, when a guard
        fails. `on_status` is called after a launch that left a non-zero status word; it
        raises what the word stands for. `keepalive` (the kernel's code) lives as long as the
        callable does.
        """
        if record.status and on_status is None:
            raise InternalError("a record with a status address needs a status handler")
        num_slots = 1 + max((guard.slot for guard in guards if guard.slot is not None), default=-1)
        rows = [guard.pack(spare_slot=num_slots) for guard in guards]
        header = _pack_header(record, len(rows), num_slots + 1, on_status)
        table = b"".join((header, *rows))
        return self._make("launch", (table, record, on_status, tuple(guards), keepalive))

    def _make(self, name: str, owned: tuple[object, ...]) -> Launch:
        method = self._methods[name]
        return _new_function(ctypes.byref(method), (*owned, method, self._code), None)


class _PyMethodDef(ctypes.Structure):
    _fields_ = (
        ("name", ctypes.c_char_p),
        ("function", ctypes.c_void_p),
        ("flags", ctypes.c_int),
        ("doc", ctypes.c_char_p),
    )


_new_function = ctypes.PYFUNCTYPE(
    ctypes.py_object, ctypes.POINTER(_PyMethodDef), ctypes.py_object, ctypes.c_void_p
)(("PyCFunction_NewEx", ctypes.pythonapi))

# The names that attribute look-ups pass on; held here, the table has their addresses.
_NAMES = ("data_ptr", "dtype", "is_cpu")


def _pack_header(
    record: KernelRecord | None,
    num_rows: int,
    num_slots: int,
    on_status: Callable[[], object] | None,
) -> bytes:
    fields = struct.pack(
        "15q",
        *(0 if record is None else ctypes.addressof(record), id(SLOW_PATH), id(on_status)),
        *(num_rows, num_slots, *map(id, _NAMES), id(np.ndarray), id(int), id(float)),
        *(id(None), id(True), id(False), id(OverflowError)),
    )
    return fields.ljust(TABLE_HEADER_BYTES, b"\0")


def has_known_object_layout() -> bool:
    """Whether live objects of this Python and NumPy lie in memory as the launcher reads them."""
    array = np.arange(3, dtype=np.float32)
    frozen = array[1:]
    frozen.flags.writeable = False
    if any(_word(x, "type") != id(type(x)) for x in (1, 1.5, True, None, array)):
        return False
    return all(
        _word(x, "array_data") == x.ctypes.data
        and _word(x, "array_dtype") == id(x.dtype)
        and bool(_word(x, "array_flags") & _ARRAY_WRITEABLE) == x.flags.writeable
        and bool(_word(x, "array_flags") & _ARRAY_ALIGNED) == x.flags.aligned
        for x in (array, frozen, array.view(np.uint8)[1:5].view(np.float32))
    )


def _word(value: object, field: str) -> int:
    return ctypes.c_int64.from_address(id(value) + OBJECT_FIELDS[field]).value


if struct.calcsize("iiqqqqqqq") != ROW_BYTES:
    raise InternalError("a guard's row does not have the size that the native code steps by")
