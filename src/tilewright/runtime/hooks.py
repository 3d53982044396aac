"""Launch hooks: functions that are called around every launch, for profilers and tests."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from typing import Final

from tilewright.runtime.driver import Grid
from tilewright.runtime.launcher import GATE
from tilewright.support.dataclass import dataclass


@dataclass(frozen=True)
class LaunchInfo:
    """What a launch hook sees: the kernel, its grid, where it runs, what was compiled for what.

    `stream` is the handle of the CUDA stream, None on the CPU.
    """

    name: str
    grid: Grid
    target: str
    device: int
    stream: int | None
    metadata: Mapping[str, object]


LaunchHook = Callable[[LaunchInfo], object]


class LaunchHooks:
    """The hooks of this process. While there is one, no launch takes the native path."""

    def __init__(self) -> None:
        self._enter: list[LaunchHook] = []
        self._exit: list[LaunchHook] = []

    def add(self, *, enter: LaunchHook | None = None, exit: LaunchHook | None = None) -> None:
        """Call `enter` before and `exit` after every launch from now on, in order of adding."""
        self._change(self._enter, enter, 1)
        self._change(self._exit, exit, 1)

    def remove(self, *, enter: LaunchHook | None = None, exit: LaunchHook | None = None) -> None:
        """Take back what `add` was given; a hook that was not added is left alone."""
        self._change(self._enter, enter, -1)
        self._change(self._exit, exit, -1)

    def _change(self, hooks: list[LaunchHook], hook: LaunchHook | None, step: int) -> None:
        if hook is None or (step < 0 and hook not in hooks):
            return
        if step > 0:
            hooks.append(hook)
        else:
            hooks.remove(hook)
        GATE.count += step

    @contextmanager
    def around(self, info: LaunchInfo) -> Generator[None]:
        """The hooks around one launch; after a launch that fails no exit hook is called."""
        for hook in tuple(self._enter):
            hook(info)
        yield
        for hook in tuple(self._exit):
            hook(info)

    @property
    def is_empty(self) -> bool:
        """Whether nobody watches launches."""
        return not self._enter and not self._exit


# One a process, as its launchers share one gate.
LAUNCH_HOOKS: Final = LaunchHooks()
