"""Random texts of schedules: a product compiles by one, or the catalogue says why not."""

from __future__ import annotations

import random

import pytest

from tests.corpus.partitioned import gemm, gemm_case
from tests.corpus.threads import lower_for_gpu
from tilewright.support.errors import InternalError, TilewrightError

MEDIA = (*("",) * 8, " tma", " tma", " cp_async", " store")
RELEASES = ("", " release wait", " release late")
PLACES = (
    "load#0 @0.0 load#1 @0.0 dot#0 @1.0",
    "load#0 @0.0 load#1 @0.0 dot#0 @2.0 rest @0.1",
    "load#0 load@0.0 load#1 load@0.0 dot#0 math@0.0",
    "load#0 @0.1 load#1 @1.0 dot#0 @3.1",
    "dot#0 @1.0",
)
OTHERS = (
    "turns math lock dot#0 pass done",
    "turns lock dot#0 pass next",
    "epilogue tma columns 24",
    "epilogue tma columns 256 buffers 16",
    "epilogue direct",
    "persist static",
    "mask branch",
    "cluster 2",
)


def role(rng: random.Random, name: str) -> str:
    """One role: its replicas, warps, registers and split, most of them unsaid."""
    text = name
    if name != "load" and rng.random() < 0.5:
        text += f" x{rng.choice((2, 2, 3, 4))}"
    if rng.random() < 0.3:
        text += f" warps {rng.choice((1, 2, 4, 8))}"
    if rng.random() < 0.3:
        text += f" regs {rng.choice((24, 40, 168, 232))}"
    if rng.random() < 0.4:
        text += f" split {rng.choice(('m', 'n', 'tiles'))}"
    return text


def ring(rng: random.Random, name: str, tiles: str) -> str:
    """One ring."""
    slots = rng.choice((1, 2, 3, 4))
    return f"ring {name} tiles {tiles} slots {slots}{rng.choice(MEDIA)}{rng.choice(RELEASES)}"


def schedule_text(seed: int) -> str:
    """A text that means something, most of the time."""
    rng = random.Random(seed)
    names = [*rng.choice((["load", "math"], ["math", "load"], ["load", "math", "more math"]))]
    clauses = ["roles " + " | ".join(role(rng, name) for name in names)]
    if rng.random() < 0.6:
        clauses.append(ring(rng, "ab", "load#0 load#1"))
    else:
        clauses += [ring(rng, "a", "load#0"), ring(rng, "b", "load#1")]
    if rng.random() < 0.5:
        clauses.append(f"loop for#0 {rng.choice(PLACES)}")
    clauses += rng.sample(OTHERS, rng.choice((0, 0, 1, 2)))
    return "; ".join(clauses)


def check(seed: int) -> None:
    """Compile a product by one text."""
    text = schedule_text(seed)
    try:
        lower_for_gpu(gemm_case(gemm, 128, 64, 256, "texts"), schedule=text)
    except InternalError as error:
        pytest.fail(f"seed {seed}: {text}: {error.summary}")
    except TilewrightError as error:
        assert error.span is not None, (seed, text, error.summary)
        assert error.hint, (seed, text, error.summary)


@pytest.mark.parametrize("seed", range(12))
def test_a_text_compiles_or_is_refused(seed: int) -> None:
    check(seed)


@pytest.mark.slow
@pytest.mark.parametrize("start", range(1000, 1400, 20))
def test_many_texts_compile_or_are_refused(start: int) -> None:
    for seed in range(start, start + 20):
        check(seed)
