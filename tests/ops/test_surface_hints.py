"""Hints, assertions, printing, overflow checks, and functions that have no meaning here."""

from __future__ import annotations

import io

import numpy as np
import pytest

import tilewright
import tilewright.language as tl
from tests.ops.emission import Emission
from tests.ops.harness import Request, interpret
from tilewright.frontend.lower import lower_kernel
from tilewright.frontend.signature import bind, specialize
from tilewright.interp.evaluate import prepare_kernel, run_kernel
from tilewright.ir.attributes import integers_of
from tilewright.language.core import (
    constexpr,
    dtype,
    float16,
    float32,
    int1,
    int8,
    int16,
    int32,
    int64,
    tensor,
    uint8,
    uint32,
)
from tilewright.ops.debug.ir import AssertOp, HintOp, PrintOp
from tilewright.ops.debug.surface import print_prefix
from tilewright.ops.elementwise.operators import binary
from tilewright.support.errors import (
    AssertionFailed,
    CompileError,
    ConditionNotScalar,
    DtypeNotAllowed,
    InvalidOption,
    NotConstexpr,
    ShapeMismatch,
    UnsupportedError,
)

CHECKING = {"debug": True}
SANITIZING = {"debug": True, "sanitize_overflow": True}


@pytest.mark.parametrize(
    ("key", "property_"),
    [
        ("multiple_of", "divisibility"),
        ("max_contiguous", "contiguity"),
        ("max_constancy", "constancy"),
    ],
)
def test_a_hint_carries_one_fact_per_dimension(key: str, property_: str) -> None:
    emission = Emission()
    x = emission.value(int32, 8, 16)
    result = emission.call(key, x, [8, constexpr(16)])
    (op,) = [op for op in emission.ops() if isinstance(op, HintOp)]
    assert set(op.properties) == {property_}
    assert integers_of(op.properties[property_]) == (8, 16)
    assert result.type == x.type  # type: ignore[union-attr]


def test_a_hint_on_a_scalar_or_a_pointer_takes_one_fact() -> None:
    emission = Emission()
    emission.call("multiple_of", emission.value(int32), 16)
    emission.call("multiple_of", emission.pointer(float32, 8), 4)
    with pytest.raises(ShapeMismatch, match=r"2 value\(s\) for 1"):
        emission.call("multiple_of", emission.value(int32), [8, 8])


def test_floats_have_no_such_facts() -> None:
    emission = Emission()
    with pytest.raises(DtypeNotAllowed, match="integers and pointers"):
        emission.call("multiple_of", emission.value(float32, 8), 8)
    with pytest.raises(InvalidOption, match="positive"):
        emission.call("multiple_of", emission.value(int32, 8), 0)
    with pytest.raises(NotConstexpr):
        emission.call("multiple_of", emission.value(int32, 8), emission.value(int32))


def test_assume_takes_a_scalar_condition() -> None:
    emission = Emission()
    emission.call("assume", emission.value(int1))
    assert emission.names() == ["llvm.intr.assume"]
    emission.call("assume", constexpr(True))
    assert emission.names() == ["llvm.intr.assume"]
    with pytest.raises(ConditionNotScalar):
        emission.call("assume", emission.value(int1, 4))
    with pytest.raises(DtypeNotAllowed, match="int1 is needed"):
        emission.call("assume", emission.value(int32))
    with pytest.raises(InvalidOption, match="constant False"):
        emission.call("assume", constexpr(False))


def test_a_barrier_is_one_op() -> None:
    emission = Emission()
    emission.call("debug_barrier")
    assert emission.names() == ["gpu.barrier"]


@pytest.mark.parametrize(
    ("prefix", "expected"),
    [("x", " x: "), ("x:", " x: "), ("  the sum: ", "  the sum: "), ("", ": ")],
)
def test_a_prefix_ends_in_a_colon_and_a_space(prefix: str, expected: str) -> None:
    assert print_prefix(prefix) == expected


