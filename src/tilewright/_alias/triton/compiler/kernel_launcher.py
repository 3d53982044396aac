"""What runs a compiled kernel whose arguments are given one by one."""

from __future__ import annotations

from collections.abc import Callable

from tilewright.compiler.build import build_artifact, without_guards
from tilewright.compiler.request import CompileRequest
from tilewright.frontend.devices import HOST_TARGETS
from tilewright.frontend.other_constants import with_other_constants
from tilewright.frontend.passing import (
    ParameterFacts,
    check_memory,
    check_writable,
    memory_bounds,
    runtime_values,
    stored_paths,
)
from tilewright.frontend.program import ArgumentPath, Specialization, TupleType
from tilewright.runtime.accessors import member_offset
from tilewright.runtime.artifact import Artifact
from tilewright.runtime.driver import FastLaunch, LoadedKernel
from tilewright.runtime.drivers import load_driver
from tilewright.runtime.launch_numbers import fits
from tilewright.runtime.launch_table import empty, ignored
from tilewright.runtime.warm import RunCalls, is_native
from tilewright.support.dataclass import replace
from tilewright.support.errors import MissingArgument, TilewrightError, UnexpectedArgument
from tilewright.support.forking import FORK_GATE

from .._settings import HookChain
from ..runtime.raising import as_launch_raises

_MAX_LAUNCHERS = 4
# What stands between the grid and the arguments of `run`: stream, function, packed and launch
# metadata, which a CPU needs for nothing, and the hooks.
_NO_HOOKS = empty(HookChain, "calls", member_offset(HookChain, "calls"))
_LEADING = (*(ignored(),) * 4, _NO_HOOKS, _NO_HOOKS)

Run = Callable[..., object]


