"""Random loops of programs over numbers: by `while`, by steps, by a number that is carried.

A program writes down each number that it visits. Numbers are small, or so large that steps wrap;
ends and steps are arguments, computed, or the grid's; some loops count nothing that is known.
"""

from __future__ import annotations

import random
from dataclasses import dataclass

import numpy as np

CAPACITY, MOST = 64, 48
"""How many numbers of a program are kept, and how many it visits at most."""
HEAD = f"""import tilewright
import tilewright.language as tl


@tilewright.jit
def kernel(x, log, sums, first, end, by, rows, depth):
    pid, count, total = tl.program_id(0), 0, 0
    own, lanes = log + pid * {CAPACITY}, tl.arange(0, 8)
"""
_STARTS = ("pid", "first", "first + pid", "pid * by", "pid * 3 - 2", "first - by")
_ENDS = ("end", "first + end", "tl.cdiv(end, 3) * 2", "end * by", "end - pid")
_STEPS = ("tl.num_programs(0)", "by", "7", "by * tl.num_programs(0)", "by + 1", "3 * by - 2")
_TESTS = ("i < {end}", "{end} > i", "i <= {end}", "{end} >= i", "i + 0 < {end}")
_COUNTS = {
    "rounded up": "tl.cdiv({end} - ({start}), {step})",
    "by hand": "({end} - ({start}) + {step} - 1) // ({step})",
    "with a rest": "({end}) // ({step}) + (({start}) < ({end}) % ({step}))",
    "one more": "({end}) // ({step})",
}
_ONE_MORE = "if ({start}) < ({end}) % ({step}):\n    steps += 1\n"


@dataclass(frozen=True)
class Walk:
    """A kernel's text, a launch's numbers, and how many programs there are."""

    seed: int
    text: str
    numbers: dict[str, int]
    programs: int

    def arguments(self) -> dict[str, object]:
        """Fresh arguments, the same every time."""
        rng = np.random.default_rng(self.seed)
        x = rng.integers(-9, 10, 16 * 8).astype(np.int32)
        log = np.full(self.programs * CAPACITY, -77, np.int32)
        sums = np.full(self.programs * 4, -7, np.int32)
        return {"x": x, "log": log, "sums": sums, **self.numbers}


def generate_walk(seed: int) -> Walk:
    """The program of a seed; it may visit more than `MOST` numbers."""
    rng = random.Random(seed)
    programs = rng.choice((1, 2, 3, 5))
    numbers = _large(rng) if rng.random() < 0.3 else _small(rng)
    start, end, step = rng.choice(_STARTS), rng.choice(_ENDS), rng.choice(_STEPS)
    way, is_flat = rng.choice(("while", "while", *_COUNTS)), rng.random() < 0.4
    if is_flat:
        lines = _flattened(rng, rng.choice(tuple(_COUNTS)), start, end, step)
    elif way == "while":
        lines = _while(rng, start, end, step)
    else:
        lines = _for(rng, way, start, end, step)
    lines += "tl.store(sums + pid * 4, count)\ntl.store(sums + pid * 4 + 1, total)\n"
    body = "".join(f"    {line}\n" for line in lines.splitlines())
    numbers |= {"rows": 16, "depth": rng.choice((1, 2, 2, 3, 4, 5, 0, -1))}
    return Walk(seed, HEAD + body, numbers, programs)


class TooLong(Exception):
    """A program visits more numbers than it may, or divides by zero."""


