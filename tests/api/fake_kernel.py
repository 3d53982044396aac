"""A kernel that needs no compiler: it records launches, and its time is what it is told."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from types import FunctionType, SimpleNamespace

from tilewright.support.errors import TileTooLarge


@dataclass
class FakeClock:
    """A clock that stands still but for what is said to pass, in seconds."""

    now_s: float = 0.0

    def __call__(self) -> float:
        return self.now_s


@dataclass
class FakeKernel:
    """Adds one to its first argument; its time in ms is `BLOCK`, for `bench` and by `clock`."""

    fn: FunctionType
    launches: list[dict[str, object]] = field(default_factory=list)
    compiled: list[dict[str, object]] = field(default_factory=list)
    cache_key: str = "source-1"
    is_interpreted: bool = False
    largest_block: int = 1 << 20
    has_ignored_options: bool = True
    clock: FakeClock = field(default_factory=FakeClock)
    options_of_schedules: tuple[dict[str, object], ...] = ()

    def __post_init__(self) -> None:
        self.__name__ = self.fn.__name__

    def __getitem__(self, grid: object) -> Callable[..., object]:
        def launch(*args: object, **kwargs: object) -> None:
            named = {**dict(zip(self.fn.__code__.co_varnames, args, strict=False)), **kwargs}
            extents = grid(named) if callable(grid) else grid
            self.launches.append({**named, "grid": extents})
            named["x"] += 1
            self.clock.now_s += 1e-3 * named["BLOCK"]

        return launch

    def schedules(self, args: object, kwargs: dict[str, object]) -> object:
        if kwargs["BLOCK"] > self.largest_block:
            raise TileTooLarge(f"a tile of {kwargs['BLOCK']} elements")
        return self.options_of_schedules

    def bench(self, call: Callable[[], object], quantiles: object) -> list[float]:
        """A timer that no other process can disturb."""
        call()
        return [float(self.launches[-1]["BLOCK"])] * 3

    def warmup(self, *args: object, grid: object = (1,), **kwargs: object) -> SimpleNamespace:
        if kwargs["BLOCK"] > self.largest_block:
            raise TileTooLarge(f"a tile of {kwargs['BLOCK']} elements")
        self.compiled.append(kwargs)
        options = {} if self.has_ignored_options else kwargs
        target = "cpu" if self.has_ignored_options else "nvidia"
        metadata = {"target": target, "reads": [["x"]], "writes": [["x"]]}
        return SimpleNamespace(
            hash=repr((kwargs["BLOCK"], sorted(options.items()))),
            artifact=SimpleNamespace(metadata=metadata),
        )


def make_fake(**settings: object) -> FakeKernel:
    """A fake kernel `fake(x, n, BLOCK)`."""

    def fake(x, n, BLOCK):
        """A kernel."""

    return FakeKernel(fake, **settings)
