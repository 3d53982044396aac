"""Arrays that an emulated kernel may reach through pointers that it reads from memory.

A launch names them (`reachable=[…]`). Where it does not, they are looked for among the variables
of its callers: a program that writes the addresses of arrays to memory keeps those arrays alive,
most often in a list beside. An address in none of them is an error at the line of the access.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from types import FrameType

from tilewright.frontend.arrays import array_bounds, array_facts
from tilewright.frontend.devices import Device, device_of

Named = tuple[str, object]
"""An array and what messages call it."""

_DEPTH = 3
"""How deep lists and dicts are looked into. Chosen, not measured: lists of pairs of arrays."""
_MOST = 4096
"""How many values of one list or dict are looked at. Chosen, not measured: more are data."""
_HOST = Device("cpu")
_OWN = frozenset(("tilewright", "triton"))


def reachable_arrays(
    arguments: Sequence[object], given: Sequence[object] | None
) -> tuple[Named, ...]:
    """The arrays that a launch names, or those that its callers hold beside its arguments.

    What shares bytes with an argument is left out, which has bounds of its own.
    """
    if given is not None:
        return tuple((f"reachable[{index}]", array) for index, array in enumerate(given))
    taken = [array_bounds(value) for value in arguments if _is_host_array(value)]
    found: dict[int, Named] = {}
    for name, value in _held(sys._getframe(1)):  # pyright: ignore[reportPrivateUsage]
        low, high = array_bounds(value)
        if high > low and not any(low < end and start < high for start, end in taken):
            found.setdefault(id(value), (name, value))
    return tuple(found.values())


def _held(frame: FrameType | None) -> Iterator[Named]:
    """The arrays in the variables of a frame and of its callers, but for our own frames."""
    while frame is not None:
        package = str(frame.f_globals.get("__name__", "")).partition(".")[0]
        if package not in _OWN:
            for scope in (frame.f_locals, frame.f_globals):
                for name, value in tuple(scope.items()):
                    yield from _arrays_in(name, value, _DEPTH)
        frame = frame.f_back


def _arrays_in(name: str, value: object, depth: int) -> Iterator[Named]:
    if _is_host_array(value):
        yield name, value
    elif depth and isinstance(value, list | tuple | dict) and len(value) <= _MOST:
        pairs = value.items() if isinstance(value, Mapping) else enumerate(value)
        for key, inner in tuple(pairs):
            yield from _arrays_in(f"{name}[{key!r}]", inner, depth - 1)


def _is_host_array(value: object) -> bool:
    """Whether a value is an array whose bytes this process reads."""
    kind = type(value)  # a module may well answer to any name
    if not (hasattr(kind, "__array_interface__") or hasattr(kind, "data_ptr")):
        return False
    return device_of(value) == _HOST and array_facts(value) is not None