class _Number(int):
    """An i32, as a kernel computes it."""

    def __add__(self, other: int) -> _Number:
        return _wrapped(int(self) + int(other))

    def __sub__(self, other: int) -> _Number:
        return _wrapped(int(self) - int(other))

    def __mul__(self, other: int) -> _Number:
        return _wrapped(int(self) * int(other))

    def __floordiv__(self, other: int) -> _Number:
        if other == 0:
            raise TooLong
        quotient = abs(int(self)) // abs(int(other))
        return _wrapped(-quotient if (self < 0) != (other < 0) else quotient)

    def __mod__(self, other: int) -> _Number:
        return self - (self // other) * other

    def __rmul__(self, other: int) -> _Number:
        return self * other

    __radd__, __hash__ = __add__, int.__hash__


def _wrapped(number: int) -> _Number:
    return _Number((number + (1 << 31)) % (1 << 32) - (1 << 31))


class _Language:
    """The language as far as these kernels need it: one program, whose numbers are noted."""

    constexpr = int

    def __init__(self, program: int, programs: int) -> None:
        self.program, self.programs, self.visited = program, programs, list[int]()

    def program_id(self, _axis: int) -> _Number:
        return _Number(self.program)

    def num_programs(self, _axis: int) -> _Number:
        return _Number(self.programs)

    @staticmethod
    def cdiv(x: _Number, y: int) -> _Number:
        return (x + (_Number(y) - 1)) // y

    @staticmethod
    def nothing(*_: object) -> _Number:
        return _Number(0)

    arange = load = sum = nothing

    @staticmethod
    def where(condition: bool, one: int, other: int) -> _Number:
        return _wrapped(one if condition else other)

    def store(self, place: str | int, number: int) -> None:
        if place != "log":
            return
        if len(self.visited) >= MOST:
            raise TooLong
        self.visited.append(int(number))


def _range(start: int, end: int) -> range:
    if end - start > 10 * MOST:
        raise TooLong
    return range(start, end)


class _Log(str):
    def __add__(self, _other: object) -> _Log:
        return self


def visited(walk: Walk) -> list[list[int]]:
    """The numbers that each program visits, by Python. *Raises*: TooLong."""
    body = walk.text[walk.text.index("def kernel") :]
    found = list[list[int]]()
    for program in range(walk.programs):
        language = _Language(program, walk.programs)
        names: dict[str, object] = {"tl": language, "range": _range}
        exec(body, names)
        numbers = {name: _Number(value) for name, value in walk.numbers.items()}
        arguments = {"x": _Number(0), "log": _Log("log"), "sums": _Number(0), **numbers}
        kernel = names["kernel"]
        assert callable(kernel)
        kernel(**arguments)
        found.append(language.visited)
    return found


def _small(rng: random.Random) -> dict[str, int]:
    first, by = rng.choice((0, 0, 1, 5, -3)), rng.choice((1, 2, 3, 8))
    return {"first": first, "end": rng.choice((0, 1, 7, 16, 33, 40, -4)), "by": by}


def _large(rng: random.Random) -> dict[str, int]:
    """Sums of these are past the last number, or near it."""
    top = (1 << 31) - 1
    first = rng.choice((0, top - 100, top - 3, -top, 1 << 30, -5))
    end = rng.choice((top, top - 1, top - 60, 1 << 30, (1 << 30) + 9, -top))
    by = rng.choice((1, 7, 1 << 29, (1 << 30) + 5, top, top - 1, 50_000_000))
    return {"first": first, "end": end, "by": by}


def _visit(rng: random.Random) -> str:
    """Writes `i` down; more than there is room for is counted and overwrites."""
    lines = [
        f"tl.store(own + count % {CAPACITY}, i)",
        "total += tl.sum(tl.load(x + (i % rows + rows) % rows * 8 + lanes))",
        "count += 1",
    ]
    if rng.random() < 0.1:
        lines.insert(1, "total ^= i")
    return "\n".join(lines) + "\n"


def _while(rng: random.Random, start: str, end: str, step: str) -> str:
    test = rng.choice(_TESTS).format(end=f"({end})")
    test += f" and count < {MOST}" if rng.random() < 0.15 else ""
    body = _visit(rng) + f"i += {step}\n"
    if rng.random() < 0.1:
        body += "end -= 1\n"
    if rng.random() < 0.1:
        body += "if i % 5 == 0:\n    i += 1\n"
    if rng.random() < 0.1:
        body += "if count == 5:\n    break\n"
    indented = "".join(f"    {line}\n" for line in body.splitlines())
    text = f"i = {start}\nwhile {test}:\n{indented}"
    return text + "tl.store(sums + pid * 4 + 2, i)\n" * (rng.random() < 0.2)


def _for(rng: random.Random, way: str, start: str, end: str, step: str) -> str:
    said = {"start": start, "end": end, "step": step}
    text = f"steps = {_COUNTS[way].format(**said)}\n"
    text += _ONE_MORE.format(**said) if way == "one more" else ""
    visit, kind = _visit(rng), rng.choice(("computed", "turned", "carried", "ahead"))
    visit += "total += s\n" * (rng.random() < 0.2)
    if kind == "carried":
        text += f"i = {start}\n"
        visit += f"i += {step}\n"
    elif kind == "ahead":
        text += f"i = {start} - ({step})\n"
        visit = f"i += {step}\n{visit}"
    else:
        ways = {"computed": f"{start} + s * ({step})", "turned": f"({step}) * s + ({start})"}
        visit = f"i = {ways[kind]}\n{visit}"
    return f"{text}for s in range(0, steps):\n" + "".join(
        f"    {line}\n" for line in visit.splitlines()
    )


def _flattened(rng: random.Random, way: str, start: str, end: str, step: str) -> str:
    """One loop over `depth` steps for each number."""

    def maybe(likely: float, text: str, otherwise: str = "") -> str:
        return text if rng.random() < likely else otherwise

    said = {"start": start, "end": end, "step": step}
    text = f"steps = {_COUNTS[way].format(**said)}\n"
    text += _ONE_MORE.format(**said) if way == "one more" else ""
    text += f"i, s, base, acc = {start} - ({step}), -1, 5, {maybe(0.9, '0', '3')}\n"
    body = maybe(0.8, "s = tl.where(s == depth - 1, 0, s + 1)\n")
    more = maybe(0.7, "    base += 3\n")
    body = body or f"if s == depth - 1:\n    s = 0\n{more}else:\n    s += 1\n"
    if rng.random() < 0.1:
        body = "after = s + 1\ns = tl.where(s == depth - 1, 0, after)\ntotal += after\n"
    body += maybe(0.3, "wide = s * 3 + 1\n", "wide = s\n")
    body += maybe(0.1, "acc += base\n") + maybe(0.05, "tl.store(sums + pid * 4 + 3, i)\n")
    body += f"if {maybe(0.8, 's == 0', '0 == s')}:\n    i += {step}\n"
    body += maybe(0.7, f"    base = {maybe(0.5, 'i * 2', 'i * 2 + wide')}\n")
    body += maybe(0.1, "else:\n    base += 1\n") + maybe(0.1, "base += 1\n")
    body += "acc += i + wide + base\n"
    body += maybe(0.5, "total += tl.sum(tl.load(x + (i % rows + rows) % rows * 8 + lanes))\n")
    body += maybe(0.3, f"tl.store(own + count % {CAPACITY}, acc)\ncount += 1\n")
    body += maybe(0.1, "i += 0 * total\n")
    body += f"if {maybe(0.9, 's == depth - 1', 's + 1 == depth')}:\n"
    value = rng.choice(("acc", "acc", "i", "base + wide", "acc + s"))
    body += f"    tl.store(own + count % {CAPACITY}, {value})\n    count += 1\n"
    body += maybe(0.8, f"    acc = {maybe(0.9, '0', 'i')}\n") + maybe(0.1, "total += s\n")
    indented = "".join(f"    {line}\n" for line in body.splitlines())
    text += f"for _ in range(0, {maybe(0.5, 'depth * steps', 'steps * depth')}):\n{indented}"
    for name in ("i", "acc", "base", "s"):
        text += maybe(0.15, f"tl.store(sums + pid * 4 + 2, {name})\n")
    return text
