"""What a launch passes to a compiled kernel, and what its warm path checks of each argument."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from tilewright.frontend.arrays import (
    array_bounds,
    array_facts,
    descriptor_slots,
    is_descriptor,
    num_elements_without_memory,
    scalar_value,
)
from tilewright.frontend.capture import is_aggregate_class
from tilewright.frontend.divisors import MOST_DIVISOR, DivisorClass, divisor_class
from tilewright.frontend.mutable import may_change
from tilewright.frontend.program import ArgumentPath, Parameter, Specialization, TupleType
from tilewright.language.aggregates import field_values
from tilewright.language.core import constexpr
from tilewright.support.dataclass import dataclass
from tilewright.support.errors import ArgumentNotSupported, ReadOnlyWrite


@dataclass(frozen=True)
class ParameterFacts:
    """What the driver's fast launcher needs to know of one parameter."""

    type: str
    slot: int | None
    is_aligned: bool | None
    is_annotated: bool
    is_stored: bool = False
    integer_class: DivisorClass | None = None


def parameter_guards(
    parameters: Sequence[Parameter],
    specialization: Specialization,
    stored: Collection[ArgumentPath] = (),
    least_divisor: int = MOST_DIVISOR,
) -> list[ParameterFacts] | None:
    """What the fast launcher checks, parameter by parameter; None with tuples.

    `stored` are the paths of the arguments that the kernel stores through, `least_divisor` is that
    of its target.
    """
    guards: list[ParameterFacts] = []
    slot = 0
    for p, (name, type_) in zip(parameters, specialization.signature, strict=True):
        if isinstance(type_, TupleType):
            return None
        if type_ == "constexpr":
            guards.append(ParameterFacts(type_, None, None, False))
            continue
        if type_.startswith("tensordesc"):
            is_stored = (name,) in stored
            guards.append(ParameterFacts(type_, slot, True, bool(p.annotation), is_stored))
            slot += slot_count(type_)
            continue
        guards.append(_guard(p, type_, slot, specialization, stored, least_divisor))
        slot += 1
    return guards


def _guard(
    p: Parameter,
    type_: str,
    slot: int,
    specialization: Specialization,
    stored: Collection[ArgumentPath],
    least_divisor: int,
) -> ParameterFacts:
    """What is checked of a pointer or a number."""
    path: ArgumentPath = (p.name,)
    divisor = specialization.with_divisors_from(least_divisor).divisibility.get(path, 1)
    is_aligned, integers = None, None
    if p.specialize and p.specialize_alignment:
        types = [leaf for _, leaf in specialization.leaves()]
        is_aligned = divisor > 1 if type_.startswith("*") else None
        integers = divisor_class(divisor, types, least_divisor, takes_one=bool(p.annotation))
    return ParameterFacts(
        type_, slot, is_aligned, bool(p.annotation), path in stored, integer_class=integers
    )


def has_mutable_constants(specialization: Specialization, arguments: Mapping[str, object]) -> bool:
    """Whether a constant (a list, a dictionary) may have other contents at the next launch.

    The fast launcher knows constants by identity, so that it must not see these.
    """
    names = [name for name, type_ in specialization.signature if type_ == "constexpr"]
    return any(may_change(arguments[name]) for name in names)


def slot_count(type_: str) -> int:
    """How many slots a runtime argument of a type fills.

    *Example*

    >>> slot_count("i32"), slot_count("tensordesc<fp16[64,64]>")
    (1, 5)
    """
    if not type_.startswith("tensordesc"):
        return 1
    # The address, and an extent and a stride for every dimension.
    block = type_.partition("[")[2].partition("]")[0]
    return 1 + 2 * (block.count(",") + 1)


def num_slots(specialization: Specialization) -> int:
    """How many slots the runtime arguments fill."""
    return sum(slot_count(type_) for _, type_ in specialization.runtime_leaves())


