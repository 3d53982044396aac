"""`triton.runtime.jit`: kernel objects, and arrays under another element type."""

from __future__ import annotations

import inspect
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextvars import ContextVar
from functools import partial
from types import FunctionType, MethodType
from typing import cast, overload

from tilewright.frontend.bound_call import compiled_for
from tilewright.frontend.devices import DevicePlacement
from tilewright.frontend.kernel_source import KernelSource
from tilewright.frontend.parameters import parameters_of
from tilewright.jit import Call
from tilewright.runtime.grid import GridLike
from tilewright.runtime.kernel import CompiledKernel as _CompiledKernel
from tilewright.support.dataclass import replace
from tilewright.support.errors import HostCall, NotAKernelLaunch, TilewrightError, UnsupportedError
from tilewright.support.options import CompileOptions

from .. import knobs
from .._names import refuse
from .._utils import type_canonicalisation_dict
from ..backends.compiler import GPUTarget
from ..compiler.compiler import ASTSource, CompiledKernel, compiled_kernel
from ._async_compile import AsyncCompileMode, FutureKernel, active_mode
from .compile_hooks import JitFunctionInfo, hook_info, source_of
from .constexpr import ConstexprFunction, constexpr_function
from .device_caches import DeviceCaches
from .driver import CPUDriver, capability
from .errors import OutOfResources
from .interface import JITCallable, KernelInterface, KernelParam
from .kernel_text import KernelWithText
from .naming import named_source, proxy_of
from .raising import as_launch_raises, as_triton_raises
from .specialization import mangle_type, native_specialize_impl
from .tensors import MockTensor, TensorWrapper, reinterpret

PreRunHook = Callable[..., object]
LaunchMetadata = Callable[..., Mapping[str, object]]


# The chains stay the same objects, whatever is assigned to the settings.
_ENTER_HOOKS = knobs.runtime.launch_enter_hook
_EXIT_HOOKS = knobs.runtime.launch_exit_hook
# Options of Triton's compiler for NVIDIA GPUs that change nothing here.
_FOREIGN_OPTIONS = frozenset(
    (
        *("clc", "ptx_version", "arch"),
        *("ir_override", "extern_libs", "enable_reflect_ftz", "instrumentation_mode", "warp_size"),
        *("min_shared_mem", "sched4reg", "num_cpu_threads", "enable_fast_math", "vec_lib"),
    )
)
# What belongs to one process: a pickled kernel takes it up again where it is needed.
_PROCESS_STATE = (
    *("_source", "_compiled_source", "_kernels", "_shapes", "_warm", "_entry", "__wrapped__"),
    *("pre_run_hooks", "_lines", "__globals__", "_hash_lock"),
)


class _Kernels(dict[object, _CompiledKernel]):
    """The compiled kernels of a function; clearing it forgets their launchers too."""

    def __init__(self, forget_launchers: Callable[[], None]) -> None:
        super().__init__()
        self._forget_launchers = forget_launchers

    def clear(self) -> None:
        self._forget_launchers()
        super().clear()