class Launcher:
    """Launches one compiled kernel; `run` keeps a native launcher for each kind of arguments."""

    def __init__(
        self, request: CompileRequest, artifact: Artifact, module: LoadedKernel, device: int | None
    ) -> None:
        self._kernel = request.name
        self._request, self._artifact, self._device = request, artifact, device
        self._stored = stored = stored_paths(artifact.metadata)
        self._otherwise: LoadedKernel | None = None
        self._for_others: list[tuple[Specialization, Launcher]] = []
        self._specialization = request.specialization
        self._names = tuple(name for name, _ in request.specialization.signature)
        self._module = module
        self._has_streams = request.target not in HOST_TARGETS
        self._is_checked = bool(request.options.get("checked"))
        self.facts_of = None if self._is_checked else facts_of(request, stored)
        self._calls: RunCalls | None = None
        self.run = self._make_run()

    def _make_run(self) -> Run:
        launchers: list[FastLaunch] = []
        slow, has_streams = self._launch_slowly, self._has_streams
        current_stream = self._current_stream

        def run(
            grid_0: int,
            grid_1: int,
            grid_2: int,
            stream: object,
            function: object,
            packed_metadata: object,
            launch_metadata: object,
            launch_enter_hook: Callable[[object], object] | None,
            launch_exit_hook: Callable[[object], object] | None,
            *args: object,
        ) -> None:
            if launch_enter_hook:
                launch_enter_hook(launch_metadata)
            if has_streams:
                args = (*args, current_stream() if stream is None else stream)
            for launch in launchers:
                if launch(grid_0, grid_1, grid_2, *args) is None:
                    break
            else:
                slow(launchers, (grid_0, grid_1, grid_2), args)
            if launch_exit_hook:
                launch_exit_hook(launch_metadata)

        return self._without_python(run)

    def _without_python(self, run: Run) -> Run:
        """The same as `run`; on a CPU natively, where no hooks are set."""
        if self._has_streams or self.facts_of is None:
            return run
        launcher = self._module.fast_launcher((), ())
        if launcher is None or not is_native(launcher):
            return run
        self._calls = RunCalls(run, launcher)
        return self._calls.call

    def _launch_slowly(
        self, launchers: list[FastLaunch], grid: tuple[int, int, int], args: tuple[object, ...]
    ) -> None:
        """Launch, and keep a native launcher for arguments like these."""
        try:
            named = self._named(args)
        except TilewrightError as error:
            raise as_launch_raises(error) from None
        other = self._for_constants(named)
        if other is not None:
            given, stream = (args[:-1], args[-1]) if self._has_streams else (args, None)
            other.run(*grid, stream, None, None, None, None, None, *given)
            return
        check_writable(self._kernel, self._stored, named)
        check_memory(self._kernel, self._specialization, named)
        values = runtime_values(self._specialization, named)
        is_fit = fits(self._artifact.metadata, grid, values)
        unguarded = None if is_fit else self._without_guards()
        if self.facts_of is not None:
            others = () if unguarded is None else (unguarded,)
            launcher = self._module.fast_launcher(self.facts_of, args, others)
            if launcher is not None:
                launchers.insert(0, launcher)
                del launchers[_MAX_LAUNCHERS:]
                self._learn(launcher, len(args))
        stream = int(str(args[-1])) if self._has_streams else None
        if self._is_checked:
            values.extend(memory_bounds(self._specialization, named))
        if 0 not in grid:
            (unguarded or self._module).launch(grid, values, stream)

    def _for_constants(self, named: dict[str, object]) -> Launcher | None:
        """What launches arguments that are other than the 1 or None that the kernel has for them.

        None where the kernel is made for all. Kernels of a cache of the author's own come here: one
        that `warmup` gave for other arguments.
        """
        function = self._request.functions[self._request.kernel]
        wanted = with_other_constants(function, self._specialization, named)
        if wanted == self._specialization:
            return None
        for known, launcher in self._for_others:
            if known == wanted:
                return launcher
        request = replace(self._request, specialization=wanted)
        with FORK_GATE.work():
            artifact = build_artifact(request)
            module = load_driver(request.target).load(artifact, self._device)
        launcher = Launcher(request, artifact, module, self._device)
        self._for_others.insert(0, (wanted, launcher))
        del self._for_others[_MAX_LAUNCHERS:]
        return launcher

    def _learn(self, launcher: FastLaunch, num_args: int) -> None:
        """Let the native `run` launch by `launcher`."""
        if self._calls is not None:
            positions = range(len(_LEADING), len(_LEADING) + num_args)
            self._calls.add(launcher, positions, _LEADING)

    def _current_stream(self) -> int:
        """The stream that this thread works on: a launch that names none goes there."""
        driver = load_driver(self._request.target)
        device = driver.device(()) if self._device is None else self._device
        return driver.stream(None, (), device) or 0

    def _without_guards(self) -> LoadedKernel:
        """The kernel for launches that this one is not made for, compiled when one comes."""
        if self._otherwise is None:
            request = without_guards(self._request)
            with FORK_GATE.work():
                driver = load_driver(request.target)
                self._otherwise = driver.load(build_artifact(request), self._device)
        return self._otherwise

    def _named(self, args: tuple[object, ...]) -> dict[str, object]:
        """The arguments by name, constants included.

        Raises: MissingArgument, UnexpectedArgument.
        """
        given = args[:-1] if self._has_streams else args
        if len(given) < len(self._names):
            missing = self._names[len(given)]
            raise MissingArgument(
                f"{self._kernel}(): the argument `{missing}` is missing",
                argument=missing,
                hint="a compiled kernel takes every parameter by position, constants included: "
                + ", ".join(f"`{name}`" for name in self._names),
            )
        if len(given) > len(self._names):
            raise UnexpectedArgument(
                f"{self._kernel}() takes {len(self._names)} arguments but {len(given)} were given",
                hint="the parameters are " + ", ".join(f"`{name}`" for name in self._names),
            )
        return dict(zip(self._names, given, strict=True))


def facts_of(
    request: CompileRequest, stored: frozenset[ArgumentPath]
) -> list[ParameterFacts] | None:
    """What the native launcher checks: types, and the alignment that was promised."""
    facts: list[ParameterFacts] = []
    slot = 0
    specialization = request.specialization
    for name, type_ in specialization.signature:
        if isinstance(type_, TupleType) or type_.startswith("tensordesc"):
            return None
        if type_ == "constexpr":
            facts.append(ParameterFacts(type_, None, None, False))
            continue
        is_promised = type_.startswith("*") and (name,) in specialization.divisibility
        is_stored = (name,) in stored
        facts.append(ParameterFacts(type_, slot, True if is_promised else None, True, is_stored))
        slot += 1
    if request.target not in HOST_TARGETS:
        facts.append(ParameterFacts("i64", slot, None, True))  # the stream
    return facts
