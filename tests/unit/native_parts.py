"""Single functions of the hand-written LLVM texts, compiled so that a test can call them."""

from __future__ import annotations

import ctypes
import re
from collections.abc import Callable, Mapping

from tilewright.codegen.link import load_object
from tilewright.codegen.optimize import compile_module
from tilewright.targets.cpu.host import host_machine

_TYPES = {
    "void": None,
    "i1": ctypes.c_bool,
    "i32": ctypes.c_int32,
    "i64": ctypes.c_int64,
    "ptr": ctypes.c_void_p,
}
Functions = Mapping[str, Callable[..., int]]


def load_parts(text: str, *names: str) -> Functions:
    """The functions `names` of a text, which keeps them to itself, for calls from Python."""
    types: dict[str, list[str]] = {}
    for name in names:
        found = re.search(rf"define internal (\w+) @{name}\(([^)]*)\)", text)
        assert found is not None, f"the text has no function of its own called {name}"
        types[name] = [found[1], *re.findall(r"(\w+) %", found[2])]
        text = text.replace(f"define internal {found[1]} @{name}(", f"define {found[1]} @{name}(")
    host = host_machine()
    code = load_object(compile_module(text, host.arch, host.features).object, *names)
    code.keep_forever()
    return {
        name: ctypes.PYFUNCTYPE(*(_TYPES[t] for t in types[name]))(code.addresses[name])
        for name in names
    }
