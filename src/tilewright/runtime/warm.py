"""Warm calls: `kernel[grid](…)` without Python, for the ways in which a kernel has been called.

A native callable knows up to eight ways of calling a kernel: how many arguments, which keywords,
and the launch table to check them against. Where one fits, the call is a walk over that table;
where none does, it goes to Python, which launches and may add a way. `RunCalls` is the same for
`CompiledKernel.run`, whose grid comes in three arguments.
"""

from __future__ import annotations

import ctypes
import struct
import sys
from collections.abc import Callable, Sequence
from types import BuiltinFunctionType
from typing import Protocol, cast

from tilewright.runtime.launch_table import (
    TABLE_FIELDS,
    TABLE_HEADER_BYTES,
    WARM_FIELDS,
    WAY_BYTES,
    WAY_FIELDS,
    Guard,
    address_of,
    fixed,
)
from tilewright.runtime.launcher import (
    METH_FASTCALL,
    Launch,
    MethodDefinition,
    new_function,
    pack_slot,
)
from tilewright.support.dataclass import dataclass
from tilewright.support.errors import InternalError

MAX_WAYS = 8
_METH_FASTCALL_KEYWORDS = METH_FASTCALL | 0x02
# Guards of constants; the others fill a slot.
_CONSTANT_KINDS = frozenset(("ignored", "identical", "equal", "same_float"))


class _NativeLaunch(Protocol):
    """A launcher as `LauncherFactory.make` made it: a built-in function and what it owns."""

    __self__: tuple[object, ...]


def is_native(launcher: Launch) -> bool:
    """Whether a launcher is a built-in function with a table."""
    return isinstance(launcher, BuiltinFunctionType)


class _Way(ctypes.Structure):
    _fields_ = (
        ("names", ctypes.c_void_p),
        ("num_args", ctypes.c_int64),
        ("table", ctypes.c_void_p),
        ("kernel", ctypes.c_void_p),
        ("owner", ctypes.c_void_p),
        ("parameters", ctypes.c_void_p),
        ("positions", ctypes.c_void_p),
        ("defaults", ctypes.c_void_p),
    )


class _State(ctypes.Structure):
    _fields_ = (
        ("fallback", ctypes.c_void_p),
        ("count", ctypes.c_int64),
        ("entries", _Way * MAX_WAYS),
    )


@dataclass(frozen=True)
class CallForm:
    """How a call is written, and where each of a launcher's arguments stands in it.

    `names` are its keywords, `num_args` the number of its positional arguments, `parameters` the
    names of the kernel's parameters, which come first among the launcher's arguments. A position
    of None is a parameter that takes its default, which is `defaults` at the same index.
    """

    names: tuple[str, ...]
    num_args: int
    parameters: tuple[str, ...]
    positions: tuple[int | None, ...]
    defaults: tuple[object, ...]


class _KnownWays:
    """A native function and the ways of calling that it knows.

    `name` is the field of a launch table that has the function's address, `first` any launcher
    with a table, `flags` how Python calls the function. What it does not know goes to `fallback`,
    which is called the same way.
    """

    def __init__(
        self, name: str, flags: int, fallback: Callable[..., object], first: Launch
    ) -> None:
        self._state = _State(fallback=id(fallback))
        self._owners: list[tuple[object, ...]] = []
        self._next = 0
        table = cast("bytes", cast("_NativeLaunch", first).__self__[0])
        (address,) = struct.unpack_from("q", table, TABLE_FIELDS[name])
        method = MethodDefinition(b"launch", address, flags, None)
        state = struct.pack("q", ctypes.addressof(self._state))
        owned = (state, self._state, fallback, method, first)
        self.call: Launch = new_function(ctypes.byref(method), owned, None)

    def forget(self) -> None:
        """Send every call to the fallback, also of callables that somebody keeps."""
        self._state.count = 0
        self._owners, self._next = [], 0

    def _keep(self, way: _Way, owner: tuple[object, ...]) -> None:
        index = self._next % MAX_WAYS
        self._next += 1
        self._state.entries[index] = way
        if index < len(self._owners):
            self._owners[index] = owner
            return
        self._owners.append(owner)
        self._state.count = len(self._owners)


