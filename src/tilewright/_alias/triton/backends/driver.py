"""`triton.backends.driver`: the base of drivers, and how launchers pass descriptors."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import cast

from ..runtime.driver import DriverBase as DriverBase
from ..runtime.driver import DriverBase as GPUDriver

_DESCRIPTOR = re.compile(r"tensordesc\w*<(\w+)\[([\d,\s]*)\](?:,input_rank=(\d+))?")


def expand_signature(
    signature: Sequence[object], tensordesc_meta: Sequence[object] | None, descriptor_type: str
) -> list[object]:
    """A signature with what a launcher passes in place of each tensor descriptor.

    With an entry in `tensordesc_meta` that is a `descriptor_type`, the shape and the strides;
    without one a pointer, shape and strides for the host and two flags come first.
    """
    metas = iter(tensordesc_meta or ())
    return _expanded(signature, metas, descriptor_type)


def _expanded(
    types: Sequence[object], metas: Iterator[object], descriptor_type: str
) -> list[object]:
    found: list[object] = []
    for type_ in types:
        if isinstance(type_, tuple | list):
            inner = _expanded(cast("Sequence[object]", type_), metas, descriptor_type)
            found.append(tuple(inner))
        elif isinstance(type_, str) and (match := _DESCRIPTOR.match(type_)) is not None:
            meta = next(metas, None)
            found.extend(_descriptor_types(match, meta is not None, descriptor_type))
        else:
            found.append(type_)
    return found


def _descriptor_types(match: re.Match[str], is_native: bool, descriptor_type: str) -> list[str]:
    rank = int(match[3] or match[2].count(",") + 1)
    head = [descriptor_type] if is_native else [f"*{match[1]}", *["i64"] * 2 * rank, "i1", "i1"]
    return [*head, *["i32"] * rank, *["i64"] * rank]


def wrap_handle_tensordesc_impl(
    launcher: Callable[..., object],
    signature: Mapping[object, object],
    tensordesc_meta: Sequence[object] | None,
    make_descriptor: Callable[..., Sequence[object]],
) -> Callable[..., object]:
    """A launcher that passes `make_descriptor(value, meta, base_args)` for each descriptor.

    The last argument of the launcher is the sequence of the kernel's own arguments. A signature
    without descriptors leaves the launcher as it is.
    """
    types = tuple(signature.values())
    if not any(_has_descriptor(type_) for type_ in types):
        return launcher

    def launch(*args: object) -> object:
        *base, values = args
        metas = iter(tensordesc_meta or ())

        def describe(value: object) -> Sequence[object]:
            return make_descriptor(value, next(metas, None), tuple(base))

        return launcher(*base, _replaced(types, cast("Sequence[object]", values), describe))

    return launch


def _has_descriptor(type_: object) -> bool:
    if isinstance(type_, tuple | list):
        return any(_has_descriptor(inner) for inner in cast("Sequence[object]", type_))
    return isinstance(type_, str) and _DESCRIPTOR.match(type_) is not None


def _replaced(
    types: Sequence[object],
    values: Sequence[object],
    describe: Callable[[object], Sequence[object]],
) -> list[object]:
    found: list[object] = []
    for type_, value in zip(types, values, strict=True):
        if isinstance(type_, tuple | list):
            inner = cast("Sequence[object]", value)
            found.append(tuple(_replaced(cast("Sequence[object]", type_), inner, describe)))
        elif _has_descriptor(type_):
            found.extend(describe(value))
        else:
            found.append(value)
    return found


__all__ = ["DriverBase", "GPUDriver", "expand_signature", "wrap_handle_tensordesc_impl"]
