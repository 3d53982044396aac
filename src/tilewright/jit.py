"""`jit`: from a decorated function to a launch.

The warm path is native: `kernel[grid](…)` checks every argument against what a kernel was
compiled for and either runs it or hands back (`runtime/warm.py`). Behind it, `_launch` does the
same in Python for calls that the native code does not take, such as a grid that is a function: it
finds the launcher of the last arguments of this shape. Everything else is the slow path below it.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial, update_wrapper
from types import FunctionType, MethodType
from typing import TYPE_CHECKING, Any, SupportsIndex, cast, overload

from tilewright.frontend.bound_call import (
    Call,
    PassedFunctions,
    Prepared,
    compiled_for,
    effective,
    identity,
    launch_watched,
    launcher_of,
    live_defaults,
    placed,
)
from tilewright.frontend.devices import DevicePlacement
from tilewright.frontend.kernel_source import KernelSource
from tilewright.frontend.parameters import listed_parameters
from tilewright.frontend.parsing import located_at_parameters, text_of
from tilewright.frontend.passing import (
    check_memory,
    check_writable,
    memory_bounds,
    runtime_values,
    stored_paths,
)
from tilewright.frontend.signature import bind, specialize
from tilewright.frontend.source import require_function, snapshot
from tilewright.runtime.call_shape import CallShape
from tilewright.runtime.driver import Grid
from tilewright.runtime.drivers import load_driver
from tilewright.runtime.fingerprint import digest
from tilewright.runtime.grid import GridLike, check_grid
from tilewright.runtime.kernel import CompiledKernel
from tilewright.runtime.launch_numbers import fits, plainer_kernels
from tilewright.runtime.launch_site import place_at_launch, placing_at_launch
from tilewright.runtime.warm import WarmCalls, is_native
from tilewright.support.dataclass import replace
from tilewright.support.environment import warn_of_unknown_variables
from tilewright.support.errors import (
    NotAKernelLaunch,
    TilewrightError,
)
from tilewright.support.forking import FORK_GATE
from tilewright.support.options import CompileOptions, debug_options, option_names, runtime_options
from tilewright.support.revisions import REVISIONS, function_name
from tilewright.support.source import loaded_lines

if TYPE_CHECKING:
    from tilewright.compiler.emulated import Interpreted, Simulated
    from tilewright.runtime.ahead import CompileJob

# Chosen, not measured: as many kernels as a program calls in turn under one name. One that is not
# among them is looked up by its key. Measured on an H200, 2026-11-23, 20 in turn: a millisecond.
_MAX_LAUNCHERS = 64
# Compiled variants of one function that are kept loaded, the least recently used go first; each
# takes 60 KB. The disk cache has the others.
_MAX_KERNELS = 256
# What belongs to one process: a pickled kernel takes it up again where it is needed.
_PROCESS_STATE = frozenset(
    ("_source", "_compiled_source", "_kernels", "_shapes", "_warm", "_entry", "__wrapped__")
)
# Keywords of a launch that change nothing that is compiled.
_LAUNCH_KEYWORDS = ("stream",)


class JITFunction:
    """A kernel, or a function that kernels call; made by `jit`.

    `kernel[grid](*args, **kwargs)` launches it. Keywords are parameters or compile options.
    """

    __tilewright_jit__ = True
    __name__: str
    __qualname__: str

    def __init__(
        self,
        fn: FunctionType,
        *,
        do_not_specialize: Iterable[str | int] | None = (),
        do_not_specialize_on_alignment: Iterable[str | int] | None = (),
        debug: bool | None = None,
        noinline: bool = False,
    ) -> None:
        require_function(fn)
        self.fn = fn
        self._lines: list[str] | None = loaded_lines(fn)
        self._given_text: tuple[str, int] | None = None
        warn_of_unknown_variables()
        self.do_not_specialize = listed_parameters("do_not_specialize", do_not_specialize)
        self.do_not_specialize_on_alignment = listed_parameters(
            "do_not_specialize_on_alignment", do_not_specialize_on_alignment
        )
        self.debug = debug
        self.noinline = noinline
        debugging = debug_options()
        self.simulated_machine = debugging.simulate
        self.is_interpreted = debugging.interpret or bool(debugging.simulate)
        self._source: KernelSource | None = None
        self._compiled_source: KernelSource | None = None
        self._kernels: dict[object, CompiledKernel] = {}
        self._shapes: dict[tuple[str, ...], CallShape] = {}
        self._is_guarded = False
        self._warm: WarmCalls | None = None
        self._entry: Callable[..., CompiledKernel] = self._launch
        update_wrapper(self, fn)
        REVISIONS.made(function_name(fn))

    def __reduce_ex__(self, protocol: SupportsIndex) -> str | tuple[object, ...]:
        """By name where the module has this very function, else by value.

        A pickler that writes functions of `__main__` by value, for processes with another
        `__main__`, gets ours by value too.
        """
        here = inspect.currentframe()
        caller = None if here is None else here.f_back
        pickler = "" if caller is None else str(caller.f_globals.get("__name__", ""))
        is_by_value = "cloudpickle" in pickler and self.__module__ == "__main__"
        if not is_by_value and _global_object(self.fn) is self:
            return self.fn.__qualname__
        return super().__reduce_ex__(protocol)

    def __getstate__(self) -> dict[str, object]:
        """Everything but what belongs to this process, with the text that was loaded."""
        state = {n: v for n, v in self.__dict__.items() if n not in _PROCESS_STATE}
        return {**state, "_lines": None, "_given_text": self.__tilewright_text__}

    def __setstate__(self, state: Mapping[str, object]) -> None:
        self.__dict__.update(state)
        self.__wrapped__ = self.fn
        self._source = self._compiled_source = self._warm = None
        self._is_guarded = False
        self._kernels = {}
        self._forget_launchers()

    def __call__(self, *args: object, **kwargs: object) -> Any:
        """Refuse: a kernel needs a grid. Raises: NotAKernelLaunch."""
        raise NotAKernelLaunch(
            f"{self.fn.__name__}() is a kernel and cannot be called directly from Python",
            hint=f"launch it over a grid: {self.fn.__name__}[(num_programs,)](…)",
            known_as="Cannot call @triton.jit'd outside of the scope of a kernel",
        )

    def __getitem__(self, grid: GridLike) -> Callable[..., CompiledKernel | None]:
        """The launcher of this kernel over `grid`: a tuple of 1 to 3 sizes or a callable."""
        if self.is_interpreted:
            return self.simulate.alone(grid) if self.simulated_machine else self.interpret[grid]
        # A bound method is made and called in half the time of a partial, but never of None.
        return MethodType(self._entry, grid) if grid is not None else partial(self._entry, grid)

    @property
    def interpret(self) -> Interpreted:
        """The reference interpreter: `kernel.interpret[grid](…)`; `reachable` as of `simulate`."""
        from tilewright.compiler.emulated import Interpreted

        return Interpreted(self)

    @property
    def simulate(self) -> Simulated:
        """The simulator of a GPU's threads: `kernel.simulate[grid](…)`, on this machine.

        `machine="sm_90a"`, `seed=None` and `reachable=None` (arrays that pointers in memory lead
        to; left out, those that the callers hold) are keywords of the launch beside the kernel's.
        It compiles for that GPU, runs the emitted threads on arrays of the host and gives a
        `Simulation`. Raises: a KernelFault at the kernel's line for an access out of bounds, a
        race, a missing fence, a read of shared memory that nobody wrote, or a deadlock.
        """
        from tilewright.compiler.emulated import Simulated

        return Simulated(self)

    @property
    def source(self) -> KernelSource:
        """The snapshot of this kernel and what it reaches, until one of them is made anew."""
        if self._source is not None:
            return self._source
        source = snapshot(
            self,
            self.do_not_specialize,
            self.do_not_specialize_on_alignment,
            debug_options().allow_non_constexpr_globals,
        )
        last = self._compiled_source
        if last is not None and last.functions != source.functions:
            self.forget()
        self._is_guarded = source.is_guarded
        self._source = self._compiled_source = source
        REVISIONS.read(source.names, self)
        return source

    def current_source(self) -> KernelSource:
        """The snapshot, made anew where a name means another function or object by now.

        Raises: CapturedValueChanged for a global that changed.
        """
        if self.source.is_relinked():
            self.reconsider()
        self.source.require_unchanged(self.fn.__name__)
        return self.source

    @property
    def __tilewright_text__(self) -> tuple[str, int]:
        """The text to compile, with the number of its first line. Raises: SourceNotAvailable."""
        return self._given_text or text_of(self.fn, self._lines)

    @property
    def arg_names(self) -> tuple[str, ...]:
        """The names of the parameters, in order."""
        return tuple(inspect.signature(self.fn).parameters)

    @property
    def cache_key(self) -> str:
        """The identity of the sources of this kernel and of what it reaches, in hex."""
        return digest(*(repr(f) for _, f in sorted(self.source.functions.items())))

    def forget(self) -> None:
        """Drop every compiled kernel and launcher; the next launch asks the disk cache again."""
        self._kernels.clear()
        self._forget_launchers()

    def reconsider(self) -> None:
        """Look at the sources again at the next launch; what is as it was stays compiled."""
        self._source = None
        self._forget_launchers()

    def _forget_launchers(self) -> None:
        self._shapes = {}
        if self._warm is not None:
            self._warm.forget()
        self._warm = None
        self._entry = self._launch

    def warmup(self, *args: object, grid: GridLike = (1,), **kwargs: object) -> CompiledKernel:
        """Compile for arguments like these without launching."""
        known = self._known_kernel(args, kwargs)
        if known is not None:
            return known
        with placing_at_launch(), FORK_GATE.work():
            prepared = self._prepare(args, kwargs)
            if prepared.kernel.is_loaded:
                self._remember(prepared, args, kwargs)
        return prepared.kernel

    def _known_kernel(
        self, args: tuple[object, ...], kwargs: Mapping[str, object]
    ) -> CompiledKernel | None:
        """The kernel for arguments like these where a launcher remembers it, else None."""
        shape = self._shapes.get(tuple(kwargs))
        if shape is None or shape.num_positional != len(args):
            return None
        if self._is_guarded and self.source.is_stale():
            return None
        return shape.kernel_for((*args, *kwargs.values()))

    @FORK_GATE.work()
    def compile_ahead(
        self, args: Sequence[object], kwargs: Mapping[str, object], num_left: int
    ) -> CompileJob | None:
        """Have the kernel for arguments like these compiled in another process.

        None where it is compiled, or another process would not make it faster; `num_left`
        kernels are to be compiled, this one included. A launch or `warmup` waits for the job.
        """
        from tilewright.compiler.build import compile_ahead, make_request

        call = self.specialize_call(args, kwargs)
        if self._kernel_key(call) in self._kernels:
            return None
        request = make_request(call.source, call.specialization, call.options, call.placement)
        return compile_ahead(request, num_left)

    @FORK_GATE.work()
    def schedules(
        self, args: Sequence[object], kwargs: Mapping[str, object]
    ) -> tuple[Mapping[str, object], ...]:
        """The schedules for arguments like these that are worth timing, as options of a launch.

        They come in a fixed order; () where the target has nothing to choose from.
        """
        from tilewright.compiler.build import make_request
        from tilewright.compiler.schedules import schedules

        call = self.specialize_call(args, kwargs)
        return schedules(
            make_request(call.source, call.specialization, call.options, call.placement)
        )

    def run(
        self, *args: object, grid: GridLike, warmup: bool = False, **kwargs: object
    ) -> CompiledKernel | None:
        """Launch over `grid` (or only compile, with `warmup`)."""
        if warmup:
            return self.warmup(*args, grid=grid, **kwargs)
        return self._launch(grid, *args, **kwargs)

    def _launch(self, grid: GridLike, /, *args: object, **kwargs: object) -> CompiledKernel:
        """The warm path in Python: every line of it is paid for at each launch."""
        shape = self._shapes.get(tuple(kwargs) if kwargs else ())
        if shape is None or shape.num_positional != len(args) or not shape.launchers:
            return self._launch_slowly(grid, args, kwargs)
        if self._is_guarded and self.source.is_stale():
            return self._launch_slowly(grid, args, kwargs)
        values = args + tuple(kwargs.values()) if kwargs else args
        if shape.order:
            values += shape.defaults
            values = tuple([values[i] for i in shape.order])
        if type(grid) is not tuple:
            if callable(grid):
                grid = grid(dict(zip(shape.names, values, strict=False)))
            if type(grid) is not tuple:
                grid = tuple(grid) if isinstance(grid, tuple | list) else (grid,)
        if len(grid) == 1:
            extents = (grid[0], 1, 1)
        elif len(grid) in (2, 3):
            extents = (*grid, 1)[:3]
        else:
            return self._launch_slowly(grid, args, kwargs)
        try:
            launcher, kernel = shape.launchers[0]
            if launcher(*extents, *values) is None:
                return kernel
            launched = shape.try_others(extents, values)
            if launched is not None:
                return launched
        except TypeError:
            pass  # not a grid of integers: the slow path says so
        return self._launch_slowly(grid, args, kwargs)

    def _launch_slowly(
        self, grid: GridLike, args: tuple[object, ...], kwargs: Mapping[str, object]
    ) -> CompiledKernel:
        try:
            prepared, extents, values = self._ready(grid, args, kwargs)
            if 0 not in extents:
                launch_watched(prepared.call, prepared.launched, extents, values)
            return prepared.launched
        except TilewrightError as error:
            place_at_launch(error)
            if debug_options().front_end_debugging:
                raise
            # The user's line and the message; where we were when we noticed helps nobody.
            raise error.with_traceback(None) from None

    @FORK_GATE.work()  # it imports: a child would find the modules locked
    def _ready(
        self, grid: GridLike, args: tuple[object, ...], kwargs: Mapping[str, object]
    ) -> tuple[Prepared, Grid, list[object]]:
        prepared = self._prepare(args, kwargs)
        call = prepared.call
        extents = check_grid(self.fn.__name__, grid, call.arguments)
        stored = stored_paths(prepared.kernel.artifact.metadata)
        with located_at_parameters(call.source.functions, call.source.kernel):
            check_writable(self.fn.__name__, stored, call.arguments)
            check_memory(self.fn.__name__, call.specialization, call.arguments)
        values = runtime_values(call.specialization, call.arguments)
        if call.options.checked:
            values.extend(memory_bounds(call.specialization, call.arguments))
        prepared = self._fitting(prepared, extents, values)
        self._remember(prepared, args, kwargs)
        return prepared, extents, values

    def _fitting(self, prepared: Prepared, grid: Grid, values: Sequence[object]) -> Prepared:
        """The kernel of a call with another one where it is not made for this launch."""
        metadata, options = prepared.kernel.artifact.metadata, prepared.call.options
        if fits(metadata, grid, values):
            return prepared

        def made(plainer: CompileOptions) -> tuple[CompiledKernel, Mapping[str, object]]:
            kernel = self._kernel(replace(prepared.call, options=plainer))
            return kernel, kernel.artifact.metadata

        others = plainer_kernels(options, metadata, grid, values, made)
        return replace(prepared, others=tuple(others))

    def specialize_call(self, args: Sequence[object], kwargs: Mapping[str, object]) -> Call:
        """Bind the arguments of a call, and say what the kernel must be compiled for."""
        source = self.current_source()
        names = {p.name for p in source.parameters}
        known = option_names()
        options = {name: v for name, v in kwargs.items() if name in known and name not in names}
        launch = {k: v for k, v in kwargs.items() if k in _LAUNCH_KEYWORDS and k not in names}
        keywords = {k: v for k, v in kwargs.items() if k not in options and k not in launch}
        name, parameters = self.fn.__name__, source.parameters
        passed = PassedFunctions(name, source)
        with located_at_parameters(source.functions, source.kernel):
            arguments = bind(
                name, parameters, args, keywords, lambda p: live_defaults(self.fn)[p.name]
            )
            specialization = specialize(name, parameters, arguments, passed.reference)
        joined = passed.joined()
        if joined is not source:
            REVISIONS.read(joined.names, self)
        placement = DevicePlacement()
        if not self.is_interpreted:
            placement = placed(name, specialization, arguments)
        return Call(
            arguments,
            specialization,
            self._options(options),
            joined,
            placement,
            {**options, **launch},
        )

    def _prepare(self, args: Sequence[object], kwargs: Mapping[str, object]) -> Prepared:
        call = self.specialize_call(args, kwargs)
        return Prepared(call, self._kernel(call))

    def _options(self, changes: Mapping[str, object]) -> CompileOptions:
        runtime = runtime_options()
        base = CompileOptions(
            checked=runtime.checked,
            debug=bool(self.debug),
            deadlock_seconds=runtime.deadlock_seconds,
            jitter=runtime.jitter,
            count_cycles=runtime.count_cycles,
        )
        options = base.replaced(changes) if changes else base
        # The variable wins: whoever sets it looks for a defect in a program of others.
        return replace(options, debug=True) if runtime.debug else options

    def _kernel_key(self, call: Call) -> object:
        added = call.source.functions.keys() - self.source.functions.keys()
        passed = tuple(repr(call.source.functions[name]) for name in sorted(added))
        options = effective(call.options, load_driver(call.placement.target).ignored_options)
        return (identity(compiled_for(call)), options, passed, call.placement)

    def _kernel(self, call: Call) -> CompiledKernel:
        key = self._kernel_key(call)
        kernel = self._kernels.pop(key, None)
        if kernel is None:
            kernel = self._build(call)
        else:
            # Who collects calls wants those too that differ in what this machine ignores.
            from tilewright.compiler.collector import CompileCall, record_call

            record_call(CompileCall(call.source, call.specialization, call.options))
        self._kernels[key] = kernel  # the last one is the one used last
        while len(self._kernels) > _MAX_KERNELS:
            self._kernels.pop(next(iter(self._kernels)), None)
        return kernel

    def _build(self, call: Call) -> CompiledKernel:
        from tilewright.compiler.build import build_kernel

        return build_kernel(call.source, call.specialization, call.options, call.placement)

    def _remember(
        self, prepared: Prepared, args: tuple[object, ...], kwargs: Mapping[str, object]
    ) -> None:
        """Keep a native launcher for the next call of the same shape."""
        key = tuple(kwargs)
        shape = self._shapes.get(key)
        if shape is None or shape.num_positional != len(args):
            defaults = live_defaults(self.fn)
            shape = CallShape.of_call(tuple(self.arg_names), len(args), key, defaults)
            self._shapes[key] = shape
        launcher = launcher_of(prepared, shape, self.source.parameters)
        if launcher is None:
            return
        shape.launchers.insert(0, (launcher, prepared.kernel))
        del shape.launchers[_MAX_LAUNCHERS:]
        # Native calls do not look at globals, which a guarded kernel must.
        if is_native(launcher) and not self._is_guarded:
            if self._warm is None:
                self._warm = WarmCalls(self._launch, launcher)
                self._entry = cast("Callable[..., CompiledKernel]", self._warm.call)
            self._warm.add(launcher, prepared.kernel, shape.form(key))


def _global_object(function: FunctionType | None) -> object:
    """What the module of a function holds under its name; None for what is not global."""
    if function is None:
        return None
    found: object = sys.modules.get(function.__module__)
    for name in function.__qualname__.split("."):
        found = getattr(found, name, None)
    return found


@overload
def jit(
    fn: FunctionType,
    *,
    do_not_specialize: Iterable[str | int] | None = ...,
    do_not_specialize_on_alignment: Iterable[str | int] | None = ...,
    debug: bool | None = ...,
    noinline: bool = ...,
) -> JITFunction: ...
@overload
def jit(
    fn: None = None,
    *,
    do_not_specialize: Iterable[str | int] | None = ...,
    do_not_specialize_on_alignment: Iterable[str | int] | None = ...,
    debug: bool | None = ...,
    noinline: bool = ...,
) -> Callable[[FunctionType], JITFunction]: ...
def jit(
    fn: FunctionType | None = None,
    *,
    do_not_specialize: Iterable[str | int] | None = (),
    do_not_specialize_on_alignment: Iterable[str | int] | None = (),
    debug: bool | None = None,
    noinline: bool = False,
) -> JITFunction | Callable[[FunctionType], JITFunction]:
    """Make a kernel of a function written in the tile language.

    `do_not_specialize` names parameters whose values (1, multiples of 16) cause no recompile;
    `do_not_specialize_on_alignment` those whose alignment does not. `debug` compiles
    `device_assert`.
    """

    def decorate(function: FunctionType) -> JITFunction:
        return JITFunction(
            function,
            do_not_specialize=do_not_specialize,
            do_not_specialize_on_alignment=do_not_specialize_on_alignment,
            debug=debug,
            noinline=noinline,
        )

    return decorate if fn is None else decorate(fn)
