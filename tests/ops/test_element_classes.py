"""Elementwise ops on elements of a wrong class do not verify, whichever op it is."""

from __future__ import annotations

import pytest

from tilewright.ir.op import ElementwiseOp
from tilewright.ir.text import parse_module
from tilewright.ops.dialects import tile_context
from tilewright.ops.elementwise.ir import ELEMENTWISE_OPS, BinaryFloatOp, BinaryOp, CastOp, UnaryOp
from tilewright.support.errors import MalformedText

PROGRAM = """
"builtin.module"() ({{
  "tt.func"() <{{sym_name = "k", function_type = ({a}, {b}, {c}) -> ()}}> ({{
  ^bb0(%a: {a}, %b: {b}, %c: {c}):
    %r = "{name}"({operands}){properties} : ({types}) -> {result}
    "tt.return"() : () -> ()
  }}) : () -> ()
}}) : () -> ()
"""
POINTER = "!tt.ptr<f32>"


def check(name: str, types: tuple[str, ...], result: str, properties: str = "") -> None:
    a, b, c = (*types, *types, *types)[:3]
    operands = ", ".join(("%a", "%b", "%c")[: len(types)])
    text = PROGRAM.format(
        a=a, b=b, c=c, name=name, operands=operands, properties=properties,
        types=", ".join(types), result=result,
    )  # fmt: skip
    parse_module(text, tile_context())


def refused(name: str, types: tuple[str, ...], result: str, properties: str = "") -> None:
    with pytest.raises(MalformedText, match=name.replace(".", r"\.")) as caught:
        check(name, types, result, properties)
    assert caught.value.span is not None


OF_INTEGERS = ("math.absi", "math.ctpop", "math.ctlz", "math.cttz")
TILES = (("f32", "i32"), ("tensor<8xf32>", "tensor<8xi32>"))


OF_ONE_TYPE = [op for op in ELEMENTWISE_OPS if issubclass(op, BinaryOp | BinaryFloatOp | UnaryOp)]


def test_every_op_of_the_tables_checks_its_elements() -> None:
    assert len(OF_ONE_TYPE) > 60
    assert not [op for op in ELEMENTWISE_OPS if op.verify_ is ElementwiseOp.verify_]


@pytest.mark.parametrize("op", OF_ONE_TYPE, ids=lambda op: op.name)
def test_an_op_takes_its_class_of_elements_and_no_other(op: type) -> None:
    is_integer = issubclass(op, BinaryOp) or op.name in OF_INTEGERS
    count = 1 if issubclass(op, UnaryOp) else 2
    for floats, integers in TILES:
        right, wrong = (integers, floats) if is_integer else (floats, integers)
        check(op.name, (right,) * count, right)
        refused(op.name, (wrong,) * count, wrong)
        refused(op.name, (right,) * count, wrong)
    refused(op.name, (POINTER,) * count, POINTER)
    if count == 2:
        refused(op.name, ("i32", "i64") if is_integer else ("f32", "f64"), "i32")


CASTS = {
    "arith.sitofp": ("i32", "f32", [("f32", "f32"), ("i32", "i32"), (POINTER, "f32")]),
    "arith.uitofp": ("i32", "f32", [("f32", "f32"), ("i32", "i32")]),
    "arith.fptosi": ("f32", "i8", [("i8", "i8"), ("f32", "f32")]),
    "arith.fptoui": ("f32", "i8", [("i8", "i8"), ("f32", "f32")]),
    "arith.extsi": ("i8", "i32", [("i32", "i8"), ("i32", "i32"), ("f16", "f32")]),
    "arith.extui": ("i1", "i32", [("i32", "i8"), ("i32", "i32"), ("f16", "f32")]),
    "arith.trunci": ("i32", "i8", [("i8", "i32"), ("i8", "i8"), ("f32", "f16")]),
    "arith.extf": ("f16", "f32", [("f32", "f16"), ("i16", "i32"), ("f32", "f32")]),
    "arith.truncf": ("f32", "f16", [("f16", "f32"), ("i32", "i16")]),
    "arith.bitcast": ("f32", "i32", [("f32", "i16"), (POINTER, "i64")]),
    "tt.bitcast": ("f32", "i32", [("f32", "i16")]),
    "arith.index_cast": ("index", "i32", [("f32", "index")]),
    "tt.int_to_ptr": ("i64", POINTER, [("f64", POINTER), ("i64", "i64")]),
    "tt.ptr_to_int": (POINTER, "i64", [("i64", "i64"), (POINTER, "f64")]),
    "tt.fp_to_fp": ("f16", "bf16", [("i16", "bf16"), ("f16", "i16")]),
}


