"""User functions of matrix products."""

from __future__ import annotations

from collections.abc import Mapping

from xdsl.ir import Attribute

from tilewright.language.core import (
    bfloat16,
    block_type,
    dtype,
    float16,
    float32,
    float64,
    int8,
    int32,
    tensor,
    unwrap,
)
from tilewright.ops.arguments import choice, dtype_constant, integer_constant, is_none
from tilewright.ops.builder import Builder, integer_property, require_tensor
from tilewright.ops.casting import broadcast_tensor
from tilewright.ops.matmul.ir import DotOp
from tilewright.ops.shape.surface import reshape_to
from tilewright.ops.surface import surface
from tilewright.support.errors import DotDtypeMismatch, DotShapeMismatch, InvalidOption
from tilewright.support.options import INPUT_PRECISIONS


def _result_dtype(lhs: dtype, out: dtype | None) -> dtype:
    """The dtype of a product; only fp16 and fp8 operands leave a choice."""
    if lhs == int8:
        return int32
    if out == bfloat16:
        raise InvalidOption(
            "dot(): `out_dtype` is bf16, which products do not have",
            argument="out_dtype",
            hint="take tl.float32 and convert: tl.dot(a, b).to(tl.bfloat16)",
        )
    if lhs == float64:
        return float64
    has_choice = lhs.is_fp16() or lhs.is_fp8()
    return float16 if has_choice and out == float16 else float32


def _check_dtypes(a: tensor, other: tensor) -> None:
    x, y = a.dtype, other.dtype
    types = {"a": str(a.type), "b": str(other.type)}
    is_allowed = x == int8 or x.is_floating()
    if not is_allowed:
        raise DotDtypeMismatch(
            f"dot(): operands of {x} are not supported",
            argument="input",
            types=types,
            hint="int8, fp8, fp16, bf16, fp32 and fp64 are; cast with .to(dtype)",
        )
    if x != y and not (x.is_fp8() and y.is_fp8()):
        raise DotDtypeMismatch(
            f"dot(): `a` is {x} but `b` is {y}",
            argument="other",
            types=types,
            hint=f"cast one side, as in b.to(tl.{_public(x)})",
        )


def _public(type_: dtype) -> str:
    return repr(type_).rpartition(".")[2]


def _check_shapes(a: tensor, other: tensor) -> None:
    x, y = a.static_shape, other.static_shape
    types = {"a": str(a.type), "b": str(other.type)}
    if len(x) < 2 or len(x) != len(y):
        raise DotShapeMismatch(
            f"dot(): `a` has rank {len(x)} and `b` rank {len(y)}; both need 2, or more with "
            "equal leading dimensions",
            argument="other",
            types=types,
        )
    if x[:-2] != y[:-2]:
        raise DotShapeMismatch(
            f"dot(): batch dimensions {list(x[:-2])} and {list(y[:-2])} differ", types=types
        )
    if x[-1] != y[-2]:
        hint = "`b` must be [K, N]"
        if x[-1] == y[-1]:
            hint = "`b` is [N, K]; transpose it with tl.trans(b), or drop a `.T`"
        raise DotShapeMismatch(
            f"dot(): K of `a` is {x[-1]} but K of `b` is {y[-2]}",
            argument="other",
            types=types,
            hint=hint,
            known_as=f"First input shape ({list(x)}) and second input shape {list(y)} are not "
            f"compatible for matmul (second index of first shape ({x[-1]}) must be equal to "
            f"first index of second shape ({y[-2]})",
        )


def _precision(b: Builder, input_precision: object, allow_tf32: object) -> int:
    chosen = unwrap(input_precision)
    if not is_none(allow_tf32):
        if chosen is not None:
            raise InvalidOption(
                "dot(): `allow_tf32` and `input_precision` exclude each other",
                argument="allow_tf32",
            )
        chosen = "tf32" if unwrap(allow_tf32) else "ieee"
    if chosen is None:
        chosen = b.options.get("default_dot_input_precision") or "tf32"
    return INPUT_PRECISIONS.index(str(choice(chosen, INPUT_PRECISIONS, "dot", "input_precision")))


