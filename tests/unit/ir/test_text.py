"""Printing and parsing of modules, and text that other tools have written."""

from __future__ import annotations

import numpy as np
import pytest
from xdsl.dialects.builtin import (
    CallSiteLoc,
    FileLineColLoc,
    FloatAttr,
    FusedLoc,
    ModuleOp,
    NameLoc,
)

from tilewright.interp.evaluate import run_kernel
from tilewright.ir.levels import T0
from tilewright.ir.locations import call_chain
from tilewright.ir.op import build
from tilewright.ir.text import normalize, parse_module, print_module
from tilewright.ir.types import bf16, f8e4m3fn, f8e5m2, f16, f32, f64
from tilewright.ir.verify_level import verify_level
from tilewright.ops.creation.ir import ConstantOp
from tilewright.ops.dialects import tile_context
from tilewright.support.errors import MalformedText

# What a tool of the published dialect writes: aliases at both ends, hints, promises.
FOREIGN = """
#loc = loc("add.py":3:0)
#loc1 = loc(unknown)
"builtin.module"() ({
  "tt.func"() <{arg_attrs = [{tt.divisibility = 16 : i32}, {tt.divisibility = 16 : i32}, {}],
                function_type = (!tt.ptr<f32>, !tt.ptr<f32>, i32) -> (),
                sym_name = "add", sym_visibility = "public"}> ({
  ^bb0(%arg0: !tt.ptr<f32> loc(#loc9), %arg1: !tt.ptr<f32> loc(#loc9), %arg2: i32 loc(#loc)):
    %0 = "tt.get_program_id"() <{axis = 0 : i32}> : () -> i32 loc(#loc7)
    %1 = "arith.constant"() <{value = 64 : i32}> : () -> i32 loc(#loc)
    %2 = "arith.muli"(%0, %1) <{overflowFlags = #arith.overflow<none>}> : (i32, i32) -> i32
      loc(#loc8)
    %3 = "tt.make_range"() <{end = 64 : i32, start = 0 : i32}> : () -> tensor<64xi32> loc(#loc2)
    %4 = "tt.splat"(%2) : (i32) -> tensor<64xi32> loc(#loc2)
    %5 = "arith.addi"(%4, %3) <{overflowFlags = #arith.overflow<nsw, nuw>}> :
      (tensor<64xi32>, tensor<64xi32>) -> tensor<64xi32> loc(#loc3)
    %6 = "tt.splat"(%arg2) : (i32) -> tensor<64xi32> loc(#loc3)
    %7 = "arith.cmpi"(%5, %6) <{predicate = 2 : i64}> :
      (tensor<64xi32>, tensor<64xi32>) -> tensor<64xi1> loc(#loc3)
    %8 = "tt.splat"(%arg0) : (!tt.ptr<f32>) -> tensor<64x!tt.ptr<f32>> loc(#loc4)
    %9 = "tt.addptr"(%8, %5) :
      (tensor<64x!tt.ptr<f32>>, tensor<64xi32>) -> tensor<64x!tt.ptr<f32>> loc(#loc4)
    %10 = "tt.load"(%9, %7) <{boundaryCheck = array<i32>, cache = 1 : i32, evict = 1 : i32,
        isVolatile = false, operandSegmentSizes = array<i32: 1, 1, 0>}> :
      (tensor<64x!tt.ptr<f32>>, tensor<64xi1>) -> tensor<64xf32> loc(#loc5)
    %11 = "arith.addf"(%10, %10) <{fastmath = #arith.fastmath<none>}> :
      (tensor<64xf32>, tensor<64xf32>) -> tensor<64xf32> loc(#loc6)
    %12 = "tt.splat"(%arg1) : (!tt.ptr<f32>) -> tensor<64x!tt.ptr<f32>> loc(#loc6)
    %13 = "tt.addptr"(%12, %5) :
      (tensor<64x!tt.ptr<f32>>, tensor<64xi32>) -> tensor<64x!tt.ptr<f32>> loc(#loc6)
    "tt.store"(%13, %11, %7) <{boundaryCheck = array<i32>, cache = 1 : i32, evict = 1 : i32}> :
      (tensor<64x!tt.ptr<f32>>, tensor<64xf32>, tensor<64xi1>) -> () loc(#loc6)
    "tt.return"() : () -> () loc(#loc6)
  }) {noinline = false} : () -> () loc(#loc)
}) : () -> () loc(#loc)
#loc9 = loc("x_ptr"(#loc))
#loc8 = loc("offset"(#loc7))
#loc7 = loc(callsite(#loc2 at #loc3))
#loc6 = loc(fused<{kind = "x"}>[#loc4, #loc5])
#loc2 = loc("add.py":4:11)
#loc3 = loc("add.py":5:11)
#loc4 = loc("add.py":6:11)
#loc5 = loc("add.py":7:11)
"""


