"""Golden files: expected text beside the test, rewritten by `pytest --bless`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

Golden = Callable[[str, str], None]


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--bless", action="store_true", help="rewrite golden files")


def check_golden(path: Path, actual: str, bless: bool) -> None:
    """Compare `actual` with the file at `path`, or write it there when blessing."""
    actual = actual.rstrip("\n") + "\n"
    if bless:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(actual, encoding="utf-8")
        return
    if not path.exists():
        pytest.fail(f"no golden file {path}; write it with pytest --bless\n{actual}", pytrace=False)
    assert actual == path.read_text(encoding="utf-8"), f"{path} differs; accept with --bless"


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Golden:
    """A function `golden(name, text)` that compares text with `<name>.txt` beside the test."""
    folder = request.path.parent
    bless = bool(request.config.getoption("--bless"))

    def check(name: str, text: str) -> None:
        check_golden(folder / f"{name}.txt", text, bless)

    return check