def _accumulator(b: Builder, acc: object, type_: dtype, shape: tuple[int, ...]) -> tensor:
    if is_none(acc):
        return b.constant(0, block_type(type_, shape))
    value = require_tensor(unwrap(acc), "dot", "acc")
    if value.dtype != type_:
        raise DotDtypeMismatch(
            f"dot(): `acc` is {value.dtype} but the product is {type_}",
            argument="acc",
            types={"acc": str(value.type)},
            hint=f"make the accumulator tl.{_public(type_)}, or pass out_dtype",
        )
    if value.static_shape and value.static_shape != shape:
        raise DotShapeMismatch(
            f"dot(): `acc` has shape {list(value.static_shape)}, the product {list(shape)}",
            argument="acc",
            types={"acc": str(value.type)},
        )
    return broadcast_tensor(b, value, shape)


@surface()
def dot(
    b: Builder,
    input: object,
    other: object,
    acc: object = None,
    input_precision: object = None,
    allow_tf32: object = None,
    max_num_imprecise_acc: object = None,
    out_dtype: object = None,
) -> tensor:
    """input @ other + acc.

    Shapes: input [..., M, K], other [..., K, N], acc and result [..., M, N]; leading dimensions
    are a batch.
    Dtypes: int8 → int32; fp8, fp16 → fp32 (or fp16 with `out_dtype`); bf16, fp32 → fp32;
    fp64 → fp64. `acc` has the result's dtype. Any two fp8 may meet. `out_dtype` has no effect
    on other operands than fp8 and fp16, and is never bf16.
    `max_num_imprecise_acc`, for fp8, is at most K.
    `input_precision` ("tf32", "tf32x3", "ieee", "bf16x3", "bf16x6") allows less than fp32 for
    the products of fp32 operands; the CPU computes as "ieee", but "bf16x3" on AMX.
    Raises: DotShapeMismatch, DotDtypeMismatch, InvalidOption.
    """
    x = require_tensor(unwrap(input), "dot", "input")
    y = require_tensor(unwrap(other), "dot", "other")
    _check_dtypes(x, y)
    _check_shapes(x, y)
    out = None if is_none(out_dtype) else dtype_constant(out_dtype, "dot", "out_dtype").scalar
    start = unwrap(acc)
    if out is None and isinstance(start, tensor) and start.dtype == float16:
        out = float16
    result = _result_dtype(x.dtype, out)
    shape = (*x.static_shape[:-1], y.static_shape[-1])
    accumulator = _accumulator(b, acc, result, shape)
    imprecise = _imprecise_steps(x, y, max_num_imprecise_acc)
    properties = {
        "inputPrecision": integer_property(_precision(b, input_precision, allow_tf32)),
        "maxNumImpreciseAcc": integer_property(imprecise),
    }
    return _emit(b, x, y, accumulator, properties)


def _imprecise_steps(x: tensor, y: tensor, steps: object) -> int:
    """How many products of fp8 may be added up in less than fp32; no other dtype has a limit."""
    if is_none(steps):
        return 0
    number = integer_constant(steps, "dot", "max_num_imprecise_acc")
    depth = x.static_shape[-1]
    if x.dtype.is_fp8() and y.dtype.is_fp8() and number > depth:
        raise InvalidOption(
            f"dot(): max_num_imprecise_acc ({number}) must be <= K ({depth})",
            argument="max_num_imprecise_acc",
            known_as=f"max_num_imprecise_acc ({number}) must be <= K ({depth})",
            types={"a": str(x.type), "b": str(y.type)},
        )
    return number


def _emit(
    b: Builder, x: tensor, y: tensor, acc: tensor, properties: Mapping[str, Attribute]
) -> tensor:
    batch = x.static_shape[:-2]
    if len(batch) <= 1:
        return b.tensor(DotOp, [x, y, acc], acc.type, properties)
    flat = 1
    for extent in batch:
        flat *= extent
    parts = [reshape_to(b, v, (flat, *v.static_shape[-2:])) for v in (x, y, acc)]
    product = b.tensor(DotOp, parts, parts[2].type, properties)
    return reshape_to(b, product, acc.static_shape)
