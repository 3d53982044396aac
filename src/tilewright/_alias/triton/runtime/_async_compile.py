"""`triton.runtime._async_compile`: kernels compiled by an executor while the program goes on."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from contextvars import ContextVar
from types import TracebackType
from typing import TYPE_CHECKING

from tilewright.support.errors import TilewrightError

if TYPE_CHECKING:
    from concurrent.futures import Executor, Future

Compile = Callable[[], object]


class FutureKernel:
    """A kernel that an executor is compiling; without a `future` it is compiled when needed."""

    def __init__(
        self, future: Future[object] | None, compile: Compile, finalize: Callable[[object], None]
    ) -> None:
        self.future = future
        self.compile = compile
        self.finalize = finalize
        self.kernel: object = None
        self._process = os.getpid()

    def result(self, ignore_errors: bool = False) -> object:
        """The compiled kernel, waiting for it; None for an error that is ignored."""
        if self.kernel is not None:
            return self.kernel
        try:
            self.kernel = self._compiled()
        except TilewrightError:
            if not ignore_errors:
                raise
            return None
        self.finalize(self.kernel)
        return self.kernel

    def wait(self) -> None:
        """Return when nobody compiles this kernel any more, whatever came of it."""
        future = self._awaited()
        if future is not None:
            with suppress(Exception):  # `result` raises it for whoever asks
                future.exception()

    def _compiled(self) -> object:
        future = self._awaited()
        return self.compile() if future is None else future.result()

    def _awaited(self) -> Future[object] | None:
        """The future if it will be done: a forked child has the executor without its threads."""
        future = self.future
        is_awaited = future is not None and (future.done() or os.getpid() == self._process)
        return future if is_awaited else None

    def __getattr__(self, name: str) -> object:
        if name.startswith("__") or "future" not in self.__dict__:
            raise AttributeError(name)
        return getattr(self.result(), name)


class AsyncCompileMode:
    """A block in which `warmup` returns at once, with a `FutureKernel`."""

    def __init__(self, executor: Executor, *, ignore_errors: bool = False) -> None:
        self.executor = executor
        self.ignore_errors = ignore_errors
        self.future_kernels: dict[object, FutureKernel] = {}
        self._process = os.getpid()

    def submit(
        self, key: object, compile: Compile, finalize: Callable[[object], None]
    ) -> FutureKernel:
        """The future of a kernel; the same one for the same key."""
        known = self.future_kernels.get(key)
        if known is None:
            is_child = os.getpid() != self._process
            future = None if is_child else self.executor.submit(compile)
            known = FutureKernel(future, compile, finalize)
            self.future_kernels[key] = known
        return known

    def __enter__(self) -> AsyncCompileMode:
        if active_mode.get() is not None:
            raise RuntimeError("Another AsyncCompileMode is already active")
        active_mode.set(self)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        active_mode.set(None)
        kernels = list(self.future_kernels.values())
        # Nothing is left running behind a block that ended, even if one of its kernels is wrong.
        for kernel in kernels:
            kernel.wait()
        if value is None:
            for kernel in kernels:
                kernel.result(self.ignore_errors)


active_mode: ContextVar[AsyncCompileMode | None] = ContextVar("active_mode", default=None)
