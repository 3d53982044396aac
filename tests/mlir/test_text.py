"""What the text is: fused chains, named products, views, remarks; parsed and lowered by MLIR."""

from __future__ import annotations

import io
import re

import numpy as np
import pytest
from xdsl.context import Context
from xdsl.dialects import get_all_dialects
from xdsl.dialects.builtin import ModuleOp, UnregisteredOp
from xdsl.parser import Parser
from xdsl.printer import Printer

import tilewright
import tilewright.language as tl
from tests.corpus.everything import CASES
from tests.mlir.texts import scheduled, scheduled_case, text_of
from tilewright.jit import JITFunction
from tilewright.support.errors import UnsupportedError
from tilewright.targets.mlir.emit import emit_module
from tilewright.targets.mlir.tools import find_tools

FLOATS = np.zeros(4096, np.float32)
SOME = [case for case in CASES if not case.is_slow][::25]
ATOMIC = [case for case in CASES if "atomic" in case.name and not case.is_slow][::4]


@tilewright.jit
def product(a, b, c, k, K: tl.constexpr):
    rows, steps, columns = tl.arange(0, 32), tl.arange(0, K), tl.arange(0, 16)
    left = a + rows[:, None] * k + steps[None, :]
    right = b + steps[:, None] * 16 + columns[None, :]
    acc = tl.zeros((32, 16), tl.float32)
    for _ in range(0, k, K):
        acc = tl.dot(tl.load(left), tl.load(right), acc)
        left += K
        right += K * 16
    tl.store(c + rows[:, None] * 16 + columns[None, :], tl.maximum(acc * 2 + 1, 0))


@tilewright.jit
def chain(x, out, n, B: tl.constexpr):
    at = tl.program_id(0) * B + tl.arange(0, B)
    v = tl.load(x + at, mask=at < n)
    tl.store(out + at, tl.exp(v * v - 1) / (v + 2), mask=at < n)


@tilewright.jit
def sums(x, out, B: tl.constexpr):
    tl.store(out, tl.sum(tl.load(x + tl.arange(0, B)), axis=0))


@tilewright.jit
def sorts(x, out, B: tl.constexpr):
    at = tl.arange(0, B)
    tl.store(out + at, tl.sort(tl.load(x + at)))


@tilewright.jit
def chosen_rows(x, out):
    rows, columns = tl.arange(0, 16), tl.arange(0, 32)
    at = rows[:, None] * 32 + columns[None, :]
    is_chosen = tl.load(out + rows) > 0.5
    tl.store(out + at, tl.load(x + at, mask=is_chosen[:, None], other=1))


@tilewright.jit
def chosen_elements(x, out):
    at = tl.arange(0, 16)[:, None] * 32 + tl.arange(0, 32)[None, :]
    tl.store(out + at, tl.load(x + at, mask=tl.load(out + at) > 0.5, other=1))


@tilewright.jit
def looks_up(x, index, out):
    at = tl.arange(0, 16)
    tl.store(out + at, tl.load(x + tl.load(index + at)))


@tilewright.jit
def times(x):
    tl.store(x, tl.extra.cuda.globaltimer().to(tl.float32))


@tilewright.jit
def assembles(x):
    v = tl.load(x + tl.arange(0, 16))
    v = tl.inline_asm_elementwise(
        "mov.b32 $0, $1;", "=r,r", [v], dtype=v.dtype, is_pure=True, pack=1
    )
    tl.store(x + tl.arange(0, 16), v)


def test_a_chain_of_elementwise_ops_is_one_generic() -> None:
    text = text_of(chain, FLOATS, FLOATS, 100, B=64)
    assert text.count("linalg.generic") == 1
    assert "math.exp" in text and "arith.divf" in text


@pytest.mark.parametrize("extent, lanes", [(16, 0), (32, 8), (1024, 32), (4096, 64)])
def test_a_long_sum_is_one_of_partial_sums(extent: int, lanes: int) -> None:
    text = text_of(sums, FLOATS, FLOATS, B=extent)
    assert text.count("linalg.generic") == 1 + bool(lanes)
    assert (f"-> (d0 * {lanes} + d1)>" in text) == bool(lanes)


def test_what_rounds_nothing_is_folded_in_one_loop() -> None:
    text = text_of(sums, FLOATS.astype(np.int32), FLOATS.astype(np.int32), B=1024)
    assert text.count("linalg.generic") == 1


def test_a_product_has_its_accumulator_as_destination() -> None:
    text = text_of(product, FLOATS, FLOATS, FLOATS, 64, K=16)
    (carried,) = re.findall(r"scf\.for .* iter_args\((.*?)\) ->", text)
    (sum_,) = re.findall(r"linalg\.matmul .* outs\((%\d+) : tensor<32x16xf32>\)", text)
    assert f"{sum_} = " in carried
    assert text.count("linalg.matmul") == 1 and text.count("linalg.generic") == 1


