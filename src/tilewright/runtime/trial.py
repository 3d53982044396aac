"""One configuration of a call, as a tuner compiles and runs it."""

from __future__ import annotations

import functools
from collections.abc import Callable

from tilewright.runtime.ahead import CompileJob
from tilewright.runtime.call import Call
from tilewright.runtime.heuristics import Arguments, GridLike, Keywords
from tilewright.runtime.isolation import isolated_compiles
from tilewright.runtime.result_check import ResultCheck
from tilewright.runtime.snapshots import ArgumentState
from tilewright.runtime.stopped_trials import fault_behind, note_stopped
from tilewright.runtime.tried_schedules import TriedConfig
from tilewright.runtime.tuning import Candidate, Effects
from tilewright.support.dataclass import dataclass


@dataclass(frozen=True)
class Trial:
    """A configuration of a call with what its tuner does for it.

    `ask_ahead` has a kernel compiled in another process, `compiled` here; `launched` runs it.
    `run_hook` is the hook of the configuration; `before` and `behind` are those of the tuner, the
    latter with the error that a launch ended in. `identity` is that of the kernel's sources.
    """

    tried: TriedConfig
    call: Call
    keywords: Keywords
    state: ArgumentState | None
    check: ResultCheck | None
    ask_ahead: Callable[[Arguments, Keywords, int], CompileJob | None] | None
    compiled: Callable[[Call, Keywords], object]
    launched: Callable[[Arguments, Keywords, GridLike], object]
    run_hook: Callable[[], None]
    before: Callable[[], object] | None
    behind: Callable[..., object]
    is_isolated: bool
    identity: str | None
    is_on_gpu: bool

    def candidate(self) -> Candidate:
        """What a search does with it."""
        check = self.check
        verified = None if check is None else functools.partial(check.run, self._run_once)
        return Candidate(
            self.tried.config,
            self.call,
            self._compile_ahead,
            self._compile,
            self._protect,
            self._prepare,
            self._launch,
            verified,
            self._stopped,
            self.tried.is_added,
        )

    def _compile_ahead(self, num_left: int) -> CompileJob | None:
        if self.ask_ahead is None:
            return None
        self.run_hook()
        with isolated_compiles(self.is_isolated):
            return self.ask_ahead(self.call.args, self.keywords, num_left)

    def _compile(self) -> object:
        self.run_hook()
        with isolated_compiles(self.is_isolated):
            return self.compiled(self.call, self.keywords)

    def _protect(self, effects: Effects) -> None:
        if self.state is not None:
            self.state.protect(effects)
        if self.check is not None:
            self.check.keep(effects.get("writes", ()))

    def _prepare(self) -> None:
        if self.state is not None:
            self.state.before_run()
        if self.before is not None:
            self.before()
        self.run_hook()

    def _launch(self) -> object:
        try:
            result = self.launched(self.call.args, self.keywords, self.call.grid)
        except Exception as error:
            self.behind(exception=error)
            raise
        self.behind(exception=None)
        return result

    def _run_once(self) -> object:
        self._prepare()
        return self._launch()

    def _stopped(self, error: Exception) -> None:
        fault = fault_behind(error) if self.is_on_gpu else None
        if fault is None or not self.tried.is_added:
            return
        note_stopped(self.identity, self.tried.config)
        fault.hint = (
            f"the tuner added the schedule of {self.tried.config.short()}, and leaves it out when "
            "the program is run again"
        )
        raise fault from error
