"""Fills of a channel that replicas put by parts: whole for everybody, or a fault that says why."""

from __future__ import annotations

import numpy as np
import pytest
from xdsl.dialects.builtin import ModuleOp

from tests.unit.channel_programs import channel, context, loop, program, roles
from tilewright.interp.evaluate import run_kernel
from tilewright.interp.rules.channels import run_roles
from tilewright.ir.text import parse_module, print_module
from tilewright.support.errors import Deadlock, InternalError, KernelFault, MalformedText

assert run_roles is not None  # its module registers the rules

TILE = "tensor<4xi32>"
_PUT = """%half = "tt.make_range"() <{start = 0 : i32, end = 2 : i32}> : () -> tensor<2xi32>
      %many = "tt.splat"(PLUS) : (i32) -> tensor<2xi32>
      %part = "arith.addi"(%half, %many) : (tensor<2xi32>, tensor<2xi32>) -> tensor<2xi32>
      "tw.put_part"(%c, %part, NUMBER) <{dim = DIM : i32}> : (!tw.channel, tensor<2xi32>, i32) -> ()
"""
_GET = """%all = "tw.get"(%c) : (!tw.channel) -> tensor<4xi32>
      %ten = "arith.constant"() <{value = 8 : i32}> : () -> i32
      %row = "arith.muli"(%r, %ten) : (i32, i32) -> i32
      %four = "arith.constant"() <{value = 4 : i32}> : () -> i32
      %step = "arith.muli"(%k, %four) : (i32, i32) -> i32
      %at = "arith.addi"(%row, %step) : (i32, i32) -> i32
      %to = "tt.addptr"(%out, %at) : (!tt.ptr<i32>, i32) -> !tt.ptr<i32>
      %tos = "tt.splat"(%to) : (!tt.ptr<i32>) -> tensor<4x!tt.ptr<i32>>
      %steps = "tt.make_range"() <{start = 0 : i32, end = 4 : i32}> : () -> tensor<4xi32>
      %places = "tt.addptr"(%tos, %steps) : (tensor<4x!tt.ptr<i32>>, tensor<4xi32>)
        -> tensor<4x!tt.ptr<i32>>
      "tt.store"(%places, %all) <{cache = 1 : i32, evict = 1 : i32, boundaryCheck = array<i32>}>
        : (tensor<4x!tt.ptr<i32>>, tensor<4xi32>) -> ()"""


def gathering(
    count: str = "%n", number: str = "%r", dim: str = "0", type_: str = TILE, slots: int = 1
) -> ModuleOp:
    """Two replicas that put halves [r + k, r + k + 1] `count` times and get all of them."""
    plus = '%plus = "arith.addi"(%r, %k) : (i32, i32) -> i32\n      '
    put = plus + _PUT.replace("PLUS", "%plus").replace("NUMBER", number).replace("DIM", dim)
    return program(
        channel(slots=slots, type_=type_), roles(2, loop("%zero", ""), loop(count, put + _GET))
    )


def run(module: ModuleOp, count: int, other: int = 0) -> np.ndarray:
    out = np.zeros(16, np.int32)
    run_kernel(module, [np.zeros(4, np.int32), out, count, other], (1,))
    return out.reshape(2, 2, 4)


@pytest.mark.parametrize("slots", [1, 2, 3])
def test_every_replica_gets_the_parts_of_all(slots: int) -> None:
    found = run(gathering(slots=slots), 2)
    for fill in range(2):
        wanted = [fill, fill + 1, fill + 1, fill + 2]
        np.testing.assert_array_equal(found[:, fill], [wanted, wanted])


def test_text_of_parts_round_trips() -> None:
    printed = print_module(gathering())
    assert print_module(parse_module(printed, context())) == printed


def test_a_replica_that_puts_nothing_is_a_deadlock() -> None:
    """Replica r goes round r times: the second one waits for a part that nobody puts."""
    with pytest.raises(Deadlock, match="math 1 waits for fill 0 of channel c"):
        run(gathering("%r"), 1)


def test_a_part_that_is_none_is_a_fault() -> None:
    with pytest.raises(KernelFault, match="channel c has no part 2"):
        run(gathering(number="%m"), 1, 2)


@pytest.mark.parametrize(
    ("dim", "type_"), [("1", TILE), ("0", "tensor<3xi32>"), ("0", "tensor<4xf32>")]
)
def test_a_value_that_is_no_part_is_refused(dim: str, type_: str) -> None:
    with pytest.raises((InternalError, MalformedText), match=r"is no part of|carries"):
        gathering(dim=dim, type_=type_)
