"""Binding and specialisation of a kernel's arguments."""

from __future__ import annotations

from typing import NamedTuple

import ml_dtypes
import numpy as np
import pytest
from numpy.typing import DTypeLike

import tilewright.language as tl
from tilewright.frontend.constants import NamedTupleClass
from tilewright.frontend.program import Parameter, Specialization, TupleType
from tilewright.frontend.signature import bind, specialize
from tilewright.support.errors import ArgumentNotSupported, LiteralOutOfRange


class Point(NamedTuple):
    x: object
    y: object


class TorchLike:
    """What torch tensors show of themselves."""

    def __init__(self, dtype: str, address: int) -> None:
        self.dtype = dtype
        self._address = address

    def data_ptr(self) -> int:
        return self._address


class CudaLike:
    def __init__(self, typestr: str, address: int) -> None:
        self.__cuda_array_interface__ = {"typestr": typestr, "data": (address, False)}


class DlpackLike:
    def __init__(self, array: np.ndarray) -> None:
        self._array = array

    def __dlpack__(self):
        return self._array.__dlpack__()


class DescriptorLike:
    def __init__(self, base: object, block_shape: list[int], padding: str = "zero") -> None:
        self.base = base
        self.shape = [64, 64]
        self.strides = [64, 1]
        self.block_shape = block_shape
        self.padding = padding


def one(value: object, **flags: object) -> Specialization:
    return specialize("k", [Parameter("x", **flags)], {"x": value})


def type_of(value: object, **flags: object) -> object:
    return one(value, **flags).signature[0][1]


@pytest.mark.parametrize(
    ("value", "type_"),
    [
        (True, "u1"),
        (np.bool_(True), "u1"),
        (7, "i32"),
        (-(2**31), "i32"),
        (2**31, "i64"),
        (2**63, "u64"),
        (np.int64(7), "i32"),
        (1.5, "fp32"),
        (np.float64(1.5), "fp32"),
        (np.float32(1.5), "fp32"),
        (None, "constexpr"),
        (1, "constexpr"),
        (tl.float16, "constexpr"),
        (tl.constexpr(5), "constexpr"),
        ("text", "constexpr"),
    ],
)
def test_scalars_have_the_narrowest_type(value: object, type_: str):
    assert type_of(value) == type_


@pytest.mark.parametrize(
    ("dtype", "type_"),
    [
        ("float32", "*fp32"),
        ("float64", "*fp64"),
        ("float16", "*fp16"),
        ("int8", "*i8"),
        ("uint16", "*u16"),
        ("bool", "*i1"),
        (ml_dtypes.bfloat16, "*bf16"),
        (ml_dtypes.float8_e4m3fn, "*fp8e4nv"),
        (ml_dtypes.float8_e5m2, "*fp8e5"),
    ],
)
def test_numpy_arrays_are_pointers(dtype: DTypeLike, type_: str):
    assert type_of(np.zeros(4, dtype)) == type_


@pytest.mark.parametrize(
    ("value", "type_"),
    [
        (TorchLike("torch.bfloat16", 32), "*bf16"),
        (TorchLike("torch.float8_e4m3fn", 32), "*fp8e4nv"),
        (CudaLike("<f4", 32), "*fp32"),
        (CudaLike("|b1", 32), "*i1"),
        (DlpackLike(np.zeros(4, np.int16)), "*i16"),
        (DescriptorLike(np.zeros((64, 64), np.float16), [16, 32]), "tensordesc<fp16[16,32]>"),
        (DescriptorLike(np.zeros(64, np.float32), [16], "nan"), "tensordesc<fp32[16],nan>"),
    ],
)
def test_other_arrays_speak_by_protocol(value: object, type_: str):
    assert type_of(value) == type_


def test_alignment_is_known_only_where_it_holds_and_is_asked_for():
    assert one(TorchLike("torch.float32", 32)).divisibility == {("x",): 16}
    assert one(TorchLike("torch.float32", 36)).divisibility == {}
    assert one(TorchLike("torch.float32", 32), specialize=False).divisibility == {}
    assert one(TorchLike("torch.float32", 32), specialize_alignment=False).divisibility == {}


def test_multiples_of_16_are_known():
    assert one(48).divisibility == {("x",): 16}
    assert one(0).divisibility == {("x",): 16}
    assert one(8).divisibility == {}
    assert one(48, specialize=False).divisibility == {}


def test_one_is_a_constant_unless_specialisation_is_off():
    assert one(1).constants == {("x",): 1}
    assert type_of(1, specialize=False) == "i32"
    assert type_of(1, annotation="i64") == "i64"
    assert type_of(True, specialize=True) == "u1"


@pytest.mark.parametrize(
    ("annotation", "value", "type_"),
    [
        ("i64", 5, "i64"),
        ("u8", 200, "u8"),
        ("fp16", 1.5, "fp16"),
        ("fp32", 3, "fp32"),
        ("i1", True, "u1"),
        ("*fp16", TorchLike("torch.float32", 32), "*fp16"),
        ("constexpr", 3, "constexpr"),
        ("const", TorchLike("torch.float32", 32), "*kfp32"),
    ],
)
def test_annotations_fix_the_type(annotation: str, value: object, type_: str):
    assert type_of(value, annotation=annotation) == type_


def test_tuples_are_specialised_per_element():
    result = one(Point(TorchLike("torch.int32", 16), (1, 32, 2.5)))
    cls = NamedTupleClass("Point", ("x", "y"))
    inner = TupleType(("constexpr", "i32", "fp32"))
    assert result.signature == (("x", TupleType(("*i32", inner), cls)),)
    assert result.constants == {("x", 1, 0): 1}
    assert result.divisibility == {("x", 0): 16, ("x", 1, 1): 16}
    paths = [path for path, _ in result.runtime_leaves()]
    assert paths == [("x", 0), ("x", 1, 1), ("x", 1, 2)]


def test_numbers_beyond_64_bits_are_refused():
    with pytest.raises(LiteralOutOfRange):
        one(2**64)
    with pytest.raises(LiteralOutOfRange):
        one(-(2**63) - 1)


def test_objects_are_refused_by_name():
    with pytest.raises(ArgumentNotSupported, match=r"k\(\): `x` is an object of type object"):
        one(object())


def test_binding_fills_defaults_and_collects_the_rest():
    parameters = [
        Parameter("a"),
        Parameter("b", has_default=True, default=2),
        Parameter("rest", "varargs"),
        Parameter("c", "keyword", has_default=True, default=3),
    ]
    assert bind("f", parameters, [1], {}) == {"a": 1, "b": 2, "rest": (), "c": 3}
    assert bind("f", parameters, [1, 5, 6, 7], {"c": 9}) == {"a": 1, "b": 5, "rest": (6, 7), "c": 9}
