"""What `triton.knobs` is made of: settings that mirror environment variables, hooks, groups.

The names are Triton's, so that packages declare groups of their own with them.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager
from importlib import import_module
from typing import Generic, Self, TypeVar, cast

from tilewright.support.environment import set_variable, variable_text
from tilewright.support.errors import InvalidOption

from ._nvidia_tools import NvidiaTool

F = TypeVar("F", bound=Callable[..., object])
Value = TypeVar("Value")
Hook = Callable[..., object]
_UNSET = object()
_TRUE = ("1", "true", "on", "yes", "y")


class Env:
    """What is assigned to a setting that shall follow the environment again."""


env = Env()


class HookChain(Generic[F]):
    """Functions that are called one after the other; false while there are none."""

    # A launch looks where `calls` is held, without a look-up by name.
    __slots__ = ("__dict__", "__weakref__", "calls", "reversed")

    def __init__(self, reversed: bool = False) -> None:
        self.calls: list[F] = []
        self.reversed = reversed

    def add(self, func: F) -> None:
        """Call `func` too, unless it is in the chain already."""
        if func not in self.calls:
            self.calls.append(func)

    def remove(self, func: F) -> None:
        """Call `func` no longer."""
        if func in self.calls:
            self.calls.remove(func)

    def __bool__(self) -> bool:
        return bool(self.calls)

    def __call__(self, *args: object, **kwargs: object) -> None:
        for call in self.calls if not self.reversed else self.calls[::-1]:
            call(*args, **kwargs)


class Chain:
    """An attribute that holds a chain of hooks; a function assigned to it is the only one."""

    def __init__(self, reversed: bool = False) -> None:
        self.chain: HookChain[Hook] = HookChain(reversed)

    def __get__(self, instance: object, owner: type | None = None) -> HookChain[Hook]:
        return self.chain

    def __set__(self, instance: object, hook: Hook | None) -> None:
        if hook is not self.chain:
            self.chain.calls = [] if hook is None else [hook]


class env_base(Generic[Value]):
    """A setting with the environment variable that it mirrors.

    `ours` names the variable of Tilewright that means the same, and always follows; the variable
    itself is written unless `knobs.propagate_env` is false. A value that was assigned stands
    until it is deleted or `knobs.env` is assigned; then the environment counts again.
    """

    def __init__(
        self,
        name: str,
        parse: Callable[[str], Value],
        default: Value | Callable[[], Value],
        ours: str | None = None,
    ) -> None:
        self.name = name
        self.parse = parse
        self.default = default
        self.ours = ours

    @property
    def key(self) -> str:
        """The name of the variable."""
        return self.name

    def __set_name__(self, owner: type, name: str) -> None:
        self.attribute = name

    def __get__(self, instance: base_knobs | None, owner: type | None = None) -> Value:
        if instance is None:
            return cast("Value", self)
        kept = instance.__dict__.get(f"_{self.attribute}", _UNSET)
        return self.get() if kept is _UNSET else cast("Value", kept)

    def get(self) -> Value:
        """What the environment says, or the default."""
        text = variable_text(self.name)
        if text is None and self.ours is not None:
            text = variable_text(self.ours)
        if text is not None:
            return self.parse(text)
        default = self.default
        return cast("Callable[[], Value]", default)() if callable(default) else default

    def convert(self, value: object) -> Value:
        """An assigned value as it is read back."""
        return cast("Value", value)

    def __set__(self, instance: base_knobs, value: Value | Env) -> None:
        if isinstance(value, Env):
            self.__delete__(instance)
            return
        instance.__dict__[f"_{self.attribute}"] = self.convert(value)
        text = toenv(value)
        if _propagates():
            set_variable(self.name, text)
        if self.ours is not None:
            set_variable(self.ours, text)

    def __delete__(self, instance: base_knobs) -> None:
        kept = instance.__dict__.pop(f"_{self.attribute}", _UNSET)
        if kept is not _UNSET and self.ours is not None:
            set_variable(self.ours, self.normal(variable_text(self.name)))

    def normal(self, text: str | None) -> str | None:
        """A text of the variable as Tilewright's own variable takes it."""
        return text


class env_str(env_base[str]):
    """A text."""

    def __init__(self, name: str, default: str, ours: str | None = None) -> None:
        super().__init__(name, str, default, ours)


class env_str_callable_default(env_base[str]):
    """A text whose default is asked for when it is read."""

    def __init__(self, name: str, default: Callable[[], str]) -> None:
        super().__init__(name, str, default)


