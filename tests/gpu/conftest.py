"""What every GPU test needs: torch with a GPU, or a failure that says so."""

from __future__ import annotations

import importlib
from types import ModuleType

import pytest


@pytest.fixture(scope="session")
def torch() -> ModuleType:
    """torch, which sees a GPU; these tests fail and never skip without one."""
    module = importlib.import_module("torch")
    assert module.cuda.is_available(), "the tests with the mark `gpu` need an NVIDIA GPU"
    return module
