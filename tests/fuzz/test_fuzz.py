"""Random programs: the interpreter and the compiled kernel agree bit for bit.

A failure prints the seed; `python -m tests.fuzz --count 1 --seed SEED` shrinks it.
"""

from __future__ import annotations

import pytest

from tests.fuzz.farm import Farm, examine_task
from tests.fuzz.generator import generate
from tests.fuzz.oracle import AS_TEXT, SIMULATED, VARIANTS, examine, examine_briskly
from tests.fuzz.program import Assign, Effect, Kind, Nested, Program
from tests.fuzz.reduction import reduce

CHUNK = 10


def require_agreement(first: int, count: int) -> None:
    for seed in range(first, first + count):
        finding = examine(generate(seed), (VARIANTS[seed % len(VARIANTS)],))
        assert finding is None, f"seed {seed}: {finding.kind}\n{finding.text}"


@pytest.mark.parametrize("first", range(0, 120, CHUNK))
def test_random_programs_agree(first: int) -> None:
    require_agreement(first, CHUNK)


@pytest.mark.parametrize("first", range(200_000, 200_030, CHUNK))
def test_random_programs_agree_on_the_simulated_gpu(first: int) -> None:
    for seed in range(first, first + CHUNK):
        finding = examine(generate(seed), (SIMULATED,))
        assert finding is None, f"seed {seed}: {finding.kind}\n{finding.text}"


@pytest.mark.parametrize("seed", [300_067, 300_127])
def test_random_loops_that_went_wrong_ahead_of_themselves(seed: int) -> None:
    """Addresses from a tile whose copy had just begun; slots where no box may lie."""
    finding = examine(generate(seed), (SIMULATED,))
    assert finding is None, f"{finding.kind}\n{finding.text}"


@pytest.mark.parametrize("first", range(400_000, 400_006, 2))
def test_random_programs_read_back_as_they_were_printed(first: int) -> None:
    for seed in range(first, first + 2):
        finding = examine(generate(seed), (AS_TEXT,))
        assert finding is None, f"seed {seed}: {finding.kind}\n{finding.text}"


@pytest.mark.parametrize("form", ["overlapping", "define"])
@pytest.mark.parametrize("first", range(300_000, 300_040, CHUNK))
def test_short_programs_of_one_form_agree(first: int, form: str) -> None:
    for seed in range(first, first + CHUNK):
        variant = SIMULATED if seed % 5 == 0 else VARIANTS[seed % len(VARIANTS)]
        finding = examine(generate(seed, (form,)), (variant,))
        assert finding is None, f"seed {seed}: {finding.kind}\n{finding.text}"


@pytest.mark.slow
@pytest.mark.parametrize("first", range(100_000, 120_000, 100))
def test_many_random_programs_agree(first: int) -> None:
    require_agreement(first, 100)


def test_a_seed_gives_one_program() -> None:
    assert generate(17).source() == generate(17).source()
    assert generate(17).source() != generate(18).source()


def test_random_programs_cover_the_language() -> None:
    text = "".join(generate(seed).source() for seed in range(400))
    for part in (
        "tl.dot(", "tl.cumsum(", "tl.trans(", "tl.reshape(", "tl.where(", "tl.sum(", "mask=",
        "tl.atomic_add(", "while ", "for ", "break", "continue", "static_range", "else:", "s0 +",
        "tl.bfloat16", "tl.uint8", "tl.float64", "helper(", "pick(", "xor_sum", "argmax", "return",
        "tl.make_block_ptr(", "tl.make_tensor_descriptor(", "tl.advance(", ".store([", "tl.sort(",
        "tl.argsort(", "tl.topk(", "tl.gather(", "tl.histogram(", "tl.associative_scan(",
        "tl.reduce(", "pair_max", "leftmost", "then", "tl.cumprod(", "tl.join(",
        "tl.float8e5", "tl.float8e4nv", "tl.uint64", "tl.dot_scaled(", "tl.umulhi(",
        "bitcast=True", "tl.sqrt(", "atomic_cas(",
        "atomic_xchg(", "atomic_min(", "sem='relaxed'", " if ", "both(", "tl.flip(", "'rtz'",
        "tl.pointer_type(", "- i % ", ".to(tl.uint32) >= ", "[:, :, None]",
    ):  # fmt: skip
        assert part in text, part


def planted() -> Program:
    """A program that "fails" as long as it stores `v2` in a loop."""
    kind = Kind("int32", "V")
    loop = Nested("for k in range(3):", [Assign("v2", "v2 + v1"), Effect("tl.store(o1 + i, v2)")])
    body = [
        Assign("v1", "i * 2", kind), Assign("v2", "v1 + 1", kind), Assign("v3", "v2 * v1", kind),
        Effect("tl.store(o0 + i, v3)"), Nested("if pid == 0:", [loop], [Effect("pass")]),
        Effect("tl.store(o2 + i, v3)"),
    ]  # fmt: skip
    return Program(0, 8, 16, 16, (), tuple(body))


def test_reduction_leaves_what_the_failure_needs() -> None:
    def fails(program: Program) -> bool:
        source = program.source()
        is_defined = "    v2 = " in source
        return is_defined and "for k" in source and "tl.store(o1 + i, v2)" in source

    small = reduce(planted(), fails)
    assert (small.grid, small.rows, small.columns) == (1, 1, 1)
    source = small.source()
    assert "if pid" not in source and "o0" not in source and "o2" not in source
    assert "v3" not in source and "v2 + v1" not in source


def test_a_program_that_kills_its_worker_is_a_finding() -> None:
    # The generated module aborts when it is imported.
    deadly = Program(0, 1, 1, 1, (), (Effect("pass"), Effect("pass\n\nimport os\nos.abort()")))
    with Farm(1, ("avx2",)) as farm:
        finding = farm.examine(deadly)
        assert finding is not None and finding.kind == "died: SIGABRT"
        assert farm.examine(11) is None


def test_a_program_that_hangs_is_a_finding() -> None:
    forever = Program(0, 1, 1, 1, (), (Effect("pass\n\nwhile True:\n    pass"),))
    with Farm(1, ("avx2",)) as farm:
        assert farm.examine(11) is None
        farm.seconds = 0.5
        finding = farm.examine(forever)
        assert finding is not None and finding.kind == "hung"


def test_brisk_programs_agree() -> None:
    for seed in range(20_000, 20_004):
        finding = examine_task(seed, (), True)
        assert finding is None, f"seed {seed}: {finding.kind}\n{finding.text}"


@pytest.mark.parametrize("variant", ["default", "avx2"])
@pytest.mark.parametrize("seed", [911_430])  # a view made before a branch is multiplied in it
def test_programs_that_found_defects_agree(seed: int, variant: str) -> None:
    finding = examine_briskly(generate(seed), variant)
    assert finding is None, f"seed {seed}: {finding.kind}\n{finding.text}"
