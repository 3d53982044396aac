"""The multiples that integers of a launch are compiled for."""

from __future__ import annotations

import pytest

from tilewright.frontend.divisors import DivisorClass, divisor_class, divisors_of, known_divisor
from tilewright.frontend.program import Parameter, Specialization
from tilewright.frontend.signature import specialize

PARAMETERS = (Parameter("x", annotation="*fp16"), Parameter("n"))


class Address:
    """An array by its address alone."""

    dtype = "torch.float16"

    def data_ptr(self) -> int:
        return 64


def specialized(n: int, **flags: bool) -> Specialization:
    parameters = (PARAMETERS[0], Parameter("n", **flags))
    return specialize("kernel", parameters, {"x": Address(), "n": n})


@pytest.mark.parametrize("types, divisors", [
    (["i32"], (16,)), (["*fp64"], (16, 2)), (["*fp32"], (16, 4, 2)), (["*kfp16"], (16, 8, 4, 2)),
    (["*u8"], (16, 8, 4)), (["*i1"], (16, 8, 4)), (["tensordesc<bf16[64,64]>"], (16, 8, 4, 2)),
    (["*fp64", "*fp8e5"], (16, 8, 4, 2)), (["constexpr", "**fp16"], (16, 2)),
])  # fmt: skip
def test_only_divisors_that_make_an_access_wider_count(types, divisors):
    assert divisors_of(types) == divisors


@pytest.mark.parametrize("n, divisor", [
    (0, 16), (16, 16), (-48, 16), (8, 8), (-24, 8), (12, 4), (5000, 8), (4100, 4), (4098, 2),
])  # fmt: skip
def test_an_integer_is_known_by_its_largest_divisor(n, divisor):
    assert specialized(n).divisibility == {("x",): 16, ("n",): divisor}


def test_an_odd_integer_says_nothing():
    assert specialized(4097).divisibility == {("x",): 16}
    assert known_divisor(4097, (16, 8, 4, 2)) == 1


@pytest.mark.parametrize("flag", ["specialize", "specialize_alignment"])
def test_who_asks_not_to_be_specialized_is_not(flag):
    assert specialized(8, **{flag: False}).divisibility == {("x",): 16}


def test_elements_of_a_tuple_are_known_too():
    parameters = (PARAMETERS[0], Parameter("sizes"))
    found = specialize("kernel", parameters, {"x": Address(), "sizes": (24, 7)})
    assert found.divisibility == {("x",): 16, ("sizes", 0): 8}


def test_a_target_may_ask_for_large_divisors_alone():
    assert specialized(8).with_divisors_from(16).divisibility == {("x",): 16}
    assert specialized(32).with_divisors_from(16) == specialized(32)


@pytest.mark.parametrize("divisor, least, larger", [
    (1, 2, 2), (2, 2, 4), (8, 2, 16), (16, 2, 0), (1, 16, 16), (16, 16, 0),
])  # fmt: skip
def test_a_class_ends_where_the_next_one_begins(divisor, least, larger):
    found = divisor_class(divisor, ["*fp16", "i32"], least, takes_one=True)
    assert found == DivisorClass(divisor, larger, takes_one=True)
