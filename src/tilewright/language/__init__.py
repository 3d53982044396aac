"""The surface that kernels import, free of any compiler dependency.

import tilewright.language as tl
"""

from __future__ import annotations

from tilewright.language import _ops, extra, math, target_info
from tilewright.language._ops import *  # noqa: F403 - generated, with __all__
from tilewright.language.aggregates import aggregate, aggregate_replace, must_use_result
from tilewright.language.core import (
    DTYPES,
    MAX_TILE_ELEMS,
    PropagateNan,
    bfloat16,
    block_type,
    const,
    constexpr,
    constexpr_type,
    dtype,
    float8e4b8,
    float8e4b15,
    float8e4nv,
    float8e5,
    float8e5b16,
    float16,
    float32,
    float64,
    int1,
    int8,
    int16,
    int32,
    int64,
    pi32_t,
    pointer_type,
    str_to_ty,
    tensor,
    tensor_descriptor,
    tensor_descriptor_type,
    tuple_type,
    uint8,
    uint16,
    uint32,
    uint64,
    void,
)
from tilewright.language.core import tuple_ as tuple
from tilewright.language.host import constexpr_function
from tilewright.language.iterators import async_task, condition, range, stage, static_range
from tilewright.language.static import static_assert, static_print

TRITON_MAX_TENSOR_NUMEL = MAX_TILE_ELEMS

__all__ = [
    "DTYPES",
    "MAX_TILE_ELEMS",
    "TRITON_MAX_TENSOR_NUMEL",
    "PropagateNan",
    "aggregate",
    "aggregate_replace",
    "async_task",
    "bfloat16",
    "block_type",
    "condition",
    "const",
    "constexpr",
    "constexpr_function",
    "constexpr_type",
    "dtype",
    "extra",
    "float8e4b8",
    "float8e4b15",
    "float8e4nv",
    "float8e5",
    "float8e5b16",
    "float16",
    "float32",
    "float64",
    "int1",
    "int8",
    "int16",
    "int32",
    "int64",
    "math",
    "must_use_result",
    "pi32_t",
    "pointer_type",
    "range",
    "stage",
    "static_assert",
    "static_print",
    "static_range",
    "str_to_ty",
    "target_info",
    "tensor",
    "tensor_descriptor",
    "tensor_descriptor_type",
    "tuple",
    "tuple_type",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
    "void",
]
__all__ += _ops.__all__