@pytest.mark.parametrize("prefix", ["größe", "tab\t", "line\n"])
def test_a_prefix_is_printable_ascii(prefix: str) -> None:
    with pytest.raises(InvalidOption, match="printable ASCII"):
        print_prefix(prefix)


def test_a_prefix_is_a_literal() -> None:
    emission = Emission()
    with pytest.raises(NotConstexpr, match="string literal"):
        emission.call("device_print", 3)
    with pytest.raises(NotConstexpr, match="compile-time constant"):
        emission.call("device_print", emission.value(int32))


def test_a_print_knows_which_operands_are_signed() -> None:
    emission = Emission()
    emission.call("device_print", "x", emission.value(int32, 4), emission.value(uint8), 1.5)
    (op,) = [op for op in emission.ops() if isinstance(op, PrintOp)]
    assert integers_of(op.is_signed) == (1, 0, 0)
    assert len(op.args) == 3


@tilewright.jit
def print_kernel(x, SIZE: tl.constexpr):
    tl.device_print("x", tl.load(x + tl.arange(0, SIZE)))
    tl.device_print("program", tl.program_id(0), hex=True)


def test_printed_lines_name_program_and_index() -> None:
    out = io.StringIO()
    interpret(print_kernel, (2,), np.arange(2, dtype=np.int32), SIZE=2, settings={"output": out})
    lines = sorted(out.getvalue().splitlines())
    assert lines == [
        "pid (0, 0, 0) idx () program: 0x00000000",
        "pid (0, 0, 0) idx (0) x: 0",
        "pid (0, 0, 0) idx (1) x: 1",
        "pid (1, 0, 0) idx () program: 0x00000001",
        "pid (1, 0, 0) idx (0) x: 0",
        "pid (1, 0, 0) idx (1) x: 1",
    ]


@pytest.mark.parametrize("options", [{}, {"debug": False, "checked": False}])
def test_an_assertion_costs_nothing_without_the_option(options: dict[str, object]) -> None:
    emission = Emission(options)
    emission.call("device_assert", emission.value(int1, 4), "must hold")
    assert emission.names() == []


@pytest.mark.parametrize("option", ["debug", "checked"])
def test_an_assertion_carries_message_and_mask(option: str) -> None:
    emission = Emission({option: True})
    emission.call("device_assert", emission.value(int32, 8), "must hold", emission.value(int1))
    (op,) = [op for op in emission.ops() if isinstance(op, AssertOp)]
    assert op.message.data == "must hold"
    assert op.mask is not None
    assert str(op.mask.type) == "tensor<8xi1>"


@tilewright.jit
def assert_kernel(x, limit, SIZE: tl.constexpr):
    tile = tl.load(x + tl.arange(0, SIZE))
    tl.device_assert(tile < 5, "too great", mask=tile < limit)
    tl.expect_zero(tile, tile > 100)


def test_a_failed_assertion_names_message_and_index() -> None:
    x = np.arange(8, dtype=np.int32)
    interpret(assert_kernel, (1,), x, 5, SIZE=8)
    with pytest.raises(AssertionFailed, match=r"too great at tile index \(5,\)"):
        interpret(assert_kernel, (1,), x, 6, SIZE=8)


def test_a_value_expected_to_be_zero_is_asserted() -> None:
    x = np.array([0, 0, 101, 0], np.int32)
    with pytest.raises(AssertionFailed, match="expect_zero"):
        interpret(assert_kernel, (1,), x, 0, SIZE=4)


def test_expect_zero_gives_the_value_itself() -> None:
    emission = Emission()
    x = emission.value(float32, 4)
    result = emission.call("expect_zero", x, emission.value(int1, 4))
    assert isinstance(result, tensor)
    assert result.handle is x.handle