def test_every_access_of_a_product_is_a_view_without_a_remark() -> None:
    result = scheduled(product, FLOATS, FLOATS, FLOATS, 64, K=16)
    assert emit_module(result.module).count("memref.reinterpret_cast") == 3
    assert result.remarks == ()


def test_an_access_by_elements_is_a_remark_with_its_line_and_reason() -> None:
    result = scheduled(looks_up, FLOATS, np.zeros(16, np.int32), FLOATS)
    (remark,) = result.remarks
    assert re.search(
        r"test_text\.py:\d+, col \d+: this load goes element by element: dimension 0", remark
    )


def test_nothing_that_reads_memory_is_a_generic() -> None:
    """MLIR takes a generic on tensors for pure, whatever its body reads."""
    for case in SOME:
        text = emit_module(scheduled_case(case).module)
        for body in re.findall(r"linalg\.generic .*?\n *\} ->", text, re.S):
            assert "memref.load" not in body and "llvm.load" not in body, case.name


@pytest.mark.parametrize("kernel, said", [(times, "a clock"), (assembles, "inline_asm")])
def test_what_core_dialects_cannot_say_is_refused_with_its_line(
    kernel: JITFunction, said: str
) -> None:
    with pytest.raises(UnsupportedError, match=said) as caught:
        scheduled(kernel, FLOATS)
    assert caught.value.span is not None and caught.value.span.file == __file__
    assert caught.value.hint


def test_the_text_is_the_same_for_every_machine() -> None:
    assert "avx" not in text_of(chain, FLOATS, FLOATS, 100, B=64)


# With stock MLIR.


@pytest.mark.mlir
def test_the_loop_of_a_product_allocates_its_operands_only() -> None:
    buffers = find_tools().to_buffers(text_of(product, FLOATS, FLOATS, FLOATS, 64, K=16))
    loop = re.search(r"scf\.for .*?\n    \}", buffers, re.S)
    assert loop is not None
    assert loop[0].count("memref.alloc") == 0, "buffers of loads are hoisted out of the loop"
    assert buffers.count("memref.alloc") == buffers.count("memref.dealloc")


