"""Saving arrays and putting them back: tuning runs a kernel often and must not show it.

An array is anything with the methods of a NumPy array or of a torch tensor; nothing is
imported to tell them apart.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol, cast

from tilewright.support.errors import ArgumentNotSupported


class _Tensor(Protocol):
    def detach(self) -> _Tensor: ...
    def clone(self) -> object: ...
    def copy_(self, source: object) -> object: ...
    def zero_(self) -> object: ...


class _Array(Protocol):
    def copy(self) -> object: ...
    def __setitem__(self, index: object, value: object) -> None: ...


Restore = Callable[[], object]


def save(value: object) -> Restore | None:
    """A function that puts the present contents of the array `value` back into it.

    None for what is no array, or one that cannot be written.
    """
    value = _base(value)
    if hasattr(value, "copy_") and hasattr(value, "clone"):
        tensor = _plain_tensor(value)
        copy = tensor.clone()
        return lambda: tensor.copy_(copy)
    if hasattr(value, "dtype") and hasattr(value, "copy") and hasattr(value, "__setitem__"):
        if not getattr(getattr(value, "flags", None), "writeable", True):
            return None
        array = cast("_Array", value)
        saved = array.copy()
        return lambda: array.__setitem__(..., saved)
    return None


def zero(value: object) -> bool:
    """Fill the array `value` with zeros; False for what is no array."""
    value = _base(value)
    if hasattr(value, "zero_"):
        _plain_tensor(value).zero_()
        return True
    if hasattr(value, "dtype") and hasattr(value, "__setitem__"):
        cast("_Array", value)[...] = 0
        return True
    return False


def _base(value: object) -> object:
    """The memory behind a tensor descriptor; anything else as it is."""
    return getattr(value, "base", value) if hasattr(value, "block_shape") else value


def _plain_tensor(value: object) -> _Tensor:
    tensor = cast("_Tensor", value)
    # torch refuses to write into a leaf that wants a gradient.
    return tensor.detach() if hasattr(value, "detach") else tensor


class ArgumentState:
    """The contents of a launch's arrays, as they were and as each timed run must find them.

    `named` are put back before every run, `zeroed` filled with zeros; every other array is
    put back once, at the end, so that the tuning of a kernel that updates its arguments in
    place leaves no trace. *Raises*: `ArgumentNotSupported` when a name holds no array.
    """

    def __init__(
        self, arguments: Mapping[str, object], named: Sequence[str], zeroed: Sequence[str]
    ) -> None:
        self._zeroed = [(name, arguments[name]) for name in zeroed if name in arguments]
        self._each: list[Restore] = []
        self._last: list[Restore] = []
        for name, value in arguments.items():
            restore = None if name in zeroed else save(value)
            if restore is not None:
                self._last.append(restore)
            if name in named and value is not None:
                self._each.append(_required(restore, name, "restore_value", value))

    def before_run(self) -> None:
        """Let the arrays be as a run must find them."""
        for name, value in self._zeroed:
            if value is not None and not zero(value):
                raise _no_array(name, "reset_to_zero", value)
        for restore in self._each:
            restore()

    def finish(self) -> None:
        """Let every array be as before the first run, or zero."""
        self.before_run()
        for restore in self._last:
            restore()


def _required(restore: Restore | None, name: str, option: str, value: object) -> Restore:
    if restore is None:
        raise _no_array(name, option, value)
    return restore


def _no_array(name: str, option: str, value: object) -> ArgumentNotSupported:
    return ArgumentNotSupported(
        f"autotune(): {option} names `{name}`, which is a {type(value).__name__}",
        argument=name,
        hint=f"{option} takes the names of arguments that are writable arrays or tensors",
    )
