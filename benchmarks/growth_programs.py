"""Kernels of one shape and any size, as source text, to measure how compile times grow.

Each shape grows in one way only, so that a pass that walks what another walk is walking shows.
"""

from __future__ import annotations

import importlib.util
import linecache
import sys
from collections.abc import Callable
from pathlib import Path

from tilewright.jit import JITFunction

HEADER = "import tilewright\nimport tilewright.language as tl\n\n"
# Python nests 20 loops in one function and no more.
LOOPS_A_FUNCTION = 10
# Python's parser takes 200 parentheses one in the other.
MAX_PARENTHESES = 90


def chain(size: int) -> str:
    """`size` dependent operations in a row, each a statement."""
    return kernel("\n".join("    v = v * 3 + 1" for _ in range(size // 2)))


def expression(size: int) -> str:
    """One expression of `size` terms."""
    return kernel("    v = " + " + ".join(["v"] * size))


def unrolled(size: int) -> str:
    """A loop that is unrolled `size` times."""
    return kernel(f"    for k in tl.static_range({size}):\n        v = v * 3 + k")


def elif_chain(size: int) -> str:
    """`size` arms, each of which changes the tile."""
    arms = [f"    elif n == {i}:\n        v += {i}" for i in range(1, size)]
    return kernel("\n".join(("    if n == 0:\n        v += 5", *arms)))


def nested_if(size: int) -> str:
    """`size` conditions one in the other."""
    lines = [f"{'    ' * (i + 1)}if n > {i}:\n{'    ' * (i + 2)}v += {i}" for i in range(size)]
    return kernel("\n".join(lines))


def nested_for(size: int) -> str:
    """`size` loops one in the other, over several functions."""
    return _nest(size, "for i{0} in range(n):", "v += {0}")


def nested_while(size: int) -> str:
    """`size` loops with a condition, one in the other."""
    return _nest(size, "while n > {0}:", "n -= 1; v += {0}")


def nested_break(size: int) -> str:
    """`size` loops one in the other, each of which may be left early and finds a constant out."""
    return _nest(size, "for i{0} in range(n):", "if n == {0}: break\n{indent}w = w + 1; v += w")


def _nest(size: int, head: str, body: str) -> str:
    """Loops in functions of `LOOPS_A_FUNCTION` loops that call one another."""
    count = -(-size // LOOPS_A_FUNCTION)
    parts: list[str] = []
    for number in range(count):
        lines = [f"@tilewright.jit\ndef part{number}(v, n):\n    w = 0"]
        depth = min(LOOPS_A_FUNCTION, size - number * LOOPS_A_FUNCTION)
        for i in range(depth):
            indent = "    " * (i + 1)
            inside = f"{indent}    "
            lines += [indent + head.format(i), inside + body.format(i, indent=inside)]
        if number + 1 < count:
            lines.append("    " * (depth + 1) + f"v = part{number + 1}(v, n)")
        lines.append("    return v\n\n")
        parts.append("\n".join(lines))
    return kernel("    v = part0(v, n)", "\n".join(reversed(parts)))


def nested_calls(size: int) -> str:
    """`size` jit functions, each of which calls the next."""
    functions = [f"@tilewright.jit\ndef call{size}(v):\n    return v\n\n"]
    functions += [
        f"@tilewright.jit\ndef call{i}(v):\n    return call{i + 1}(v * 3) + 1\n\n"
        for i in reversed(range(size))
    ]
    return kernel("    v = call0(v)", "\n".join(functions))


def loads(size: int) -> str:
    """`size` loads from one array."""
    return kernel("\n".join(f"    v += tl.load(x + {i} + r)" for i in range(size)))


def masked_loads(size: int) -> str:
    """`size` loads at odd places, each under a mask of its own."""
    one = "    v += tl.load(x + 7 * {0} + n + r, mask=r < n * 5 - {0}, other=0)"
    return kernel("\n".join(one.format(i) for i in range(size)))


def stores(size: int) -> str:
    """`size` loads and stores in turn, which must keep their order."""
    one = "    tl.store(y + {0} + r, v)\n    v += tl.load(x + {0} + r)"
    return kernel("\n".join(one.format(i) for i in range(size)))


def reductions(size: int) -> str:
    """`size` sums, each of which the next depends on."""
    return kernel("\n".join(f"    v += tl.sum(v, 0) + {i}" for i in range(size)))


def lookup(size: int) -> str:
    """A table of `size` entries as conditions one in the other."""
    wheres = "".join(f"tl.where(v == {i}, {7 * i % 64}, " for i in range(size))
    return kernel(f"    v = {wheres}0{')' * size}") if size < MAX_PARENTHESES else unnested(size)


def unnested(size: int) -> str:
    """The same table, an entry a statement."""
    entries = (f"    w = tl.where(v == {i}, {7 * i % 64}, w)" for i in range(size))
    return kernel("\n".join(("    w = v", *entries, "    v = w")))


def shared_masks(size: int) -> str:
    """`size` conjunctions, each of the two before it: a walk of all ways never ends."""
    lines = ["    a, b = r < n, r < n + 1", *["    a, b = a & b, a"] * size]
    lines += ["    v += tl.load(x + r, mask=a, other=0)"]
    lines += ["    tl.store(y + 64 + r, v - tl.sum(v, 0), mask=a)"]
    return kernel("\n".join(lines))


def shared_quotients(size: int) -> str:
    """A row's end from `size` values, each twice of the one before, in columns of narrow arrays."""
    lines = ["    c, d = r[:, None], tl.arange(0, 64)[None, :]", "    q = c // 33", "    e = q"]
    lines += ["    e = e * e + e"] * size
    lines += ["    mask = d + (e - e + q) * 7 < n"]
    lines += ["    w = tl.load(x + c % 33 + 33 * d + q * 231, mask=mask, other=0)"]
    lines += ["    tl.store(y + 64 + c + d * 64, w, mask=mask)"]
    return kernel("\n".join(lines))


def elements(size: int) -> str:
    """A tile of `size` elements."""
    return kernel("    v = v * v + tl.sum(v, 0)", block=size)


def arguments(size: int) -> str:
    """`size` more arguments, all of them used."""
    names = [f"a{i}" for i in range(size)]
    return kernel("    v += " + " + ".join(names), names=names)


def kernel(body: str, before: str = "", names: list[str] | None = None, block: int = 64) -> str:
    """A kernel of arrays `x` and `y` and a number `n` that maps tile `v` by `body`."""
    more = "".join(f", {name}" for name in names or ())
    return (
        f"{HEADER}{before}@tilewright.jit\ndef grown(x, y, n{more}):\n"
        f"    r = tl.arange(0, {block})\n    v = tl.load(x + r)\n{body}\n"
        "    tl.store(y + r, v)\n"
    )


Shape = Callable[[int], str]
SHAPES: dict[str, tuple[Shape, tuple[int, ...]]] = {
    "operations in a chain": (chain, (625, 1250, 2500, 5000)),
    "terms of an expression": (expression, (100, 200, 400, 800)),
    "unrolled iterations": (unrolled, (625, 1250, 2500)),
    "elif arms": (elif_chain, (10, 20, 40)),
    "nested if": (nested_if, (10, 20, 40)),
    "nested for": (nested_for, (10, 20, 40)),
    "nested while": (nested_while, (10, 20, 40)),
    "nested for with break": (nested_break, (5, 10, 20)),
    "nested calls": (nested_calls, (50, 100, 200)),
    "loads": (loads, (100, 200, 400)),
    "masked loads at odd places": (masked_loads, (50, 100, 200)),
    "loads and stores in turn": (stores, (50, 100, 200)),
    "sums in a row": (reductions, (50, 100, 200)),
    "entries of a nested where": (lookup, (64, 128, 256)),
    "conjunctions of the two before": (shared_masks, (10, 20, 40)),
    "quotients used twice": (shared_quotients, (10, 20, 40)),
    "tile elements": (elements, (1024, 4096, 16384)),
    "arguments": (arguments, (50, 100, 200)),
}
"""Each shape with the sizes at which it is measured, each about twice the one before."""


def load(text: str, folder: Path, name: str) -> JITFunction:
    """The kernel `grown` of a source text, which is kept in a file of `folder`."""
    path = folder / f"{name}.py"
    path.write_text(text, encoding="utf-8")
    linecache.checkcache(str(path))
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module.grown
