"""These modules import torch at the top: they are read only by runs that want the mark.

`import triton` is Tilewright in this folder, and in processes that torch starts.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import tilewright

ALIAS = Path(tilewright.__file__).parent / "_alias"


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave the folder out unless the run selects the mark; then a missing torch is an error."""
    expression = str(config.option.markexpr)
    is_wanted = "torch" in expression and "not torch" not in expression
    if not is_wanted:
        return True
    paths = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    if str(ALIAS) not in paths:
        sys.path.insert(0, str(ALIAS))
        os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, (str(ALIAS), *paths)))
    return None


@pytest.fixture
def inductor(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """torch.compile through `triton` on the CPU, with a cache of its own and no leftovers."""
    import torch._inductor.config as config

    import torch

    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path))
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path / "triton"))
    torch._dynamo.reset()
    with config.patch(cpu_backend="triton", compile_threads=1):
        yield
    torch._dynamo.reset()
