"""The dataclasses of ours are the standard ones with their methods made late."""

# pyright: reportCallIssue=false
# The classes are made while a test runs.

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable
from dataclasses import FrozenInstanceError, field
from typing import ClassVar, Generic, TypeVar

import pytest

from tilewright.support.dataclass import dataclass, replace

T = TypeVar("T")
DECORATORS = [dataclass, dataclasses.dataclass]


def make_point(decorate: Callable[..., Callable[[type], type]]) -> type:
    @decorate(frozen=True)
    class Point:
        limit: ClassVar[int] = 9
        x: int
        y: float = 0.5
        names: list[str] = field(default_factory=list, compare=False)
        secret: int = field(default=3, repr=False)
        made: int = field(init=False, default=7)

        def __post_init__(self) -> None:
            object.__setattr__(self, "total", self.x + self.y)

    return Point


@pytest.fixture(params=DECORATORS, ids=["ours", "standard"])
def point(request: pytest.FixtureRequest) -> type:
    return make_point(request.param)


def test_fields_are_set_from_arguments_and_defaults(point: type) -> None:
    p = point(1, names=["a"])
    assert (p.x, p.y, p.names, p.secret, p.made, p.total) == (1, 0.5, ["a"], 3, 7, 1.5)
    assert point.y == 0.5 and point.secret == 3 and not hasattr(point, "names")


def test_every_object_has_its_own_value_of_a_default_factory(point: type) -> None:
    assert point(1).names is not point(1).names


def test_equality_compares_the_fields_that_take_part(point: type) -> None:
    assert point(1, names=["a"]) == point(1, names=["b"])
    assert point(1) != point(2) and point(1) != (1, 0.5)
    assert hash(point(1, names=["a"])) == hash(point(1))
    nan = float("nan")
    assert point(1, nan) == point(1, nan)


def test_the_text_shows_the_fields_that_take_part(point: type) -> None:
    name = point.__qualname__
    assert repr(point(1)) == f"{name}(x=1, y=0.5, names=[], made=7)"


def test_a_frozen_object_refuses_changes(point: type) -> None:
    p = point(1)
    with pytest.raises(FrozenInstanceError, match="cannot assign to field 'x'"):
        p.x = 2
    with pytest.raises(FrozenInstanceError, match="cannot delete field 'x'"):
        del p.x
    assert p.x == 1


def test_wrong_arguments_are_type_errors(point: type) -> None:
    with pytest.raises(TypeError, match=r"__init__\(\) missing 1 required positional argument"):
        point()
    with pytest.raises(TypeError, match="unexpected keyword argument 'z'"):
        point(1, z=2)
    with pytest.raises(TypeError):
        point(1, made=2)


def test_patterns_match_by_position(point: type) -> None:
    assert point.__match_args__ == ("x", "y", "names", "secret")
    match point(4):
        case point(x, y):
            assert (x, y) == (4, 0.5)


def test_the_standard_functions_know_the_class(point: type) -> None:
    assert dataclasses.is_dataclass(point)
    assert [f.name for f in dataclasses.fields(point)] == ["x", "y", "names", "secret", "made"]
    assert dataclasses.replace(point(1), x=5) == point(5)
    assert dataclasses.astuple(point(1)) == (1, 0.5, [], 3, 7)


def test_replace_changes_the_named_fields_of_a_copy() -> None:
    point = make_point(dataclass)
    old = point(1, secret=8)
    assert replace(old, x=2) == point(2, secret=8)
    assert old.x == 1


@pytest.mark.parametrize("decorate", DECORATORS)
def test_a_mutable_object_changes_and_has_no_hash(decorate: Callable[[type], type]) -> None:
    @decorate
    class Counter:
        count: int = 0

    counter = Counter()
    counter.count += 1
    assert counter.count == 1 and counter == Counter(1)  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="unhashable"):
        hash(counter)


@pytest.mark.parametrize("decorate", DECORATORS)
def test_without_equality_objects_are_equal_to_themselves_only(decorate: Callable) -> None:  # type: ignore[type-arg]
    @decorate(frozen=True, eq=False)
    class Name:
        text: str

    a = Name("a")
    assert a == a and a != Name("a") and hash(a) == hash(a)


@pytest.mark.parametrize("decorate", DECORATORS)
def test_a_subclass_has_the_fields_of_its_base_first(decorate: Callable) -> None:  # type: ignore[type-arg]
    @decorate(frozen=True)
    class Base(Generic[T]):
        a: T
        b: int = 1

    @decorate(frozen=True)
    class Derived(Base[int]):
        b: int = 2
        c: int = 3

    class Plain(Base[int]):
        pass

    assert [f.name for f in dataclasses.fields(Derived)] == ["a", "b", "c"]
    derived = Derived(0)
    assert (derived.a, derived.b, derived.c) == (0, 2, 3)
    assert Plain(4).b == 1 and Base(4) != Plain(4) and Base(4) == Base(4)


@pytest.mark.parametrize("decorate", DECORATORS)
def test_a_method_of_the_class_body_stays(decorate: Callable) -> None:  # type: ignore[type-arg]
    @decorate(frozen=True)
    class Loud:
        text: str

        def __eq__(self, other: object) -> bool:
            return isinstance(other, Loud) and self.text.lower() == other.text.lower()

        def __hash__(self) -> int:
            return 5

        def __repr__(self) -> str:
            return "Loud!"

    assert Loud("A") == Loud("a") and hash(Loud("A")) == 5 and repr(Loud("A")) == "Loud!"


def test_the_text_of_an_object_that_holds_itself_ends() -> None:
    @dataclass
    class Node:
        others: list[object]

    node = Node([])
    node.others.append(node)
    assert repr(node).endswith("Node(others=[...])")


def test_init_is_made_once_and_then_an_ordinary_function() -> None:
    point = make_point(dataclass)
    before = point.__init__
    point(1)
    assert point.__init__ is not before
    assert list(inspect.signature(point).parameters) == ["x", "y", "names", "secret"]
