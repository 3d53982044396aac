"""`heuristics`: parameters of a kernel computed from its other arguments at each launch."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import CodeType, FunctionType
from typing import Protocol, cast

from tilewright.runtime.ahead import CompileJob
from tilewright.runtime.config import FOREIGN_OPTIONS, require_dictionary
from tilewright.support.errors import InvalidOption, UnexpectedArgument
from tilewright.support.options import option_names

GridLike = object
Arguments = tuple[object, ...]
Keywords = Mapping[str, object]
Launcher = Callable[..., object]
Heuristic = Callable[[dict[str, object]], object]
_HAS_VARARGS = 0x04


class Kernel(Protocol):
    """What can be launched: a jit function, or one wrapped by heuristics or a tuner."""

    @property
    def fn(self) -> object:
        """The kernel or Python function inside."""
        ...

    def __getitem__(self, grid: GridLike) -> Launcher:
        """The launcher over a grid."""
        ...

    def warmup(self, *args: object, grid: GridLike = ..., **kwargs: object) -> object:
        """Compile without launching."""
        ...


class _Runs(Protocol):
    def run(self, *args: object, **kwargs: object) -> object: ...


def base_function(kernel: object) -> object:
    """The innermost kernel of a stack of wrappers: the jit function itself."""
    while isinstance(kernel, Wrapper):
        kernel = kernel.fn
    return kernel


def code_of(kernel: object) -> CodeType:
    """The code of the Python function inside."""
    function: object = base_function(kernel)
    while not isinstance(function, FunctionType) and hasattr(function, "fn"):
        function = cast("Kernel", function).fn
    return cast("FunctionType", function).__code__


def parameter_names(kernel: object) -> tuple[str, ...]:
    """The names of the parameters of the Python function inside, in order."""
    code = code_of(kernel)
    names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    if code.co_flags & _HAS_VARARGS:
        names = (*names, code.co_varnames[len(names)])
    return names


def check_names(
    kernel: object,
    option: str,
    names: Mapping[str, object] | list[str],
    others: Sequence[str] = (),
) -> None:
    """Refuse names that are neither parameters of the kernel nor among `others`.

    Raises: `UnexpectedArgument`.
    """
    known = parameter_names(kernel)
    for name in names:
        if name not in known and name not in others:
            title = getattr(base_function(kernel), "__name__", "the kernel")
            raise UnexpectedArgument(
                f"{option} names `{name}`, which is no parameter of {title}()",
                argument=name,
                hint="its parameters are " + ", ".join(f"`{known_name}`" for known_name in known),
            )


def _require_computed(name: str, compute: object) -> None:
    """Refuse the value of a parameter in the place of the function that computes it."""
    if not callable(compute):
        raise InvalidOption(
            f"heuristics(): `{name}` is an object of type {type(compute).__name__}",
            argument=name,
            hint="pass a function of the arguments by name; what does not follow from them is "
            "a default of the parameter",
        )


def without_foreign_options(keywords: Keywords, parameters: Sequence[str]) -> dict[str, object]:
    """The keywords of a launch without options of other compilers that are no parameters."""
    return {n: v for n, v in keywords.items() if n not in FOREIGN_OPTIONS or n in parameters}


class Wrapper:
    """A kernel around a kernel: the part that heuristics and autotuner share."""

    def __init__(self, fn: Kernel) -> None:
        self.fn = fn
        self.base_fn = base_function(fn)
        self.arg_names = parameter_names(fn)
        self.__name__ = str(getattr(fn, "__name__", "kernel"))
        self.__doc__ = getattr(fn, "__doc__", None)
        self.__wrapped__ = fn

    def __getitem__(self, grid: GridLike) -> Launcher:
        """The launcher over a grid, which sees the computed parameters when it is a callable."""

        def launch(*args: object, **kwargs: object) -> object:
            return self._run(args, kwargs, grid)

        return launch

    def run(
        self, *args: object, grid: GridLike = None, warmup: bool = False, **kwargs: object
    ) -> object:
        """Launch over `grid` (or only compile, with `warmup`).

        Without a grid the kernel inside is run without one, for launchers that have their own.
        """
        if warmup:
            return self._warm(args, kwargs, (1,) if grid is None else grid)
        return self._run(args, kwargs, grid)

    def _launch(self, args: Arguments, kwargs: Keywords, grid: GridLike) -> object:
        """Launch the kernel inside."""
        if grid is None:
            return cast("_Runs", self.fn).run(*args, **kwargs)
        return self.fn[grid](*args, **kwargs)

    def warmup(self, *args: object, grid: GridLike = (1,), **kwargs: object) -> object:
        """Compile for arguments like these without launching."""
        return self._warm(args, kwargs, grid)

    def _run(self, args: Arguments, kwargs: Keywords, grid: GridLike) -> object:
        raise NotImplementedError

    def _warm(self, args: Arguments, kwargs: Keywords, grid: GridLike) -> object:
        raise NotImplementedError

    def _named(self, args: Arguments, kwargs: Keywords) -> dict[str, object]:
        """The arguments of a call by name; defaults are not among them."""
        return {**dict(zip(self.arg_names, args, strict=False)), **kwargs}


class Heuristics(Wrapper):
    """A kernel some of whose parameters are computed from the others; made by `heuristics`."""

    def __init__(self, fn: Kernel, values: Mapping[str, Heuristic]) -> None:
        super().__init__(fn)
        require_dictionary(
            values,
            "heuristics()",
            "values",
            "pass a dictionary of parameters and the functions that compute them",
        )
        self.values = dict(values)
        check_names(fn, "heuristics()", self.values, (*option_names(), *FOREIGN_OPTIONS))
        for name, compute in self.values.items():
            _require_computed(name, compute)

    def _run(self, args: Arguments, kwargs: Keywords, grid: GridLike) -> object:
        return self._launch(args, self._computed(args, kwargs), grid)

    def compile_ahead(
        self, args: Sequence[object], kwargs: Keywords, num_left: int
    ) -> CompileJob | None:
        """Have the kernel inside compiled in another process, where it can be."""
        ask = getattr(self.fn, "compile_ahead", None)
        return None if ask is None else ask(args, self._computed(tuple(args), kwargs), num_left)

    def schedules(
        self, args: Sequence[object], kwargs: Keywords
    ) -> tuple[Mapping[str, object], ...]:
        """The schedules of the kernel inside that are worth timing, as options of a launch."""
        ask = getattr(self.fn, "schedules", None)
        return () if ask is None else ask(args, self._computed(tuple(args), kwargs))

    def _warm(self, args: Arguments, kwargs: Keywords, grid: GridLike) -> object:
        return self.fn.warmup(*args, grid=grid, **self._computed(args, kwargs))

    def _computed(self, args: Arguments, kwargs: Keywords) -> dict[str, object]:
        named = self._named(args, kwargs)
        found: dict[str, object] = {}
        for name, compute in self.values.items():
            found[name] = named[name] = compute(dict(named))
        return without_foreign_options({**kwargs, **found}, self.arg_names)


def heuristics(values: Mapping[str, Heuristic]) -> Callable[[Kernel], Heuristics]:
    """A decorator that computes parameters from the other arguments at each launch.

    `values` maps a parameter, or an option of the launch such as `num_warps`, to a function of a
    dictionary with every argument by name, those that earlier entries computed included. It goes
    above `jit` and below `autotune`.

    Raises: `UnexpectedArgument` for a name that is neither.
    """
    return lambda fn: Heuristics(fn, values)