@pytest.mark.parametrize("element", [int8, int16, int32, uint8, uint32])
@pytest.mark.parametrize("operator", ["Add", "Sub", "Mult"])
def test_overflow_is_asserted_when_both_options_ask(element: dtype, operator: str) -> None:
    emission = Emission(SANITIZING)
    x = emission.value(element, 4)
    binary(emission.builder, operator, x, x)
    (op,) = [op for op in emission.ops() if isinstance(op, AssertOp)]
    assert op.message.data.startswith(f"{element} overflow")


@tilewright.jit
def overflow_kernel(x, y, KIND: tl.constexpr):
    a, b = tl.load(x), tl.load(y)
    if KIND == "add":
        c = a + b
    elif KIND == "sub":
        c = a - b
    else:
        c = a * b
    tl.store(x, c)


@pytest.mark.parametrize("name", ["int8", "uint8", "int16", "uint16", "int32", "uint32"])
@pytest.mark.parametrize("kind", ["add", "sub", "mul"])
def test_the_overflow_check_is_exact(kind: str, name: str) -> None:
    info = np.iinfo(name)
    edges = sorted({info.min, info.min + 1, 0, 1, 2, info.max // 2, info.max - 1, info.max})
    one = np.ones(1, name)
    source = overflow_kernel.source
    bound = bind("kernel", source.parameters, [one, one], {"KIND": kind}, lambda p: p.default)
    specialization = specialize("kernel", source.parameters, bound)
    module = lower_kernel(Request(source.functions, source.kernel, specialization, SANITIZING))
    kernel = prepare_kernel(module)
    operation = {"add": int.__add__, "sub": int.__sub__, "mul": int.__mul__}[kind]
    for a in edges:
        for b in edges:
            arguments = [np.array([v], name) for v in (a, b)]
            if info.min <= operation(int(a), int(b)) <= info.max:
                run_kernel(kernel, arguments, (1,))
            else:
                with pytest.raises(AssertionFailed, match=f"{name} overflow"):
                    run_kernel(kernel, arguments, (1,))


@pytest.mark.parametrize("element", [int64, int1, float32])
def test_wide_integers_and_floats_are_not_asserted(element: dtype) -> None:
    emission = Emission(SANITIZING)
    x = emission.value(element, 4)
    binary(emission.builder, "Add", x, x)
    assert "tt.assert" not in emission.names()


@pytest.mark.parametrize("options", [{"debug": True}, {"sanitize_overflow": True}])
def test_overflow_is_asserted_by_either_option(options: dict[str, object]) -> None:
    emission = Emission(options)
    x = emission.value(int32, 4)
    binary(emission.builder, "Add", x, x)
    assert "tt.assert" in emission.names()


@pytest.mark.parametrize("options", [{}, {"debug": True, "sanitize_overflow": False}])
def test_overflow_is_not_asserted_where_nobody_asks(options: dict[str, object]) -> None:
    emission = Emission(options)
    x = emission.value(int32, 4)
    binary(emission.builder, "Add", x, x)
    assert "tt.assert" not in emission.names()


def test_a_function_can_opt_out_of_the_overflow_check() -> None:
    emission = Emission(SANITIZING)
    x = emission.value(int32, 4)
    emission.call("add", x, x, sanitize_overflow=False)
    assert "tt.assert" not in emission.names()
    emission.call("add", x, x)
    assert "tt.assert" in emission.names()


@tilewright.jit
def square(x):
    return x * x


@tilewright.jit
def divide(x, y):
    return x // y, x % y


@tilewright.jit
def map_kernel(x, squares, quotients, rests, SIZE: tl.constexpr):
    at = tl.arange(0, SIZE)
    tile = tl.load(x + at)
    tl.store(squares + at, tl.map_elementwise(square, tile))
    quotient, rest = tl.map_elementwise(divide, tile, 3)
    tl.store(quotients + at, quotient)
    tl.store(rests + at, rest)


def test_a_function_of_scalars_maps_over_tiles() -> None:
    x = np.arange(8, dtype=np.int32)
    squares, quotients, rests = (np.zeros(8, np.int32) for _ in range(3))
    interpret(map_kernel, (1,), x, squares, quotients, rests, SIZE=8)
    assert np.array_equal(squares, x * x)
    assert np.array_equal(quotients, x // 3)
    assert np.array_equal(rests, x % 3)


@tilewright.jit
def branching(x):
    result = x
    if x > 0:
        result = -x
    return result


@tilewright.jit
def branching_kernel(x, SIZE: tl.constexpr):
    at = tl.arange(0, SIZE)
    tl.store(x + at, tl.map_elementwise(branching, tl.load(x + at)))


def test_a_mapped_function_branches_on_elements() -> None:
    x = np.arange(-2, 2, dtype=np.int32)
    interpret(branching_kernel, (1,), x, SIZE=4)
    assert x.tolist() == [-2, -1, 0, -1]


def test_mapping_needs_tiles_and_a_pack_that_divides_them() -> None:
    emission = Emission()
    with pytest.raises(CompileError, match="at least one"):
        emission.call("map_elementwise", None)
    with pytest.raises(InvalidOption, match="`pack` is 8"):
        emission.call("map_elementwise", None, emission.value(int32, 4), pack=8)


@tilewright.jit
def assembly_kernel(x):
    tl.store(
        x, tl.inline_asm_elementwise("abs.s32 $0, $1;", "=r,r", [tl.load(x)], tl.int32, True, 1)
    )


def test_assembly_is_kept_for_gpus_and_refused_elsewhere() -> None:
    emission = Emission()
    tile = emission.value(float16, 8)
    made = emission.call(
        "inline_asm_elementwise", "$0 $1", "=r,=r,r", [tile], (float16, int8), True, 2
    )
    assert emission.names().count("tt.elementwise_inline_asm") == 1
    assert [value.dtype for value in made] == [float16, int8]
    x = np.ones(1, np.int32)
    with pytest.raises(UnsupportedError, match="cannot run on a CPU") as caught:
        assembly_kernel[(1,)](x)
    assert caught.value.span is not None and caught.value.span.file == __file__
    with pytest.raises(UnsupportedError, match="interpreter"):
        interpret(assembly_kernel, (1,), x)


@tilewright.jit
def absolute(x):
    return tl.extern_elementwise(
        "libdevice",
        "",
        [x],
        {
            (tl.dtype("int32"),): ("__nv_abs", tl.dtype("int32")),
            (tl.dtype("fp32"),): ("__nv_fabsf", tl.dtype("fp32")),
        },
        is_pure=True,
    )


@tilewright.jit
def extern_kernel(x, y):
    at = tl.arange(0, 4)
    tl.store(x + at, absolute(tl.load(x + at)))
    tl.store(y + at, absolute(tl.load(y + at).to(tl.float32)).to(tl.float64))


def test_symbols_of_libdevice_are_functions_of_the_language() -> None:
    x, y = np.arange(-2, 2, dtype=np.int32), np.arange(-2.0, 2.0)
    extern_kernel[(1,)](x, y)
    assert x.tolist() == [2, 1, 0, 1]
    assert y.tolist() == [2.0, 1.0, 0.0, 1.0]


def test_other_symbols_and_dtypes_are_refused() -> None:
    emission = Emission()
    tile = emission.value(int32, 4)
    table = {(int32,): ("mine", int32)}
    with pytest.raises(UnsupportedError, match="`mine`"):
        emission.call("extern_elementwise", "", "", [tile], table, True)
    with pytest.raises(DtypeNotAllowed, match="int32"):
        emission.call("extern_elementwise", "", "", [tile], {}, True)
    with pytest.raises(DtypeNotAllowed, match="must be a dictionary, got 3"):
        emission.call("extern_elementwise", "", "", [tile], 3, True)
