"""Roles at T0r: what they pass through channels, and what is no network of roles."""

from __future__ import annotations

import numpy as np
import pytest
from xdsl.dialects.builtin import ModuleOp

from tests.unit.channel_programs import (
    GET,
    LOAD,
    PUT,
    ROW,
    STORE,
    channel,
    context,
    loop,
    program,
    roles,
)
from tilewright.interp.evaluate import run_kernel
from tilewright.interp.rules.channels import run_roles
from tilewright.ir.levels import T0, T0R, T2
from tilewright.ir.text import parse_module, print_module
from tilewright.ir.verify_level import verify_level
from tilewright.support.errors import Deadlock, InternalError, KernelFault, MalformedText
from tilewright.targets.nvidia.interpret import NVIDIA_INTERPRETATION

assert run_roles is not None  # its module registers the rules


def copy(slots: int, replicas: int) -> ModuleOp:
    """Roles that copy x to a row of out for each replica."""
    producer, consumer = loop("%n", f"{LOAD}\n{PUT}"), loop("%n", f"{GET}\n{ROW}\n{STORE}")
    return program(channel(slots=slots), roles(replicas, producer, consumer))


def run(module: ModuleOp, count: int, other: int = 0, **options: object) -> np.ndarray:
    x = np.arange(100, 100 + max(1, count), dtype=np.int32)
    out = np.zeros(3 * max(1, count), np.int32)
    run_kernel(module, [x, out, count, other], (1,), **options)
    return out.reshape(3, -1)


@pytest.mark.parametrize("slots", [0, 1, 2, 5])
@pytest.mark.parametrize("replicas", [1, 2, 3])
@pytest.mark.parametrize("count", [0, 1, 4, 9])
def test_every_replica_gets_every_fill_in_order(slots: int, replicas: int, count: int) -> None:
    out = run(copy(slots, replicas), count)
    expected = np.arange(100, 100 + count) if count else np.zeros(1)
    for replica in range(3):
        wanted = expected if replica < replicas else np.zeros_like(expected)
        np.testing.assert_array_equal(out[replica], wanted)


def test_roles_with_channels_run_under_the_rules_of_a_gpu_too() -> None:
    out = run(copy(2, 2), 5, rules=NVIDIA_INTERPRETATION)
    np.testing.assert_array_equal(out[1], np.arange(100, 105))


def test_channels_are_legal_at_t0r_and_at_no_other_end() -> None:
    module = copy(2, 1)
    verify_level(module, T0R)
    for level in (T0, T2):
        with pytest.raises(InternalError, match=r"tw\.(roles|channel) .* is no op of this level"):
            verify_level(module, level)


def test_text_of_channels_round_trips() -> None:
    printed = print_module(copy(2, 2))
    assert print_module(parse_module(printed, context())) == printed
    assert printed.count('"tw.put"') == printed.count('"tw.get"') == 1


def test_a_role_that_gets_too_much_is_a_deadlock_that_names_role_and_channel() -> None:
    producer = loop("%m", f"{LOAD}\n{PUT}")
    consumer = loop("%n", f"{GET}\n{ROW}\n{STORE}")
    module = program(channel(), roles(2, producer, consumer))
    with pytest.raises(Deadlock, match=r"math 0 waits for fill 3 of channel c; math 1 waits for"):
        run(module, 5, 3)


def test_a_role_that_puts_too_much_is_a_deadlock_or_leaves_fills() -> None:
    producer = loop("%m", f"{LOAD}\n{PUT}")
    consumer = loop("%n", f"{GET}\n{ROW}\n{STORE}")
    x, out = np.zeros(9, np.int32), np.zeros(9, np.int32)
    module = program(channel(slots=2), roles(1, producer, consumer))
    with pytest.raises(Deadlock, match="load waits for room on channel c"):
        run_kernel(module, [x, out, 2, 8], (1,))
    with pytest.raises(InternalError, match="math leaves 2 fills of channel c"):
        run_kernel(module, [x, out, 2, 4], (1,))


def test_two_channels_taken_in_the_other_order_need_the_slots() -> None:
    """All of the first is put before any of the second, which is got first."""
    other = PUT.replace("%c", "%d")
    producer = loop("%n", f"{LOAD}\n{PUT}") + "\n" + loop("%n", f"{LOAD}\n{other}")
    first = loop("%n", GET.replace("%c", "%d"))
    consumer = first + "\n" + loop("%n", f"{GET}\n{ROW}\n{STORE}")
    for slots, ends in ((6, True), (2, False)):
        module = program(channel(slots=slots), channel("d"), roles(1, producer, consumer))
        if ends:
            np.testing.assert_array_equal(run(module, 6)[0], np.arange(100, 106))
            continue
        with pytest.raises(Deadlock, match="load waits for room on channel c; math waits for"):
            run(module, 6)


