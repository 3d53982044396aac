"""Text of modules with something wrong in it: a pass takes it, or refuses it as the author's."""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.plugins.mlir_tests import pieces_of
from tilewright.compiler.named_passes import run_passes_on_text
from tilewright.support.errors import InternalError, MalformedText, TilewrightError

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


# What changes like those above found, and what refuses it now.
FOUND = (
    ("select_tensor_maps/made_of_pointers", "tensor<64x64xf16>>\n", "tensor<64x64xf64>>\n",
     "a tile of f16 and a block of f64"),
    ("carry_phases/loop", "wait\"(%a) <{barrier = 0 :", "wait\"(%a) <{barrier = 64 :",
     "ttng.tma_wait names mbarrier 64, and the kernel makes 1"),
    ("emit_nests/elementwise", '"arith.addf"(%v, %v)', '"arith.addf"(%v, %s)',
     "arith.addf takes %s, which is computed by itself or behind it"),
)  # fmt: skip


@pytest.mark.parametrize(("example", "old", "new", "reason"), FOUND)
def test_what_was_found_broken_is_refused(example: str, old: str, new: str, reason: str) -> None:
    whole = (Path(__file__).parents[1] / "passes" / f"{example}.mlir").read_text(encoding="utf-8")
    passes = re.search(r"// PASS: *(.*)", whole)
    text = next(piece for piece in pieces_of(whole) if old in piece)
    assert passes is not None
    with pytest.raises(MalformedText, match=reason):
        run_passes_on_text(text.replace(old, new, 1), passes[1].strip(), name="k.mlir")


def test_a_product_of_no_matrices_and_a_number_too_large_are_refused() -> None:
    for line, reason in (
        ('%p = "tt.dot"(%x, %x, %x) : (f32, f32, f32) -> f32', "are no matrices of one rank"),
        ('%p = "arith.constant"() <{value = dense<1.0e+300> : !t}> : () -> !t',
         "float too large"),
    ):  # fmt: skip
        text = f"""!t = tensor<4xf32>
        "builtin.module"() ({{
          "tt.func"() <{{sym_name = "k", function_type = (f32) -> ()}}> ({{
          ^bb0(%x: f32):
            {line}
            "tt.return"() : () -> ()
          }}) : () -> ()
        }}) : () -> ()"""
        with pytest.raises(MalformedText, match=reason):
            run_passes_on_text(text, "fold-additions", name="k.mlir")
