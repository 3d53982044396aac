"""What an array argument is: element type and address, by whichever protocol it speaks.

Nothing is copied and no array package is imported: an object is asked for attributes.
"""

from __future__ import annotations

import ctypes
import math
import operator
from collections.abc import Callable, Sequence
from typing import Any, Protocol, SupportsIndex, TypeVar, cast

from tilewright.language.core import DTYPE_BY_SHORT_NAME, dtype
from tilewright.support.dataclass import dataclass
from tilewright.support.errors import ArgumentNotSupported

_T = TypeVar("_T")

# Names that array packages give to our dtypes, beyond our own.
_ELEMENT_NAMES: dict[str, str] = {
    "bool": "i1",
    "bool_": "i1",
    "float16": "fp16",
    "half": "fp16",
    "bfloat16": "bf16",
    "float32": "fp32",
    "float64": "fp64",
    "float8_e4m3fn": "fp8e4nv",
    "float8_e4m3": "fp8e4nv",
    "float8_e5m2": "fp8e5",
    "float8_e4m3fnuz": "fp8e4b8",
    "float8_e5m2fnuz": "fp8e5b16",
}
# The type strings of the array interfaces, without byte order.
_TYPE_STRINGS = {
    "b1": "i1",
    **{f"{kind}{width}": f"{kind}{8 * width}" for kind in "iu" for width in (1, 2, 4, 8)},
    "f2": "fp16",
    "f4": "fp32",
    "f8": "fp64",
}
DESCRIPTOR_ALIGNMENT_BYTES = 16
# DLPack type codes: int, uint, float, bfloat, bool.
_DLPACK_KINDS = {0: "i", 1: "u", 2: "fp", 4: "bf", 6: "i"}


@dataclass(frozen=True)
class ArrayFacts:
    """The element type and the address of the first element; whether a kernel may store there.

    `is_negated` marks a view whose values are those in memory with the other sign.
    """

    element: dtype
    address: int
    is_writable: bool = True
    is_negated: bool = False


class NoAddress(Exception):
    """An array does not say where its memory is; the text is what its package says of that.

    It is sparse, inside of `vmap`, or no longer there. Whoever knows the parameter names it.
    """


def array_facts(value: object) -> ArrayFacts | None:
    """What `value` is when it is an array, or None. Raises: NoAddress."""
    element = str(getattr(value, "dtype", ""))
    pointer = getattr(value, "data_ptr", None)
    if callable(pointer) and element:
        address = _asked(lambda: operator.index(cast("SupportsIndex", pointer())))
        return _tensor_facts(value, element_named(element), address)
    interface = getattr(value, "__array_interface__", None)
    if isinstance(interface, dict) and element:
        return _interface_facts(element_named(element), interface)
    interface = getattr(value, "__cuda_array_interface__", None)
    if isinstance(interface, dict):
        return _interface_facts(_element_of_type_string(interface["typestr"]), interface)
    export = getattr(value, "__dlpack__", None)
    return _dlpack_facts(_asked(lambda: _capsule(export))) if callable(export) else None


def _asked(ask: Callable[[], _T]) -> _T:
    """What an array answers, of whose package any exception may come."""
    try:
        return ask()
    except Exception as error:
        raise NoAddress(str(error) or type(error).__name__) from error


def num_elements_without_memory(value: object) -> int:
    """The elements of a tensor at address 0: fake, or its storage was freed; 0 for all others."""
    count = getattr(value, "numel", None)
    facts = array_facts(value)
    is_null = facts is not None and facts.address == 0
    return int(cast("int", count())) if is_null and callable(count) else 0


def _tensor_facts(value: object, element: dtype | None, address: int) -> ArrayFacts | None:
    if element is None:
        return None
    # Of what has `data_ptr` only NumPy's arrays under another dtype say that they are read-only.
    is_writable = bool(getattr(getattr(value, "flags", None), "writeable", True))
    is_negated = getattr(value, "is_neg", None)
    return ArrayFacts(
        element, address, is_writable, bool(is_negated()) if callable(is_negated) else False
    )


