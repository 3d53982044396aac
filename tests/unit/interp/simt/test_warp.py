"""Operations of a warp, and what a program tells its host."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from tests.unit.interp.simt.programs import kernel, random_bits, run, store_registers
from tilewright.interp.simt.faults import DivergentCollective
from tilewright.interp.simt.simulate import simulate
from tilewright.support.errors import AssertionFailed, UndefinedValue

LANE = np.arange(64) % 32
LOAD = """  %p = getelementptr i32, ptr addrspace(1) %x, i32 %tid
  %v = load i32, ptr addrspace(1) %p
"""


def apply(call: str, x: np.ndarray, kind: str = "i32") -> np.ndarray:
    """One instruction on `%v` and `%tid`, its 32-bit result per thread."""
    out = np.zeros(64, np.uint32)
    widen = "  %w = zext i1 %r to i32\n" if kind == "i1" else "  %w = add i32 %r, 0\n"
    run(LOAD + f"  %r = {call}\n" + widen + store_registers(["%w"], "out"), "x; out", x, out)
    return out


@pytest.mark.parametrize(
    ("mode", "argument", "control", "source"),
    [
        ("idx", 5, 31, LANE * 0 + 5),
        ("bfly", 3, 31, LANE ^ 3),
        ("down", 4, 31, np.where(LANE + 4 < 32, LANE + 4, LANE)),
        ("up", 4, 0, np.where(LANE >= 4, LANE - 4, LANE)),
        # Segments of eight lanes: the mask of the segment is in the upper bits.
        ("bfly", 1, 0x181F, LANE ^ 1),
        ("idx", 9, 0x181F, LANE // 8 * 8 + 1),
    ],
)
def test_shuffles_read_the_lane_that_they_name(
    mode: str, argument: int, control: int, source: np.ndarray
) -> None:
    x = random_bits(64, 1)
    call = (
        f"call i32 @llvm.nvvm.shfl.sync.{mode}.i32(i32 -1, i32 %v, i32 {argument}, i32 {control})"
    )
    np.testing.assert_array_equal(apply(call, x), x[np.arange(64) // 32 * 32 + source])


def test_one_lane_is_elected_each_time_the_same_and_not_the_first() -> None:
    body = ""
    for tag in "ab":
        body += f"  %e{tag} = call {{i32, i1}} @llvm.nvvm.elect.sync(i32 -1)\n"
        body += f"  %l{tag} = extractvalue {{i32, i1}} %e{tag}, 0\n"
        body += f"  %i{tag} = extractvalue {{i32, i1}} %e{tag}, 1\n"
        body += f"  %w{tag} = zext i1 %i{tag} to i32\n"
    out = np.zeros((64, 4), np.uint32)
    run(body + store_registers(["%la", "%wa", "%lb", "%wb"], "out"), "out", out)
    leader = out[0, 0]
    assert leader != 0 and (out[:, (0, 2)] == leader).all()
    np.testing.assert_array_equal(out[:, 1], leader == LANE)
    np.testing.assert_array_equal(out[:, 3], leader == LANE)


def test_a_shuffle_in_a_part_of_a_warp_is_refused() -> None:
    body = """  %low = icmp ult i32 %tid, 7
  br i1 %low, label %bb1, label %bb2
bb1:
  %r = call i32 @llvm.nvvm.shfl.sync.bfly.i32(i32 -1, i32 %tid, i32 1, i32 31)
  br label %bb2
bb2:
"""
    with pytest.raises(DivergentCollective, match=r"shfl\.sync without lanes \[7, "):
        run(body, "")


@pytest.mark.parametrize(
    ("name", "function"),
    [
        ("add", lambda v: v.sum(dtype=np.uint32)),
        ("umin", np.min),
        ("umax", np.max),
        ("max", lambda v: v.view(np.int32).max().view(np.uint32)),
        ("xor", np.bitwise_xor.reduce),
    ],
)
def test_reductions_of_a_warp(name: str, function: Callable[..., np.uint32]) -> None:
    x = random_bits(64, 2)
    got = apply(f"call i32 @llvm.nvvm.redux.sync.{name}(i32 %v, i32 -1)", x)
    expected = [function(x[:32]), function(x[32:])]
    np.testing.assert_array_equal(got, np.repeat(expected, 32).astype(np.uint32))


def test_division_by_zero_is_a_fault_in_active_threads_only() -> None:
    with pytest.raises(UndefinedValue, match="divided by zero"):
        run("  %q = udiv i32 100, %tid\n", "")
    run(
        """  %some = icmp ne i32 %tid, 0
  br i1 %some, label %bb1, label %bb2
bb1:
  %q = udiv i32 100, %tid
  br label %bb2
bb2:
""",
        "",
    )


PRINTER = """@text = private addrspace(1) constant [14 x i8] c"v %5.2f %lld\\0A\\00", align 1
"""


def test_printed_lines_are_in_the_report() -> None:
    body = """  %buffer = alloca [16 x i8], align 8
  %wide = zext i32 %tid to i64
  %float = uitofp i32 %tid to double
  store double %float, ptr %buffer, align 8
  %second = getelementptr i8, ptr %buffer, i64 8
  store i64 %wide, ptr %second, align 8
  %low = icmp ult i32 %tid, 2
  br i1 %low, label %bb1, label %bb2
bb1:
  %r = call i32 @vprintf(ptr addrspacecast (ptr addrspace(1) @text to ptr), ptr %buffer)
  br label %bb2
bb2:
"""
    report = simulate(PRINTER + kernel(body, ""), "k", (1, 1, 1), 32, [])
    assert report.printed == ["v  0.00 0\n", "v  1.00 1\n"]


def test_a_failed_assertion_tells_its_text_and_place() -> None:
    text = '@text = private addrspace(1) constant [4 x i8] c"n>0\\00", align 1\n'
    place = "ptr addrspacecast (ptr addrspace(1) @text to ptr)"
    call = f"  call void @__assertfail({place}, {place}, i32 17, {place}, i64 1)\n"
    with pytest.raises(AssertionFailed, match=r"n>0 \(thread 0, n>0:17"):
        simulate(text + kernel(call, ""), "k", (1, 1, 1), 32, [])