class env_opt_str(env_base[str | None]):
    """A text, or None."""

    def __init__(self, name: str, default: str | None = None, ours: str | None = None) -> None:
        super().__init__(name, str, default, ours)


class _Flag(env_base[Value]):
    """A truth value, which Tilewright's variables write as 1 or 0."""

    def normal(self, text: str | None) -> str | None:
        return None if text is None else str(int(bool(self.parse(text))))


class env_bool(_Flag[bool]):
    """A truth value."""

    def __init__(self, name: str, default: bool = False, ours: str | None = None) -> None:
        super().__init__(name, is_true, default, ours)


class env_opt_bool(_Flag[bool | None]):
    """A truth value, or None."""

    def __init__(self, name: str, default: bool | None = None) -> None:
        super().__init__(name, is_true, default)


class env_int(env_base[int]):
    """A whole number. Raises: `InvalidOption` for another text."""

    def __init__(self, name: str, default: int = 0) -> None:
        super().__init__(name, self._parsed, default)

    def _parsed(self, text: str) -> int:
        try:
            return int(text)
        except ValueError:
            raise InvalidOption(
                f"environment variable {self.name} is {text!r}", hint="set it to a whole number"
            ) from None


class env_class(env_base[type | None]):
    """A class, in the environment as `module:Name`. Raises: `InvalidOption`."""

    def __init__(self, name: str, type: str = "") -> None:
        super().__init__(name, self._imported, None)

    def _imported(self, text: str) -> type | None:
        module, _, attribute = text.partition(":")
        found = getattr(import_module(module), attribute, None) if module and attribute else None
        if not isinstance(found, type):
            raise InvalidOption(
                f"environment variable {self.name} is {text!r}", hint="set it to `module:Class`"
            )
        return found


class env_nvidia_tool(env_base[NvidiaTool]):
    """A program of NVIDIA's toolkit; it is looked for when its path is asked for."""

    def __init__(self, binary: str, ours: str | None = None) -> None:
        self.binary = binary
        name = f"TRITON_{binary.upper().replace('-', '_')}_PATH"
        super().__init__(name, self.convert, lambda: NvidiaTool(binary), ours)

    def convert(self, value: object) -> NvidiaTool:
        return value if isinstance(value, NvidiaTool) else NvidiaTool(self.binary, str(value))


def toenv(value: object) -> str | None:
    """A value as the text of a variable; None where the variable goes."""
    if value is None:
        return None
    if isinstance(value, bool):
        return str(int(value))
    return f"{value.__module__}:{value.__qualname__}" if isinstance(value, type) else str(value)


def is_true(text: str) -> bool:
    """Whether a text means true."""
    return text.strip().lower() in _TRUE


def _propagates() -> bool:
    """`triton.knobs.propagate_env`, which programs assign."""
    knobs = sys.modules.get(f"{__package__}.knobs")
    return bool(getattr(knobs, "propagate_env", True))


class base_knobs:
    """A group of settings."""

    @property
    def knob_descriptors(self) -> dict[str, env_base[object]]:
        """The settings by attribute, each with its variable."""
        found: dict[str, env_base[object]] = {}
        for cls in reversed(type(self).__mro__):
            found.update({n: v for n, v in vars(cls).items() if isinstance(v, env_base)})
        return found

    @property
    def knobs(self) -> dict[str, object]:
        """The values by attribute."""
        return {name: getattr(self, name) for name in self.knob_descriptors}

    def copy(self) -> Self:
        """A group with the same values."""
        made = type(self)()
        made.__dict__.update(self.__dict__)
        return made

    def reset(self) -> Self:
        """Every setting as the environment has it, without what was assigned here."""
        for name in self.knob_descriptors:
            delattr(self, name)
        return self

    @property
    def chains(self) -> list[HookChain[Hook]]:
        """The chains of hooks of the group."""
        return [
            v.chain
            for cls in type(self).__mro__
            for v in vars(cls).values()
            if isinstance(v, Chain)
        ]

    @contextmanager
    def scope(self) -> Generator[None]:
        """A block whose assignments end with it."""
        calls = [(chain, list(chain.calls)) for chain in self.chains]
        names = [v for e in self.knob_descriptors.values() for v in (e.name, e.ours) if v]
        texts = {name: variable_text(name) for name in names}
        state = self.__dict__.copy()
        try:
            yield
        finally:
            self.__dict__.clear()
            self.__dict__.update(state)
            for chain, kept in calls:
                chain.calls = kept
            for name, text in texts.items():
                set_variable(name, text)
