"""From live Python values to the constants of a compile request.

The only module, with `source`, that looks at live objects: behind it there are records only.
"""

from __future__ import annotations

import ast
import builtins
import dataclasses
import inspect
import re
import sys
from collections.abc import Callable
from enum import Enum, EnumMeta
from functools import partial
from hashlib import sha256
from types import FunctionType, ModuleType, SimpleNamespace

from tilewright.frontend.arrays import scalar_value
from tilewright.frontend.constants import (
    AggregateRef,
    BuiltinRef,
    Constant,
    EnumMember,
    FunctionRef,
    HostFunctionRef,
    Imported,
    Literal,
    ModuleRef,
    NamedTupleClass,
    NamedTupleValue,
    OpRef,
    Partial,
    Record,
    Unusable,
    where,
)
from tilewright.frontend.fingerprints import fingerprint, is_module_of_library, is_of_library
from tilewright.frontend.parsing import lambda_text
from tilewright.language import core
from tilewright.support.dataclass import replace
from tilewright.support.errors import SourceNotAvailable

JIT_MARKER = "__tilewright_jit__"
HOST_MARKER = "__tilewright_constexpr_function__"
AGGREGATE_MARKER = "__tilewright_aggregate__"
OP_MARKER = "__tilewright_op__"
# On functions of other packages that extend the language: kernels take their bodies in.
BUILTIN_MARKER = "__triton_builtin__"

# The modules whose members kernels may look up by a name that is computed.
LANGUAGE_MODULES = ("tilewright.language", "triton.language")

Reference = Callable[[object], "FunctionRef | HostFunctionRef | AggregateRef"]

# Classes of the language that kernels name, as functions or in isinstance.
_LANGUAGE_CLASSES: dict[object, str] = {
    core.constexpr: "constexpr",
    core.tensor: "tensor",
    core.tuple_: "tuple",
    core.dtype: "dtype",
    core.pointer_type: "pointer_type",
    core.block_type: "block_type",
    core.const: "const",
    core.constexpr_type: "constexpr_type",
    core.tensor_descriptor: "tensor_descriptor",
    core.tensor_descriptor_type: "tensor_descriptor_type",
    core.tuple_type: "tuple_type",
}
_PLAIN = (bool, int, float, str, bytes, type(None))


def is_jit(value: object) -> bool:
    """Whether `value` is a jit function object."""
    return getattr(value, JIT_MARKER, False) is True and not isinstance(value, type)


def is_class_of(cls: type, reference: FunctionRef | HostFunctionRef) -> bool:
    """Whether a function's object is an instance of `cls`: its class, or what that is made of."""
    marker = JIT_MARKER if isinstance(reference, FunctionRef) else HOST_MARKER
    # Triton's `JITCallable` is above both classes, and says itself neither.
    return any(getattr(each, marker, False) is True for each in (cls, *type.__subclasses__(cls)))


def is_host_function(value: object) -> bool:
    """Whether `value` is a function declared to run in Python at compile time."""
    return getattr(value, HOST_MARKER, False) is True and not isinstance(value, type)


def is_aggregate_class(value: object) -> bool:
    """Whether `value` is an aggregate class."""
    return isinstance(value, type) and AGGREGATE_MARKER in vars(value)


def is_namespace(value: object) -> bool:
    """Whether attributes of `value` are looked up when the kernel is snapshotted."""
    if isinstance(value, type):
        return not is_aggregate_class(value)  # whose methods are captures of the class's own
    return isinstance(value, ModuleType | SimpleNamespace) or dataclasses.is_dataclass(value)


def is_of_language(value: object) -> bool:
    """Whether `value` is a module of the language, which every process has."""
    return isinstance(value, ModuleType) and value.__name__.startswith(LANGUAGE_MODULES)


def is_named_tuple_class(value: object) -> bool:
    """Whether `value` is a NamedTuple class."""
    return isinstance(value, type) and issubclass(value, tuple) and hasattr(value, "_fields")