def extra_guard(
    name: str, value: object, ignored: frozenset[str], stream_slot: int
) -> ParameterFacts:
    """What the fast launcher checks of a keyword that is no parameter of the kernel."""
    if name in ignored:
        return ParameterFacts("ignored", None, None, False)
    if name == "stream" and value is not None:
        return ParameterFacts("i64", stream_slot, None, True)
    return ParameterFacts("constexpr", None, None, False)


def array_arguments(
    specialization: Specialization, arguments: Mapping[str, object]
) -> list[tuple[str, object]]:
    """The arrays and tensor descriptors among the runtime arguments, by name."""
    return [
        (".".join(map(str, path)), value_at(path, arguments))
        for path, type_ in specialization.runtime_leaves()
        if type_.startswith(("*", "tensordesc"))
    ]


def runtime_addresses(arrays: Sequence[tuple[str, object]]) -> list[int]:
    """The addresses of arrays, as far as they are arrays."""
    facts = (array_facts(getattr(value, "base", value)) for _, value in arrays)
    return [found.address for found in facts if found is not None]


def runtime_values(specialization: Specialization, arguments: Mapping[str, object]) -> list[object]:
    """The values of the runtime arguments, in signature order; arrays by their address."""
    values: list[object] = []
    for path, type_ in specialization.runtime_leaves():
        value = value_at(path, arguments)
        if type_.startswith("*"):
            facts = array_facts(value)
            values.append(facts.address if facts is not None else value)
        elif type_.startswith("tensordesc"):
            values.extend(descriptor_slots(value))
        else:
            number = scalar_value(value)
            values.append(value if number is None else number)
    return values


def stored_paths(metadata: Mapping[str, object]) -> frozenset[ArgumentPath]:
    """The paths of the arguments that a compiled kernel stores through."""
    paths = metadata.get("stores", ())
    assert isinstance(paths, list | tuple)
    return frozenset(tuple(path) for path in paths)


def check_writable(
    kernel: str, stored: Collection[ArgumentPath], arguments: Mapping[str, object]
) -> None:
    """Refuse arrays that must not be written where the kernel stores through them.

    Raises: ReadOnlyWrite.
    """
    for path in sorted(stored, key=str):
        value = value_at(path, arguments)
        facts = array_facts(getattr(value, "base", None) if is_descriptor(value) else value)
        if facts is not None and not facts.is_writable:
            shown = str(path[0]) + "".join(f"[{step}]" for step in path[1:])
            raise ReadOnlyWrite(
                f"{kernel}(): the kernel stores into `{shown}`, which is read-only",
                argument=str(path[0]),
                hint="pass an array that may be written, such as a copy",
            )


def check_memory(
    kernel: str, specialization: Specialization, arguments: Mapping[str, object]
) -> None:
    """Refuse tensors that have elements and no memory.

    Raises: ArgumentNotSupported.
    """
    for name, value in array_arguments(specialization, arguments):
        array: object = getattr(value, "base", None) if is_descriptor(value) else value
        count = num_elements_without_memory(array)
        if count > 0:
            raise ArgumentNotSupported(
                f"{kernel}(): `{name}` has {count} elements and no memory: its address is 0",
                argument=name.partition(".")[0],
                hint="pass a tensor with storage: a fake one has none, and a freed one no longer",
            )


def memory_bounds(specialization: Specialization, arguments: Mapping[str, object]) -> list[object]:
    """First byte and byte behind the last of every array argument, for the checked mode."""
    bounds: list[object] = []
    for path, type_ in specialization.runtime_leaves():
        if type_.startswith(("*", "tensordesc")):
            value = value_at(path, arguments)
            bounds.extend(
                array_bounds(
                    getattr(value, "base", value) if type_.startswith("tensordesc") else value
                )
            )
    return bounds


def value_at(path: ArgumentPath, arguments: Mapping[str, object]) -> object:
    """The argument, or element of a tuple argument, at `path`."""
    value: object = arguments[str(path[0])]
    for step in path[1:]:
        items = field_values(value) if is_aggregate_class(type(value)) else value
        value = items[step]  # type: ignore[index]  # the path came from this value's structure
    return value.value if isinstance(value, constexpr) else value