def test_foreign_text_parses_verifies_and_runs() -> None:
    module = parse_module(FOREIGN, tile_context())
    verify_level(module, T0)
    x, y = np.arange(100, dtype=np.float32), np.zeros(100, np.float32)
    run_kernel(module, [x, y, 100], (2,))
    assert np.array_equal(y, 2 * x)


def test_aliases_that_refer_to_later_ones_are_resolved() -> None:
    module = parse_module(FOREIGN, tile_context())
    by_name = {op.name: op.location for op in module.walk()}
    assert isinstance(by_name["arith.muli"], NameLoc)
    assert [s.line for s in call_chain(by_name["arith.muli"])] == [4, 5]
    assert isinstance(by_name["tt.get_program_id"], CallSiteLoc)
    assert isinstance(by_name["tt.store"], FusedLoc)
    assert [s.line for s in call_chain(by_name["tt.store"])] == [6]
    assert isinstance(by_name["tt.func"], FileLineColLoc)


def test_facts_of_arguments_survive() -> None:
    module = parse_module(FOREIGN, tile_context())
    (function,) = module.ops
    assert function.argument_facts(0)["tt.divisibility"].value.data == 16
    again = parse_module(print_module(module), tile_context())
    assert print_module(again) == print_module(module)


def test_locations_are_printed_only_when_asked_for() -> None:
    module = parse_module(FOREIGN, tile_context())
    assert "loc(" not in print_module(module)
    assert 'loc("x_ptr"("add.py":3:0))' in print_module(module, locations=True)


def test_text_that_looks_like_an_alias_inside_a_string_is_left_alone() -> None:
    text = '#loc = loc("#loc1":3:4)\n"builtin.module"() ({^entry:}) : () -> () loc(#loc)'
    module = parse_module(text, tile_context())
    assert call_chain(module.location)[0].file == "#loc1"


@pytest.mark.parametrize("value", ["inf", "-inf", "nan", "1e-40", "3.4028235e38", "-0.0", "0.1"])
@pytest.mark.parametrize("element", ["f16", "bf16", "f32", "f64", "f8E4M3FN", "f8E5M2"])
def test_float_constants_keep_their_value(value: str, element: str) -> None:
    types = {"f16": f16, "bf16": bf16, "f32": f32, "f64": f64,
             "f8E4M3FN": f8e4m3fn, "f8E5M2": f8e5m2}  # fmt: skip
    number = float(value)
    if element.startswith("f8") and (abs(number) > 1e5 or number == 1e-40):
        number = 1.5
    if element == "f16" and abs(number) > 65504:
        number = 65504.0
    attribute = FloatAttr(number, types[element])
    module = ModuleOp([build(ConstantOp, (), (types[element],), {"value": attribute})])
    again = parse_module(print_module(module), tile_context())
    (constant,) = again.ops
    before, after = np.float64(attribute.value.data), np.float64(constant.value.value.data)
    assert np.array_equal(before, after, equal_nan=True)
    assert np.signbit(before) == np.signbit(after) or np.isnan(before)


def constant(literal: str) -> str:
    return (
        f'"builtin.module"() ({{ "tt.func"() <{{sym_name = "f", function_type = () -> (), '
        f'sym_visibility = "public"}}> ({{ %0 = "arith.constant"() <{{value = {literal}}}> : () -> '
        f'{literal.partition(" : ")[2]}\n "tt.return"() : () -> () }}) : () -> () }}) : () -> ()'
    )


