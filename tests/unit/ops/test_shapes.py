"""Ops that move elements verify: text with shapes that do not fit is refused at its line."""

from __future__ import annotations

import pytest

from tilewright.compiler.named_passes import run_passes_on_text
from tilewright.support.errors import MalformedText

MODULE = """
!t = tensor<4x8xf32>
!w = tensor<8x4xf32>
"builtin.module"() ({
  "tt.func"() <{sym_name = "k", function_type = (!t, !w) -> ()}> ({
  ^bb0(%t: !t, %w: !w):
    OP
    "tt.return"() : () -> ()
  }) : () -> ()
}) : () -> ()
"""
COMBINE = """ ({
  ^bb0(%x: f32, %y: f32):
    "NAME.return"(%x) : (f32) -> ()
  }) : """


def fold(name: str, axis: int, types: str) -> str:
    combine = COMBINE.replace("NAME", name)
    return f'%r = "{name}"(%t) <{{axis = {axis} : i32}}>{combine}{types}'


WELL = {
    "expand": '%r = "tt.expand_dims"(%t) <{axis = 1 : i32}> : (!t) -> tensor<4x1x8xf32>',
    "trans": '%r = "tt.trans"(%t) <{order = array<i32: 1, 0>}> : (!t) -> !w',
    "reshape": '%r = "tt.reshape"(%t) : (!t) -> !w',
    "join": '%r = "tt.join"(%t, %t) : (!t, !t) -> tensor<4x8x2xf32>',
    "cat": '%r = "tt.cat"(%t, %t) : (!t, !t) -> tensor<8x8xf32>',
    "flip": '%r = "tw.flip"(%t) <{axis = 1 : i32}> : (!t) -> !t',
    "reduce": fold("tt.reduce", 1, "(!t) -> tensor<4xf32>"),
    "scan": fold("tt.scan", 1, "(!t) -> !t"),
}
ILL = {
    "expand behind": (
        '%r = "tt.expand_dims"(%t) <{axis = 3 : i32}> : (!t) -> tensor<4x8x1xf32>',
        "axis 3 of a tile of 2 dimensions",
    ),
    "expand wide": (
        '%r = "tt.expand_dims"(%t) <{axis = 1 : i32}> : (!t) -> tensor<4x2x8xf32>',
        "a shape is (4, 2, 8), expected (4, 1, 8)",
    ),
    "broadcast": (
        '%r = "tt.broadcast"(%t) : (!t) -> tensor<8x8xf32>',
        "(4, 8) does not broadcast to (8, 8)",
    ),
    "trans twice": (
        '%r = "tt.trans"(%t) <{order = array<i32: 0, 0>}> : (!t) -> !t',
        "(0, 0) is no order of 2 dimensions",
    ),
    "trans": ('%r = "tt.trans"(%t) <{order = array<i32: 1, 0>}> : (!t) -> !t', "expected (8, 4)"),
    "reshape": ('%r = "tt.reshape"(%t) : (!t) -> tensor<4x4xf32>', "another number of elements"),
    "join": ('%r = "tt.join"(%t, %t) : (!t, !t) -> !t', "expected (4, 8, 2)"),
    "split": (
        '%r, %q = "tt.split"(%t) : (!t) -> (tensor<4xf32>, tensor<4xf32>)',
        "a shape is (4, 8), expected (4, 2)",
    ),
    "cat": ('%r = "tt.cat"(%t, %w) : (!t, !w) -> !t', "tiles of (4, 8) and (8, 4)"),
    "flip": ('%r = "tw.flip"(%t) <{axis = 2 : i32}> : (!t) -> !t', "axis 2 of (4, 8)"),
    "reduce": (fold("tt.reduce", 2, "(!t) -> !t"), "axis 2 of [(4, 8)]"),
    "scan": (fold("tt.scan", -1, "(!t) -> !t"), "axis -1 of [(4, 8)]"),
}


@pytest.mark.parametrize("name", WELL)
def test_shapes_that_fit_are_taken(name: str) -> None:
    assert "%r" in run_passes_on_text(MODULE.replace("OP", WELL[name]), "merge-duplicates")


@pytest.mark.parametrize("name", ILL)
def test_shapes_that_do_not_fit_are_refused_at_their_line(name: str) -> None:
    text, reason = ILL[name]
    with pytest.raises(MalformedText) as error:
        run_passes_on_text(MODULE.replace("OP", text), "merge-duplicates", name="k.mlir")
    assert reason in str(error.value) and "k.mlir:7" in str(error.value)
