"""The snapshot of a kernel: its sources, what they captured, and whether that has changed since."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from types import CellType, FunctionType, MethodType

from tilewright.frontend.capture import constant_of, is_host_function, is_jit, literal
from tilewright.frontend.constants import (
    AggregateRef,
    Constant,
    FunctionRef,
    HostFunctionRef,
    Imported,
    Literal,
    Partial,
    Unusable,
    exactly,
)
from tilewright.frontend.fingerprints import fingerprint
from tilewright.frontend.mutable import may_change
from tilewright.frontend.program import FunctionSource, Parameter
from tilewright.frontend.scope import MISSING, cell_value
from tilewright.language.core import constexpr
from tilewright.support.dataclass import dataclass
from tilewright.support.errors import CapturedValueChanged
from tilewright.support.revisions import short_name

# What may become another thing between two launches: functions and classes that are defined
# anew, names that could not be used until somebody defined or declared them.
BY_IDENTITY = (FunctionRef, HostFunctionRef, AggregateRef, Partial, Unusable)


@dataclass(frozen=True)
class Guard:
    """One variable that a snapshot read: it must still mean the same at the next launch.

    `namespace` is the globals (or module) dictionary, or the closure cell; `held` is what a
    constexpr held when it was read.
    """

    name: str
    namespace: Mapping[str, object] | CellType
    value: object
    constant: Constant
    held: object = None

    @cached_property
    def is_mutable(self) -> bool:
        """Whether the object that the variable holds may itself change."""
        return may_change(self.held if isinstance(self.value, constexpr) else self.value)

    @property
    def is_told(self) -> bool:
        """Whether kernels hear when the variable means something else (`support/revisions.py`).

        They hear of a jit function or class that is made under the name of one that they read. A
        variable of another name (`activation = relu`) is assigned in silence, as is a `partial`.
        """
        constant = self.constant
        if isinstance(constant, Unusable):
            return True
        if isinstance(constant, HostFunctionRef) and isinstance(self.value, FunctionType):
            return False
        if not isinstance(constant, FunctionRef | HostFunctionRef | AggregateRef):
            return False
        return self.name.rpartition(".")[2] == short_name(constant.key)

    def is_changed(self) -> bool:
        """Whether the variable now means something else."""
        current = self._current()
        is_same = current is self.value and held_by(current) is self.held and not self.is_mutable
        if is_same:
            return False
        if isinstance(self.constant, Literal) and repr(current) == self.constant.text:
            return False  # what reading the text again would tell, at each launch
        again = _again(current, self.name, is_literal=isinstance(self.constant, Literal))
        return exactly(again) != exactly(self.constant)

    def change(self) -> str:
        """What Triton says of a variable that now means something else."""
        owner = "" if isinstance(self.namespace, CellType) else "Global variable "
        is_constexpr = isinstance(self.value, constexpr)
        before = constexpr(self.held) if is_constexpr else self.value
        return (
            f"{owner}{self.name} has changed since we compiled this kernel, "
            f"from {before!r} to {self._current()!r}"
        )

    def is_rebound(self) -> bool:
        """Whether the variable holds another object; methods are bound anew by each look-up.

        What functions that run at compile time read is another one with other contents.
        """
        current = self._current()
        if isinstance(self.constant, Imported):
            return self._is_other_object(current)
        if not isinstance(self.constant, BY_IDENTITY):
            return self.is_changed()
        if isinstance(current, MethodType):
            return current != self.value
        return current is not self.value

    def _is_other_object(self, current: object) -> bool:
        assert isinstance(self.constant, Imported)
        if current is self.value and (not self.constant.digest or isinstance(current, type)):
            return False
        return not self.constant.digest or fingerprint(current) != self.constant.digest

    def _current(self) -> object:
        if isinstance(self.namespace, CellType):
            return cell_value(self.namespace)
        return self.namespace.get(self.name.rpartition(".")[2], MISSING)


@dataclass(frozen=True)
class KernelSource:
    """The snapshot of a kernel: every function it reaches, and the guards of what they read.

    `guards` are of values, `links` of functions and classes, and of what compile-time ones read.
    `has_guarded_arguments` says that functions among the arguments of a launch read such values.
    """

    functions: Mapping[str, FunctionSource]
    kernel: str
    guards: tuple[Guard, ...]
    links: tuple[Guard, ...] = ()
    has_guarded_arguments: bool = False

    @property
    def reference(self) -> FunctionRef | HostFunctionRef | AggregateRef:
        """The reference to what the snapshot was taken of."""
        source = self.functions[self.kernel]
        if source.is_class:
            return AggregateRef(self.kernel)
        return HostFunctionRef(self.kernel) if source.is_host else FunctionRef(self.kernel)

    @property
    def parameters(self) -> tuple[Parameter, ...]:
        """The kernel's parameters."""
        return self.functions[self.kernel].parameters

    @property
    def names(self) -> frozenset[str]:
        """The names of the functions and classes that the kernel reaches, without its own."""
        return frozenset(key.partition("~")[0] for key in self.functions if key != self.kernel)

    @property
    def is_guarded(self) -> bool:
        """Whether each launch must look: for values, and names that tell nobody of a change."""
        return bool(self.guards) or any(not link.is_told for link in self.links)

    def is_relinked(self) -> bool:
        """Whether a name now means another function or class."""
        return any(link.is_rebound() for link in self.links)

    def is_stale(self) -> bool:
        """Whether anything that the snapshot read means something else."""
        return self.is_relinked() or bool(self.changed())

    def changed(self) -> tuple[Guard, ...]:
        """The captured variables whose values changed since the snapshot."""
        return tuple(guard for guard in self.guards if guard.is_changed())

    def require_unchanged(self, name: str) -> None:
        """Refuse what the snapshot of the kernel `name` is not of any more.

        Raises: CapturedValueChanged.
        """
        changed = self.changed()
        if changed:
            names = ", ".join(guard.name for guard in changed)
            raise CapturedValueChanged(
                f"{name}(): the global(s) {names} changed since the kernel was first used",
                hint="pass values that vary as arguments",
                known_as=changed[0].change(),
            )


def held_by(value: object) -> object:
    """What a constexpr holds, which may be assigned; None for any other value."""
    return value.value if isinstance(value, constexpr) else None


def _again(value: object, name: str, *, is_literal: bool) -> Constant:
    """The constant of a changed variable, for comparison; functions compare by identity."""
    if value is MISSING:
        return Unusable("UndefinedName", name)
    if is_jit(value) or is_host_function(value):
        return Unusable("PlainFunctionCall", name)
    if is_literal and (written := literal(value)) is not None:
        return written
    return constant_of(value, lambda _: FunctionRef(""))
