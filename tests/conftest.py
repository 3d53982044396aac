"""What every test may use: collectors, goldens, and random numbers with a printed seed."""

from __future__ import annotations

import os
from collections.abc import Iterator

import hypothesis
import numpy as np
import pytest

from tilewright.compiler.instruments import reproducer_directory
from tilewright.compiler.reproducer import ReproducerStore

pytest_plugins = ("tests.plugins.goldens", "tests.plugins.mlir_tests")

# Machines of continuous integration are shared: a slow example is no finding. Every run tries the
# same examples, so that a change is to blame for what fails; `--hypothesis-profile=search` tries
# others.
_SLOW = [hypothesis.HealthCheck.too_slow]
hypothesis.settings.register_profile(
    "search", deadline=None, print_blob=True, suppress_health_check=_SLOW
)
hypothesis.settings.register_profile(
    "tilewright", deadline=None, derandomize=True, database=None, suppress_health_check=_SLOW
)
hypothesis.settings.load_profile("tilewright")
_PREFIXES = ("TILEWRIGHT_", "TRITON_")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--seed", type=int, default=0, help="seed of the `rng` fixture")


def pytest_report_header(config: pytest.Config) -> str:
    return f"seed: {config.getoption('--seed')} (rerun with --seed N for other random inputs)"


def pytest_sessionstart() -> None:
    """Take note of what earlier processes left: the first compile warns of it, which would fail."""
    ReproducerStore(reproducer_directory()).adopt_orphans()


def _settings() -> dict[str, str]:
    """The variables that say how kernels compile and run."""
    return {name: text for name, text in os.environ.items() if name.startswith(_PREFIXES)}


@pytest.fixture(autouse=True)
def settings_are_kept() -> Iterator[None]:
    """What a test leaves behind is put back: those behind it would run another way with it."""
    before = _settings()
    yield
    for name in _settings().keys() - before.keys():
        del os.environ[name]
    os.environ.update(before)


@pytest.fixture
def rng(request: pytest.FixtureRequest) -> np.random.Generator:
    """Random numbers that depend on `--seed` and the test's name alone, not on the order."""
    seed = request.config.getoption("--seed")
    name = list(request.node.nodeid.encode())
    request.node.add_report_section("setup", "seed", f"--seed {seed}")
    return np.random.default_rng([seed, *name])
