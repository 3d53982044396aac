"""The arguments of a launch as a target's driver sees them: what guards them."""

from __future__ import annotations

from typing import Protocol, cast

import numpy as np

from tilewright.runtime import launch_table as table
from tilewright.runtime.accessors import tensor_accessors
from tilewright.runtime.driver import ParameterGuard


class _HasAddress(Protocol):
    def data_ptr(self) -> int: ...


def guard_of(
    parameter: ParameterGuard, value: object, device: int | None = None
) -> table.Guard | None:
    """The guard of a parameter for values like this one, on a GPU or (None) on the CPU.

    None where the native launcher has no guard for such a value.
    """
    slot, type_ = parameter.slot, parameter.type
    if type_ == "ignored":
        return table.ignored()
    if slot is None:
        return table.constant(value)
    if type_.startswith("*"):
        return _pointer_guard(parameter, slot, value, device)
    if type_.startswith("tensordesc"):
        return _descriptor_guard(parameter, slot, value, device)
    if type_ in ("i32", "i64", "u64") and type(value) is int:
        takes_all = type_ == "i64" and parameter.is_annotated
        dtype = "any_i64" if takes_all else type_
        return table.integer(slot, dtype, parameter.integer_class)
    if type_ == "fp32" and type(value) is float:
        return table.float32(slot)
    if type_ == "fp64" and type(value) is float:
        return table.float64(slot)
    if type_ == "u1" and type(value) is bool:
        return table.boolean(slot)
    return None


def _descriptor_guard(
    parameter: ParameterGuard, slot: int, value: object, device: int | None
) -> table.Guard | None:
    block_shape, padding = getattr(value, "block_shape", None), getattr(value, "padding", None)
    base = _pointer_guard(parameter, slot, getattr(value, "base", None), device)
    if base is None or not isinstance(block_shape, tuple) or not isinstance(padding, str):
        return None
    return table.descriptor(slot, type(value), block_shape, padding, base)


def _pointer_guard(
    parameter: ParameterGuard, slot: int, value: object, device: int | None
) -> table.Guard | None:
    if type(value) is np.ndarray:
        if device is not None:
            return None
        return table.numpy_pointer(slot, value.dtype, parameter.is_aligned, parameter.is_stored)
    dtype: object = getattr(value, "dtype", None)
    if dtype is None or not hasattr(value, "data_ptr"):
        return None
    if parameter.is_stored and getattr(value, "flags", None) is not None:
        return None  # read-only, perhaps: only the slow path asks
    place = "is_cpu" if device is None else "get_device"
    accessors = tensor_accessors(type(value), place)
    is_aligned = parameter.is_aligned
    if accessors is None and hasattr(type(value), "is_neg"):
        return None  # a negated view, perhaps: only the slow path asks
    if accessors is not None:
        expected = True if device is None else device
        code = accessors.code_of(value)
        guard = table.typed_tensor(slot, type(value), dtype, is_aligned, accessors, expected, code)
    elif device is None:
        guard = table.tensor_pointer(slot, type(value), dtype, is_aligned, hasattr(value, place))
    elif hasattr(value, place):
        guard = table.device_tensor(slot, type(value), dtype, is_aligned, device)
    else:
        return None
    is_null = cast("_HasAddress", value).data_ptr() == 0
    return table.also_null(guard) if is_null else guard
