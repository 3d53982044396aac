"""Python's builtins that kernels may call."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping, Sequence

from tilewright.frontend.aggregates import is_instance
from tilewright.frontend.attributes import attribute_of
from tilewright.frontend.capture import is_class_of
from tilewright.frontend.constants import (
    AggregateRef,
    BuiltinRef,
    EnumMember,
    FunctionRef,
    HostFunctionRef,
    Imported,
    ModuleRef,
    NamedTupleClass,
    OpRef,
)
from tilewright.frontend.constexpr import evaluate, run_in_python
from tilewright.frontend.frame import Frame
from tilewright.frontend.sequences import array_error, iterate
from tilewright.frontend.values import (
    HostMethod,
    ModuleValue,
    Super,
    describe,
    foreign,
    import_object,
    is_aggregate,
    is_constant,
    is_member,
    plain,
)
from tilewright.language.core import (
    block_type,
    constexpr,
    constexpr_type,
    dtype,
    pointer_type,
    tensor,
    tensor_descriptor_type,
    tuple_,
    tuple_type,
)
from tilewright.ops.descriptors.surface import is_descriptor
from tilewright.ops.library import SURFACE
from tilewright.support.errors import (
    CompileError,
    NotCallable,
    NotConstexpr,
    UndefinedName,
    UnexpectedArgument,
    UnknownAttribute,
    UnknownMember,
)

Builtin = Callable[[Frame, ast.AST, Sequence[object], Mapping[str, object]], object]
BUILTINS: dict[str, Builtin] = {}

# Builtins that only make sense on compile-time values, where Python itself evaluates them.
_PYTHON: dict[str, Callable[..., object]] = {
    "bool": bool,
    "divmod": divmod,
    "float": float,
    "int": int,
    "pow": pow,
    "repr": repr,
    "round": round,
    "str": str,
    "range": range,
    "sorted": sorted,
    "all": all,
    "any": any,
    "sum": sum,
}


def _on_constants(name: str) -> Builtin:
    def run(
        frame: Frame, node: ast.AST, positional: Sequence[object], keywords: Mapping[str, object]
    ) -> object:
        for value in (*positional, *keywords.values()):
            if not is_constant(value):
                raise NotConstexpr(
                    f"`{name}` takes compile-time values only, this is {describe(value)}",
                    hint=_RUNTIME_HINTS.get(name, "compute it with functions of tl"),
                )
        arguments = [plain(value) for value in positional]
        named = {key: plain(value) for key, value in keywords.items()}
        return evaluate(_PYTHON[name], *arguments, **named)

    return run


_RUNTIME_HINTS = {
    "int": "convert with x.to(tl.int32)",
    "float": "convert with x.to(tl.float32)",
    "bool": "convert with x != 0",
    "sum": "use tl.sum",
    "range": "use it in a `for`",
}
BUILTINS.update({name: _on_constants(name) for name in _PYTHON})


def builtin(name: str) -> Callable[[Callable[..., object]], Callable[..., object]]:
    """Register a builtin that takes positional arguments only."""

    def declare(function: Callable[..., object]) -> Callable[..., object]:
        def run(
            frame: Frame,
            node: ast.AST,
            positional: Sequence[object],
            keywords: Mapping[str, object],
        ) -> object:
            if keywords:
                raise UnexpectedArgument(f"`{name}` takes no keyword arguments")
            return function(frame, *positional)

        BUILTINS[name] = run
        return function

    return declare


def call_host_method(
    method: HostMethod, positional: Sequence[object], keywords: Mapping[str, object]
) -> object:
    """Call a method of a compile-time value, such as `dtype.is_fp16()`."""
    for value in (*positional, *keywords.values()):
        if not is_constant(value):
            raise NotConstexpr(f"`{method.name}` takes compile-time values only")
    arguments = [plain(value) for value in positional]
    named = {k: plain(v) for k, v in keywords.items()}
    return foreign(run_in_python(method.function, *arguments, **named))


def _fold(frame: Frame, name: str, key: str, values: Sequence[object]) -> object:
    """`min` and `max`: Python's on constants, else elementwise from left to right."""
    items = iterate(values[0]) if len(values) == 1 else list(values)
    if not items:
        raise CompileError(f"`{name}` of nothing")
    if all(is_constant(item) for item in items):
        return evaluate(_MIN_MAX[name], [plain(item) for item in items])
    result = items[0]
    for item in items[1:]:
        result = SURFACE[key].function(frame.builder, result, item)
    return result


