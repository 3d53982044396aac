"""Names of `triton.language` that packages reach into: types' sets, combine functions, aliases."""

from __future__ import annotations

import numpy as np
import pytest

from tests.api.alias import ALIAS

import triton  # isort: skip - `alias` has put it on the path
import triton.language as tl  # isort: skip
from triton.language import core, standard  # isort: skip

assert str(ALIAS)

NAMES = (
    *("_unwrap_if_constexpr", "_constexpr_to_value", "_unwrap_shape", "base_type", "base_value"),
    *("builtin", "is_builtin", "extern", "constexpr_type", "tuple_type", "CONSTEXPR_0"),
    *("_aggregate", "_experimental_make_tensor_descriptor", "get_int_dtype", "check_bit_width"),
)


@pytest.mark.parametrize("name", NAMES)
def test_the_core_module_has_what_packages_import(name: str) -> None:
    assert hasattr(core, name)


def test_dtypes_are_sorted_into_sets() -> None:
    assert tl.int32.name in tl.dtype.SINT_TYPES
    assert tl.uint8.name in tl.dtype.UINT_TYPES
    assert tl.float8e5.name in tl.dtype.FP_TYPES
    assert tl.bfloat16.name in tl.dtype.STANDARD_FP_TYPES
    assert tl.int8.int_signedness is tl.dtype.SIGNEDNESS.SIGNED
    assert tl.uint8.int_signedness is tl.dtype.SIGNEDNESS.UNSIGNED
    assert tl.float16.kind() is tl.dtype.KIND.FLOATING
    assert tl.int1.kind() is tl.dtype.KIND.BOOLEAN
    assert tl.float8e4nv.is_fp8e4nv()
    assert not tl.float8e5.is_fp8e4nv()


@triton.jit
def combines(out, x, N: tl.constexpr):
    lanes = tl.arange(0, N)
    values = tl.load(x + lanes)
    tl.store(out, tl.reduce(values, 0, tl.standard._sum_combine))
    tl.store(out + 1, tl.reduce(values, 0, standard._elementwise_max))
    best, where = tl.reduce((values, lanes), 0, standard._argmax_combine_tie_break_left)
    tl.store(out + 2, best * 100 + where)
    least, where = tl.reduce((values, lanes), 0, standard._argmin_combine_tie_break_left)
    tl.store(out + 3, least * 100 + where)
    tl.store(out + 4, tl.reduce(values, 0, standard._xor_combine) + tl.core.CONSTEXPR_0)
    tl.static_assert(lanes.dtype.kind() == tl.dtype.KIND.INTEGRAL)
    tl.static_assert("int32" in tl.dtype.SINT_TYPES[2])


def test_the_combine_functions_of_the_standard_module_reduce() -> None:
    values = np.array([3, 9, 1, 9, 4, 1, 7, 2], np.int32)
    out = np.zeros(5, np.int32)
    combines[(1,)](out, values, 8)
    assert out.tolist() == [36, 9, 901, 102, np.bitwise_xor.reduce(values)]


def test_functions_with_keyword_dictionaries_are_refused_where_they_are_decorated() -> None:
    def kernel(**kwargs: object) -> None:
        pass

    with pytest.raises(TypeError, match=r"JIT functions do not support \*\*kwargs"):
        triton.jit(kernel)


def test_a_host_call_asks_for_the_decorator() -> None:
    with pytest.raises(ValueError, match=r"Did you forget to add @triton\.jit \?"):
        tl.program_id(0)
