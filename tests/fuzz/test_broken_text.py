"""Text of modules with something wrong in it: a pass takes it, or refuses it as the author's."""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.plugins.mlir_tests import pieces_of
from tilewright.compiler.named_passes import run_passes_on_text
from tilewright.support.errors import InternalError, TilewrightError

EXAMPLES = sorted(Path(__file__).parents[1].glob("passes/*/*.mlir"))
MUTANTS = 40
NUMBERS, VALUES = re.compile(r"\d+"), re.compile(r"%\w+")
TYPES = re.compile(r"\b(f32|f16|i64|i32|i8|i1)\b")


def without_a_line(text: str, rng: random.Random) -> str:
    lines = text.splitlines(keepends=True)
    del lines[rng.randrange(len(lines))]
    return "".join(lines)


def without_a_character(text: str, rng: random.Random) -> str:
    at = rng.randrange(len(text))
    return text[:at] + text[at + 1 :]


def with_another(pattern: re.Pattern[str], text: str, rng: random.Random, new: list[str]) -> str:
    found = list(pattern.finditer(text))
    if not found:
        return text
    place = rng.choice(found)
    return text[: place.start()] + rng.choice(new) + text[place.end() :]


def with_another_number(text: str, rng: random.Random) -> str:
    return with_another(NUMBERS, text, rng, ["0", "1", "3", "-1", "7", "64", "4096"])


def with_another_value(text: str, rng: random.Random) -> str:
    return with_another(VALUES, text, rng, VALUES.findall(text) or ["%x"])


def with_another_type(text: str, rng: random.Random) -> str:
    return with_another(TYPES, text, rng, ["f32", "f16", "i32", "i64", "i1", "bf16", "f64"])


CHANGES: dict[str, Callable[[str, random.Random], str]] = {
    function.__name__: function
    for function in (
        without_a_line,
        without_a_character,
        with_another_number,
        with_another_value,
        with_another_type,
    )
}


@pytest.mark.parametrize("name", CHANGES)
def test_broken_modules_are_taken_or_refused_as_the_authors(name: str) -> None:
    rng = random.Random(f"{name} 2026-11-23")
    for number in range(MUTANTS):
        path = rng.choice(EXAMPLES)
        whole = path.read_text(encoding="utf-8")
        passes = re.search(r"// PASS: *(.*)", whole)
        if passes is None:
            continue
        text = CHANGES[name](rng.choice(pieces_of(whole)), rng)
        try:
            run_passes_on_text(text, passes[1].strip(), name="k.mlir")
        except InternalError as error:
            pytest.fail(f"mutant {number}, of {path.name}: {error}\n{text}")
        except TilewrightError:
            pass