_MIN_MAX: dict[str, Callable[..., object]] = {"min": min, "max": max}


@builtin("min")
def _min(frame: Frame, *values: object) -> object:
    return _fold(frame, "min", "minimum", values)


@builtin("max")
def _max(frame: Frame, *values: object) -> object:
    return _fold(frame, "max", "maximum", values)


@builtin("abs")
def _abs(frame: Frame, value: object) -> object:
    if is_constant(value):
        return evaluate(abs, plain(value))
    return SURFACE["abs"].function(frame.builder, value)


@builtin("len")
def _len(frame: Frame, value: object) -> object:
    if isinstance(value, tensor):
        if isinstance(value.type, pointer_type):
            raise array_error("the length is asked of a pointer", value)
        if not value.static_shape:
            raise NotCallable("a scalar has no length")
        return constexpr(value.static_shape[0])
    return constexpr(len(iterate(value)))


@builtin("tuple")
def _tuple(frame: Frame, value: object = None) -> object:
    return tuple_([] if value is None else iterate(value))


BUILTINS["list"] = BUILTINS["tuple"]

_CLASSES: dict[str, Callable[[object], bool]] = {
    "tensor": lambda v: isinstance(v, tensor),
    "constexpr": lambda v: isinstance(v, constexpr),
    "dtype": lambda v: isinstance(v, dtype),
    "tuple": lambda v: isinstance(v, tuple_) and not (is_descriptor(v) or is_aggregate(v)),
    "tensor_descriptor": is_descriptor,
    "tensor_descriptor_type": lambda v: isinstance(v, tensor_descriptor_type),
    "pointer_type": lambda v: isinstance(v, pointer_type),
    "block_type": lambda v: isinstance(v, block_type),
    "constexpr_type": lambda v: isinstance(v, constexpr_type),
    "tuple_type": lambda v: isinstance(v, tuple_type),
    "list": lambda v: isinstance(v, tuple_),
}
_SCALARS: dict[str, type] = {"bool": bool, "int": int, "float": float, "str": str}


@builtin("isinstance")
def _isinstance(frame: Frame, value: object, classes: object) -> object:
    options = classes.values if isinstance(classes, tuple_) else [classes]
    return constexpr(any(_is_instance(frame, value, option) for option in options))


def _is_instance(frame: Frame, value: object, cls: object) -> bool:
    if isinstance(cls, NamedTupleClass):
        return isinstance(value, tuple_) and value.factory == cls
    if isinstance(cls, AggregateRef):
        return is_instance(frame.lowering, value, cls)
    if isinstance(cls, ModuleRef | ModuleValue) and cls.enum:
        return is_member(value, cls)
    if isinstance(cls, Imported) and isinstance(live := import_object(cls), type):
        held = value.value if isinstance(value, constexpr) else value
        if isinstance(held, FunctionRef | HostFunctionRef):
            return is_class_of(live, held)
        return isinstance(value, constexpr) and isinstance(held, live)
    name = cls.key if isinstance(cls, OpRef) else cls.name if isinstance(cls, BuiltinRef) else ""
    if name in _CLASSES:
        return _CLASSES[name](value)
    if name in _SCALARS:
        return isinstance(value, constexpr) and isinstance(value.value, _SCALARS[name])
    raise NotCallable(f"isinstance cannot test for {describe(cls)}")


@builtin("super")
def _super(frame: Frame) -> object:
    owner = frame.code.source.captures.get("__class__")
    names = [p.name for p in frame.code.source.parameters]
    if not isinstance(owner, AggregateRef) or not names:
        raise NotCallable("super() stands only in methods of aggregates")
    return Super(owner, frame.read(names[0]))


@builtin("hasattr")
def _hasattr(frame: Frame, value: object, name: object) -> object:
    try:
        attribute_of(frame, value, _attribute_name(name))
    except (UnknownAttribute, UnknownMember, UndefinedName):
        return constexpr(False)
    return constexpr(not isinstance(value, EnumMember) or plain(name) in ("name", "value"))


@builtin("getattr")
def _getattr(frame: Frame, value: object, name: object, *default: object) -> object:
    try:
        return attribute_of(frame, value, _attribute_name(name))
    except (UnknownAttribute, UnknownMember, UndefinedName):
        if default:
            return default[0]
        raise


def _attribute_name(name: object) -> str:
    known = plain(name)
    if not isinstance(known, str):
        raise NotConstexpr("the name of an attribute must be a string known at compile time")
    return known
