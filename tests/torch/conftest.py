"""These modules import torch at the top: they are read only by runs that want the mark."""

from __future__ import annotations

from pathlib import Path

import pytest


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave the folder out unless the run selects the mark; then a missing torch is an error."""
    expression = str(config.option.markexpr)
    is_wanted = "torch" in expression and "not torch" not in expression
    return None if is_wanted else True
