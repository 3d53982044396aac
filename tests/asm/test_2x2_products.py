"""Products of two rows by two columns on AArch64: where they are chosen, and what code they are."""

from __future__ import annotations

import re

import pytest

from tests.asm.dot_harness import NEON, Machine, assemble
from tilewright.codegen.llvm_builder import ModuleBuilder
from tilewright.support.dataclass import replace
from tilewright.targets.cpu.dot.block_runs import row_runs
from tilewright.targets.cpu.dot.microkernel import emit_dot
from tilewright.targets.cpu.dot.panels import RowLayout, VectorUnit
from tilewright.targets.cpu.dot.spec import FEW_ROWS, DotSpec
from tilewright.targets.cpu.dot.units import MIN_2X2_ROWS, choose_unit

BASE = frozenset({"neon", "dotprod"})
V2 = Machine("v2", "neoverse-v2", VectorUnit(BASE | {"i8mm", "bf16"}, 16), NEON.triple)
SHAPE = (120, 128, 128)
# What an inner loop is made of, by operand types: with the 2x2 product, and as it was.
MNEMONICS = {
    ("i8", "i8"): ("smmla", "sdot"),
    ("u8", "u8"): ("ummla", "udot"),
    ("u8", "i8"): ("usmmla", "usdot"),
    ("i8", "u8"): ("usmmla", "usdot"),
    ("bf16", "bf16"): ("bfmmla", "bfdot"),
}
PRODUCTS = re.compile(r"\t((?:[su]|us|bf)(?:mmla|dot))\t")
each_types = pytest.mark.parametrize("types", MNEMONICS, ids="-".join)


def dot_spec(machine: Machine, shape: tuple[int, int, int], types: tuple[str, str]) -> DotSpec:
    """A product by the unit that is chosen for it."""
    plain = DotSpec(*shape, *types, machine.unit.features, machine.unit.vector_bytes)
    return choose_unit(plain).spec


def assembly(machine: Machine, spec: DotSpec) -> str:
    module = ModuleBuilder()
    return assemble(module, machine, {emit_dot(module, spec): ("ptr",) * 3})


def tallest_loop(text: str, mnemonic: str) -> list[str]:
    """The instructions of the inner loop with the most products."""
    blocks = re.split(r"\n(?=\.LBB\d+_\d+:)", text)
    loops = [block for block in blocks if PRODUCTS.search(block) and loop_end(block)]
    tallest = max(loops, key=lambda block: block.count(f"{mnemonic}\t"))
    end = loop_end(tallest)
    assert end is not None
    return re.findall(r"\n\t(\w.*)", tallest[: end.end()])


def loop_end(block: str) -> re.Match[str] | None:
    """The branch back to where a block begins."""
    label = re.escape(block.split(":")[0].strip())
    return re.search(rf"\n\tb\.\w+\t{label}\b", block)


@each_types
def test_a_core_with_the_instruction_multiplies_by_it_and_no_other(types: tuple[str, str]) -> None:
    text = assembly(V2, dot_spec(V2, SHAPE, types))
    assert set(PRODUCTS.findall(text)) == {MNEMONICS[types][0]}


@each_types
def test_a_core_without_it_and_products_of_few_rows_keep_theirs(types: tuple[str, str]) -> None:
    pair = MNEMONICS[types][1]
    old = {pair} if pair in ("sdot", "udot") else set[str]()
    assert set(PRODUCTS.findall(assembly(NEON, dot_spec(NEON, SHAPE, types)))) == old
    few = (MIN_2X2_ROWS - 1, *SHAPE[1:])
    assert set(PRODUCTS.findall(assembly(V2, dot_spec(V2, few, types)))) == {pair}


@each_types
def test_the_inner_loop_has_no_spill_and_fewer_instructions_than_half_for_each_product(
    types: tuple[str, str],
) -> None:
    """Counted, not measured: instructions of the loop for each multiply-add of one element."""
    rates: list[float] = []
    spec = dot_spec(V2, SHAPE, types)
    for mnemonic, each in zip(MNEMONICS[types], (spec, replace(spec, is_2x2=False)), strict=True):
        loop = tallest_loop(assembly(V2, each), mnemonic)
        assert not [line for line in loop if "[sp" in line]
        count = sum(line.startswith(mnemonic) for line in loop)
        rates.append(len(loop) / (count * 4 * each.multiply.k_group))
        assert count >= len(loop) * 0.7 or not each.is_2x2
    assert rates[0] < 0.5 * rates[1]


def test_few_rows_other_types_and_a_word_against_it_keep_what_they_had() -> None:
    spec = dot_spec(V2, SHAPE, ("bf16", "bf16"))
    assert spec.is_2x2
    plain = replace(spec, is_2x2=False)
    for other in (
        replace(plain, m=MIN_2X2_ROWS - 1),
        replace(plain, contract=False),
        replace(plain, bf16_dot=False),
        replace(plain, features=BASE | {"i8mm"}),
        replace(plain, a_dtype="f16", b_dtype="f16"),
        replace(plain, b_dtype="f32"),
    ):
        assert choose_unit(other).spec == other
    bytes_ = replace(plain, a_dtype="u8", b_dtype="i8", contract=False)
    assert choose_unit(bytes_).spec.is_2x2
    assert choose_unit(bytes_).name == "2x2 byte products in eights"
    assert not choose_unit(replace(bytes_, features=BASE | {"bf16"})).spec.is_2x2


def test_few_rows_by_a_transposed_matrix_take_no_square_apart() -> None:
    """Two rows of it side by side are an operand: half the shuffles that vectors of four take."""
    spec = replace(dot_spec(V2, (4, 64, 64), ("i8", "i8")), transposed_b=True)
    shuffles: list[int] = []
    for each in (spec, replace(spec, is_2x2=False)):
        module = ModuleBuilder()
        arguments = ("ptr",) * 4 + ("i64",)
        text = assemble(module, V2, {emit_dot(module, each): arguments})
        loop = tallest_loop(text, MNEMONICS["i8", "i8"][not each.is_2x2])
        assert not [line for line in loop if "[sp" in line]
        shuffles.append(sum(line.startswith(("zip", "uzp", "trn")) for line in loop))
    assert shuffles == [4, 8]


def test_both_operands_are_packed() -> None:
    spec = dot_spec(V2, SHAPE, ("i8", "i8"))
    assert not (spec.can_read_a_in_place or spec.can_pack_b or spec.can_read_transposed_b)
    few = replace(spec, m=FEW_ROWS)
    assert few.can_read_transposed_b, "but for few rows"
    assert not replace(few, n=66).can_read_transposed_b


@pytest.mark.parametrize("m", range(1, 60))
def test_blocks_begin_with_an_even_row_and_only_the_last_is_odd(m: int) -> None:
    spec = DotSpec(m, 16, 8, "i8", "i8", V2.unit.features, 16, is_2x2=True)
    blocks = [
        (run.first + index * run.size, run.size)
        for run in row_runs(spec, 10)
        for index in range(run.count)
    ]
    starts = [0, *(first + size for first, size in blocks)]
    assert [first for first, _ in blocks] == starts[:-1] and starts[-1] == m
    assert all(first % 2 == 0 for first, _ in blocks)
    assert max(size for _, size in blocks) <= 10


def test_two_rows_do_not_share_cache_sets_with_the_next_two() -> None:
    layout = RowLayout("i8", 8, rows=2)
    assert layout.stride_elems(65) == 72
    assert 2 * layout.stride_elems(2048) == 4096 + 64
    assert layout.size_elems(5, 65) == 6 * 72
