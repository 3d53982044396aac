"""Random kernels whose indices are unravelled: quotients and remainders by several extents.

A flat index is taken apart in one of the ways of published kernels, with extents that are arguments
or constants, odd or powers of two, down to 1, and put together with other strides. What a launch
may read ends where memory does. Dividends may be negative, may overflow 32 bits in a tile, and may
be hashes, which wrap around. Some launches store over what they load, in order of the elements.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Any

import numpy as np

from tests.holes import before_a_hole

HEADER = "import tilewright\nimport tilewright.language as tl\n\n\n"
EXTENTS = (1, 2, 3, 5, 7, 8, 15, 16, 17, 31, 32, 49, 63, 64, 65, 100, 196, 1000)
SIZES = (16, 64, 128, 256, 512, 1024)
DTYPES = ("float32", "float32", "int8", "int16", "float16", "int32", "float64")
FACTORS, WIDE_FACTORS = (48271, 1103515245, 1366661419), (48271, 0x1E3779B97F4A7C15)
LAST = 2**31 - 1


class Truncated(np.ndarray):
    """Integers that are divided as a kernel divides them: towards zero."""

    def __floordiv__(self, other: Any) -> Any:
        wide, by = np.asarray(self, np.int64), int(other)
        quotient = abs(wide) // abs(by) * np.sign(wide) * (1 if by > 0 else -1)
        return quotient.astype(self.dtype).view(Truncated)

    def __mod__(self, other: Any) -> Any:
        return np.fmod(self, np.asarray(other, self.dtype))


@dataclass(frozen=True)
class Launch:
    """What a launch is given: where flat indices start, how many elements count, the extents."""

    start: int
    count: int
    extents: tuple[int, int, int]
    strides: tuple[int, int, int]
    programs: int = 1


class Unravelled:
    """One random kernel `(x, w, y, out, n, start, at, to, e0, e1, e2, s0, s1, s2)`."""

    def __init__(self, seed: int) -> None:
        rng = self.rng = random.Random(seed)
        self.name, self.number = f"unravelled_{seed}", seed
        self.size, self.dtype = rng.choice(SIZES), rng.choice(DTYPES)
        self.is_wide = rng.random() < 0.25
        self.start = rng.choice((0, 0, 5, 12345, -3, -100, "last"))
        if self.is_wide and self.start == "last":
            self.start = 2**31 + 11
        # Extents of arguments change from launch to launch; powers of two may be shifts.
        self.extents = tuple(rng.choice(EXTENTS) for _ in range(3))
        self.is_constant = rng.random() < 0.4
        self.overlaps = rng.random() < 0.4
        # What surely starts at zero is taken apart in other ways than what may be negative.
        self.origin = "" if self.start == 0 and self.number % 2 else "start + "
        self.parts = self._parts()
        self.index = self._index()
        self.other = self._index()

    def _extent(self, number: int) -> str:
        return str(self.extents[number]) if self.is_constant else f"e{number}"

    def _parts(self) -> list[str]:
        """The numbers along three dimensions and what is left, as lines."""
        e0, e1, e2 = map(self._extent, range(3))
        power = self.rng.choice((1, 3, 4, 5, 7))
        factor = self.rng.choice(WIDE_FACTORS if self.is_wide else FACTORS)
        return self.rng.choice((
            [f"a = j % {e0}", f"b = j // {e0} % {e1}", f"c = j // ({e0} * {e1}) % {e2}",
             f"d = j // ({e0} * {e1} * {e2})"],
            [f"q = j // {e0}", f"a = j - q * {e0}", f"b = q % {e1}", f"r = q // {e1}",
             f"c = r % {e2}", f"d = r // {e2}"],
            [f"t = j % ({e0} * {e1})", f"a = t % {e0}", f"b = t // {e0}",
             f"c = j // ({e0} * {e1}) % {e2}", f"d = j // ({e0} * {e1} * {e2})"],
            [f"a = j & {2**power - 1}", f"b = (j >> {power}) % {e1}",
             f"c = j // {e0} // {e2} % 3", f"d = (j + 3) // {e0} // {e1} % 5"],
            [f"i = j + {self.rng.choice((1, 2, 17))}", f"a = i % {e0}", f"b = (j + j) // {e1} % 7",
             f"c = i // {e0} % {e2}", "d = i // 1000 % 9"],
            [f"a = {self.rng.choice(('j', '(j + 8)', '(j + 3)'))} // {2 ** (power // 2)}",
             f"b = j // {2 ** (power // 2)} % {e1}", f"c = j // {e0} % {e2}", f"d = j >> {power}"],
            [f"h = j * {factor}", f"a = h % {e0}", f"b = (h >> 8) % {e1}", f"c = h // {e0} % {e2}",
             f"d = h & {2**power - 1}"],
        ))  # fmt: skip

    def _index(self) -> str:
        inner = self.rng.choice(("a", "a", "a", "a", "2 * a", "0 * a", f"({self.size} - a)"))
        terms = [inner, "b * s0", "c * s1", "d * s2"]
        kept = [term for term in terms[1:] if self.rng.random() < 0.7]
        return " + ".join([inner, *kept])

    def text(self) -> str:
        """The kernel."""
        wide = ".to(tl.int64)" if self.is_wide else ""
        mask = self.rng.choice(("k < n", "k < n", "(k < n) & (b != 1)", "(k < n) & (k > 4)"))
        lines = [
            "@tilewright.jit",
            f"def {self.name}(x, w, y, out, n, start, at, to, e0, e1, e2, s0, s1, s2):",
            f"    k = tl.arange(0, {self.size})",
            f"    j = {self.origin}k{wide}",
            *(f"    {part}" for part in self.parts),
            f"    v = tl.load(x + at + ({self.index}), mask={mask}, other=3)",
            "    u = tl.load(w + (b + 2000), mask=k < n, other=1)"
            if self.rng.random() < 0.5
            else "",
        ]
        value = "v + u" if lines[-1] else "v"
        # The numbers themselves, not only what lies there: in one kernel of three.
        value = f"{value} + (a * 5 ^ b + c * 3)" if self.number % 3 == 0 else value
        lines.append(f"    tl.store(out + k, {value})")
        if not self.overlaps:
            lines.append(f"    tl.store(y + to + ({self.other}), v, mask={mask})")
        self.mask = mask
        return "\n".join(line for line in lines if line) + "\n\n\n"

    def launches(self, count: int) -> list[Launch]:
        """Launches: all of a tile or a part of it, other extents and strides."""
        made, rng = [], self.rng
        for _ in range(count):
            start = LAST - rng.randint(0, self.size) if self.start == "last" else self.start
            assert isinstance(start, int)
            used = rng.choice((self.size, self.size, self.size - 1, 17, 1))
            extents = self.extents if self.is_constant else tuple(rng.choices(EXTENTS, k=3))
            strides = tuple(rng.choice((0, 1, 3, 17, 64, 100)) for _ in range(3))
            made.append(Launch(start, min(used, self.size), extents, strides))
        return made

    def _indices(self, launch: Launch, expression: str) -> np.ndarray:
        """The indices that are accessed, as NumPy computes them."""
        kind = np.int64 if self.is_wide else np.int32
        k = np.arange(self.size, dtype=kind).view(Truncated)
        with np.errstate(over="ignore"):
            names: dict[str, Any] = {"k": k, "j": k + kind(launch.start), "n": launch.count}
            names |= {f"e{number}": kind(extent) for number, extent in enumerate(launch.extents)}
            names |= {f"s{number}": kind(stride) for number, stride in enumerate(launch.strides)}
            for part in self.parts:
                exec(part, {}, names)
            index = np.asarray(eval(expression, {}, names))
            return index[np.asarray(eval(self.mask, {}, names))]

    def arguments(self, launch: Launch, seed: int) -> dict[str, np.ndarray | int] | None:
        """Arrays that end where memory does; None where they would be too large."""
        rng, given = np.random.default_rng(seed), {}
        for name, shift, expression in (("x", "at", self.index), ("y", "to", self.other)):
            indices = self._indices(launch, expression)
            low, high = (int(indices.min()), int(indices.max())) if indices.size else (0, 0)
            if high - low > 1 << 20:
                return None
            before = self.size if self.overlaps else 0
            memory = rng.integers(-9, 9, before + high - low + 1).astype(self.dtype)
            given[name] = before_a_hole(memory)
            given[shift] = before - low
        given["w"] = rng.integers(-9, 9, 1 << 20).astype(self.dtype)
        blocks = self._indices(launch, "b")
        if blocks.size and not -2000 <= blocks.min() <= blocks.max() < 1 << 19:
            return None
        extents = {f"e{number}": extent for number, extent in enumerate(launch.extents)}
        strides = {f"s{number}": stride for number, stride in enumerate(launch.strides)}
        out = np.zeros(self.size, self.dtype)
        if self.overlaps:
            first = int(rng.integers(len(given["x"]) - self.size))
            out = given["x"][first : first + self.size]
        return {
            **given, "out": out, "n": launch.count, "start": launch.start, **extents, **strides
        }  # fmt: skip


def programs(seeds: range) -> tuple[str, list[Unravelled]]:
    """A module of programs, and what they are."""
    made = [Unravelled(seed) for seed in seeds]
    return HEADER + "".join(program.text() for program in made), made
