"""These modules import torch at the top: they are read only by runs that want the mark."""

from __future__ import annotations

from pathlib import Path

import pytest


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave the folder out where the mark is deselected; else a missing torch is an error."""
    return True if "not torch" in str(config.option.markexpr) else None