@pytest.mark.mlir
def test_a_long_sum_keeps_its_places(
    rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TILEWRIGHT_TARGET", "mlir")
    x, out = rng.random(4096, dtype=np.float32), np.zeros(1, np.float32)
    sums[(1,)](x, out, B=4096)
    exact = x.astype(np.float64).sum()
    # 64 lanes of 64 terms: 128 roundings of half a last place at most, of which few add up.
    assert abs(out[0] - exact) <= 4 * np.spacing(np.float32(exact))


@pytest.mark.mlir
def test_every_buffer_of_a_chain_is_freed() -> None:
    buffers = find_tools().to_buffers(text_of(chain, FLOATS, FLOATS, 100, B=64))
    assert 0 < buffers.count("memref.alloc") == buffers.count("memref.dealloc")


@pytest.mark.mlir
def test_the_text_survives_a_round_trip() -> None:
    tools = find_tools()
    for case in SOME:
        once = tools.run_passes(emit_module(scheduled_case(case).module))
        assert tools.run_passes(once) == once, case.name


@pytest.mark.mlir
def test_a_loop_over_the_grid_is_lowered_too() -> None:
    names = ("softmax", "matmul-float32-nn-70x45x33x32x32x16", "locked-sum")
    for case in (found for found in CASES if found.name in names):
        tools = find_tools()
        text = emit_module(scheduled_case(case).module, has_grid_loop=True)
        assert "scf.parallel" in text
        assert "define void @" in tools.to_llvm(tools.to_buffers(text))


# Ops that xDSL 0.74 has no definition of: it reads and prints them as what they are called.
UNKNOWN_TO_XDSL = frozenset(
    f"{dialect}.{name}"
    for dialect, names in (
        ("arith", ("remf",)),
        ("linalg", ("batch_matmul",)),
        ("llvm", ("atomicrmw",)),
        ("memref", ("atomic_yield", "generic_atomic_rmw")),
    )
    for name in names
)
DIALECTS = (
    *("builtin", "func", "arith", "math", "scf", "cf", "tensor", "memref", "linalg"),
    *("bufferization", "llvm"),
)


def reader() -> Context:
    """What reads the core dialects by xDSL's definitions of them."""
    context = Context(allow_unregistered=True)
    for name in DIALECTS:
        context.register_dialect(name, get_all_dialects()[name])
    return context


def unknown_ops(module: ModuleOp) -> set[str]:
    return {op.op_name.data for op in module.walk() if isinstance(op, UnregisteredOp)}


def printed(module: ModuleOp) -> str:
    stream = io.StringIO()
    Printer(stream, print_generic_format=True).print_op(module)
    return stream.getvalue()


@pytest.mark.parametrize("name", sorted(UNKNOWN_TO_XDSL))
def test_an_op_that_is_named_unknown_to_xdsl_is_so(name: str) -> None:
    dialect = get_all_dialects()[name.partition(".")[0]]()
    assert name not in {op.name for op in dialect.operations}


@pytest.mark.mlir
def test_what_mlir_prints_is_read_by_xdsl_and_says_the_same() -> None:
    tools, seen = find_tools(), set[str]()
    for case in (*SOME, *ATOMIC):
        text = tools.run_passes(emit_module(scheduled_case(case).module))
        module = Parser(reader(), tools.run_passes(text, is_generic=True)).parse_module()
        seen |= unknown_ops(module)
        assert tools.run_passes(printed(module)) == text, case.name
    assert seen
    assert seen <= UNKNOWN_TO_XDSL


@pytest.mark.mlir
def test_a_sort_exchanges_in_place_and_takes_no_time_squared() -> None:
    """Two tensors of the row are all that it has: the values, and the places that they had."""
    buffers = find_tools().to_buffers(text_of(sorts, FLOATS, FLOATS, B=1024))
    loop = re.search(r"\n    scf\.for .*?\n    \}", buffers, re.S)
    assert loop is not None and loop[0].count("scf.for") == 3
    assert "memref.alloc" not in loop[0] and "linalg." not in loop[0]


def allocations_in_loops(buffers: str) -> list[str]:
    """The lines that allocate inside of a loop of a module of memrefs."""
    found, loops = list[str](), list[int]()
    for line in buffers.splitlines():
        depth = len(line) - len(line.lstrip())
        if loops and line.strip() == "}" and depth == loops[-1]:
            loops.pop()
        if re.search(r"scf\.(for|while|parallel)\b.*\{$", line):
            loops.append(depth)
        elif loops and "memref.alloc(" in line:
            found.append(line)
    return found


def test_allocations_in_loops_are_told_from_others() -> None:
    text = """
  %0 = memref.alloc() : memref<4xf32>
  scf.for %i = %a to %b step %c {
    scf.if %d {
      %1 = memref.alloc() : memref<5xf32>
    }
  }
  %2 = memref.alloc() : memref<6xf32>
"""
    assert [line.strip() for line in allocations_in_loops(text)] == [
        "%1 = memref.alloc() : memref<5xf32>"
    ]


@pytest.mark.mlir
@pytest.mark.parametrize(
    "name, num_buffers, num_copies",
    [
        # The sum and the tiles of both operands, each load and the store a copy.
        ("matmul-float32-nn-70x45x33x32x32x16", 3, 3),
        # A row that is loaded; what is used more than once; sums in lanes and their folds.
        ("softmax", 7, 2),
        # q, k, v, scores, the sums, maxima and outputs that are carried, and what they come from.
        ("attention-75-causal", 14, 6),
    ],
)
def test_no_loop_allocates_and_no_copy_is_undone(
    name: str, num_buffers: int, num_copies: int
) -> None:
    """Loads and stores are copies; of what a loop carries, one that is no product's sum is."""
    (case,) = (found for found in CASES if found.name == name)
    buffers = find_tools().to_buffers(emit_module(scheduled_case(case).module))
    assert allocations_in_loops(buffers) == []
    assert buffers.count("memref.alloc(") <= num_buffers
    assert buffers.count("linalg.copy") + buffers.count("memref.copy") <= num_copies


def test_rows_that_a_mask_chooses_are_views_where_it_holds() -> None:
    text = text_of(chosen_rows, FLOATS, FLOATS)
    (loop,) = re.findall(r"scf\.for %\d+ = .*? \{\n((?:.*\n)*?)    \}\n", text)[:1]
    lines = [line.strip().partition(" = ")[2] or line.strip() for line in loop.splitlines()]
    (start,) = (n for n, line in enumerate(lines) if line.startswith("scf.if"))
    assert any(line.startswith("memref.reinterpret_cast") for line in lines[start:])
    assert not any("reinterpret_cast" in line for line in lines[:start])
    result = scheduled(chosen_rows, FLOATS, FLOATS)
    assert result.remarks == ()


def test_a_mask_that_no_row_says_is_a_remark() -> None:
    (remark,) = scheduled(chosen_elements, FLOATS, FLOATS).remarks
    assert "this load goes element by element: its mask is no bound along a dimension" in remark