class JITFunction(KernelWithText, JITCallable, KernelInterface[Callable[..., object]]):
    """A kernel, or a function that kernels call, with the surface of Triton's class."""

    def __init__(
        self,
        fn: FunctionType,
        version: object = None,
        do_not_specialize: Iterable[str | int] | None = None,
        do_not_specialize_on_alignment: Iterable[str | int] | None = None,
        debug: bool | None = None,
        noinline: bool | None = None,
        repr: Callable[..., str] | None = None,
        launch_metadata: LaunchMetadata | None = None,
    ) -> None:
        super().__init__(
            fn,
            do_not_specialize=do_not_specialize,
            do_not_specialize_on_alignment=do_not_specialize_on_alignment,
            debug=debug,
            noinline=bool(noinline),
        )
        parameters = inspect.signature(fn).parameters.values()
        if any(p.kind is inspect.Parameter.VAR_KEYWORD for p in parameters):
            raise TypeError("JIT functions do not support **kwargs: name each parameter")
        self.is_interpreted = knobs.runtime.interpret or bool(self.simulated_machine)
        self.__name__ = fn.__name__
        self.__qualname__ = fn.__qualname__
        self.version = version
        self.launch_metadata = launch_metadata
        self._repr = repr
        self._fn_name = f"{fn.__module__}.{fn.__qualname__}"
        self.repr: Callable[[object], str] = repr or _Named(self._fn_name)
        self.pre_run_hooks: list[PreRunHook] = []
        self.used_global_vals: dict[tuple[str, int], tuple[object, object]] | None = {}
        self.__globals__: dict[str, object] | None = getattr(fn, "__globals__", None)
        self.module = fn.__module__
        self._hash_lock: object = threading.RLock()
        self._params: list[KernelParam] | None = None
        self._argument_names: list[str] | None = None
        self._kernels = _Kernels(self._forget_launchers)

    def __repr__(self) -> str:
        return f"JITFunction({self.module}:{self.__qualname__})"

    def __getstate__(self) -> dict[str, object]:
        """Everything but what belongs to this process."""
        self._describe()
        return {n: v for n, v in self.__dict__.items() if n not in _PROCESS_STATE}

    def __setstate__(self, state: Mapping[str, object]) -> None:
        super().__setstate__({**state, "_lines": None})
        self._kernels = _Kernels(self._forget_launchers)
        self._hash_lock = threading.RLock()
        self.__globals__ = getattr(self.fn, "__globals__", None)
        self.pre_run_hooks = []

    def _describe(self) -> None:
        """Keep what is known of the source, for a process without the function."""
        if self.fn is not None:  # pyright: ignore[reportUnnecessaryComparison] - clients set it
            _ = (self.params, self.arg_names, self.cache_key, self.src)

    @property
    def params(self) -> list[KernelParam]:
        """The parameters, in order."""
        if self._params is None:
            defaults = self.signature.parameters
            parameters = parameters_of(
                self.fn, self.do_not_specialize, self.do_not_specialize_on_alignment
            )
            self._params = [
                KernelParam(i, p, defaults[p.name].default) for i, p in enumerate(parameters)
            ]
        return self._params

    @property
    def arg_names(self) -> list[str]:  # pyright: ignore[reportIncompatibleMethodOverride]
        """The names of the parameters, in order; a list, as clients index and extend it."""
        if self._argument_names is None:
            self._argument_names = list(self.signature.parameters)
        return self._argument_names

    @property
    def signature(self) -> inspect.Signature:
        """The signature of the Python function."""
        return inspect.signature(self.fn)

    @property
    def constexprs(self) -> list[int]:
        """The positions of the parameters that are compile-time constants."""
        return [p.num for p in self.params if p.is_constexpr]

    def is_gluon(self) -> bool:
        """Whether layouts are written out in the kernel: no."""
        return False

    def add_pre_run_hook(self, hook: PreRunHook) -> None:
        """Call `hook(*args, **kwargs)` before each launch, with the arguments of the launch."""
        assert callable(hook)
        self.pre_run_hooks.append(hook)

    @property
    def device_caches(self) -> DeviceCaches:
        """The compiled kernels by device, in the first of the values kept for a device."""
        return DeviceCaches(cast("dict[object, object]", self._kernels))

    def __call__(self, *args: object, **kwargs: object) -> object:
        """Refuse: a kernel needs a grid. Raises: a `RuntimeError`."""
        try:
            return super().__call__(*args, **kwargs)
        except NotAKernelLaunch as error:
            raise as_triton_raises(error, RuntimeError) from None

    def __getitem__(self, grid: GridLike) -> Callable[..., _CompiledKernel | None]:
        """The launcher of this kernel over `grid`: a tuple of 1 to 3 sizes or a callable."""
        if self.pre_run_hooks or _ENTER_HOOKS.calls or _EXIT_HOOKS.calls or self.is_interpreted:
            return self._observed(grid)
        return MethodType(self._entry, grid) if grid is not None else partial(self._entry, grid)

    def _observed(self, grid: GridLike) -> Callable[..., _CompiledKernel | None]:
        """The launcher that tells hooks about each launch."""

        def launch(*args: object, **kwargs: object) -> _CompiledKernel | None:
            for hook in self.pre_run_hooks:
                hook(*args, **kwargs)
            return self._launch_observed(grid, args, kwargs)

        return launch

    def _launch_observed(
        self, grid: GridLike, args: tuple[object, ...], kwargs: Mapping[str, object]
    ) -> _CompiledKernel | None:
        launch = super().__getitem__(grid)
        if not knobs.runtime.has_launch_hooks or self.is_interpreted:
            return launch(*args, **kwargs)
        call = self.specialize_call(args, kwargs)
        kernel = cast("CompiledKernel", self._kernel(call))
        extents = grid(dict(call.arguments)) if callable(grid) else grid
        shape = extents if isinstance(extents, tuple) else (extents,)
        values = tuple(call.arguments.values())
        metadata = kernel.launch_metadata(cast("tuple[int, ...]", shape), 0, *values)
        knobs.runtime.launch_enter_hook(metadata)
        launched = launch(*args, **kwargs)
        knobs.runtime.launch_exit_hook(metadata)
        return launched

    def run(
        self, *args: object, grid: GridLike, warmup: bool = False, **kwargs: object
    ) -> _CompiledKernel | None:
        """Launch over `grid` (or only compile, with `warmup`)."""
        if warmup:
            return self.warmup(*args, grid=grid, **kwargs)
        return self[grid](*args, **kwargs)

    def _submit(
        self, mode: AsyncCompileMode, args: Sequence[object], kwargs: Mapping[str, object]
    ) -> FutureKernel:
        """The future of the kernel for arguments like these."""
        call = self.specialize_call(args, kwargs)
        key = (source_of(self, compiled_for(call)).hash(), call.options, call.placement)

        def compile() -> object:
            try:
                return self._kernel(call)
            except _Skipped:
                return None
            except TilewrightError as error:
                raised = self._as_triton_raises(error)
                raise raised from raised.__cause__

        return mode.submit(key, compile, lambda kernel: None)

    def warmup(  # pyright: ignore[reportIncompatibleMethodOverride] - a hook may skip the compile
        self, *args: object, grid: GridLike = (1,), **kwargs: object
    ) -> _CompiledKernel | None:
        """Compile for arguments like these, or for dtypes in place of arrays."""
        mode = active_mode.get()
        known = self._known_kernel(args, kwargs) if mode is None else None
        if known is not None:
            return known
        wrapped = [MockTensor.wrap_dtype(value) for value in args]
        named = {name: MockTensor.wrap_dtype(value) for name, value in kwargs.items()}
        try:
            if mode is not None:
                return cast("_CompiledKernel", self._submit(mode, wrapped, named))
            token = _is_warmup.set(True)
            try:
                return super().warmup(*wrapped, grid=grid, **named)
            finally:
                _is_warmup.reset(token)
        except _Skipped:
            return None
        except TilewrightError as error:
            raised = self._as_triton_raises(error)
            raise raised from raised.__cause__

    def _launch_slowly(  # pyright: ignore[reportIncompatibleMethodOverride] - as `warmup`
        self, grid: GridLike, args: tuple[object, ...], kwargs: Mapping[str, object]
    ) -> _CompiledKernel | None:
        try:
            return super()._launch_slowly(grid, args, kwargs)
        except _Skipped:
            return None
        except TilewrightError as error:
            raised = self._as_triton_raises(error)
            raise raised from raised.__cause__

    def specialize_call(self, args: Sequence[object], kwargs: Mapping[str, object]) -> Call:
        """Bind the arguments of a call; options that mean nothing here are left out."""
        foreign = kwargs.keys() & _FOREIGN_OPTIONS
        if foreign:
            foreign = foreign.difference(p.name for p in self.source.parameters)
        if not foreign:
            return self._specialize_call(args, kwargs)
        rest = {name: value for name, value in kwargs.items() if name not in foreign}
        call = self._specialize_call(args, rest)
        return replace(call, extras={**call.extras, **{n: kwargs[n] for n in foreign}})

    def _specialize_call(self, args: Sequence[object], kwargs: Mapping[str, object]) -> Call:
        try:
            call = super().specialize_call(args, kwargs)
        except TilewrightError as error:
            raise as_launch_raises(error) from None
        if call.options.launch_cooperative_grid and call.placement.is_on_host:
            raise UnsupportedError(
                f"{self.__name__}(): launch_cooperative_grid is asked for, and the programs of a "
                "grid do not all run at once on the CPU",
                hint="wait for programs with a lower id only, or launch a kernel for each step",
            )
        return call

    def _options(self, changes: Mapping[str, object]) -> CompileOptions:
        if knobs.runtime.debug:
            changes = {**changes, "debug": True}
        return super()._options(changes)

    def _as_triton_raises(self, error: TilewrightError) -> TilewrightError:
        raised = as_triton_raises(error, first_line=self.def_line, indent=self.def_indent)
        return raised.with_traceback(None)

    def _build(self, call: Call) -> _CompiledKernel:
        specialization = compiled_for(call)
        source = source_of(self, specialization)
        snapshot = self.named(call.source, source)
        compile_hook, done_hook = knobs.runtime.jit_cache_hook, knobs.runtime.jit_post_compile_hook
        info = None
        if compile_hook is not None or done_hook is not None:
            info = hook_info(self, call, _is_warmup.get())
        if compile_hook is not None and info is not None and compile_hook(**info):
            raise _Skipped
        where = call.placement
        target = _target_of(where)
        kernel = compiled_kernel(source, snapshot, specialization, call.options, target, where)
        if done_hook is not None and info is not None:
            done_hook(**info)
        return cast("_CompiledKernel", kernel)

    def named(self, snapshot: KernelSource, source: ASTSource) -> KernelSource:
        """The snapshot under the name that `repr` gives the kernel for these constants."""
        if self._repr is None:
            return snapshot
        return named_source(self._repr(proxy_of(source)), snapshot)

    def preload(self, specialization_data: str | bytes) -> _CompiledKernel:
        """Compile what a `jit_post_compile_hook` was told about, before the first launch."""
        from .preload import preload  # loads JSON, which few programs need

        return cast("_CompiledKernel", preload(self, specialization_data))

    def create_binder(self) -> object:
        """Refuse: arguments are bound by the launch itself."""
        raise HostCall(
            "JITFunction.create_binder() has no meaning here",
            hint="call kernel.warmup(…) or kernel.specialize_call(args, kwargs)",
        )


