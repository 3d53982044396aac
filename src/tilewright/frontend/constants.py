"""Compile-time values that travel in a compile request, and their JSON form.

A request holds no live Python object. What a kernel captured, was passed or has as default is
one of the plain values here: None, bool, int, float, str, dtypes, tuples, and small records
that stand for functions, modules and classes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias, Union

from tilewright.language.core import PropagateNan, block_type, dtype, pointer_type
from tilewright.language.stubs import shown_name
from tilewright.support.dataclass import dataclass
from tilewright.support.errors import InternalError
from tilewright.support.revisions import short_name

Json: TypeAlias = "bool | int | float | str | list[Json] | dict[str, Json] | None"


@dataclass(frozen=True)
class FunctionRef:
    """A jit function of the request, by its key."""

    key: str

    def __str__(self) -> str:
        return f"the function `{short_name(self.key)}`"


@dataclass(frozen=True)
class HostFunctionRef:
    """A function that runs in Python at compile time, by its key in the request."""

    key: str

    def __str__(self) -> str:
        return f"the function `{short_name(self.key)}`"


@dataclass(frozen=True)
class AggregateRef:
    """An aggregate class of the request, by its key."""

    key: str

    def __str__(self) -> str:
        return f"the aggregate class `{short_name(self.key)}`"


@dataclass(frozen=True)
class OpRef:
    """A function of the language, by its path below `tilewright.language`."""

    key: str

    def __str__(self) -> str:
        return f"the function `{shown_name(self.key)}`"


@dataclass(frozen=True)
class BuiltinRef:
    """A builtin of Python, by its name."""

    name: str

    def __str__(self) -> str:
        return f"Python's `{self.name}`"


@dataclass(frozen=True)
class ModuleRef:
    """A module, or an Enum class (`enum`), that a kernel names; its members are captures."""

    name: str
    enum: Imported | None = None


@dataclass(frozen=True)
class NamedTupleClass:
    """A NamedTuple class: what it is called, its fields, and the defaults of the last ones."""

    name: str
    fields: tuple[str, ...]
    defaults: tuple[Constant, ...] = ()


@dataclass(frozen=True)
class NamedTupleValue:
    """A NamedTuple of constants."""

    cls: NamedTupleClass
    values: tuple[Constant, ...]


@dataclass(frozen=True)
class EnumMember:
    """A member of the author's own Enum class; equal to itself only.

    Of an IntEnum or StrEnum (`is_plain`) it is its value as
    well, in arithmetic and comparisons.
    """

    cls: Imported
    name: str
    value: Constant
    is_plain: bool = False

    def __str__(self) -> str:
        return f"the member `{self.name}` of the Enum class `{self.cls.name}`"


@dataclass(frozen=True)
class Record:
    """A dataclass object of constants, by the class that makes it and its fields."""

    cls: Imported
    fields: tuple[str, ...]
    values: tuple[Constant, ...]


@dataclass(frozen=True)
class Imported:
    """An object of another module, which is imported again where it is needed.

    Kernels call it on compile-time values (`math.log2(math.e)`), or pass it to what they call.
    `digest` tells versions of a function apart.
    """

    module: str
    name: str
    digest: str = ""

    def __str__(self) -> str:
        return f"{self.module}.{self.name}"


def where(cls: type) -> Imported:
    """The place from which a class is imported."""
    return Imported(cls.__module__, cls.__qualname__)


@dataclass(frozen=True)
class Literal:
    """A list, dictionary, set or bytes that functions of compile time read, as Python writes it."""

    text: str


@dataclass(frozen=True)
class Partial:
    """A function with the first of its arguments, and some by `names`, given as constants."""

    function: Constant
    positional: tuple[Constant, ...]
    names: tuple[str, ...] = ()
    values: tuple[Constant, ...] = ()


@dataclass(frozen=True)
class Unusable:
    """A name that a kernel may not use: reading it raises the error `kind` with `text`.

    The error is due where the name is read, not where the kernel is decorated: a branch that is
    pruned may name anything.
    """

    kind: str
    text: str

    def in_closure(self) -> Unusable:
        """The same of a variable of the function around the kernel."""
        is_value = self.kind == "GlobalNotConstexpr"
        return Unusable("OuterNotConstexpr", self.text) if is_value else self


# A union of names, since the alias refers to itself and strings cannot be joined by `|`.
Constant: TypeAlias = Union[
    bool,
    int,
    float,
    str,
    dtype,
    "tuple[Constant, ...]",
    PropagateNan,
    FunctionRef,
    HostFunctionRef,
    AggregateRef,
    OpRef,
    BuiltinRef,
    ModuleRef,
    NamedTupleClass,
    NamedTupleValue,
    EnumMember,
    Record,
    Imported,
    Literal,
    Partial,
    Unusable,
    None,
]


def encode(value: Constant) -> Json:
    """`value` as a tagged JSON list, exact for every float."""
    if value is None:
        return ["none"]
    rule = _ENCODERS.get(type(value))
    if rule is None:
        raise InternalError(f"{value!r} cannot travel in a compile request")
    return rule(value)


def exactly(value: Constant) -> object:
    """A key of a constant that only the same constant has, and not all that Python calls equal.

    1, 1.0 and True are equal there, and zeros of both signs. In a group of constants they are told
    apart as in a request, however deep they lie.
    """
    if isinstance(value, bool | int | str | dtype):
        return type(value), value
    return type(value), repr(value if isinstance(value, float) else encode(value))


def decode(json: Json) -> Constant:
    """The value that `encode` wrote.

    Raises: InternalError when `json` was written by nobody of ours.
    """
    if not isinstance(json, list) or not json or json[0] not in _DECODERS:
        raise InternalError(f"no constant of a compile request: {json!r:.80}")
    try:
        return _DECODERS[json[0]](*json[1:])
    except (TypeError, ValueError, KeyError) as error:
        raise InternalError(f"damaged constant in a compile request: {json!r:.80}") from error


def _encode_tuple(values: tuple[Constant, ...]) -> list[Json]:
    return [encode(v) for v in values]


def _decode_tuple(values: list[Json]) -> tuple[Constant, ...]:
    return tuple(decode(v) for v in values)


def _encode_float(value: float) -> Json:
    return ["float", "nan" if value != value else value.hex()]


def _encode_class(cls: NamedTupleClass) -> Json:
    return ["class", cls.name, list(cls.fields), _encode_tuple(cls.defaults)]


def _decode_class(name: str, fields: list[str], defaults: list[Json]) -> NamedTupleClass:
    return NamedTupleClass(name, tuple(fields), _decode_tuple(defaults))


def _decode_class_of(json: Json) -> NamedTupleClass:
    cls = decode(json)
    if not isinstance(cls, NamedTupleClass):
        raise ValueError(json)
    return cls


def _decode_enum(json: Json) -> Imported | None:
    return None if decode(json) is None else _decode_import(json)


def _decode_import(json: Json) -> Imported:
    cls = decode(json)
    if not isinstance(cls, Imported):
        raise ValueError(json)
    return cls


def _decode_pointer(element: Json, const: bool) -> pointer_type:
    return pointer_type(_decode_dtype_of(element), const=const)


def _decode_dtype_of(json: Json) -> dtype:
    element = decode(json)
    if not isinstance(element, dtype):
        raise ValueError(json)
    return element


_ENCODERS: dict[type, Callable[..., Json]] = {
    bool: lambda v: ["bool", v],
    int: lambda v: ["int", str(v)],
    float: _encode_float,
    str: lambda v: ["str", v],
    dtype: lambda v: ["dtype", v.name],
    pointer_type: lambda v: ["pointer", encode(v.element_ty), v.const],
    block_type: lambda v: ["block", encode(v.element_ty), list(v.shape)],
    tuple: lambda v: ["tuple", _encode_tuple(v)],
    PropagateNan: lambda v: ["propagate_nan", v.name],
    FunctionRef: lambda v: ["function", v.key],
    HostFunctionRef: lambda v: ["host_function", v.key],
    AggregateRef: lambda v: ["aggregate", v.key],
    OpRef: lambda v: ["op", v.key],
    BuiltinRef: lambda v: ["builtin", v.name],
    ModuleRef: lambda v: ["module", v.name, encode(v.enum)],
    NamedTupleClass: _encode_class,
    NamedTupleValue: lambda v: ["named", encode(v.cls), _encode_tuple(v.values)],
    EnumMember: lambda v: ["enum", encode(v.cls), v.name, encode(v.value), v.is_plain],
    Record: lambda v: ["record", encode(v.cls), list(v.fields), _encode_tuple(v.values)],
    Imported: lambda v: ["imported", v.module, v.name, v.digest],
    Literal: lambda v: ["literal", v.text],
    Partial: lambda v: [
        "partial",
        encode(v.function),
        _encode_tuple(v.positional),
        list(v.names),
        _encode_tuple(v.values),
    ],
    Unusable: lambda v: ["unusable", v.kind, v.text],
}
_DECODERS: dict[object, Callable[..., Constant]] = {
    "none": lambda: None,
    "bool": bool,
    "int": int,
    "float": lambda text: float("nan") if text == "nan" else float.fromhex(text),
    "str": str,
    "dtype": dtype,
    "pointer": _decode_pointer,
    "block": lambda element, shape: block_type(_decode_dtype_of(element), shape),
    "tuple": _decode_tuple,
    "propagate_nan": lambda name: PropagateNan[name],
    "function": FunctionRef,
    "host_function": HostFunctionRef,
    "aggregate": AggregateRef,
    "op": OpRef,
    "builtin": BuiltinRef,
    "module": lambda name, enum: ModuleRef(name, _decode_enum(enum)),
    "class": _decode_class,
    "named": lambda cls, values: NamedTupleValue(_decode_class_of(cls), _decode_tuple(values)),
    "enum": lambda cls, name, value, plain: EnumMember(
        _decode_import(cls), name, decode(value), plain
    ),
    "record": lambda cls, fields, values: Record(
        _decode_import(cls), tuple(fields), _decode_tuple(values)
    ),
    "imported": Imported,
    "literal": Literal,
    "partial": lambda function, positional, names, values: Partial(
        decode(function), _decode_tuple(positional), tuple(names), _decode_tuple(values)
    ),
    "unusable": Unusable,
}
