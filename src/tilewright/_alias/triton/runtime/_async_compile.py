"""`triton.runtime._async_compile`: kernels compiled by an executor while the program goes on."""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar
from types import TracebackType
from typing import TYPE_CHECKING

from tilewright.support.errors import TilewrightError

if TYPE_CHECKING:
    from concurrent.futures import Executor, Future

Compile = Callable[[], object]


class FutureKernel:
    """A kernel that an executor is compiling."""

    def __init__(self, future: Future[object], finalize: Callable[[object], None]) -> None:
        self.future = future
        self.finalize = finalize
        self.kernel: object = None

    def result(self, ignore_errors: bool = False) -> object:
        """The compiled kernel, waiting for it; None for an error that is ignored."""
        if self.kernel is not None:
            return self.kernel
        try:
            self.kernel = self.future.result()
        except TilewrightError:
            if not ignore_errors:
                raise
            return None
        self.finalize(self.kernel)
        return self.kernel

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
        self._token: object = None

    def submit(
        self, key: object, compile: Compile, finalize: Callable[[object], None]
    ) -> FutureKernel:
        """The future of a kernel; the same one for the same key."""
        known = self.future_kernels.get(key)
        if known is None:
            known = FutureKernel(self.executor.submit(compile), finalize)
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
        for kernel in self.future_kernels.values():
            kernel.result(self.ignore_errors)


active_mode: ContextVar[AsyncCompileMode | None] = ContextVar("active_mode", default=None)
