"""Binding of call arguments to parameters, and the specialisation of a kernel's arguments.

This is the slow path of a launch (the first one with new types); it imports no xDSL.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial

from tilewright.frontend.arrays import (
    ArrayFacts,
    NoAddress,
    array_facts,
    descriptor_facts,
    scalar_value,
)
from tilewright.frontend.capture import (
    constant_of,
    is_aggregate_class,
    is_host_function,
    is_jit,
    is_named_tuple_class,
    named_tuple_class,
    record,
)
from tilewright.frontend.constants import (
    AggregateRef,
    Constant,
    FunctionRef,
    HostFunctionRef,
    NamedTupleClass,
    Unusable,
)
from tilewright.frontend.divisors import divisors_of, known_divisor
from tilewright.frontend.program import (
    ArgumentPath,
    Parameter,
    Specialization,
    TupleType,
    TypeTree,
)
from tilewright.frontend.suggestions import of_parameter
from tilewright.frontend.type_text import parse_scalar
from tilewright.language.aggregates import field_values
from tilewright.language.core import constexpr, dtype, tuple_
from tilewright.support.dataclass import dataclass, replace
from tilewright.support.errors import (
    ArgumentNotSupported,
    DuplicateArgument,
    LiteralOutOfRange,
    MissingArgument,
    UnexpectedArgument,
    UnsupportedConstruct,
)

ALIGNMENT_BYTES = 16
_POWERS_OF_TWO = (16, 8, 4, 2)

FunctionReference = Callable[[object], "FunctionRef | HostFunctionRef | AggregateRef"]


def bind(
    function: str,
    parameters: Sequence[Parameter],
    positional: Sequence[object],
    keywords: Mapping[str, object],
    default: Callable[[Parameter], object] = lambda p: p.default,
) -> dict[str, object]:
    """The arguments of a call by parameter name, in the order of the parameters.

    Raises: MissingArgument, UnexpectedArgument, DuplicateArgument, naming the argument.
    """
    bound = _bind_positional(function, parameters, positional)
    for name, value in keywords.items():
        _check_keyword(function, parameters, name, bound)
        bound[name] = value
    return {p.name: _bound_or_default(function, p, bound, default) for p in parameters}


def _bind_positional(
    function: str, parameters: Sequence[Parameter], positional: Sequence[object]
) -> dict[str, object]:
    takers = [p for p in parameters if p.kind == "positional"]
    bound: dict[str, object] = {p.name: v for p, v in zip(takers, positional, strict=False)}
    rest = positional[len(takers) :]
    collector = next((p for p in parameters if p.kind == "varargs"), None)
    if collector is not None:
        bound[collector.name] = tuple(rest)
    elif rest:
        raise UnexpectedArgument(
            f"{function}() takes {len(takers)} positional argument(s) "
            f"but {len(positional)} were given",
            hint=f"the parameters are {_names(parameters)}",
        )
    return bound


def _check_keyword(
    function: str, parameters: Sequence[Parameter], name: str, bound: Mapping[str, object]
) -> None:
    known = [p.name for p in parameters if p.kind in ("positional", "keyword")]
    if name not in known:
        meant = of_parameter(name, known)
        raise UnexpectedArgument(
            f"{function}() has no parameter `{name}`",
            argument=name,
            hint=f"use `{meant}=`" if meant else f"the parameters are {_names(parameters)}",
        )
    if name in bound:
        raise DuplicateArgument(
            f"{function}(): `{name}` is given by position and by keyword", argument=name
        )


def _bound_or_default(
    function: str,
    p: Parameter,
    bound: Mapping[str, object],
    default: Callable[[Parameter], object],
) -> object:
    if p.name in bound:
        return bound[p.name]
    if p.kind == "varkeywords":
        raise UnsupportedConstruct(
            f"{function}() takes **{p.name}, which kernel functions cannot",
            hint="name each parameter",
        )
    if not p.has_default:
        raise MissingArgument(
            f"{function}(): the argument `{p.name}` is missing",
            argument=p.name,
            hint=f"pass `{p.name}`, or give the parameter a default",
        )
    return default(p)


def _names(parameters: Sequence[Parameter]) -> str:
    return ", ".join(f"`{p.name}`" for p in parameters) or "none"


@dataclass(frozen=True)
class _Leaf:
    """How one argument (or tuple element) is passed: its type, and what is known about it."""

    type: TypeTree
    constants: Mapping[ArgumentPath, Constant]
    divisibility: Mapping[ArgumentPath, int]


def specialize(
    function: str,
    parameters: Sequence[Parameter],
    arguments: Mapping[str, object],
    reference: FunctionReference | None = None,
) -> Specialization:
    """What the kernel must be compiled for, given one value for each parameter.

    `reference` gives the key of a jit function that is passed as an argument.
    Raises: ArgumentNotSupported, LiteralOutOfRange, naming the parameter.
    """
    classify = _Classifier(function, reference or _no_functions)
    leaves = [(p.name, classify.argument(p, arguments[p.name])) for p in parameters]
    constants: dict[ArgumentPath, Constant] = {}
    multiples: dict[ArgumentPath, int] = {}
    for _, leaf in leaves:
        constants.update(leaf.constants)
        multiples.update(leaf.divisibility)
    found = Specialization(tuple((n, leaf.type) for n, leaf in leaves), constants)
    divisors = divisors_of(type_ for _, type_ in found.leaves())
    known = {path: known_divisor(multiple, divisors) for path, multiple in multiples.items()}
    divisibility = {path: divisor for path, divisor in known.items() if divisor > 1}
    return replace(found, divisibility=divisibility)


def _no_functions(value: object) -> FunctionRef:
    raise ArgumentNotSupported(f"the function {value!r} cannot be an argument here")


class _Classifier:
    """Classifies the arguments of one kernel."""

    def __init__(self, function: str, reference: FunctionReference) -> None:
        self._function = function
        self._reference = reference

    def argument(self, p: Parameter, value: object) -> _Leaf:
        """How the argument of parameter `p` is passed."""
        try:
            return self._argument((p.name,), p, value)
        except NoAddress as error:
            why = f"does not say where its memory is ({error})"
            hint = "pass a dense array, such as x.to_dense(), and launch outside of torch.vmap"
            raise self._unsupported(p, value, why, hint) from error

    def _argument(self, path: ArgumentPath, p: Parameter, value: object) -> _Leaf:
        if is_aggregate_class(type(value)):
            return self._aggregate(path, p, value)
        if p.is_constexpr:
            return self._constant(path, p, value)
        annotated = parse_scalar(p.annotation) if p.annotation else None
        if annotated is not None and value is not None:
            return self._annotated(path, p, value, annotated)
        return self._value(path, p, value)

    def _value(self, path: ArgumentPath, p: Parameter, value: object) -> _Leaf:
        if value is None or isinstance(value, constexpr | dtype | str):
            return self._constant(path, p, value)
        number = scalar_value(value)
        if number is not None:
            return self._number(path, p, number)
        if isinstance(value, tuple | tuple_):
            return self._tuple(path, p, value)
        if is_aggregate_class(type(value)):
            return self._aggregate(path, p, value)
        descriptor = descriptor_facts(value)
        if descriptor is not None:
            base: object = getattr(value, "base", None)
            self._check_sign(p, base, array_facts(base))
            return _Leaf(descriptor, {}, {})
        return self._array(path, p, value)

    def _constant(self, path: ArgumentPath, p: Parameter, value: object) -> _Leaf:
        constant = record(value, self._reference) or constant_of(value, self._reference)
        if isinstance(constant, Unusable):
            hint = "constants are numbers, strings, None, dtypes, tuples of them, and jit functions"
            if isinstance(value, partial):
                hint = (
                    "a functools.partial holds a jit function, or one that runs at compile time, "
                    "and constants"
                )
            elif callable(value):
                hint = (
                    "pass a function, and what the object holds as arguments of their own: a jit "
                    "function is inlined, another one may be called on constants"
                )
            raise self._unsupported(p, value, "cannot be a compile-time constant", hint)
        return _Leaf("constexpr", {path: constant}, {})

    def _number(self, path: ArgumentPath, p: Parameter, value: bool | int | float) -> _Leaf:
        if isinstance(value, bool):
            return _Leaf("u1", {}, {})
        if isinstance(value, float):
            return _Leaf("fp32", {}, {})
        if value == 1 and p.specialize:
            return _Leaf("constexpr", {path: 1}, {})
        return _Leaf(integer_type(value, p.name, self._function), {}, _divisor(path, p, value))

    def _tuple(self, path: ArgumentPath, p: Parameter, value: tuple[object, ...] | tuple_) -> _Leaf:
        return self._group(path, p, list(value), self._named_class(value))

    def _aggregate(self, path: ArgumentPath, p: Parameter, value: object) -> _Leaf:
        """An instance of an aggregate class, field by field."""
        cls = self._reference(type(value))
        assert isinstance(cls, AggregateRef)
        return self._group(path, p, field_values(value), cls)

    def _group(
        self,
        path: ArgumentPath,
        p: Parameter,
        items: Sequence[object],
        cls: NamedTupleClass | AggregateRef | None,
    ) -> _Leaf:
        plain = Parameter(p.name)
        leaves = [self._value((*path, index), plain, item) for index, item in enumerate(items)]
        constants = {k: v for leaf in leaves for k, v in leaf.constants.items()}
        divisibility = {k: v for leaf in leaves for k, v in leaf.divisibility.items()}
        return _Leaf(TupleType(tuple(x.type for x in leaves), cls), constants, divisibility)

    def _named_class(self, value: object) -> NamedTupleClass | None:
        cls = value.factory if isinstance(value, tuple_) else type(value)
        if not is_named_tuple_class(cls):
            return None
        assert isinstance(cls, type)
        return named_tuple_class(cls, self._reference)

    def _array(self, path: ArgumentPath, p: Parameter, value: object) -> _Leaf:
        facts = array_facts(value)
        if facts is None:
            if is_jit(value) or is_host_function(value) or isinstance(value, type | partial):
                return self._constant(path, p, value)
            element = getattr(value, "dtype", None)
            if element is not None:
                why = f"holds elements of type {element}, which kernels do not have"
                raise self._unsupported(p, value, why, "convert it to a type that `tl` has")
            hint = "pass a tuple: tuple(values)" if isinstance(value, list) else ""
            raise self._unsupported(p, value, "is no array, number, dtype or tuple", hint)
        self._check_sign(p, value, facts)
        const = "k" if p.annotation == "const" else ""
        aligned = p.specialize and p.specialize_alignment and facts.address % ALIGNMENT_BYTES == 0
        return _Leaf(
            f"*{const}{facts.element.short_name()}",
            {},
            {path: ALIGNMENT_BYTES} if aligned else {},
        )

    def _check_sign(self, p: Parameter, value: object, facts: ArrayFacts | None) -> None:
        if facts is not None and facts.is_negated:
            why = "is a view that negates what is in memory, which kernels read as it is"
            raise self._unsupported(p, value, why, f"pass {p.name}.resolve_neg()")

    def _annotated(self, path: ArgumentPath, p: Parameter, value: object, type_: dtype) -> _Leaf:
        """An argument whose annotation fixes the type; its value gives the divisibility only."""
        if type_.is_ptr():
            leaf = self._array(path, p, value)
            return _Leaf(type_.short_name(), {}, leaf.divisibility)
        number = scalar_value(value)
        if number is None:
            raise self._unsupported(
                p,
                value,
                f"is no number, as its annotation `{type_}` asks",
                "pass a number, or change the annotation",
            )
        if type_.is_fp8():
            why = f"kernels do not take as {type_}, its annotation"
            hint = f"annotate fp32, and convert in the kernel: {p.name}.to(dtype)"
            raise self._unsupported(p, value, why, hint)
        if type_.is_int():
            if isinstance(number, float):
                why = f"is no integer, as its annotation `{type_}` asks"
                raise self._unsupported(p, value, why, f"pass int({p.name}), or annotate a float")
            self._check_range(p, number, type_)
            divisibility = {} if type_.is_bool() else _divisor(path, p, number)
            return _Leaf(_scalar_text(type_), {}, divisibility)
        return _Leaf(_scalar_text(type_), {}, {})

    def _check_range(self, p: Parameter, value: int, type_: dtype) -> None:
        low, high = type_.get_int_min_value(), type_.get_int_max_value()
        if not low <= value <= high:
            raise LiteralOutOfRange(
                f"{self._function}(): `{p.name}` is {value}, which does not fit its annotation "
                f"{type_} ({low} to {high})",
                argument=p.name,
            )

    def _unsupported(
        self, p: Parameter, value: object, why: str, hint: str = ""
    ) -> ArgumentNotSupported:
        return ArgumentNotSupported(
            f"{self._function}(): `{p.name}` is an object of type {type(value).__name__}, "
            f"which {why}",
            argument=p.name,
            hint=hint,
        )


def _scalar_text(type_: dtype) -> str:
    return "u1" if type_.is_bool() else type_.short_name()


def _divisor(path: ArgumentPath, p: Parameter, value: int) -> dict[ArgumentPath, int]:
    if not (p.specialize and p.specialize_alignment):
        return {}
    return {path: known_divisor(value, _POWERS_OF_TWO)}


def integer_type(value: int, name: str = "value", function: str = "kernel") -> str:
    """The narrowest of i32, i64 and u64 that holds `value`.

    Raises: LiteralOutOfRange beyond 64 bits.
    """
    if -(1 << 31) <= value < 1 << 31:
        return "i32"
    if -(1 << 63) <= value < 1 << 63:
        return "i64"
    if 0 <= value < 1 << 64:
        return "u64"
    raise LiteralOutOfRange(
        f"{function}(): `{name}` is {value}, which does not fit 64 bits", argument=name
    )
