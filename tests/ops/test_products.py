"""tt.dot and ttg.dot: products whose operands do not go together do not verify."""

from __future__ import annotations

import pytest
from xdsl.dialects.builtin import (
    IntegerAttr,
    TensorType,
    f16,
    f32,
    f64,
    i8,
    i32,
)
from xdsl.ir import Attribute, Block
from xdsl.utils.exceptions import VerifyException

from tilewright.ir.op import build
from tilewright.ir.types import f8e4m3fn, f8e5m2
from tilewright.ops.matmul.ir import DotOp

E4M3, E5M2 = f8e4m3fn, f8e5m2


def product(a: Attribute, b: Attribute, c: Attribute, shapes: tuple[list[int], ...]) -> DotOp:
    types = [TensorType(x, shape) for x, shape in zip((a, b, c), shapes, strict=True)]
    block = Block(arg_types=types)
    precision = {"inputPrecision": IntegerAttr(2, i32)}
    op = build(DotOp, block.args, [types[2]], precision)
    block.add_op(op)
    assert isinstance(op, DotOp)
    return op


SQUARE = ([16, 16], [16, 16], [16, 16])


@pytest.mark.parametrize(
    ("a", "b", "c"),
    [(f16, f16, f32), (f16, f16, f16), (i8, i8, i32), (E4M3, E5M2, f32), (f64, f64, f64)],
)
def test_operands_of_one_class_are_multiplied(a: Attribute, b: Attribute, c: Attribute) -> None:
    product(a, b, c, SQUARE).verify()


@pytest.mark.parametrize(
    ("a", "b", "c"),
    [(f16, f32, f32), (i8, i8, f32), (f16, f16, i32), (i8, E4M3, f32), (f32, f32, f16)],
)
def test_elements_of_two_classes_are_not(a: Attribute, b: Attribute, c: Attribute) -> None:
    with pytest.raises(VerifyException, match=r"elements .* do not fit"):
        product(a, b, c, SQUARE).verify()


@pytest.mark.parametrize(
    "shapes",
    [
        ([16, 32], [16, 16], [16, 16]),
        ([16, 16], [16, 32], [16, 16]),
        ([2, 16, 16], [3, 16, 16], [2, 16, 16]),
    ],
)
def test_extents_that_do_not_meet_are_refused(shapes: tuple[list[int], ...]) -> None:
    with pytest.raises(VerifyException, match=r"shapes .* do not fit"):
        product(f16, f16, f32, shapes).verify()