def constant_of(value: object, reference: Reference) -> Constant:
    """`value` as a constant; `reference` snapshots functions.

    What no kernel can use becomes an `Unusable` that says so.
    """
    if isinstance(value, core.constexpr):
        return constant_of(value.value, reference)
    if isinstance(value, core.dtype):
        return _plain_dtype(value)
    if isinstance(value, core.PropagateNan):
        return value
    if isinstance(value, Enum):
        inner = constant_of(value.value, reference)
        is_plain = isinstance(value, int | float | str)
        return EnumMember(where(type(value)), value.name, inner, is_plain)
    if isinstance(value, _PLAIN) and not isinstance(value, bytes):
        return _plain(value)
    number = scalar_value(value)
    if number is not None:  # of NumPy: among constants Python's rules hold, whatever its width
        return number
    if is_jit(value) or is_host_function(value) or is_aggregate_class(value):
        return reference(value)
    if isinstance(value, tuple | list | core.tuple_):
        return _tuple(value, reference)
    return _object(value, reference)


def _plain(value: bool | int | float | str | None) -> Constant:
    """A scalar as exactly the builtin type: subclasses (numpy.float64) lose their class."""
    for kind in (bool, int, float, str):
        if isinstance(value, kind):
            return kind(value)
    return None


def _plain_dtype(value: core.dtype) -> Constant:
    """A dtype as exactly the class of the language: subclasses lose their class."""
    match value:
        case core.pointer_type():
            return core.pointer_type(
                core.dtype(value.element_ty.name), value.address_space, value.const
            )
        case core.block_type():
            return core.block_type(core.dtype(value.element_ty.name), value.extents)
        case core.constexpr_type() | core.tensor_descriptor_type():
            return value
        case _:
            return core.dtype(value.name)


def _tuple(
    value: tuple[object, ...] | list[object] | core.tuple_, reference: Reference
) -> Constant:
    items = tuple(constant_of(item, reference) for item in value)
    unusable = next((item for item in items if isinstance(item, Unusable)), None)
    if unusable is not None:
        return unusable
    if is_named_tuple_class(type(value)):
        return NamedTupleValue(named_tuple_class(type(value), reference), items)
    return items


def named_tuple_class(cls: type, reference: Reference) -> NamedTupleClass:
    """The record of a NamedTuple class."""
    fields: tuple[str, ...] = cls._fields  # type: ignore[attr-defined]  # checked by the caller
    defaults: dict[str, object] = getattr(cls, "_field_defaults", {})
    values = tuple(constant_of(v, reference) for v in defaults.values())
    return NamedTupleClass(cls.__qualname__, tuple(fields), values)


def _object(value: object, reference: Reference) -> Constant:
    if isinstance(value, type) and (key := _language_class(value)):
        return OpRef(key)
    if isinstance(value, EnumMeta):
        return ModuleRef(value.__name__, replace(where(value), digest=_text_digest(value)))
    if isinstance(value, ModuleType):
        return ModuleRef(value.__name__)
    key = getattr(value, OP_MARKER, None)
    if isinstance(key, str):
        return OpRef(key)
    if isinstance(value, FunctionType) and getattr(value, BUILTIN_MARKER, False):
        return reference(Extension(value))
    if is_named_tuple_class(value):
        assert isinstance(value, type)
        return named_tuple_class(value, reference)
    if isinstance(value, partial):
        return _partial(value, reference)
    name = getattr(value, "__name__", None)
    if isinstance(name, str) and getattr(builtins, name, None) is value:
        return BuiltinRef(name)
    if isinstance(value, FunctionType) and not is_of_library(value.__code__.co_filename):
        try:
            return reference(OrdinaryFunction(value))
        except SourceNotAvailable:
            pass
    return imported(value) or literal(value) or _unusable_object(value)


