"""Matrix products: named ops of linalg with the accumulator as destination."""

from __future__ import annotations

from xdsl.ir import SSAValue

from tilewright.ir.types import FLOAT8, bf16, element_of, f16, f32, is_float, shape_of
from tilewright.ops.matmul.ir import DotOp
from tilewright.targets.mlir.emitter import IN_PLACE, RULES, Emitter
from tilewright.targets.mlir.rules.elements import convert
from tilewright.targets.mlir.text import tensor_text, type_text

_NARROW = (*FLOAT8, f16, bf16)


@IN_PLACE.register(DotOp)
def _summed_tile(op: DotOp) -> SSAValue:
    return op.c


@RULES.register(DotOp)
def _dot(emitter: Emitter, op: DotOp) -> None:
    """The product is summed in the accumulator's type, in float where that is narrower.

    `linalg.matmul` extends what it reads to the type that it sums in: signed integers and floats.
    """
    element = element_of(op.result.type)
    total = f32 if element in _NARROW else element
    names = [_operand(emitter, side, FLOAT8) for side in (op.a, op.b)]
    types = [
        "f32" if element_of(side.type) in FLOAT8 else type_text(side.type) for side in (op.a, op.b)
    ]
    c = _operand(emitter, op.c, _NARROW)
    shapes = [shape_of(side.type) for side in (op.a, op.b, op.c)]
    rank = len(shapes[2])
    kinds = [*types, type_text(total)]
    values = [
        _batched(emitter, name, shape, kind)
        for name, shape, kind in zip((*names, c), shapes, kinds, strict=True)
    ]
    operation = "linalg.matmul" if rank == 2 else "linalg.batch_matmul"
    (a, a_type), (b, b_type), (c, c_type) = values
    name = emitter.code.value(
        f"{operation} ins({a}, {b} : {a_type}, {b_type}) outs({c} : {c_type}) -> {c_type}"
    )
    name = _unbatched(emitter, name, c_type, shapes[2], type_text(total))
    if element != total:
        name = _rounded(emitter, name, op.result)
    emitter.bind(op.result, name)


def _rounded(emitter: Emitter, total: str, result: SSAValue) -> str:
    """A sum in float as a tensor of the narrower type of `result`."""
    shape, element = shape_of(result.type), element_of(result.type)
    return emitter.generic(
        shape,
        type_text(element),
        lambda ev, at: convert(ev.code, f32, element, ev.read(total, shape, "f32", at)),
    )


def _operand(emitter: Emitter, side: SSAValue, widened: tuple[object, ...]) -> str:
    """An operand as a tensor; of a type in `widened`, as one of float."""
    element = element_of(side.type)
    if element not in widened or not is_float(element):
        return emitter.tensor(side)
    return emitter.generic(
        shape_of(side.type),
        "f32",
        lambda ev, coords: convert(ev.code, element, f32, ev.at(side, coords)),
    )


def _batched(emitter: Emitter, name: str, shape: tuple[int, ...], kind: str) -> tuple[str, str]:
    """A tensor with its leading dimensions made one, and its type."""
    type_ = tensor_text(shape, kind)
    if len(shape) <= 3:
        return name, type_
    batch = 1
    for extent in shape[:-2]:
        batch *= extent
    rank = len(shape)
    group = f"[[{', '.join(map(str, range(rank - 2)))}], [{rank - 2}], [{rank - 1}]]"
    flat = tensor_text((batch, *shape[-2:]), kind)
    return emitter.code.value(f"tensor.collapse_shape {name} {group} : {type_} into {flat}"), flat


def _unbatched(emitter: Emitter, name: str, type_: str, shape: tuple[int, ...], kind: str) -> str:
    if len(shape) <= 3:
        return name
    rank = len(shape)
    group = f"[[{', '.join(map(str, range(rank - 2)))}], [{rank - 2}], [{rank - 1}]]"
    extents = ", ".join(map(str, shape))
    return emitter.code.value(
        f"tensor.expand_shape {name} {group} output_shape [{extents}] : {type_} into "
        f"{tensor_text(shape, kind)}"
    )
