"""The machine of a simulated launch: a name that there is not is refused where it was said."""

from __future__ import annotations

import numpy as np
import pytest

import tilewright
import tilewright.language as tl
from tilewright.support.errors import InvalidOption


def fill(out):
    tl.store(out + tl.arange(0, 16), 1.0)


def test_a_call_that_names_no_machine_is_refused() -> None:
    with pytest.raises(InvalidOption) as caught:
        tilewright.jit(fill).simulate[(1,)](np.zeros(16, np.float32), machine="sm_42")
    said = caught.value
    assert said.summary == "`machine` is 'sm_42': there is no machine 'sm_42'"
    assert said.launch is not None and said.launch.file == __file__
    assert "the machines are sm_90a" in said.hint


def test_a_variable_that_names_no_machine_is_refused(monkeypatch) -> None:
    monkeypatch.setenv("TILEWRIGHT_SIMULATE", "sm_42")
    with pytest.raises(InvalidOption) as caught:
        tilewright.jit(fill)[(1,)](np.zeros(16, np.float32))
    assert "variable TILEWRIGHT_SIMULATE is 'sm_42': there is no machine" in caught.value.summary
    assert caught.value.launch is not None and caught.value.launch.file == __file__
