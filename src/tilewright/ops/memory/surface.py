"""User functions that read and write memory through pointers."""

from __future__ import annotations

from xdsl.dialects.builtin import BoolAttr, DenseArrayBase, i32
from xdsl.ir import Attribute

from tilewright.language.core import block_type, dtype, int1, int8, pointer_type, tensor, unwrap
from tilewright.ops.arguments import boolean_constant, choice, integers, is_none
from tilewright.ops.builder import Builder, integer_property, ir_type, require_tensor, shaped, ssa
from tilewright.ops.casting import (
    broadcast_shapes,
    broadcast_tensor,
    convert,
    to_tensor,
)
from tilewright.ops.elementwise.ir import BitcastOp
from tilewright.ops.memory.ir import CACHE_MODIFIERS, EVICTION_POLICIES, PADDINGS, LoadOp, StoreOp
from tilewright.ops.surface import surface
from tilewright.support.errors import (
    BroadcastMismatch,
    DtypeNotAllowed,
    InvalidOption,
    NotAPointer,
    ShapeMismatch,
    StoreToConst,
)


def _segments(*present: bool) -> Attribute:
    return DenseArrayBase.from_list(i32, [int(p) for p in present])


def require_pointer(value: object, function: str) -> tensor:
    """`value` as a tensor of pointers, or NotAPointer."""
    x = require_tensor(unwrap(value), function, "pointer")
    if not x.dtype.is_ptr():
        raise NotAPointer(
            f"{function}(): `pointer` is {x.type}, not a pointer",
            argument="pointer",
            known_as=f"Unsupported ptr type {x.type.name} in `tl.{function}`",
        )
    return x


def pointee(x: tensor) -> dtype:
    """The element type that the pointers of `x` point to."""
    assert isinstance(x.dtype, pointer_type)
    return x.dtype.element_ty


def as_bytes(b: Builder, pointer: tensor) -> tensor:
    """Pointers to int1 read as pointers to int8: memory holds a byte per element."""
    if not pointee(pointer).is_bool():
        return pointer
    assert isinstance(pointer.dtype, pointer_type)
    type_ = shaped(pointer_type(int8, const=pointer.dtype.const), pointer.static_shape)
    return b.tensor(BitcastOp, [pointer], type_)


def mask_like(b: Builder, mask: object, pointer: tensor, function: str) -> tensor | None:
    """The mask broadcast to the pointer's shape as int1, or None."""
    if is_none(mask):
        return None
    value = to_tensor(b, mask)
    if not value.dtype.is_bool():
        raise DtypeNotAllowed(
            f"{function}(): `mask` must be int1, got {value.type}",
            argument="mask",
            hint="a mask comes from a comparison such as `offsets < n`",
            known_as="Mask must have boolean scalar type",
        )
    return fit_to_pointer(b, value, pointer, function, "mask")


def fit_to_pointer(
    b: Builder, value: tensor, pointer: tensor, function: str, argument: str
) -> tensor:
    """`value` broadcast to the pointer's shape. Raises: ShapeMismatch."""
    shape = pointer.static_shape
    if value.static_shape and not shape:
        raise ShapeMismatch(
            f"{function}(): `{argument}` is a tile but `pointer` is a scalar",
            argument=argument,
            known_as=f"{argument.capitalize()} argument cannot be block type "
            "if pointer argument is not a block",
            types={"pointer": str(pointer.type), argument: str(value.type)},
        )
    try:
        return broadcast_tensor(b, value, shape)
    except BroadcastMismatch as error:
        raise ShapeMismatch(
            f"{function}(): `{argument}` of shape {list(value.static_shape)} does not fit the "
            f"pointer's {list(shape)}",
            argument=argument,
            types={"pointer": str(pointer.type), argument: str(value.type)},
        ) from error


def require_rank(value: tensor, pointer: tensor, function: str, argument: str) -> None:
    """Raise ShapeMismatch for a tile to write that has fewer dimensions than its pointers.

    Each element would be written to many places, which is rarely meant; a scalar is.
    """
    shape, wanted = list(value.static_shape), list(pointer.static_shape)
    if 0 < len(shape) < len(wanted):
        raise ShapeMismatch(
            f"{function}(): `{argument}` of shape {shape} has fewer dimensions than the "
            f"pointer's {wanted}",
            argument=argument,
            hint=f"add dimensions where the {argument} repeats, such as `{argument}[None, :]`",
            types={"pointer": str(pointer.type), argument: str(value.type)},
            known_as=f"Cannot broadcast, rank mismatch: {shape}, {wanted}",
        )