@pytest.mark.parametrize(
    ("made", "put", "what"),
    [
        (channel(type_="i64"), PUT, r"tw\.put: the channel carries \(i64\)"),
        (channel(slots=-1), PUT, "-1 slots"),
        (channel(type_=""), PUT, "0 tiles"),
    ],
)
def test_channels_that_do_not_fit_are_refused(made: str, put: str, what: str) -> None:
    with pytest.raises(MalformedText, match=what):
        program(made, roles(1, loop("%n", f"{LOAD}\n{put}"), ""))


SLICE = '%part = "tw.slice"(%v, %r) <{dim = 0 : i32}> : (tensor<12xi32>, i32) -> tensor<4xi32>'


def slices(text: str = SLICE) -> ModuleOp:
    values = '%v = "tt.make_range"() <{start = 0 : i32, end = 12 : i32}> : () -> tensor<12xi32>'
    put = '"tw.put"(%c, %v) : (!tw.channel, tensor<12xi32>) -> ()'
    get = '%v = "tw.get"(%c) : (!tw.channel) -> tensor<12xi32>'
    total = """%last = "tt.reduce"(%part) <{axis = 0 : i32}> ({
      ^bb0(%a: i32, %b: i32):
        %s = "arith.addi"(%a, %b) : (i32, i32) -> i32
        "tt.reduce.return"(%s) : (i32) -> ()
      }) : (tensor<4xi32>) -> i32"""
    store = STORE.replace("%at", "%r").replace("%v", "%last")
    math = f"{get}\n{text}\n{total}\n{store}"
    return program(channel(type_="tensor<12xi32>"), roles(3, f"{values}\n{put}", math))


def test_a_slice_is_the_part_of_its_replica() -> None:
    out = run(slices(), 3)
    np.testing.assert_array_equal(out.ravel()[:3], [0 + 1 + 2 + 3, 4 + 5 + 6 + 7, 8 + 9 + 10 + 11])


@pytest.mark.parametrize("type_", ["tensor<5xi32>", "tensor<4xi64>", "tensor<2x2xi32>"])
def test_a_slice_that_is_no_part_is_refused(type_: str) -> None:
    with pytest.raises(MalformedText, match=r"tw\.slice: .* is no part of"):
        slices(SLICE + "\n" + SLICE.replace("tensor<4xi32>", type_).replace("%part", "%other"))


SKIP = '"tw.skip"(%c, {count}) : (!tw.channel, i32) -> ()'


def take_in_turn(slots: int) -> ModuleOp:
    """Two replicas, each of which takes every second fill, to its row of out."""
    producer = loop("%n", f"{LOAD}\n{PUT}")
    mine = '%two = "arith.addi"(%one, %one) : (i32, i32) -> i32\n' + SKIP.format(count="%r")
    every = f"""    "scf.for"(%r, %n, %two) ({{
    ^bb0(%k: i32):
      {GET}
      {ROW}
      {STORE}
      {SKIP.format(count="%one")}
      "scf.yield"() : () -> ()
    }}) : (i32, i32, i32) -> ()"""
    return program(channel(slots=slots), roles(2, producer, f"{mine}\n{every}"))


@pytest.mark.parametrize("slots", [0, 1, 2, 5])
@pytest.mark.parametrize("count", [0, 1, 4, 9])
def test_what_a_replica_skips_another_one_gets(slots: int, count: int) -> None:
    out = run(take_in_turn(slots), count)
    for replica in (0, 1):
        wanted = np.arange(100, 100 + count)[replica::2]
        np.testing.assert_array_equal(out[replica, replica:count:2], wanted)
        assert not out[replica, 1 - replica : count : 2].any()


def test_a_skip_that_goes_back_is_a_fault() -> None:
    producer = loop("%n", f"{LOAD}\n{PUT}")
    module = program(channel(), roles(1, producer, SKIP.format(count="%m")))
    with pytest.raises(KernelFault, match="-2 fills of c are skipped"):
        run(module, 3, -2)


def test_a_skip_counts_in_i32() -> None:
    count = '%v = "arith.constant"() <{value = 1 : i64}> : () -> i64'
    wrong = f"{count}\n{SKIP.format(count='%v').replace('i32', 'i64')}"
    with pytest.raises(MalformedText, match=r"tw\.skip: the count is i32"):
        program(channel(), roles(1, "", wrong))