def _partial(value: partial[object], reference: Reference) -> Constant:
    """A function of kernels with arguments that were given before, if these are constants."""
    function = constant_of(value.func, reference)
    if not isinstance(function, FunctionRef | HostFunctionRef | OpRef | Imported):
        return _unusable_object(value)
    positional = tuple(constant_of(item, reference) for item in value.args)
    values = tuple(constant_of(item, reference) for item in value.keywords.values())
    for item in (*positional, *values):
        if isinstance(item, Unusable):
            return Unusable(
                "NameNotUsable",
                f"a functools.partial of an argument that is no constant: {item.text}",
            )
    return Partial(function, positional, tuple(value.keywords), values)


def imported(value: object) -> Imported | None:
    """`value` as what its module calls it, or None where the module calls something else so.

    Objects that print as where they are found, such as `torch.float16`, are found there.
    """
    module, name = getattr(value, "__module__", None), getattr(value, "__qualname__", None)
    if name is None and _DOTTED.fullmatch(shown := repr(value)):
        module, _, name = shown.rpartition(".")
    if not (isinstance(module, str) and isinstance(name, str)):
        return None
    found: object = sys.modules.get(module)
    for step in name.split("."):
        found = getattr(found, step, None)
    return Imported(module, name, _text_digest(value)) if found is value else None


def _text_digest(value: object) -> str:
    """What tells one version of a function or class from the next; '' without source text."""
    if isinstance(value, type):
        return "" if is_module_of_library(value.__module__) else fingerprint(value)
    if not isinstance(value, FunctionType):
        return ""
    try:
        return sha256(inspect.getsource(value).encode()).hexdigest()[:16]
    except (OSError, TypeError):
        return ""


_DOTTED = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)+")


def record(value: object, reference: Reference) -> Record | None:
    """A dataclass object as its class and fields, or None where a field is no constant."""
    if isinstance(value, type) or not dataclasses.is_dataclass(value):
        return None
    fields = tuple(field.name for field in dataclasses.fields(value))
    values = tuple(constant_of(getattr(value, name), reference) for name in fields)
    if any(isinstance(item, Unusable) for item in values):
        return None
    cls = type(value)
    named = Imported(cls.__module__, cls.__qualname__, _text_digest(cls))
    return Record(named, fields, values)


def literal(value: object) -> Literal | None:
    """A container of plain values as Python writes it, or None where that does not give it back."""
    if not isinstance(value, list | dict | set | bytes):
        return None
    text = repr(value)
    try:
        return Literal(text) if ast.literal_eval(text) == value else None
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return None


def _language_class(value: type) -> str | None:
    """The name of a class of the language, or of what is derived from one elsewhere."""
    return next((name for cls in value.__mro__ if (name := _LANGUAGE_CLASSES.get(cls))), None)


class Extension:
    """A function that extends the language, as the snapshot takes jit functions."""

    def __init__(self, fn: FunctionType) -> None:
        self.fn = fn


class OrdinaryFunction:
    """An ordinary Python function, which runs at compile time where a kernel calls it.

    Raises: SourceNotAvailable for a lambda that its lines do not tell from another one.
    """

    __tilewright_constexpr_function__ = True

    def __init__(self, fn: FunctionType) -> None:
        self.fn = fn
        if fn.__name__ == "<lambda>":
            self.__tilewright_text__ = (lambda_text(fn), fn.__code__.co_firstlineno)


def _unusable_object(value: object) -> Unusable:
    name = getattr(value, "__name__", "")
    if callable(value) and name:
        return Unusable(
            "PlainFunctionCall", f"`{name}` is an ordinary Python function, not a kernel function"
        )
    return Unusable("NameNotUsable", f"an object of type {type(value).__name__}")


def captured(value: object, reference: Reference) -> Constant:
    """The constant for a global or closure variable, where plain values must be constexprs."""
    if isinstance(value, core.PropagateNan | Enum):
        return constant_of(value, reference)
    if isinstance(value, tuple) and not any(isinstance(v, _PLAIN) for v in value):
        return constant_of(value, reference)
    if isinstance(value, (*_PLAIN, tuple, list, dict, set)):
        shown = repr(value)
        return Unusable("GlobalNotConstexpr", shown if len(shown) < 40 else f"{shown[:37]}...")
    return constant_of(value, reference)
