"""Where a symbol's code lies, as the object file says it."""

from __future__ import annotations

import ctypes

import pytest

from tilewright.codegen.link import load_object
from tilewright.codegen.object_file import code_range
from tilewright.codegen.optimize import compile_module

TEXT = """
@word = global i64 3
declare double @sin(double)

define i64 @first(i64 %x) noinline {
  %y = mul i64 %x, 3
  ret i64 %y
}

define i64 @second(i64 %x) {
  %y = call i64 @first(i64 %x)
  %z = sub i64 %y, 5
  ret i64 %z
}

define double @third(double %x) {
  %y = call double @sin(double %x)
  ret double %y
}
"""


@pytest.fixture(scope="module", params=["x86_64", "aarch64"])
def object_bytes(request: pytest.FixtureRequest) -> bytes:
    triple = f"{request.param}-unknown-linux-gnu"
    return compile_module(TEXT, "generic", (), triple, passes=()).object


def test_symbols_of_a_section_have_their_places_in_its_size(object_bytes: bytes) -> None:
    places = [code_range(object_bytes, name) for name in ("first", "second", "third")]
    found = [place for place in places if place is not None]
    offsets, sizes = zip(*found, strict=True)
    assert offsets[0] == 0
    assert list(offsets) == sorted(set(offsets))
    assert len(set(sizes)) == 1
    assert offsets[-1] < sizes[0]


def test_the_code_of_a_range_is_where_the_linker_puts_it() -> None:
    # The bytes of a function without references, as they are in the file and in memory.
    text = "define i64 @alone(i64 %x) {\n  %y = mul i64 %x, 3\n  ret i64 %y\n}\n"
    compiled = compile_module(text, "", ()).object
    place = code_range(compiled, "alone")
    assert place is not None
    offset, size = place
    code = load_object(compiled, "alone")
    assert ctypes.string_at(code.address - offset, size) in compiled


def test_what_is_not_defined_has_no_place(object_bytes: bytes) -> None:
    assert code_range(object_bytes, "sin") is None
    assert code_range(object_bytes, "firs") is None
    assert code_range(object_bytes, "irst") is None


def test_another_format_has_no_places() -> None:
    assert code_range(b"", "first") is None
    assert code_range(b"\xcf\xfa\xed\xfe" + bytes(100), "first") is None