def cache_properties(
    cache_modifier: object, eviction_policy: object, function: str, modifiers: tuple[str, ...]
) -> dict[str, Attribute]:
    """The `cache` and `evict` hint properties."""
    cache = choice(cache_modifier, modifiers, function, "cache_modifier")
    evict = choice(eviction_policy, EVICTION_POLICIES, function, "eviction_policy")
    cache_code = CACHE_MODIFIERS.index(str(cache) or "none")
    evict_code = EVICTION_POLICIES.index(str(evict) or "normal")
    return {"cache": integer_property(cache_code), "evict": integer_property(evict_code)}


_LOAD_CACHES = ("", ".ca", ".cg", ".cs", ".cv")
_STORE_CACHES = ("", ".wb", ".cg", ".cs", ".wt")


def is_block_pointer(x: tensor) -> bool:
    """Whether `x` is a block pointer: a scalar pointer to a tile."""
    return isinstance(x.type, pointer_type) and x.type.element_ty.is_block()


@surface()
def load(
    b: Builder,
    pointer: object,
    mask: object = None,
    other: object = None,
    boundary_check: object = (),
    padding_option: object = "",
    cache_modifier: object = "",
    eviction_policy: object = "",
    volatile: object = False,
) -> tensor:
    """result[i] = *pointer[i] where mask[i], else other[i].

    Shapes: a tile of pointers and `mask` broadcast together, `other` to their shape. A block
    pointer takes `boundary_check` (dimensions to check) and `padding_option` ("", "zero", "nan")
    instead.
    Dtypes: `other` is cast to the element type; pointers to int1 read bytes.
    Undefined: elements with a false mask and no `other`.
    Raises: NotAPointer, ShapeMismatch, InvalidOption.
    """
    x = require_pointer(pointer, "load")
    hints = cache_properties(cache_modifier, eviction_policy, "load", _LOAD_CACHES)
    hints["isVolatile"] = _boolean(boolean_constant(volatile, "load", "volatile"))
    if is_block_pointer(x):
        return _load_block(b, x, mask, other, boundary_check, padding_option, hints)
    if integers(boundary_check, "load", "boundary_check") or unwrap(padding_option):
        raise InvalidOption(
            "load(): `boundary_check` and `padding_option` need a block pointer",
            argument="boundary_check",
            hint="use `mask` and `other` with a tile of pointers",
        )
    is_bool = pointee(x).is_bool()
    x = _repeated_for_mask(b, as_bytes(b, x), mask)
    element = pointee(x)
    fitted = mask_like(b, mask, x, "load")
    filler = _load_filler(b, x, fitted, other, element)
    operands = [ssa(v) for v in (x, fitted, filler) if v is not None]
    properties = {
        **hints,
        "operandSegmentSizes": _segments(True, fitted is not None, filler is not None),
    }
    type_ = shaped(element, x.static_shape)
    op = b.emit(LoadOp, operands, [ir_type(type_)], properties)
    result = tensor(op.results[0], type_)
    return convert(b, result, int1) if is_bool else result


def _repeated_for_mask(b: Builder, pointer: tensor, mask: object) -> tensor:
    """A tile of pointers, repeated along the dimensions that only the mask of its load has.

    What does not fit is left for `mask_like` to refuse, which says what the two are.
    """
    wanted = unwrap(mask)
    if not isinstance(wanted, tensor) or not (pointer.static_shape and wanted.static_shape):
        return pointer
    try:
        shape = broadcast_shapes(pointer.static_shape, wanted.static_shape)
    except BroadcastMismatch:
        return pointer
    return broadcast_tensor(b, pointer, shape)


def _load_filler(
    b: Builder, pointer: tensor, mask: tensor | None, other: object, element: dtype
) -> tensor | None:
    if is_none(other):
        return None
    if mask is None:
        raise InvalidOption(
            "load(): `other` without `mask` is never used",
            argument="other",
            hint="pass the mask, or drop `other`",
            known_as="`other` cannot be provided without `mask`",
        )
    return fit_to_pointer(b, convert(b, to_tensor(b, other), element), pointer, "load", "other")


def _boolean(value: bool) -> Attribute:
    return BoolAttr.from_bool(value)


