"""Walks without recursion, and calls that go on where there is room."""

from __future__ import annotations

import sys
import threading
from contextvars import ContextVar

import pytest

from tilewright.support.deep_calls import with_room
from tilewright.support.worklist import needed_first


def test_what_is_needed_comes_first_and_once():
    needs = {"d": ["b", "c"], "b": ["a"], "c": ["a"], "a": []}
    seen: list[str] = []
    for node in needed_first("d", needs.__getitem__, seen.__contains__):
        seen.append(node)
    assert seen == ["a", "b", "c", "d"]


def test_a_chain_longer_than_the_stack_is_walked():
    seen: set[int] = set()
    for node in needed_first(100_000, lambda n: [n - 1] if n else [], seen.__contains__):
        seen.add(node)
    assert len(seen) == 100_001


def test_what_is_known_is_not_walked():
    assert list(needed_first("a", lambda _: pytest.fail("asked"), lambda _: True)) == []


def depth_of(levels: int) -> int:
    return 0 if levels == 0 else 1 + with_room(lambda: depth_of(levels - 1))


def test_calls_nest_deeper_than_the_stack_of_a_thread():
    levels = 3 * sys.getrecursionlimit()
    assert depth_of(levels) == levels
    assert sys.getrecursionlimit() < levels


def test_shallow_calls_stay_on_their_thread():
    assert with_room(threading.get_ident) == threading.get_ident()


def raise_below(levels: int) -> None:
    if levels == 0:
        raise KeyError("at the bottom")
    with_room(lambda: raise_below(levels - 1))


def test_what_a_deep_call_raises_comes_up():
    with pytest.raises(KeyError, match="at the bottom"):
        raise_below(2 * sys.getrecursionlimit())


def test_a_deep_call_sees_the_context_of_its_caller():
    variable: ContextVar[str] = ContextVar("variable", default="none")
    variable.set("here")

    def down(levels: int) -> str:
        return variable.get() if levels == 0 else with_room(lambda: down(levels - 1))

    assert down(2 * sys.getrecursionlimit()) == "here"
