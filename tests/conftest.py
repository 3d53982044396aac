"""What every test may use: collectors, goldens, and random numbers with a printed seed."""

from __future__ import annotations

import hypothesis
import numpy as np
import pytest

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


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--seed", type=int, default=0, help="seed of the `rng` fixture")


def pytest_report_header(config: pytest.Config) -> str:
    return f"seed: {config.getoption('--seed')} (rerun with --seed N for other random inputs)"


@pytest.fixture
def rng(request: pytest.FixtureRequest) -> np.random.Generator:
    """Random numbers that depend on `--seed` and the test's name alone, not on the order."""
    seed = request.config.getoption("--seed")
    name = list(request.node.nodeid.encode())
    request.node.add_report_section("setup", "seed", f"--seed {seed}")
    return np.random.default_rng([seed, *name])
