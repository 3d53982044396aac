"""Values, calls and names of the kernel language, on the reference interpreter."""

from __future__ import annotations

import math
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

import tilewright
import tilewright.language as tl
from tilewright.language import float32 as f32
from tilewright.support.errors import CompileError, UnexpectedArgument

WIDTH = tl.constexpr(4)
DECLARED: tl.constexpr = 3
KIND = tl.float16


class Pair(NamedTuple):
    first: object
    second: object = 7


def store_all(kernel: tilewright.JITFunction, *arguments: object, size: int = 8) -> list[float]:
    out = np.zeros(size, np.float32)
    kernel.interpret[(1,)](out, *arguments)
    return out.tolist()


@tilewright.jit
def captured_names(out):
    tl.store(out + tl.arange(0, WIDTH), tl.full((WIDTH,), DECLARED, f32))
    tl.store(out + 4, tl.zeros((1,), KIND).to(tl.float32).sum() + KIND.primitive_bitwidth)


def test_constexpr_globals_dtypes_and_aliases_are_captured():
    assert store_all(captured_names) == [3, 3, 3, 3, 16, 0, 0, 0]


def make_scaler(factor: float):
    scale = tl.constexpr(factor)

    @tilewright.jit
    def scale_by(value):
        return value * scale

    @tilewright.jit
    def kernel(out):
        tl.store(out, scale_by(tl.load(out) + 1.0))

    return kernel


def test_closures_capture_their_own_values():
    assert store_all(make_scaler(2.0))[0] == 2
    assert store_all(make_scaler(5.0))[0] == 5


@tilewright.jit
def add_pair(pair, scale=2, *, offset=0):
    return pair.first * scale + pair[1] + offset


@tilewright.jit
def calls(out, value):
    tl.store(out, add_pair(Pair(value, 1)).to(f32))
    tl.store(out + 1, add_pair(Pair(value), offset=100).to(f32))
    tl.store(out + 2, add_pair(scale=3, pair=Pair(second=2, first=value)).to(f32))
    arguments = (Pair(value, value), 10)
    tl.store(out + 3, add_pair(*arguments).to(f32))


def test_calls_bind_defaults_keywords_and_starred_tuples():
    assert store_all(calls, 5)[:4] == [11, 117, 17, 55]


@tilewright.jit
def total(*values):
    result = 0
    for i in tl.static_range(len(values)):
        result += values[i]
    return result


@tilewright.jit
def variadic(out, a, b):
    tl.store(out, total(a, b, a).to(f32))
    tl.store(out + 1, total().to(f32))


def test_functions_take_any_number_of_arguments():
    assert store_all(variadic, 3, 4)[:2] == [10, 0]


@tilewright.jit
def power(x, N: tl.constexpr):
    if N == 0:
        return 1.0
    return x * power(x, N - 1)


@tilewright.jit
def recursion(out, x):
    tl.store(out, power(x, 5))


def test_recursion_on_a_constexpr_ends():
    assert store_all(recursion, 2.0)[0] == 32


@tilewright.jit
def tuples(out, pair, nested):
    (a, (b, c)) = nested
    tl.store(out, (pair.first + pair.second).to(f32))
    tl.store(out + 1, (a + b + c).to(f32))
    both = (a, b) + (c,)
    doubled = [x * 2 for x in both if True]
    tl.store(out + 2, (doubled[0] + doubled[-1] + len(doubled)).to(f32))
    for i in tl.static_range(2):
        tl.store(out + 3 + i, both[1:][i].to(f32))


def test_tuples_pass_unpack_index_and_slice():
    values = store_all(tuples, Pair(3, 4), (1, (20, 300)))
    assert values[:5] == [7, 321, 605, 20, 300]


@tilewright.jit
def step(state, value):
    return Pair(state.first + value, state.second)