def _interface_facts(element: dtype | None, interface: dict[str, Any]) -> ArrayFacts | None:
    address, is_read_only = interface["data"]
    return None if element is None else ArrayFacts(element, address, not is_read_only)


def element_named(name: str) -> dtype | None:
    """The dtype that array packages call `name` (`torch.float32`, `float8_e5m2`, `uint8`)."""
    short = name.rpartition(".")[2]
    return DTYPE_BY_SHORT_NAME.get(_ELEMENT_NAMES.get(short, short))


def _element_of_type_string(text: str) -> dtype | None:
    return DTYPE_BY_SHORT_NAME.get(_TYPE_STRINGS.get(text[1:], ""))


class _DLTensor(ctypes.Structure):
    """The head of a DLManagedTensor, as the DLPack specification lays it out."""

    _fields_ = [
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.c_void_p),
        ("strides", ctypes.c_void_p),
        ("byte_offset", ctypes.c_uint64),
    ]


class _VersionedTensor(ctypes.Structure):
    """The head of a DLManagedTensorVersioned, which says whether it may be written."""

    _fields_ = [
        ("major", ctypes.c_uint32),
        ("minor", ctypes.c_uint32),
        ("manager", ctypes.c_void_p),
        ("deleter", ctypes.c_void_p),
        ("flags", ctypes.c_uint64),
        ("tensor", _DLTensor),
    ]


_DLPACK_READ_ONLY = 1
_PLAIN_CAPSULE, _VERSIONED_CAPSULE = b"dltensor", b"dltensor_versioned"


def _capsule(export: Callable[..., object]) -> object:
    """The DLPack capsule of an array: one with flags where its package knows them."""
    try:
        return export(max_version=(1, 0))
    except TypeError:  # older than the flags
        return export()


def _dlpack_facts(capsule: object) -> ArrayFacts | None:
    """The facts of a DLPack capsule, which stays ours to drop: nothing is taken over."""
    flags = 0
    address = _capsule_address(capsule, _VERSIONED_CAPSULE)
    if address is not None:
        versioned = _VersionedTensor.from_address(address)
        flags, head = versioned.flags, versioned.tensor
    else:
        head = _DLTensor.from_address(_capsule_address(capsule, _PLAIN_CAPSULE) or 0)
    bits = 1 if head.code == 6 else head.bits
    element = DTYPE_BY_SHORT_NAME.get(f"{_DLPACK_KINDS.get(head.code, '?')}{bits}")
    if element is None:
        return None
    return ArrayFacts(element, (head.data or 0) + head.byte_offset, not flags & _DLPACK_READ_ONLY)


def _capsule_address(capsule: object, name: bytes) -> int | None:
    """What a capsule of this name points to; None for one of another name."""
    is_valid, pointer_of = ctypes.pythonapi.PyCapsule_IsValid, ctypes.pythonapi.PyCapsule_GetPointer
    is_valid.argtypes = pointer_of.argtypes = [ctypes.py_object, ctypes.c_char_p]
    pointer_of.restype = ctypes.c_void_p
    return pointer_of(capsule, name) if is_valid(capsule, name) else None


def scalar_value(value: object) -> bool | int | float | None:
    """The Python number that a scalar argument holds, or None for anything else.

    NumPy scalars count: subclasses of int and float, and 0-d `generic` values by `item()`.
    """
    for kind in (bool, int, float):
        if isinstance(value, kind):
            return kind(value)
    item = getattr(value, "item", None)
    is_generic = any(base.__name__ == "generic" for base in type(value).__mro__)
    plain = item() if is_generic and callable(item) else None
    return plain if isinstance(plain, bool | int | float) else None


def is_descriptor(value: object) -> bool:
    """Whether `value` is a host tensor descriptor, by what it has."""
    return getattr(value, "block_shape", None) is not None and hasattr(value, "strides")


