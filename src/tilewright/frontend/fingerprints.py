"""What an object of the author's holds, as a digest: functions of compile time may read all of it.

Such an object is known to a kernel by the name under which it is imported. The name alone does
not tell one program from the next, nor one launch from another where the object is written to.
"""

from __future__ import annotations

import functools
import itertools
import os
import sys
import sysconfig
from _thread import LockType, RLock
from collections.abc import Iterable
from functools import lru_cache
from hashlib import sha256
from types import (
    BuiltinFunctionType,
    CodeType,
    FunctionType,
    GetSetDescriptorType,
    MappingProxyType,
    MemberDescriptorType,
    MethodType,
    ModuleType,
)

_PLAIN = (bool, int, float, complex, str, bytes, type(None), type(...))
_OF_CLASSES = (GetSetDescriptorType, MemberDescriptorType, BuiltinFunctionType)
# What says nothing of an object: who waits, and what Python looked up before.
_LOCKS = (LockType, RLock)
_CACHES = ("_abc_impl",)
# Source: PEP 307 and 3154; the newest form in which bytes are copies and not views.
_PROTOCOL = 4
_LOADED = os.urandom(8).hex()


def fingerprint(value: object) -> str:
    """A digest of `value`: its class, the code of its methods, and all that pickle would keep.

    What has no such form, as an iterator, differs from every object of another process, and is the
    same for as long as it is the same object here. What Python and installed packages define is
    known by its name.

    *Example*

    >>> fingerprint([1, 2]) == fingerprint([1, 2]), fingerprint([1, 2]) == fingerprint([1, 3])
    (True, False)
    """
    walk = _Walk()
    try:
        walk.take(value)
    except RecursionError:
        return _only_here(value)
    return walk.digest.hexdigest()[:16]


def is_of_library(file: str) -> bool:
    """Whether a file belongs to Python or to an installed package: its text is not ours to take."""
    return file.startswith(("<frozen", *_library_folders()))


@lru_cache(maxsize=1)
def _library_folders() -> tuple[str, ...]:
    names = ("stdlib", "platstdlib", "purelib", "platlib")
    return tuple(sysconfig.get_path(name) + os.sep for name in names)


class _Walk:
    """Everything that is reached from an object, in the order in which it is met."""

    def __init__(self) -> None:
        self.digest = sha256()
        # The objects themselves, so that no other one takes the place of one that is done.
        self._met: dict[int, tuple[int, object]] = {}

    def take(self, value: object) -> None:
        """Add `value` and what it holds."""
        if type(value) in _PLAIN:
            self._say(type(value).__name__, repr(value))
            return
        if id(value) in self._met:
            self._say("again", str(self._met[id(value)][0]))
            return
        self._met[id(value)] = len(self._met), value
        if isinstance(value, CodeType):
            self._take_code(value)
        elif isinstance(value, FunctionType):
            self._take_function(value)
        elif isinstance(value, type):
            self._take_class(value)
        elif isinstance(value, ModuleType | BuiltinFunctionType):
            self._say("named", value.__name__)
        else:
            self._take_object(value)

    def _say(self, *words: str) -> None:
        for word in words:
            self.digest.update(f"{len(word)}:{word}".encode("utf-8", "surrogatepass"))

    def _take_all(self, kind: str, values: Iterable[object]) -> None:
        self._say(kind)
        for value in values:
            self.take(value)
        self._say("end")

    def _take_code(self, code: CodeType) -> None:
        self._say("code", code.co_name)
        self.take(code.co_code)
        self._take_all("names", code.co_names)
        self._take_all("constants", code.co_consts)

    def _take_function(self, function: FunctionType) -> None:
        self._say("function", function.__module__ or "", function.__qualname__)
        if is_of_library(function.__code__.co_filename):
            return
        self.take(function.__code__)
        self._take_all("defaults", (function.__defaults__, function.__kwdefaults__))
        self._take_all("cells", (_cell_contents(c) for c in function.__closure__ or ()))

    def _take_class(self, cls: type) -> None:
        self._say("class", cls.__module__, cls.__qualname__)
        if is_module_of_library(cls.__module__):
            return
        self._take_all("bases", cls.__bases__)
        for name, member in vars(cls).items():
            if _is_of_author(name, member):
                self._say(name)
                self.take(member)

    def _take_object(self, value: object) -> None:
        kind = type(value)
        if isinstance(value, tuple | list):
            self._take_all(kind.__name__, value)
        elif kind is dict:
            self._take_all("dict", itertools.chain.from_iterable(value.items()))  # type: ignore[attr-defined]  # a dict
        elif isinstance(value, set | frozenset):
            self._take_all("set", sorted(map(fingerprint, value)))  # in an order of its own
            return
        elif isinstance(value, staticmethod | classmethod | MethodType):
            self._take_all("method", (value.__func__, getattr(value, "__self__", None)))
            return
        elif isinstance(value, property):
            self._take_all("property", (value.fget, value.fset))
            return
        elif isinstance(value, functools.cached_property):
            self._take_all("property", (value.func,))
            return
        elif isinstance(value, MappingProxyType):
            self._take_all("proxy", itertools.chain.from_iterable(value.items()))
            return
        if kind not in (tuple, list, dict):
            self.take(kind)
            self._take_state(value)

    def _take_state(self, value: object) -> None:
        """What pickle would keep of `value`, or what its attributes hold where it keeps none."""
        if isinstance(value, _LOCKS):
            return
        try:
            state = value.__reduce_ex__(_PROTOCOL)
            parts = (state,) if isinstance(state, str) else tuple(map(_listed, state))
        except Exception:  # whatever the class's own method raises: then there is no such form
            self._say("object", _only_here(value))
            parts = (getattr(value, "__dict__", None),)
        self._take_all("state", parts)


def _is_of_author(name: str, member: object) -> bool:
    """Whether a member of a class was written with it, and is none that Python keeps there."""
    if isinstance(member, _OF_CLASSES) or name in _CACHES:
        return False
    is_of_python = name.startswith("__") and name.endswith("__")
    return not is_of_python or isinstance(member, FunctionType | staticmethod | classmethod)


def _only_here(value: object) -> str:
    """What no object of another process has, nor another one that lives in this process."""
    return f"{id(value)} {os.getpid()} {_LOADED}"


def _listed(part: object) -> object:
    """A part of what `__reduce_ex__` gives; items come from an iterator."""
    return list(part) if hasattr(part, "__next__") else part  # type: ignore[call-overload]  # an iterator


def _cell_contents(cell: object) -> object:
    try:
        return getattr(cell, "cell_contents", None)
    except ValueError:  # not assigned yet
        return None


@lru_cache(maxsize=512)
def is_module_of_library(name: str) -> bool:
    """Whether a module, by its name, is Python's or that of an installed package."""
    module = sys.modules.get(name)
    file = getattr(module, "__file__", None)
    return name != "__main__" and (file is None or is_of_library(file))