class WarmCalls(_KnownWays):
    """The native callable of one kernel, `call(grid, *args, **kwargs)`.

    It launches and returns the compiled kernel.
    """

    def __init__(self, fallback: Callable[..., object], first: Launch) -> None:
        super().__init__("warm", _METH_FASTCALL_KEYWORDS, fallback, first)

    def add(self, launcher: Launch, kernel: object, form: CallForm) -> bool:
        """Learn to launch `kernel` by `launcher` for calls of a form; whether that can be done."""
        owned = cast("_NativeLaunch", launcher).__self__
        table, guards = cast("bytes", owned[0]), cast("tuple[Guard, ...]", owned[3])
        warm_table = _placed_table(table, guards, form)
        if warm_table is None:
            return False
        names = tuple(map(sys.intern, form.names)) or None
        positions = (ctypes.c_int64 * len(form.positions))(
            *(-1 if position is None else position for position in form.positions)
        )
        owner = (warm_table, names, kernel, owned, form, positions)
        way = _Way(
            names=None if names is None else id(names),
            num_args=form.num_args,
            table=address_of(warm_table),
            kernel=id(kernel),
            owner=id(owner),
            parameters=id(form.parameters),
            positions=ctypes.addressof(positions),
            defaults=id(form.defaults),
        )
        self._keep(way, owner)
        return True


class RunCalls(_KnownWays):
    """The native callable `call(grid_x, grid_y, grid_z, *args)` of one compiled kernel."""

    def __init__(self, fallback: Callable[..., object], first: Launch) -> None:
        super().__init__("run_calls", METH_FASTCALL, fallback, first)

    def add(self, launcher: Launch, positions: Sequence[int], leading: Sequence[Guard]) -> None:
        """Learn to launch by `launcher`, whose arguments stand at `positions` among `args`.

        `leading` are guards of the first of `args`, which fill no slots.
        """
        owned = cast("_NativeLaunch", launcher).__self__
        table, guards = cast("bytes", owned[0]), cast("tuple[Guard, ...]", owned[3])
        rows = [*zip(leading, range(len(leading)), strict=True)]
        rows += zip(guards, positions, strict=True)
        run_table = _with_rows(table, [row for row in rows if row[0].kind != "ignored"])
        owner = (run_table, owned, *leading)
        num_args = max((position for _, position in rows), default=-1) + 1
        self._keep(_Way(num_args=num_args, table=address_of(run_table), owner=id(owner)), owner)


def _placed_table(table: bytes, guards: Sequence[Guard], form: CallForm) -> bytes | None:
    """The table with its rows at the positions of a call; None where a default has no slot."""
    rows: list[tuple[Guard, int]] = []
    for guard, position, default in zip(guards, form.positions, form.defaults, strict=True):
        if position is not None:
            rows.append((guard, position))
            continue
        if guard.kind in _CONSTANT_KINDS:
            continue
        word = _slot_word(guard, default)
        if guard.slot is None or word is None:
            return None
        rows.append((fixed(guard.slot, word), -1))
    return _with_rows(table, rows)


def _with_rows(table: bytes, rows: Sequence[tuple[Guard, int]]) -> bytes:
    """The table with other rows: guards, each with the position of its argument in a call."""
    (num_slots,) = struct.unpack_from("q", table, TABLE_FIELDS["num_slots"])
    packed = [guard.pack(num_slots - 1, position) for guard, position in rows]
    header = bytearray(table[:TABLE_HEADER_BYTES])
    struct.pack_into("q", header, TABLE_FIELDS["num_rows"], len(rows))
    return b"".join((bytes(header), *packed))


def _slot_word(guard: Guard, value: object) -> int | None:
    """What a guard would write to its slot for a value that it takes; None for arrays."""
    if guard.kind in ("integer", "boolean") and isinstance(value, int):
        (word,) = struct.unpack("q", struct.pack("Q", int(value) & (1 << 64) - 1))
        return int(word)
    if guard.kind == "float64" and isinstance(value, float):
        return int(struct.unpack("q", struct.pack("d", value))[0])
    if guard.kind == "float32" and isinstance(value, float):
        return int.from_bytes(pack_slot("float", value), "little")
    return None


def _check_layout() -> None:
    """Raise unless the structures lie as the native code takes them to."""
    is_right = ctypes.sizeof(_Way) == WAY_BYTES and all(
        getattr(structure, name).offset == offset
        for structure, fields in ((_Way, WAY_FIELDS), (_State, WARM_FIELDS))
        for name, offset in fields.items()
    )
    if not is_right:
        raise InternalError("the native code reads the state of warm calls at other offsets")


_check_layout()
