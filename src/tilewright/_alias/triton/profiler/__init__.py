"""`triton.profiler`: named ranges of a program with their wall-clock time.

The ranges are timed by the host; a session's tree is written as JSON by `finalize`. Launches are
told to the session by the launch hooks, so kernels appear below the range they run in.
"""

from __future__ import annotations

import functools
import json
import time
from collections.abc import Callable, Generator, Mapping
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import TypeVar, cast

from .. import knobs
from .._names import refuse

Function = TypeVar("Function", bound=Callable[..., object])
Metrics = Mapping[str, float]
DEFAULT_PROFILE_NAME = "proton"


class Node:
    """A range: how often it ran, for how long, and what ran inside it."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.count = 0
        self.seconds = 0.0
        self.metrics: dict[str, float] = {}
        self.children: dict[str, Node] = {}

    def child(self, name: str) -> Node:
        """The range of this name inside this one."""
        return self.children.setdefault(name, Node(name))

    def to_json(self) -> dict[str, object]:
        """The range as the tree that viewers of Proton read."""
        return {
            "frame": {"name": self.name, "type": "function"},
            "metrics": {"count": self.count, "time (ns)": self.seconds * 1e9, **self.metrics},
            "children": [child.to_json() for child in self.children.values()],
        }


class Session:
    """One recording."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.root = Node("ROOT")
        self.open: list[tuple[Node, float]] = []
        self.is_active = True

    def enter(self, name: str, metrics: Metrics | None) -> None:
        """Begin a range inside the innermost open one."""
        if not self.is_active:
            return
        node = (self.open[-1][0] if self.open else self.root).child(name)
        node.count += 1
        _add(node, metrics)
        self.open.append((node, time.perf_counter()))

    def exit(self, metrics: Metrics | None) -> None:
        """End the innermost range."""
        if self.is_active and self.open:
            node, started = self.open.pop()
            node.seconds += time.perf_counter() - started
            _add(node, metrics)


def _add(node: Node, metrics: Metrics | None) -> None:
    for key, value in (metrics or {}).items():
        node.metrics[key] = node.metrics.get(key, 0.0) + value


_SESSIONS: dict[int, Session] = {}


def _chosen(session: int | None) -> list[Session]:
    return list(_SESSIONS.values()) if session is None else [_SESSIONS[session]]


def _on_launch(metadata: object) -> None:
    get = getattr(metadata, "get", None)
    name = "kernel" if get is None else str(get()["name"])
    for session in _SESSIONS.values():
        session.enter(name, None)


def _on_return(metadata: object) -> None:
    for session in _SESSIONS.values():
        session.exit(None)


def start(
    name: str | None = None,
    *,
    context: str | None = "shadow",
    data: str | None = "tree",
    backend: str | None = None,
    mode: object = None,
    hook: object = None,
) -> int | None:
    """Begin a session, whose tree `finalize` writes to `<name>.hatchet`; its number.

    `context`, `data`, `backend`, `mode` are accepted and change nothing.
    """
    if knobs.proton.disable:
        return None
    number = max(_SESSIONS, default=-1) + 1
    _SESSIONS[number] = Session(name or DEFAULT_PROFILE_NAME)
    knobs.runtime.launch_enter_hook.add(_on_launch)
    knobs.runtime.launch_exit_hook.add(_on_return)
    return number


def activate(session: int | None = None) -> None:
    """Go on recording."""
    for chosen in _chosen(session):
        chosen.is_active = True


def deactivate(session: int | None = None, flushing: bool = False) -> None:
    """Stop recording for a while."""
    for chosen in _chosen(session):
        chosen.is_active = False


def finalize(session: int | None = None, output_format: str | None = "") -> None:
    """End a session (None: all) and write its tree."""
    for number in [n for n in _SESSIONS if session in (None, n)]:
        ended = _SESSIONS.pop(number)
        path = Path(f"{ended.name}.{output_format or 'hatchet'}")
        path.write_text(json.dumps([ended.root.to_json()]), encoding="utf-8")
    if not _SESSIONS:
        knobs.runtime.launch_enter_hook.remove(_on_launch)
        knobs.runtime.launch_exit_hook.remove(_on_return)


def enter_scope(name: str, *, metrics: Metrics | None = None) -> int | None:
    """Begin a range in every session."""
    for session in _SESSIONS.values():
        session.enter(name, metrics)
    return None


def exit_scope(name: str | None = None, *, metrics: Metrics | None = None) -> int | None:
    """End the innermost range in every session."""
    for session in _SESSIONS.values():
        session.exit(metrics)
    return None


@contextmanager
def scope(name: str, metrics: Metrics | None = None) -> Generator[None]:
    """A block, or a function, that is a range."""
    enter_scope(name, metrics=metrics)
    try:
        yield
    finally:
        exit_scope(name)


def cpu_timed_scope(name: str, metrics: Metrics | None = None) -> AbstractContextManager[None]:
    """The same as `scope`: ranges are timed by the host."""
    return scope(name, metrics)


def state(name: str) -> AbstractContextManager[None]:
    """A block that is a range of its own inside the open one."""
    return scope(name)


def enter_state(name: str) -> None:
    """Begin the range of a state."""
    enter_scope(name)


def exit_state() -> None:
    """End the range of a state."""
    exit_scope()


def profile(
    func: Function | None = None, *, name: str | None = None, **options: object
) -> Function | Callable[[Function], Function]:
    """A decorator that records each call of a function as a session."""

    def decorate(function: Function) -> Function:
        @functools.wraps(function)
        def run(*args: object, **kwargs: object) -> object:
            session = start(name)
            try:
                return function(*args, **kwargs)
            finally:
                finalize(session)

        return cast("Function", run)

    return decorate if func is None else decorate(func)


__getattr__ = refuse(
    __name__,
    {
        "hooks": "triton.knobs.runtime.launch_enter_hook.add(…) takes functions",
        "language": "time inside a kernel with tl.extra.cuda.globaltimer",
        "context": "sessions keep names of ranges only",
        "mode": "sessions have one mode",
    },
)