@tilewright.jit
def carried_tuple(out, n):
    state = Pair(0, 10)
    for i in range(n):
        state = step(state, i)
    tl.store(out, state.first.to(f32))
    tl.store(out + tl.arange(0, 2) * state.second // state.second + 1, 1.0)


def test_loops_carry_tuples_and_keep_their_constants():
    assert store_all(carried_tuple, 5)[:3] == [10, 1, 1]


@tilewright.jit
def larger(a, b):
    return tl.where(a > b, a, b)


@tilewright.jit
def combine(out, x):
    tile = tl.load(x + tl.arange(0, 8))
    tl.store(out, tl.reduce(tile, 0, larger))
    tl.store(out + 1, tile.reduce(axis=0, combine_fn=larger))


def test_reduce_takes_a_jit_function():
    x = np.array([3, 1, 4, 1, 5, 9, 2, 6], np.float32)
    assert store_all(combine, x)[:2] == [9, 9]


@tilewright.jit
def builtins(out, n):
    tl.store(out, min(n, 3).to(f32))
    tl.store(out + 1, max(n, 3, 9).to(f32))
    tl.store(out + 2, float(min(4, 3)))
    tl.store(out + 3, len((1, 2, 3)) + int("4"))
    if isinstance(n, tl.tensor) and hasattr(n, "dtype") and not hasattr(n, "nothing"):
        tl.store(out + 4, getattr(n, "dtype").primitive_bitwidth)  # noqa: B009
    tl.store(out + 5, abs(-2) + abs(-n))


def test_python_builtins_work_on_both_kinds_of_values():
    assert store_all(builtins, 5)[:6] == [3, 9, 3, 7, 32, 7]


@tilewright.jit
def expressions(out, x):
    tile = tl.load(x + tl.arange(0, 4)[:, None] * 2 + tl.arange(0, 2)[None, :])
    tl.static_assert(tile.shape[0] == 4 and tile.shape == (4, 2) and tile.T.shape == [2, 4])
    tl.static_assert(tile.dtype == tl.float32, f"dtype is {tile.dtype}")
    tl.static_assert(tile.numel == 8 and tile.dtype.is_fp32() and not tile.dtype.is_int())
    tl.store(out + tl.arange(0, 2), tl.sum(tile, axis=0))
    tl.store(out + 2, tile.sum())
    tl.store(out + 3, -(7 // 2) + 2**3 % 5)


def test_tiles_index_by_none_and_have_properties():
    assert store_all(expressions, np.arange(8, dtype=np.float32))[:4] == [12, 16, 28, 0]


@tilewright.jit
def specialised_to_one(out, n, stride):
    tl.static_assert(stride == 1)
    tl.store(out + n.to(tl.int64) * stride.to(tl.int64), 1.0)


def test_an_argument_of_one_is_a_constant_with_the_methods_of_a_scalar():
    assert store_all(specialised_to_one, 3, 1)[3] == 1


@tilewright.jit
def assigned_numbers_promote_like_arguments(out, x):
    scale = 2.0
    fixed: tl.constexpr = 2.0
    half = tl.load(x)
    tl.static_assert((half * scale).dtype == tl.float32)
    tl.static_assert((half * fixed).dtype == tl.float16)
    tl.static_assert((half * 2.0).dtype == tl.float16)
    tl.store(out, half * scale)


def test_an_assigned_number_is_a_runtime_scalar():
    assert store_all(assigned_numbers_promote_like_arguments, np.ones(1, np.float16))[0] == 2


@tilewright.jit
def static_messages(out, N: tl.constexpr):
    for i in range(4):
        if i > 2:
            break
        tl.static_print("N", N, f"{N:03d}", i, sep="|")
    tl.store(out, 1.0)


def test_static_print_prints_once_although_loops_are_lowered_again(
    capsys: pytest.CaptureFixture[str],
):
    store_all(static_messages, 5)
    assert capsys.readouterr().out == "N|5|005|int32\n"


@tilewright.jit
def optional(out, bias):
    value = 1.0
    if bias is not None:
        value += tl.load(bias)
    tl.store(out, value)


def test_none_is_a_constant():
    assert store_all(optional, None)[0] == 1
    assert store_all(optional, np.ones(1, np.float32))[0] == 2


@tilewright.jit
def takes_dtype(out, TYPE: tl.constexpr, plain_type):
    tl.static_assert(tl.int8 == TYPE and plain_type == tl.float32)
    tl.store(out, tl.full((), 300, tl.int32).to(TYPE).to(plain_type))


def test_dtypes_are_arguments():
    assert store_all(takes_dtype, tl.int8, tl.float32)[0] == 44


@tilewright.jit
def wrong_inside(x):
    return x + tl.arange(0, 3)


@tilewright.jit
def calls_wrong(out):
    tl.store(out, wrong_inside(tl.load(out)))


def test_an_error_in_a_callee_names_the_chain_of_calls():
    with pytest.raises(CompileError) as caught:
        store_all(calls_wrong)
    text = str(caught.value)
    assert "in wrong_inside (called from " in text
    assert "return x + tl.arange(0, 3)" in text


def test_ops_carry_line_column_and_call_chain():
    from tilewright.compiler.request import CompileRequest
    from tilewright.frontend.lower import lower_kernel
    from tilewright.frontend.program import Specialization

    source = recursion.source
    request = CompileRequest(
        source.functions, source.kernel, Specialization((("out", "*fp32"), ("x", "fp32")))
    )
    module = lower_kernel(request)
    product = next(op for op in module.walk() if op.name == "arith.mulf")
    text = str(product.location)
    line = next(
        number
        for number, line in enumerate(Path(__file__).read_text().splitlines(), 1)
        if "return x * power" in line
    )
    assert f'test_language.py":{line}:12' in text
    assert text.count("callsite(") >= 1


@tl.constexpr_function
def bits(n):
    return (n - 1).bit_length()


@tl.constexpr_function
def plan(shape, kind, doubled=False):
    """Runs in Python: loops, dictionaries and modules are allowed here."""
    table = {name: value for name, value in zip("ab", shape, strict=True)}
    width = 2 ** bits(table["a"]) * int(math.sqrt(table["b"]))
    return (width * 2 if doubled else width, kind.primitive_bitwidth)


@tilewright.jit
def uses_host_functions(out, N: tl.constexpr):
    width, size = plan((N, 16), tl.float16, doubled=True)
    chosen: tl.constexpr = plan((N, 16), tl.float16)
    tl.store(out + tl.arange(0, chosen[0]), (width + size).to(f32))


def test_constexpr_functions_run_in_python():
    assert store_all(uses_host_functions, 3, size=16) == [32 + 16] * 16
    assert plan((3, 16), tl.float16) == (16, 16)


@tl.constexpr_function
def fails(n):
    return [1, 2][n]


@tilewright.jit
def uses_failing_host_function(out):
    tl.store(out, fails(5))


def test_an_error_of_a_constexpr_function_is_placed_at_its_call():
    with pytest.raises(CompileError, match=r"IndexError: list index out of range(.|\n)*fails\(5\)"):
        store_all(uses_failing_host_function)


@tilewright.jit
def far_too_large(out):
    for _ in tl.static_range(9000):
        for _ in tl.static_range(9000):
            tl.store(out, 0.0)


def test_a_kernel_of_too_many_ops_is_refused(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("tilewright.frontend.lowering_state.MAX_OPS", 1000)
    with pytest.raises(CompileError, match="more than 1000 operations"):
        store_all(far_too_large)


@tilewright.jit
def hinted(out, n):
    for i in tl.range(0, n, num_stages=3, flatten=True, warp_specialize=False):
        tl.store(out + i, 0.0)
    i = 0
    while tl.condition(i < n, disable_licm=True):
        tl.store(out + i, 0.0)
        i += 1


def test_hints_are_attributes_of_the_loop():
    from tilewright.compiler.request import CompileRequest
    from tilewright.frontend.lower import lower_kernel
    from tilewright.frontend.program import Specialization

    source = hinted.source
    types = Specialization((("out", "*fp32"), ("n", "i32")))
    module = lower_kernel(CompileRequest(source.functions, source.kernel, types))
    (loop,) = (op for op in module.walk() if op.name == "scf.for")
    assert loop.attributes.keys() == {"tt.num_stages", "tt.flatten"}
    (loop,) = (op for op in module.walk() if op.name == "scf.while")
    assert loop.attributes.keys() == {"tt.disable_licm"}


@tilewright.jit
def stops(out):
    breakpoint()
    tl.store(out, 1.0)


def test_breakpoint_needs_the_interpreter():
    from tilewright.compiler.request import CompileRequest
    from tilewright.frontend.lower import lower_kernel
    from tilewright.frontend.program import Specialization
    from tilewright.support.errors import UnsupportedError

    types = Specialization((("out", "*fp32"),))
    functions, key = stops.source.functions, stops.source.kernel
    with pytest.raises(UnsupportedError, match="TILEWRIGHT_INTERPRET"):
        lower_kernel(CompileRequest(functions, key, types))
    module = lower_kernel(CompileRequest(functions, key, types, {"interpret": True}))
    assert "tw.breakpoint" in [op.name for op in module.walk()]


@tilewright.jit
def carried_block_pointer(out, x, n, B: tl.constexpr):
    block = tl.make_block_ptr(x, (n, n), (n, 1), (0, 0), (B, B), (1, 0))
    total = tl.zeros((B, B), tl.float32)
    for _ in range(0, n, B):
        total += tl.load(block, boundary_check=(0, 1), padding_option="zero")
        block = tl.advance(block, (0, B))
    tl.store(out, tl.sum(total))


def test_loops_carry_block_pointers():
    x = np.arange(64, dtype=np.float32).reshape(8, 8)
    assert store_all(carried_block_pointer, x, 8, 4)[0] == x[:4].sum()


@tilewright.jit
def sum_block(desc, column):
    return tl.sum(desc.load([0, column]))


@tilewright.jit
def carried_descriptor(out, x, n, B: tl.constexpr):
    desc = tl.make_tensor_descriptor(x, [n, n], [n, 1], [B, B])
    tl.static_assert(isinstance(desc, tl.tensor_descriptor) and not isinstance(desc, tl.tensor))
    total = 0.0
    for i in range(0, n, B):
        total += sum_block(desc, i)
        if i > 100:
            desc = tl.make_tensor_descriptor(x, [n, n], [n, 1], [B, B])
    tl.store(out, total + desc.shape[0])


def test_loops_and_calls_take_tensor_descriptors():
    x = np.arange(64, dtype=np.float32).reshape(8, 8)
    assert store_all(carried_descriptor, x, 8, 4)[0] == x[:4].sum() + 8


@tilewright.jit
def prints(out, n):
    assert n > 2, "n is small"
    assert 1 + 1 == 2
    print("n", n)
    tl.store(out, 1.0)


def test_print_and_assert_are_those_of_the_device(capsys: pytest.CaptureFixture[str]):
    store_all(prints, 3)
    assert capsys.readouterr().out == "pid (0, 0, 0) idx () n: 3\n"
    with pytest.raises(tilewright.TilewrightError, match="n is small"):
        store_all(prints, 2)


@tilewright.jit
def beyond_ascii(out):
    größe = tl.load(out); tl.store(out, größe + tl.arange(0, 3))  # noqa: E702 # fmt: skip


def test_columns_count_characters():
    with pytest.raises(CompileError) as caught:
        store_all(beyond_ascii)
    lines = str(caught.value).splitlines()
    assert "col 62," in lines[1]
    assert lines[2].index("3))") == lines[3].index("^")


@tilewright.jit
def prints_with_options(x):
    tl.static_print("a", (1, 2), x, sep="-", end="!\n", flush=True)


@tilewright.jit
def prints_with_another(x):
    tl.static_print(x, colour="red")  # pyright: ignore[reportCallIssue]


def test_static_print_takes_the_options_of_print(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    # Only a compile prints, and a kernel found in the cache is not compiled.
    monkeypatch.setenv("TILEWRIGHT_CACHE_DIR", str(tmp_path))
    prints_with_options.warmup(3)
    assert capsys.readouterr().out == "a-(1, 2)-int32!\n"
    with pytest.raises(UnexpectedArgument, match="colour"):
        prints_with_another.warmup(3)


@tilewright.jit
def counts_blocks(out, SIZE: tl.constexpr, BLOCK: tl.constexpr):
    total = 0
    for k in tl.static_range(tl.cdiv(SIZE, BLOCK)):
        total += k
    COUNT: tl.constexpr = tilewright.cdiv(SIZE, 2 * BLOCK)
    tl.store(out + tl.arange(0, COUNT), total + tl.cdiv(total, 4))


def test_a_quotient_of_constants_is_a_constant():
    out = np.zeros(2, np.int32)
    counts_blocks[(1,)](out, SIZE=50, BLOCK=16)
    assert out.tolist() == [6 + 2, 6 + 2]


@tilewright.jit
def twice_constant(x):
    return 2 * x


@tilewright.jit
def chooses_constant(condition):
    if condition > 0:
        return 3
    return 4


@tilewright.jit
def returns_constants(out, condition, SIZE: tl.constexpr):
    wide: tl.constexpr = twice_constant(SIZE)
    tl.static_assert((tl.zeros((wide,), tl.float16) * twice_constant(0.5)).dtype == tl.float16)
    x = tl.arange(0, twice_constant(SIZE))
    tl.store(out + x, x * chooses_constant(condition))


def test_a_function_of_constants_returns_a_constant():
    for condition, factor in ((1, 3), (-1, 4)):
        out = np.zeros(8, np.int32)
        returns_constants[(1,)](out, condition, SIZE=4)
        assert out.tolist() == [factor * i for i in range(8)]