def test_every_cast_says_what_it_converts() -> None:
    assert set(CASTS) == {op.name for op in ELEMENTWISE_OPS if issubclass(op, CastOp)}


@pytest.mark.parametrize("name", CASTS)
def test_a_cast_converts_between_its_kinds_and_widths_alone(name: str) -> None:
    source, result, others = CASTS[name]
    check(name, (source,), result)
    for wrong_source, wrong_result in others:
        refused(name, (wrong_source,), wrong_result)


def test_comparisons_choices_and_combinations_check_each_operand() -> None:
    eq, slt = " <{predicate = 0 : i64}>", " <{predicate = 2 : i64}>"
    check("arith.cmpi", ("i32", "i32"), "i1", eq)
    check("arith.cmpi", (POINTER, POINTER), "i1", eq)
    refused("arith.cmpi", ("f32", "f32"), "i1", eq)
    refused("arith.cmpi", ("i32", "i32"), "i32", slt)
    refused("arith.cmpi", ("i32", "i32"), "i1", " <{predicate = 10 : i64}>")
    refused("arith.cmpi", ("i32", "i32"), "i1", " <{predicate = -1 : i64}>")
    check("arith.cmpf", ("f32", "f32"), "i1", slt)
    refused("arith.cmpf", ("i32", "i32"), "i1", slt)
    refused("arith.cmpf", ("f32", "f32"), "i1", " <{predicate = 16 : i64}>")
    check("arith.select", ("i1", "f32", "f32"), "f32")
    check("arith.select", ("i1", "tensor<8xf32>", "tensor<8xf32>"), "tensor<8xf32>")
    refused("arith.select", ("i32", "f32", "f32"), "f32")
    refused("arith.select", ("i1", "f32", "f16"), "f32")
    refused("arith.select", ("tensor<4xi1>", "tensor<8xf32>", "tensor<8xf32>"), "tensor<8xf32>")
    check("math.fma", ("f32", "f32", "f32"), "f32")
    refused("math.fma", ("i32", "i32", "i32"), "i32")
    check("tt.clampf", ("f32", "f32", "f32"), "f32")
    refused("tt.clampf", ("f32", "f32", "i32"), "f32")


TILE, COUNTS, POINTERS = "tensor<8xf32>", "tensor<8xi32>", "tensor<8x!tt.ptr<f32>>"
ONE = " <{operandSegmentSizes = array<i32: 1, 0, 0>}>"
MASKED = " <{operandSegmentSizes = array<i32: 1, 1, 0>}>"
MOVES = [
    ("tt.addptr", (POINTER, "i32"), POINTER, "", [((POINTER, "f32"), POINTER)]),
    ("tt.load", (POINTER,), "f32", ONE, [((POINTER,), "i32"), (("f32",), "f32")]),
    ("tt.load", (POINTERS, "tensor<8xi1>"), TILE, MASKED, [((POINTERS, COUNTS), TILE)]),
    ("tt.splat", ("f32",), TILE, "", [(("f32",), COUNTS)]),
    ("tt.broadcast", ("tensor<1xf32>",), TILE, "", [(("tensor<1xf32>",), COUNTS)]),
    ("tt.reshape", (TILE,), "tensor<2x4xf32>", "", [((TILE,), "tensor<2x4xi32>")]),
    ("tt.join", (TILE, TILE), "tensor<8x2xf32>", "", [((TILE, COUNTS), "tensor<8x2xf32>")]),
    ("tt.cat", (TILE, TILE), "tensor<16xf32>", "", [((TILE, TILE), "tensor<16xi32>")]),
    ("tt.unsplat", ("tensor<1xf32>",), "f32", "", [(("tensor<1xf32>",), "i32")]),
    (
        *("tt.gather", (TILE, COUNTS), TILE, " <{axis = 0 : i32}>"),
        [((TILE, TILE), TILE), ((TILE, COUNTS), COUNTS)],
    ),
    ("tt.histogram", (COUNTS,), COUNTS, "", [((TILE,), COUNTS)]),
    (
        *("tt.expand_dims", (TILE,), "tensor<1x8xf32>", " <{axis = 0 : i32}>"),
        [((TILE,), "tensor<1x8xi32>")],
    ),
]


@pytest.mark.parametrize("case", MOVES, ids=lambda case: case[0])
def test_what_moves_elements_keeps_their_type(case: tuple) -> None:
    name, types, result, properties, others = case
    check(name, types, result, properties)
    for wrong_types, wrong_result in others:
        refused(name, wrong_types, wrong_result, properties)
