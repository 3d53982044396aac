"""The stubs of the language are what the generator writes, and work on the host as stubs."""

from __future__ import annotations

import pytest

import tilewright.language as tl
from tilewright.support.errors import HostCall
from tilewright.tools.generate_language import generate, registry


def test_the_checked_in_stubs_are_up_to_date():
    stale = [path.name for path, text in generate().items() if path.read_text() != text]
    assert not stale, "run python -m tilewright.tools.generate_language"


def test_every_user_function_is_a_stub_in_the_namespace():
    for key in registry():
        namespace: object = tl
        for name in key.split("."):
            namespace = getattr(namespace, name)
        assert namespace.__tilewright_op__ == key


def test_a_stub_called_on_the_host_says_so():
    with pytest.raises(HostCall, match=r"tl\.load is called outside of a kernel"):
        tl.load(0)
    with pytest.raises(HostCall, match="iterated outside of a kernel"):
        iter(tl.static_range(3))
