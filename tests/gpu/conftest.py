"""What every GPU test needs: torch with a GPU, or a failure that says so.

Modules here import torch at the top: they are read only by runs that want the mark.
"""

from __future__ import annotations

import importlib
from pathlib import Path
from types import ModuleType

import pytest


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave the folder out unless the run selects the mark; then a missing torch is an error."""
    expression = str(config.option.markexpr)
    return None if "gpu" in expression and "not gpu" not in expression else True


@pytest.fixture(scope="session")
def torch() -> ModuleType:
    """torch, which sees a GPU; these tests fail and never skip without one."""
    module = importlib.import_module("torch")
    assert module.cuda.is_available(), "the tests with the mark `gpu` need an NVIDIA GPU"
    return module