@overload
def jit(
    fn: FunctionType,
    *,
    version: object = ...,
    repr: Callable[..., str] | None = ...,
    launch_metadata: Callable[..., Mapping[str, object]] | None = ...,
    do_not_specialize: Iterable[str | int] | None = ...,
    do_not_specialize_on_alignment: Iterable[str | int] | None = ...,
    debug: bool | None = ...,
    noinline: bool | None = ...,
) -> JITFunction: ...
@overload
def jit(
    fn: None = None,
    *,
    version: object = ...,
    repr: Callable[..., str] | None = ...,
    launch_metadata: Callable[..., Mapping[str, object]] | None = ...,
    do_not_specialize: Iterable[str | int] | None = ...,
    do_not_specialize_on_alignment: Iterable[str | int] | None = ...,
    debug: bool | None = ...,
    noinline: bool | None = ...,
) -> Callable[[FunctionType], JITFunction]: ...
def jit(
    fn: FunctionType | None = None,
    *,
    version: object = None,
    repr: Callable[..., str] | None = None,
    launch_metadata: Callable[..., Mapping[str, object]] | None = None,
    do_not_specialize: Iterable[str | int] | None = None,
    do_not_specialize_on_alignment: Iterable[str | int] | None = None,
    debug: bool | None = None,
    noinline: bool | None = None,
) -> JITFunction | Callable[[FunctionType], JITFunction]:
    """`tilewright.jit` with every keyword of Triton's; `version` changes nothing."""

    def decorate(function: FunctionType) -> JITFunction:
        return JITFunction(
            function,
            version=version,
            do_not_specialize=do_not_specialize,
            do_not_specialize_on_alignment=do_not_specialize_on_alignment,
            debug=debug,
            noinline=noinline,
            repr=repr,
            launch_metadata=launch_metadata,
        )

    return decorate if fn is None else decorate(fn)


# Whether what is compiled now is asked for by `warmup`; hooks are told.
_is_warmup: ContextVar[bool] = ContextVar("_is_warmup", default=False)


class _Skipped(Exception):
    """A hook asked for no compilation; nothing is launched."""


class _Named:
    """The symbol of a kernel: a `repr` that can be pickled."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __call__(self, _: object) -> str:
        return self._name


def _target_of(where: DevicePlacement) -> GPUTarget:
    """What a launch that runs there is compiled for."""
    if where.is_on_host:
        return CPUDriver().get_current_target()
    return GPUTarget("cuda", capability(where.device), 32)


__getattr__ = refuse(__name__, {})

__all__ = [
    "ASTSource",
    "ConstexprFunction",
    "JITCallable",
    "JITFunction",
    "JitFunctionInfo",
    "KernelInterface",
    "KernelParam",
    "MockTensor",
    "OutOfResources",
    "TensorWrapper",
    "constexpr_function",
    "jit",
    "mangle_type",
    "native_specialize_impl",
    "reinterpret",
    "type_canonicalisation_dict",
]