def descriptor_facts(value: object) -> str | None:
    """The signature text of a host tensor descriptor, or None for anything else.

    Raises: ShapeMismatch, NotPowerOfTwo for a block that no kernel can use.
    """
    if not is_descriptor(value):
        return None
    block_shape: Sequence[int] = getattr(value, "block_shape", ())
    facts = array_facts(getattr(value, "base", None))
    if facts is None:
        return None
    # The block may have been a placeholder until now: what it is matters when it is used.
    check = getattr(value, "check_launch", None)
    if callable(check):
        check()
    shape = ",".join(str(int(extent)) for extent in block_shape)
    padding = str(getattr(value, "padding", "zero"))
    suffix = "" if padding == "zero" else f",{padding}"
    return f"tensordesc<{facts.element.short_name()}[{shape}]{suffix}>"


def descriptor_slots(value: object) -> list[int]:
    """The launch arguments of a host tensor descriptor: address, extents, strides in elements."""
    facts = array_facts(getattr(value, "base", None))
    extents = getattr(value, "shape", ())
    strides = getattr(value, "strides", ())
    if facts is None:
        raise ArgumentNotSupported(f"{type(value).__name__} is no tensor descriptor")
    if facts.address % DESCRIPTOR_ALIGNMENT_BYTES:
        raise ArgumentNotSupported(
            f"the base of a tensor descriptor is at the address {facts.address:#x}, which is no "
            f"multiple of {DESCRIPTOR_ALIGNMENT_BYTES}",
            hint="describe the tensor from an aligned element on, or copy it",
        )
    return [facts.address, *(int(extent) for extent in extents), *(int(s) for s in strides)]


def array_bounds(value: object) -> tuple[int, int]:
    """The first byte of an array's memory and the byte behind its last.

    Where the extent is not known nothing is out of bounds.
    """
    return known_bounds(value) or (0, (1 << 63) - 1)


def known_bounds(value: object) -> tuple[int, int] | None:
    """The bounds of an array's memory, or None where its extent is not known.

    A torch tensor's are its storage's. An object of another package has those of the array in it
    (its `base`, its `data` or its `storage`) that holds its address.
    """
    storage = getattr(value, "untyped_storage", None)
    if callable(storage):
        memory = cast("_Storage", storage())
        return memory.data_ptr(), memory.data_ptr() + memory.nbytes()
    interface = getattr(value, "__array_interface__", None)
    if isinstance(interface, dict):
        return _strided_bounds(interface)
    facts = array_facts(value)
    if facts is None:
        return None
    for name in ("base", "data", "storage"):
        inner = getattr(value, name, None)
        if inner is None or inner is value or array_facts(inner) is None:
            continue
        found = known_bounds(inner)
        if found is not None and found[0] <= facts.address <= found[1]:
            return found
    return None


def bounds_of(value: object) -> tuple[int, int]:
    """The bounds of an array whose bytes are read here. Raises: ArgumentNotSupported."""
    found = known_bounds(value)
    if found is None:
        raise ArgumentNotSupported(
            f"{type(value).__name__} says where its memory begins, and not how much there is",
            hint="pass the NumPy array or torch tensor in it, or give it as its `data`",
        )
    return found


class _Storage(Protocol):
    def data_ptr(self) -> int: ...

    def nbytes(self) -> int: ...


def _strided_bounds(interface: dict[str, Any]) -> tuple[int, int]:
    low = high = interface["data"][0]
    itemsize = int(interface["typestr"][2:])
    shape = interface["shape"]
    if 0 in shape:
        return low, low
    strides = interface.get("strides")
    if strides is None:
        return low, low + math.prod(shape) * itemsize
    for extent, stride in zip(shape, strides, strict=True):
        reach = (extent - 1) * stride
        low, high = (low + reach, high) if reach < 0 else (low, high + reach)
    return low, high + itemsize
