"""Assertions that cannot fail, or whose condition is none, are refused whether they are checked."""

from __future__ import annotations

import linecache
from types import SimpleNamespace

import numpy as np
import pytest

import tilewright
import tilewright.language as tl
from tilewright.support.errors import (
    AssertionFailed,
    CompileError,
    ConditionNotBoolean,
    DtypeNotAllowed,
)


def kernel_of(line: str, name: str) -> tilewright.JITFunction:
    """A kernel with one line of its own, which Python compiles without its own warning of it."""
    text = f"def kernel(x, n):\n    {line}\n    tl.store(x, 1.0)\n"
    linecache.cache[name] = (len(text), None, text.splitlines(keepends=True), name)
    names: dict[str, object] = {"tl": tl, "__name__": name}
    exec(compile(text, name, "exec"), names)
    function = SimpleNamespace(**names).kernel
    return tilewright.jit(function)


@pytest.mark.filterwarnings("ignore:assertion is always true:SyntaxWarning")
@pytest.mark.parametrize("debug", [False, True])
@pytest.mark.parametrize(
    ("line", "error", "text"),
    [
        ('assert (n > 5, "few")', ConditionNotBoolean, "an assertion of a tuple is always true"),
        ("assert (True, 'few')", ConditionNotBoolean, "an assertion of a tuple is always true"),
        ('both = (n > 5, "few"); assert both', DtypeNotAllowed, "is no number"),
        ('tl.device_assert((n > 5, "few"))', DtypeNotAllowed, "is no number"),
        ("tl.device_assert(n > 5, mask=n)", DtypeNotAllowed, "`mask` must be int1"),
    ],
)
def test_an_assertion_without_a_condition_is_refused(
    line: str, error: type[CompileError], text: str, debug: bool
) -> None:
    kernel = kernel_of(line, f"<assertion {line} {debug}>")
    x = np.zeros(1, np.float32)
    with pytest.raises(error, match=text) as caught:
        kernel[(1,)](x, 3, debug=debug)
    assert line in str(caught.value), "the message shows the line"
    assert not x.any()


@pytest.mark.parametrize("condition", ["()", "3 > 4", "None", "''"])
def test_a_constant_that_is_false_is_reported_where_assertions_are_checked(condition: str) -> None:
    kernel = kernel_of(f'assert {condition}, "nothing"', f"<assertion of {condition}>")
    x = np.zeros(1, np.float32)
    kernel[(1,)](x, 3)
    assert x[0] == 1, "as in Triton, where published kernels state more than they need"
    with pytest.raises(AssertionFailed, match="nothing"):
        kernel[(1,)](x, 3, debug=True)


def test_a_constant_that_is_true_is_no_failure() -> None:
    kernel = kernel_of("assert 'text'", "<assertion of a text>")
    x = np.zeros(1, np.float32)
    kernel[(1,)](x, 3, debug=True)
    assert x[0] == 1
