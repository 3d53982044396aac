"""Spans of bit vectors: what depends on what, and how members are made."""

from __future__ import annotations

from random import Random

from hypothesis import given
from hypothesis import strategies as st

from tilewright.layout.gf2 import Span, combine, intersection

VECTORS = st.lists(st.integers(0, 255), max_size=8)


def members(vectors: list[int]) -> set[int]:
    return {combine(vectors, chosen) for chosen in range(1 << len(vectors))}


@given(VECTORS, st.integers(0, 255))
def test_a_vector_is_in_the_span_exactly_if_some_combination_makes_it(
    vectors: list[int], vector: int
) -> None:
    assert (vector in Span(vectors)) == (vector in members(vectors))


@given(VECTORS, st.integers(0, 255))
def test_what_reduce_takes_out_and_what_it_leaves_make_the_vector(
    vectors: list[int], vector: int
) -> None:
    span = Span(vectors)
    remainder, combination = span.reduce(vector)
    assert combine(vectors, combination) ^ remainder == vector
    assert not any(combination >> bit & 1 for bit, is_free in enumerate(span.free) if is_free)


@given(VECTORS, st.integers(0, 255), st.integers(0, 255))
def test_reduce_is_linear(vectors: list[int], a: int, b: int) -> None:
    span = Span(vectors)
    (ra, ca), (rb, cb) = span.reduce(a), span.reduce(b)
    assert span.reduce(a ^ b) == (ra ^ rb, ca ^ cb)


@given(VECTORS)
def test_rank_and_kernel_share_the_vectors(vectors: list[int]) -> None:
    span = Span(vectors)
    assert span.rank + len(span.kernel) == len(vectors)
    assert 1 << span.rank == len(members(vectors))
    assert all(combine(vectors, chosen) == 0 for chosen in span.kernel)


@given(VECTORS, st.randoms(use_true_random=False))
def test_the_basis_is_the_same_for_the_same_span(vectors: list[int], random: Random) -> None:
    shuffled = sorted(vectors, key=lambda _: random.random())
    assert Span(shuffled).basis() == Span(vectors).basis()
    assert members(list(Span(vectors).basis())) == members(vectors)


@given(VECTORS, VECTORS)
def test_an_intersection_holds_what_both_spans_hold(left: list[int], right: list[int]) -> None:
    assert members(list(intersection(left, right))) == members(left) & members(right)