@pytest.mark.parametrize(
    ("literal", "bits"),
    [
        ("dense<0x7f800000> : tensor<4xf32>", [0x7F800000] * 4),
        ("dense<0xff800000> : tensor<2x2xf32>", [0xFF800000] * 4),
        ("dense<[0x7fc00001, 0x7fc00001]> : tensor<2xf32>", [0x7FC00001] * 2),
        ("dense<[1.0, 0x7f800000]> : tensor<2xf32>", [0x3F800000, 0x7F800000]),
        ("dense<0x7e00> : tensor<200xf16>", [0x7E00] * 200),
        ("dense<[[0xff80], [-0.0]]> : tensor<2x1xbf16>", [0xFF80, 0x8000]),
        ("dense<0x7e> : tensor<3xf8E5M2>", [0x7E] * 3),
        ("dense<0x7ff8000000000000> : tensor<2xf64>", [0x7FF8 << 48] * 2),
        ("dense<0x10> : tensor<3xi32>", [0x10] * 3),
    ],
)
def test_floats_of_a_tile_that_are_written_as_bits_keep_them(literal: str, bits: list[int]) -> None:
    module = parse_module(constant(literal), tile_context())
    (op,) = (op for op in module.walk() if isinstance(op, ConstantOp))
    data = op.properties["value"].data.data  # type: ignore[attr-defined]  # dense elements
    size = len(data) // len(bits)
    assert [int.from_bytes(data[i : i + size], "little") for i in range(0, len(data), size)] == bits
    text = print_module(module)
    assert print_module(parse_module(text, tile_context())) == text


def test_bits_that_no_float_of_the_type_has_are_refused() -> None:
    with pytest.raises(
        MalformedText, match="0x17f800000 has more than 32 bits, but the element is f32"
    ):
        parse_module(constant("dense<0x17f800000> : tensor<4xf32>"), tile_context())


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            '"builtin.module"() ({\n "tt.nothing"() : () -> ()\n}) : () -> ()',
            "bad.mlir:2, col 3-12",
        ),
        ("this is no module", "bad.mlir:1, col 1-4"),
        ("", "bad.mlir:1, col 1"),
        ('"builtin.module"() ({}) : () -> () loc(#loc3)', "loc3"),
        ("#loc1 = loc(#loc2)\n#loc2 = loc(#loc1)\n" + '"builtin.module"() ({}) : () -> ()', "loc2"),
        (
            '"builtin.module"() ({\n "tt.make_range"() <{start = 0 : i32, end = 8 : i32}> : '
            "() -> tensor<4xi32>\n}) : () -> ()",
            "8 elements do not fit",
        ),
        ("(" * 5000, "bad.mlir:1"),
        ('"' + "a" * 500, "a string literal does not end"),
        ('\n// "a comment\n"\\q" ' + "a" * 500, "a string literal does not end\n  bad.mlir:3"),
        ('"builtin.module"() ({ ' * 3000, "nested too deeply"),
    ],
)
def test_malformed_text_gives_one_kind_of_error(text: str, message: str) -> None:
    with pytest.raises(MalformedText, match=message):
        parse_module(text, tile_context(), name="bad.mlir")


def test_line_numbers_of_errors_are_those_of_the_text() -> None:
    broken = FOREIGN.replace('"tt.splat"(%arg0)', '"tt.splot"(%arg0)')
    line = broken.splitlines().index(next(t for t in broken.splitlines() if "splot" in t)) + 1
    with pytest.raises(MalformedText, match=f"<text>:{line}, col"):
        parse_module(broken, tile_context())


def test_normalizing_keeps_the_number_of_lines() -> None:
    assert normalize(FOREIGN).count("\n") == FOREIGN.count("\n")


@pytest.mark.parametrize(
    ("value", "reason"),
    [("1 : i0", "out of range for type i0"), ("dense<1> : tensor<4xi4096>", "for i4096")],
)
def test_an_attribute_that_breaks_its_own_rules_is_refused_at_its_place(
    value: str, reason: str
) -> None:
    with pytest.raises(MalformedText, match=reason) as error:
        parse_module(
            f'"builtin.module"() ({{}}) {{a = {value}}} : () -> ()', tile_context(), name="k"
        )
    assert "k:1, col" in str(error.value)