def _load_block(
    b: Builder,
    pointer: tensor,
    mask: object,
    other: object,
    boundary_check: object,
    padding_option: object,
    hints: dict[str, Attribute],
) -> tensor:
    if not (is_none(mask) and is_none(other)):
        raise InvalidOption(
            "load(): a block pointer takes `boundary_check`, not `mask` and `other`",
            argument="mask",
        )
    assert isinstance(pointer.type, pointer_type)
    tile = pointer.type.element_ty
    padding = str(choice(padding_option, PADDINGS, "load", "padding_option"))
    if padding == "nan" and tile.scalar.is_int():
        raise InvalidOption("load(): integers have no NaN padding", argument="padding_option")
    properties = {
        **hints,
        "boundaryCheck": _checked_dims(boundary_check, tile, "load"),
        "operandSegmentSizes": _segments(True, False, False),
    }
    if padding:
        properties["padding"] = integer_property(PADDINGS.index(padding))
    op = b.emit(LoadOp, [ssa(pointer)], [ir_type(tile)], properties)
    return tensor(op.results[0], tile)


def _checked_dims(boundary_check: object, tile: dtype, function: str) -> Attribute:
    dims = integers(boundary_check, function, "boundary_check")
    rank = len(tile.shape)
    if any(not 0 <= d < rank for d in dims) or len(set(dims)) != len(dims):
        raise InvalidOption(
            f"{function}(): `boundary_check` {list(dims)} must name dimensions of a "
            f"{rank}-dimensional block once each",
            argument="boundary_check",
        )
    return DenseArrayBase.from_list(i32, dims)


@surface(member=True)
def store(
    b: Builder,
    pointer: object,
    value: object,
    mask: object = None,
    boundary_check: object = (),
    cache_modifier: object = "",
    eviction_policy: object = "",
) -> None:
    """*pointer[i] = value[i] where mask[i].

    Shapes: `value` and `mask` broadcast to the pointer's shape; the pointer never does.
    Dtypes: `value` is cast to the element type.
    Raises: NotAPointer, StoreToConst, ShapeMismatch.
    """
    _refuse_swapped(pointer, value)
    x = require_pointer(pointer, "store")
    hints = cache_properties(cache_modifier, eviction_policy, "store", _STORE_CACHES)
    if isinstance(x.dtype, pointer_type) and x.dtype.const:
        raise StoreToConst(
            "store(): `pointer` points to constant memory",
            argument="pointer",
            known_as="Cannot store to a constant pointer",
        )
    if is_block_pointer(x):
        _store_block(b, x, value, mask, boundary_check, hints)
        return
    if integers(boundary_check, "store", "boundary_check"):
        raise InvalidOption(
            "store(): `boundary_check` needs a block pointer", argument="boundary_check"
        )
    is_bool = pointee(x).is_bool()
    x = as_bytes(b, x)
    element = pointee(x)
    converted = to_tensor(b, value)
    converted = convert(b, converted, int1) if is_bool else converted
    require_rank(converted, x, "store", "value")
    fitted = fit_to_pointer(b, convert(b, converted, element), x, "store", "value")
    masked = mask_like(b, mask, x, "store")
    b.emit(StoreOp, [ssa(v) for v in (x, fitted, masked) if v is not None], [], hints)


def _refuse_swapped(pointer: object, value: object) -> None:
    """Raise NotAPointer where only the second argument of a store is a pointer."""
    first, second = unwrap(pointer), unwrap(value)
    if isinstance(first, tensor) and first.dtype.is_ptr():
        return
    if isinstance(second, tensor) and second.dtype.is_ptr():
        raise NotAPointer(
            f"store(): `pointer` is {first.type if isinstance(first, tensor) else first}, "
            "but `value` is a pointer",
            argument="pointer",
            hint="the pointer comes first: tl.store(pointer, value, mask)",
        )


def _store_block(
    b: Builder,
    pointer: tensor,
    value: object,
    mask: object,
    boundary_check: object,
    hints: dict[str, Attribute],
) -> None:
    if not is_none(mask):
        raise InvalidOption(
            "store(): a block pointer takes `boundary_check`, not `mask`", argument="mask"
        )
    assert isinstance(pointer.type, pointer_type)
    tile = pointer.type.element_ty
    assert isinstance(tile, block_type)
    converted = broadcast_tensor(b, convert(b, to_tensor(b, value), tile.scalar), tile.extents)
    properties = {**hints, "boundaryCheck": _checked_dims(boundary_check, tile, "store")}
    b.emit(StoreOp, [ssa(pointer), ssa(converted)], [], properties)
