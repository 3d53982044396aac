"""Native launchers: the callables that check a call's arguments and launch without Python."""

from __future__ import annotations

import ctypes
import math
import operator
import struct
import sys
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from types import FunctionType
from typing import Final, SupportsFloat, SupportsIndex, cast

from tilewright.runtime.launch_table import TABLE_HEADER_BYTES, Guard
from tilewright.support.errors import InvalidGrid

_FLOAT_FORMATS = {"half": "<exxxxxx", "float": "<fxxxx", "double": "<d"}

Launch = Callable[..., object]
Handler = Callable[..., object]

METH_FASTCALL = 0x80


class _SlowPath:
    """The type of `SLOW_PATH`."""

    def __repr__(self) -> str:
        return "SLOW_PATH"


# What a launcher returns when a guard fails: nothing ran, the caller decides what to do.
SLOW_PATH: Final = _SlowPath()


class Gate(ctypes.Structure):
    """A count that every launcher reads; while it is not 0, launches take the slow path."""

    _fields_ = (("count", ctypes.c_int64),)

    @contextmanager
    def closed(self) -> Generator[None]:
        """Send every launch of this process through the slow path for a while."""
        self.count += 1
        try:
            yield
        finally:
            self.count -= 1


# One a process, because every launcher has its address. Whoever watches launches closes it.
GATE: Final = Gate()


class LauncherFactory:
    """Makes the native callables of one loaded launcher module.

    `addresses` are those of its functions, valid while `code` is referenced.
    """

    def __init__(self, addresses: Mapping[str, int], code: object) -> None:
        self._code = code
        self._addresses = dict(addresses)
        self._methods = {
            name: MethodDefinition(name.encode(), address, METH_FASTCALL, None)
            for name, address in addresses.items()
        }

    def make(
        self,
        guards: Sequence[Guard],
        record: ctypes.Structure,
        handler: Handler | None = None,
        keepalive: object = None,
    ) -> Launch:
        """The callable `launch(grid_x, grid_y, grid_z, *args)` for one compiled kernel.

        It returns None after the launch, or `SLOW_PATH`, having run nothing, when a guard
        fails or the gate is closed. `handler` is called after a launch that the target's part
        reports on; it raises what the report stands for. `keepalive` (the kernel's code) lives
        as long as the callable does.
        """
        ends = [guard.slot + guard.num_slots for guard in guards if guard.slot is not None]
        num_slots = max(ends, default=0)
        rows = [guard.pack(num_slots, position) for position, guard in enumerate(guards)]
        header = self._pack_header(record, len(rows), num_slots + 1, handler)
        table = b"".join((header, *rows))
        return self._make("launch", (table, record, handler, tuple(guards), keepalive))

    def bare(self, name: str) -> Launch:
        """The function `name` of the module with a table of no rows."""
        return self._make(name, (self._pack_header(None, 0, 0, None),))

    def _pack_header(
        self,
        record: ctypes.Structure | None,
        num_rows: int,
        num_slots: int,
        handler: Handler | None,
    ) -> bytes:
        fields = struct.pack(
            "28q",
            *(0 if record is None else ctypes.addressof(record), id(SLOW_PATH), id(handler)),
            *(num_rows, num_slots, *map(id, _NAMES), id(_array_type()), id(int), id(float)),
            *(id(None), id(True), id(False), id(InvalidGrid), id(_GET_DEVICE)),
            *(ctypes.addressof(GATE), self._addresses["run_table"], self._addresses["warm"]),
            *(id(tuple), id(FunctionType), *map(id, _DESCRIPTOR_NAMES), self._addresses["run"]),
            id(list),
        )
        return fields.ljust(TABLE_HEADER_BYTES, b"\0")

    def _make(self, name: str, owned: tuple[object, ...]) -> Launch:
        method = self._methods[name]
        return new_function(ctypes.byref(method), (*owned, method, self._code), None)


class MethodDefinition(ctypes.Structure):
    """CPython's own structure (PyMethodDef)."""

    _fields_ = (
        ("name", ctypes.c_char_p),
        ("function", ctypes.c_void_p),
        ("flags", ctypes.c_int),
        ("doc", ctypes.c_char_p),
    )


# CPython's PyCFunction_NewEx: a callable of a definition and the object that it gets as `self`.
new_function = ctypes.PYFUNCTYPE(
    ctypes.py_object, ctypes.POINTER(MethodDefinition), ctypes.py_object, ctypes.c_void_p
)(("PyCFunction_NewEx", ctypes.pythonapi))

# The names that attribute look-ups pass on; held here, the table has their addresses.
_NAMES = ("data_ptr", "dtype", "is_cpu")
_GET_DEVICE = "get_device"
_DESCRIPTOR_NAMES = ("base", "shape", "strides", "block_shape", "padding")


def always_slow(*args: object) -> object:
    """The launcher where objects do not lie as expected: every call takes the slow path."""
    return SLOW_PATH


def _array_type() -> object:
    """NumPy's array type; a program that has not loaded NumPy passes none of its arrays."""
    return getattr(sys.modules.get("numpy"), "ndarray", None)


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
