"""The C functions behind a type's attributes, for native code that calls them without look-ups.

A tensor package written in C keeps `dtype` in a getter and `data_ptr` in a method without
arguments; both are C functions of the object and a second word. CPython's descriptors say where
they are. A launcher that has checked an object's exact type may call them directly.
"""

from __future__ import annotations

import ctypes
import functools
import sys
import sysconfig
from types import GetSetDescriptorType, MemberDescriptorType, MethodDescriptorType

from tilewright.runtime.negation import negation_bit
from tilewright.runtime.plain_tensors import plain_words

_WORD = 8
# Offsets in CPython's descriptors (descrobject.h): the type, the name, what is described.
_DESCRIPTOR_TYPE, _DESCRIPTOR_NAME, _DESCRIBED = 2 * _WORD, 3 * _WORD, 5 * _WORD
# PyMethodDef: name, function, flags. PyGetSetDef: name, getter, setter, text, closure.
_FUNCTION, _FLAGS, _CLOSURE = _WORD, 2 * _WORD, 4 * _WORD
_METH_NOARGS = 4
# PyMemberDef: name, type, offset.
_MEMBER_OFFSET = 2 * _WORD

_Descriptor = GetSetDescriptorType | MethodDescriptorType | MemberDescriptorType


class Accessor(ctypes.Structure):
    """A C function that is called with an object and `argument`, and gives a new reference."""

    _fields_ = (("function", ctypes.c_void_p), ("argument", ctypes.c_void_p))


class TensorAccessors(ctypes.Structure):
    """What a launcher asks of a tensor: its dtype, where it is, the address of its data.

    And where its object says that it is a negated view (`negation.py`), or that it lies plainly in
    the CPU's memory (`plain_tensors.py`).
    """

    _fields_ = (
        *(("dtype", Accessor), ("place", Accessor), ("data_ptr", Accessor)),
        *(("body", ctypes.c_int64), ("keys", ctypes.c_int64), ("negated", ctypes.c_int64)),
        *(("care", ctypes.c_uint64), ("plain", ctypes.c_uint64), ("dtype_code", ctypes.c_int64)),
    )

    def code_of(self, tensor: object) -> int:
        """The number that stands for the dtype of a tensor of the type; 0 where there is none."""
        if not self.care:
            return 0
        body = _word(id(tensor) + self.body)
        return int(ctypes.c_uint16.from_address(body + self.dtype_code).value)


@functools.cache
def tensor_accessors(tensor_type: type, place: str) -> TensorAccessors | None:
    """The accessors of a type for `dtype`, `data_ptr()` and the attribute or method `place`.

    None where one of them is not in C, or this Python's objects are not known to lie as here,
    or where a type has negated views that cannot be told.
    """
    if sys.implementation.name != "cpython" or sysconfig.get_config_var("Py_GIL_DISABLED"):
        return None
    found = [_accessor(tensor_type, name) for name in ("dtype", place, "data_ptr")]
    if any(accessor is None for accessor in found):
        return None
    bit = negation_bit(tensor_type)
    if bit is None:
        return None
    words = plain_words(bit) if place == "is_cpu" and bit.mask else None
    plain = (0, 0, 0) if words is None else (words.care, words.plain, words.dtype_code)
    return TensorAccessors(*found, bit.body, bit.keys, bit.mask, *plain)


def member_offset(cls: type, name: str) -> int:
    """Where the objects of a class hold a slot; 0 where that is not known."""
    descriptor = vars(cls).get(name)
    if not isinstance(descriptor, MemberDescriptorType) or sys.implementation.name != "cpython":
        return 0
    definition = _definition(descriptor, cls)
    return _word(definition + _MEMBER_OFFSET) if definition else 0


def _accessor(cls: type, name: str) -> Accessor | None:
    """The C function behind an attribute, or behind a method without arguments."""
    owner = next((base for base in cls.__mro__ if name in vars(base)), None)
    if owner is None:
        return None
    descriptor = vars(owner)[name]
    if not isinstance(descriptor, GetSetDescriptorType | MethodDescriptorType):
        return None
    definition = _definition(descriptor, owner)
    if not definition:
        return None
    if isinstance(descriptor, GetSetDescriptorType):
        return Accessor(_word(definition + _FUNCTION), _word(definition + _CLOSURE))
    flags = ctypes.c_int.from_address(definition + _FLAGS).value
    return Accessor(_word(definition + _FUNCTION), None) if flags == _METH_NOARGS else None


def _definition(descriptor: _Descriptor, owner: type) -> int:
    """The address of the C structure that a descriptor of a class describes; 0 if unknown."""
    address, name = id(descriptor), descriptor.__name__
    is_known = (
        _word(address + _WORD) == id(type(descriptor))
        and _word(address + _DESCRIPTOR_TYPE) == id(owner)
        and _word(address + _DESCRIPTOR_NAME) == id(name)
    )
    definition = _word(address + _DESCRIBED) if is_known else 0
    is_named = definition and ctypes.c_char_p.from_address(definition).value == name.encode()
    return definition if is_named else 0


def _word(address: int) -> int:
    return ctypes.c_uint64.from_address(address).value
