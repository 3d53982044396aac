"""Runs one op on NumPy arrays through memory and back, by IR text."""

from __future__ import annotations

from collections.abc import Sequence

import ml_dtypes
import numpy as np

from tilewright.interp.evaluate import run_kernel
from tilewright.ir.text import parse_module
from tilewright.ops.dialects import tile_context

NAMES = {
    np.dtype(np.bool_): "i1",
    **{np.dtype(f"i{n // 8}"): f"i{n}" for n in (8, 16, 32, 64)},
    np.dtype(np.float16): "f16",
    np.dtype(ml_dtypes.bfloat16): "bf16",
    np.dtype(np.float32): "f32",
    np.dtype(np.float64): "f64",
    np.dtype(ml_dtypes.float8_e4m3fn): "f8E4M3FN",
    np.dtype(ml_dtypes.float8_e5m2): "f8E5M2",
    np.dtype(ml_dtypes.float8_e4m3fnuz): "f8E4M3FNUZ",
    np.dtype(ml_dtypes.float8_e5m2fnuz): "f8E5M2FNUZ",
}
FLOATS = tuple(dtype for dtype in NAMES if NAMES[dtype].startswith(("f", "b")))
NARROW = tuple(dtype for dtype in FLOATS if dtype.itemsize < 4)
INTEGERS = tuple(np.dtype(f"i{n}") for n in (1, 2, 4, 8))


def tile_type(shape: Sequence[int], element: str) -> str:
    """The text of a tile type."""
    return f"tensor<{'x'.join(map(str, shape))}x{element}>"


def apply(
    name: str,
    operands: Sequence[np.ndarray],
    *results: tuple[Sequence[int], type | np.dtype],
    properties: str = "",
    region: str = "",
) -> list[np.ndarray]:
    """The results, of the shapes and dtypes asked for, of the op `name` on tiles."""
    outputs = [np.zeros(shape, dtype) for shape, dtype in results]
    arrays = [np.ascontiguousarray(operand) for operand in operands]
    lines = [_load(i, array) for i, array in enumerate(arrays)]
    types = [tile_type(a.shape, NAMES[a.dtype]) for a in arrays]
    result_types = [tile_type(o.shape, NAMES[o.dtype]) for o in outputs]
    names = ", ".join(f"%v{i}" for i in range(len(arrays)))
    made = ", ".join(f"%r{i}" for i in range(len(outputs)))
    body = f" ({region})" if region else ""
    lines.append(
        f'{made} = "{name}"({names}) <{{{properties}}}>{body} : '
        f"({', '.join(types)}) -> ({', '.join(result_types)})"
    )
    lines.extend(_store(i + len(arrays), i, output) for i, output in enumerate(outputs))
    every = [*arrays, *outputs]
    arguments = ", ".join(f"%p{i}: !tt.ptr<{NAMES[a.dtype]}>" for i, a in enumerate(every))
    pointers = ", ".join(f"!tt.ptr<{NAMES[a.dtype]}>" for a in every)
    text = f"""
"builtin.module"() ({{
  "tt.func"() <{{sym_name = "k", function_type = ({pointers}) -> ()}}> ({{
  ^bb0({arguments}):
    {chr(10).join(lines)}
    "tt.return"() : () -> ()
  }}) : () -> ()
}}) : () -> ()"""
    run_kernel(parse_module(text, tile_context()), every, (1,))
    return outputs


def _address(pointer: int, array: np.ndarray, tag: str) -> str:
    """Lines that make the tile of addresses `%{tag}` of an array."""
    element = f"!tt.ptr<{NAMES[array.dtype]}>"
    flat, shaped = tile_type((array.size,), element), tile_type(array.shape, element)
    index = tile_type((array.size,), "i32")
    return f"""
    %{tag}i = "tt.make_range"() <{{start = 0 : i32, end = {array.size} : i32}}> : () -> {index}
    %{tag}s = "tt.splat"(%p{pointer}) : ({element}) -> {flat}
    %{tag}f = "tt.addptr"(%{tag}s, %{tag}i) : ({flat}, {index}) -> {flat}
    %{tag} = "tt.reshape"(%{tag}f) : ({flat}) -> {shaped}"""


def _load(index: int, array: np.ndarray) -> str:
    pointers = tile_type(array.shape, f"!tt.ptr<{NAMES[array.dtype]}>")
    tile = tile_type(array.shape, NAMES[array.dtype])
    return f"""{_address(index, array, f"a{index}")}
    %v{index} = "tt.load"(%a{index}) <{{operandSegmentSizes = array<i32: 1, 0, 0>}}> :
      ({pointers}) -> {tile}"""


def _store(pointer: int, result: int, array: np.ndarray) -> str:
    pointers = tile_type(array.shape, f"!tt.ptr<{NAMES[array.dtype]}>")
    tile = tile_type(array.shape, NAMES[array.dtype])
    return f"""{_address(pointer, array, f"o{result}")}
    "tt.store"(%o{result}, %r{result}) : ({pointers}, {tile}) -> ()"""
