"""Kernels of the shapes that compilers to core dialects are tried with, each in several types.

A family has the name that conformance lists give it; its kernels are ours. What they give is
compared with the interpreter.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from tests.corpus.case import Values, data
from tests.mlir import family_kernels as k
from tilewright.jit import JITFunction

Inputs = Callable[[np.random.Generator], Values]
F32, F16, I32, I64, I16, F64 = (
    np.dtype(t) for t in ("float32", "float16", "int32", "int64", "int16", "float64")
)
NUMBERS = (F32, F16, I32, F64)
FLOATS = (F32, F16, F64)


@dataclass(frozen=True)
class Kernel:
    """A kernel of a family over a grid."""

    family: str
    variant: str
    kernel: JITFunction
    grid: tuple[int, ...]
    inputs: Inputs

    @property
    def name(self) -> str:
        return f"{self.family}[{self.variant}]"


def _rows(
    family: str,
    kernel: JITFunction,
    dtypes: tuple[np.dtype, ...] = NUMBERS,
    grid: tuple[int, ...] = (3,),
    size: int = 2048,
    **constants: object,
) -> Iterator[Kernel]:
    """A kernel `(x, out, n, …constants)` on data of each type; `n` leaves a ragged tail."""
    for dtype in dtypes:

        def inputs(rng: np.random.Generator, dtype: np.dtype = dtype) -> Values:
            low = data(rng, size, dtype)
            if dtype.kind == "i":
                low = (low % 50).astype(dtype)
            return {"x": low, "out": np.full(size, 77, dtype), "n": 150, **constants}

        yield Kernel(family, dtype.name, kernel, grid, inputs)


def _indexed(
    family: str, kernel: JITFunction, dtypes: tuple[np.dtype, ...] = NUMBERS, **constants: object
) -> Iterator[Kernel]:
    """A kernel `(x, index, out, n, …constants)`: indices of rows of 16, some of them twice."""
    for dtype in dtypes:
        for kind in (np.int32, np.int64) if dtype == F32 else (np.int32,):

            def inputs(
                rng: np.random.Generator, dtype: np.dtype = dtype, kind: type = kind
            ) -> Values:
                index = rng.permutation(64).astype(kind)
                x = data(rng, 2048, dtype)
                return {
                    "x": x,
                    "index": index,
                    "out": np.full(2048, 77, dtype),
                    "n": 11,
                    **constants,
                }

            yield Kernel(family, f"{dtype.name}-{np.dtype(kind).name}", kernel, (2,), inputs)


def all_kernels() -> list[Kernel]:
    """Every kernel of every family."""
    found: list[Kernel] = []
    for family, kernel, *rest in _PLAIN:
        options: Any = rest[0] if rest else {}
        found += _rows(family, kernel, **options)
    for family, kernel in _GATHERS:
        found += _indexed(family, kernel)
    return found


_PLAIN: tuple[tuple[object, ...], ...] = (
    ("kernel-01-vector-add", k.vector_add, {"BLOCK": 64}),
    ("kernel-02-fused-softmax", k.softmax, {"dtypes": (F32, F16), "BLOCK": 64}),
    ("kernel-05-layer-norm-fwd", k.layer_norm, {"dtypes": (F32, F16), "BLOCK": 64}),
    ("kernel-05-layer-norm-dwdb", k.column_sums, {"dtypes": (F32, F16)}),
    ("kernel-03-matrix-multiplication", k.matmul, {"dtypes": (F32, F16)}),
    ("dot", k.dot, {"dtypes": (F32, F16, F64)}),
    ("use_dot_opc", k.dot_with_addend, {"dtypes": (F32, F64)}),
    ("use_mid_chain", k.mid_chain, {}),
    ("use_end_chain", k.end_chain, {}),
    ("addptr_2d_example", k.addptr_2d, {}),
    ("addptr_add_value", k.addptr_add_value, {}),
    ("addptr_chain", k.addptr_chain, {}),
    ("addptr_dim1", k.addptr_dim1, {}),
    ("addptr_for_accumulation", k.for_accumulation, {}),
    ("addptr_for_expand_ptr", k.for_expand_ptr, {}),
    ("addptr_for_more_init_args", k.for_more_init_args, {}),
    ("addptr_for_used_after_update", k.used_after_update, {}),
    ("addptr_for_used_before_update", k.used_before_update, {}),
    ("addptr_loopback", k.loopback, {}),
    ("addptr_mul_const_const", k.mul_const_const, {}),
    ("addptr_mul_value_const", k.mul_value_const, {}),
    ("addptr_nested", k.addptr_nested, {}),
    ("addptr_reshape_broadcast", k.reshape_broadcast, {}),
    ("addptr_scalar_broadcast", k.scalar_broadcast, {}),
    ("addptr_scalar_for", k.scalar_for, {}),
    ("addptr_scalar_for_2d", k.scalar_for_2d, {}),
    ("addptr_scalar_loopback", k.scalar_loopback, {}),
    ("addptr_scalar_nested", k.scalar_nested, {}),
    ("addptr_scalar_splat", k.scalar_splat, {}),
    ("addptr_scalar_splat_2d", k.scalar_splat_2d, {}),
    ("addptr_cmpge", k.mask_ge, {}),
    ("arith_not_ptr_arith", k.not_ptr_arith, {}),
    ("bitcast", k.bitcast, {"dtypes": (F32, I32)}),
    ("addptr_bitcast", k.bitcast_pointer, {"dtypes": (F32, I32)}),
    ("block_ptr_advance", k.block_advance, {}),
    ("block_ptr_complex_offset", k.block_complex_offset, {}),
    ("make_tensor_ptr_ordering", k.block_ordering, {}),
    ("convert_1d_elemwise_arith_unary", k.unary_1d, {"dtypes": (F32, F16)}),
    ("convert_1d_elemwise_arith_binary", k.binary_1d, {}),
    ("convert_1d_elemwise_arith_ternary", k.ternary_1d, {}),
    ("convert_2d_elemwise_arith_unary", k.unary_2d, {"dtypes": (F32, F16)}),
    ("convert_2d_elemwise_arith_binary", k.binary_2d, {}),
    ("convert_2d_elemwise_arith_ternary", k.ternary_2d, {}),
    ("convert_extern_elementwise", k.extern, {"dtypes": (F32, F64)}),
    ("convert_addi_reduce", k.sum_1d, {"dtypes": (I32, I64, I16)}),
    ("convert_minmax", k.minmax, {}),
    ("convert_minmax_reduce", k.minmax_reduce, {"dtypes": (I32, I64, I16)}),
    ("convert_minmax_fp_reduce", k.minmax_reduce, {"dtypes": FLOATS}),
    ("and_or_xor_reduce", k.bitwise_reduce, {"dtypes": (I32, I64, I16)}),
    ("convert_argmin_argmax", k.argminmax, {}),
    ("convert_argmin_argmax_2d", k.argminmax_2d, {}),
    ("convert_splat_float", k.splat_float, {"dtypes": FLOATS}),
    ("convert_tensor_reshape", k.reshape, {}),
    ("convert_unsplat", k.unsplat, {}),
    ("cumsum", k.cumsum, {"dtypes": (F32, I32, I64, F64)}),
    ("cumsum_reverse_axis0", k.cumsum_reverse, {"dtypes": (F32, I32, I64, F64)}),
    ("early_return", k.early_return, {}),
    ("get_num_programs", k.num_programs, {"dtypes": (I32, I64), "grid": (2, 3, 2)}),
    ("masked_ldst_1d", k.masked_1d, {}),
    ("masked_ldst_2d", k.masked_2d, {}),
    ("masked_ldst_sitofp_other", k.masked_other, {"dtypes": FLOATS}),
    ("mask_ld_st_scalar_dim", k.mask_scalar_dim, {}),
    ("mask_loop_iter_arg", k.mask_loop_iter_arg, {}),
    ("masked_load_scalar", k.masked_scalar, {}),
    ("mask_two_sided", k.mask_two_sided, {}),
    ("mask_tree", k.mask_tree, {}),
    ("nested_loops", k.nested_loops, {}),
    ("ridiculously_nested_loops", k.four_loops, {}),
    ("reducesum_axis0", k.sum_axis0, {}),
    ("reducesum_axis1", k.sum_axis1, {}),
    ("reducesum_middle_dim", k.sum_middle, {}),
    ("reducesum_scalar", k.sum_1d, {}),
    ("reducemax_32_256", k.max_axis1, {}),
    ("scalar_store_loop", k.scalar_store_loop, {}),
    ("scalar_store_loop_iterargs", k.scalar_store_iterargs, {}),
    ("scalar_store_nested_loop", k.scalar_store_nested, {}),
    ("scalar_store_no_iterargs", k.scalar_store, {}),
    ("sign_extend_i32_to_i64", k.sign_extend, {}),
    ("tensor_indices_loop_iterargs_nested", k.indices_nested, {}),
    ("tensor_indices_loop_iterarg_with_masks", k.indices_masks, {}),
    ("wraparound_side_by_side", k.wrap_columns, {}),
    ("wraparound_stacked", k.wrap_rows, {}),
    ("wraparound_both", k.wrap_both, {}),
    ("wraparound_1d", k.wrap_1d, {}),
    ("wraparound_add_offset", k.wrap_offset, {}),
    ("wraparound_loop_masked", k.wrap_loop, {}),
    ("join", k.join, {}),
    ("split", k.split, {}),
    ("transpose", k.transpose, {}),
    ("permute", k.permute, {}),
    ("cat", k.cat, {}),
    ("conditional_ptr_as_src", k.conditional_pointer, {}),
    ("conditional_ptr_as_src_for_yield_input", k.conditional_in_loop, {}),
    ("cat_and_where_on_ptrs", k.where_on_pointers, {}),
    ("cast_with_int_ptr", k.int_pointer, {}),
    ("ptr_while", k.while_pointer, {}),
    ("for_iv", k.for_iv, {}),
    ("swap", k.swap, {}),
    ("atomic_rmw", k.atomic_add, {"dtypes": (I32, I64)}),
    ("atomic_cas", k.atomic_cas, {"dtypes": (I32,)}),
    ("histogram", k.histogram, {"dtypes": (I32,)}),
    ("sort", k.sort, {}),
    ("call", k.calls, {}),
    ("batched_matmul", k.batched, {"dtypes": (F32, F64)}),
    ("einsum_qhmd_hmpd_to_qhmp", k.einsum, {"dtypes": (F32, F64)}),
    ("propagate_nan", k.nans, {"dtypes": FLOATS}),
    ("clamp", k.clamp, {"dtypes": FLOATS}),
    ("precise_math", k.precise, {"dtypes": (F32,)}),
    ("shift_op", k.shifts, {"dtypes": (I32, I64, I16)}),
    ("floordiv", k.floordiv, {"dtypes": (I32, I64, I16)}),
    ("addptr_sub", k.addptr_sub, {}),
    ("addptr_transposed", k.transposed_pointers, {}),
    ("addptr_reshaped", k.reshaped_pointers, {}),
    ("gather_reuse_loop_results", k.sibling_loops, {}),
    ("mask_compared_either_side", k.compared_either_side, {}),
    ("make_tensor_descriptor", k.descriptors, {}),
    ("tensor_descriptor_reduce", k.descriptor_adds, {"dtypes": (I32,)}),
    ("reduce_extend_fp32_precision", k.sum_long, {"dtypes": (F32, F64, I32)}),
    ("umulhi", k.umulhi, {"dtypes": (I32, I64)}),
)
_GATHERS = (
    ("gather_scatter_ptr_simple", k.gather_rows),
    ("tensor_descriptor_gather_scatter", k.descriptor_rows),
    ("gather_scatter_ptr_1d_with_mask", k.gather_rows_masked),
    ("gather_scatter_ptr_1d_with_loop", k.gather_rows_loop),
    ("gather_scatter_ptr_1d_with_if", k.gather_rows_if),
    ("gather_scatter_ptr_3d", k.gather_3d),
    ("gather_scatter_double_mod", k.gather_mod),
    ("gather_columns", k.gather_columns),
    ("scatter_rows", k.scatter_rows),
    ("scatter_with_mod", k.scatter_mod),
    ("scatter_index_mask", k.scatter_masked),
    ("index_select_row_with_mod_plus_offset", k.select_mod_offset),
    ("unstructured_mask_2d", k.mask_rows_2d),
    ("unstructured_mask_3d", k.mask_rows_3d),
    ("unstructured_mask_rows", k.rows_chosen),
    ("unstructured_mask_gather", k.rows_looked_up_and_chosen),
    ("gather_nested", k.gather_nested),
    ("gather_no_loop", k.gather_flat),
    ("mixed_structured_unstructured", k.gather_mixed),
    ("unstructured_ptr_used_in_loop", k.gather_pointer_loop),
    ("embedding_sum", k.embedding_sum),
)
