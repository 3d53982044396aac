"""User functions of tensor descriptors: a tensor in memory, read and written block by block.

In a kernel a descriptor is a named tuple of its handle, its shape and its strides, so that it can
be carried through loops, passed to functions and packed in tuples like any other.
"""

from __future__ import annotations

from xdsl.ir import Attribute

from tilewright.language.core import (
    bfloat16,
    block_type,
    constexpr,
    dtype,
    float16,
    float32,
    int16,
    int32,
    int64,
    tensor,
    tensor_descriptor,
    tensor_descriptor_type,
    tuple_,
    uint32,
    uint64,
    unwrap,
)
from tilewright.ops.arguments import check_shape, choice, sequence, tile_shape
from tilewright.ops.atomics.ir import RMW_KINDS
from tilewright.ops.block_pointers.surface import (
    extents_in_reach,
    index_scalar,
    index_scalars,
    segments,
)
from tilewright.ops.builder import Builder, integer_property, ir_type, require_tensor, ssa
from tilewright.ops.casting import broadcast_shapes, broadcast_tensor, convert, to_tensor
from tilewright.ops.descriptors.ir import (
    DescriptorGatherOp,
    DescriptorLoadOp,
    DescriptorReduceOp,
    DescriptorScatterOp,
    DescriptorStoreOp,
    MakeTensorDescriptorOp,
)
from tilewright.ops.memory.ir import PADDINGS
from tilewright.ops.memory.surface import as_bytes, is_block_pointer, pointee, require_pointer
from tilewright.ops.surface import surface
from tilewright.runtime.tensor_descriptor import MAX_RANK
from tilewright.support.errors import (
    BroadcastMismatch,
    CompileError,
    DtypeNotAllowed,
    InvalidOption,
    NotAPointer,
    ShapeMismatch,
    StoreToConst,
)

_ALIGNMENT_BYTES = 16
_LEAST_ROWS = 8
_FIELDS = ("handle", "shape", "strides")

# Methods of a descriptor and the functions that they mean.
DESCRIPTOR_METHODS: dict[str, str] = {
    "load": "load_tensor_descriptor",
    "store": "store_tensor_descriptor",
    "gather": "descriptor_gather",
    "scatter": "descriptor_scatter",
    **{f"atomic_{k}": f"descriptor_atomic_{k}" for k in ("add", "min", "max", "and", "or", "xor")},
}


def is_descriptor(value: object) -> bool:
    """Whether `value` is a tensor descriptor."""
    return isinstance(value, tuple_) and value.factory is tensor_descriptor


def _handle(value: tuple_) -> tensor:
    handle = value.values[0]
    assert isinstance(handle, tensor)
    return handle


def _handle_type(value: tuple_) -> tensor_descriptor_type:
    type_ = _handle(value).type
    assert isinstance(type_, tensor_descriptor_type)
    return type_


def descriptor_attribute(value: tuple_, name: str) -> object | None:
    """The compile-time attribute `name` of a descriptor (its shape and strides are fields)."""
    type_ = _handle_type(value)
    block = type_.block_type
    if name == "type":
        return type_
    if name == "dtype":
        return block.scalar
    if name == "block_type":
        return block
    if name == "block_shape":
        return tuple_([constexpr(extent) for extent in block.extents])
    return None


def _require_descriptor(value: object, function: str) -> tuple_:
    plain = unwrap(value)
    if not (isinstance(plain, tuple_) and is_descriptor(plain)):
        raise CompileError(
            f"{function}(): `desc` is {plain!r}, not a tensor descriptor",
            argument="desc",
            hint="make one with tl.make_tensor_descriptor, or pass the kernel a TensorDescriptor",
        )
    return plain


def _require_writable(desc: tuple_, function: str) -> None:
    if _handle_type(desc).const:
        raise StoreToConst(f"{function}(): the descriptor describes constant memory")


@surface()
def make_tensor_descriptor(
    b: Builder,
    base: object,
    shape: object,
    strides: object,
    block_shape: object,
    padding_option: object = "zero",
) -> tuple_:
    """A descriptor of the tensor at `base`, read and written in blocks of `block_shape`.

    Shapes: 1 to 5 dimensions; `shape`, `strides` and `block_shape` have one entry for each.
    Dtypes: `shape` becomes int32, `strides` int64; both count in elements. Offsets are int32: of a
    dimension of more than 2147483647 elements so many are reached.
    Constraints: the last stride is the constant 1; constant leading strides are multiples of
    16 bytes; the last dimension of a block has at least 16 bytes; `base` is aligned to 16 bytes.
    `padding_option` is what a load gives out of bounds: "zero", or "nan" for floats.
    Raises: NotAPointer, ShapeMismatch, DtypeNotAllowed, NotPowerOfTwo, InvalidOption.
    """
    name = "make_tensor_descriptor"
    pointer = _base(base)
    pointer = as_bytes(b, pointer)
    element = pointee(pointer)
    extents = tile_shape(block_shape, name, "block_shape", b.groups)
    rank = len(extents)
    if not 1 <= rank <= MAX_RANK:
        raise ShapeMismatch(
            f"{name}(): `block_shape` has {rank} dimensions; 1 to {MAX_RANK} are possible",
            argument="block_shape",
        )
    _check_block(extents, element)
    _check_strides(sequence(strides), rank, element)
    padding = str(choice(padding_option, ("zero", "nan"), name, "padding_option"))
    if padding == "nan" and not element.is_floating():
        raise InvalidOption(
            f"{name}(): {element} has no NaN to pad with", argument="padding_option"
        )
    bounds = index_scalars(b, extents_in_reach(b, shape), rank, int32, name, "shape")
    steps = index_scalars(b, strides, rank, int64, name, "strides")
    block = block_type(element, extents)
    type_ = tensor_descriptor_type(block, pointer.dtype.is_const(), padding)
    properties: dict[str, Attribute] = {
        "padding": integer_property(PADDINGS.index(padding)),
        "operandSegmentSizes": segments(1, rank, rank),
    }
    operands = [ssa(v) for v in (pointer, *bounds, *steps)]
    op = b.emit(MakeTensorDescriptorOp, operands, [ir_type(type_)], properties)
    parts = [tensor(op.results[0], type_), tuple_(bounds), tuple_(steps)]
    return tuple_(parts, _FIELDS, tensor_descriptor)


def _base(base: object) -> tensor:
    pointer = require_pointer(base, "make_tensor_descriptor")
    if pointer.static_shape or is_block_pointer(pointer) or pointee(pointer).is_ptr():
        raise NotAPointer(
            f"make_tensor_descriptor(): `base` is {pointer.type}; a scalar pointer to numbers is "
            "needed",
            argument="base",
        )
    return pointer


def _check_block(extents: tuple[int, ...], element: dtype) -> None:
    size_bytes = extents[-1] * element.itemsize
    if size_bytes < _ALIGNMENT_BYTES:
        raise ShapeMismatch(
            f"make_tensor_descriptor(): the last dimension of `block_shape` {list(extents)} has "
            f"{size_bytes} bytes of {element}; at least {_ALIGNMENT_BYTES} are needed",
            argument="block_shape",
            hint=f"make it {_ALIGNMENT_BYTES // element.itemsize} or more",
            known_as=f"Descriptor block shape must have at least {_ALIGNMENT_BYTES} bytes in the "
            f"last dimension, but got {extents[-1]} * {element.itemsize} = {size_bytes} bytes",
        )


def _check_strides(strides: list[object], rank: int, element: dtype) -> None:
    if len(strides) != rank:
        raise ShapeMismatch(
            f"make_tensor_descriptor(): `strides` has {len(strides)} value(s) for {rank} "
            "dimension(s)",
            argument="strides",
        )
    last = unwrap(strides[-1])
    if last != 1 or isinstance(last, tensor):
        shown = last.type if isinstance(last, tensor) else last
        raise InvalidOption(
            f"make_tensor_descriptor(): the last stride must be the constant 1, it is {shown}",
            argument="strides",
            hint="describe the transposed tensor and transpose the loaded block",
        )
    for stride in strides[:-1]:
        plain = unwrap(stride)
        if isinstance(plain, int) and plain * element.itemsize % _ALIGNMENT_BYTES:
            raise InvalidOption(
                f"make_tensor_descriptor(): stride {plain} of {element} is "
                f"{plain * element.itemsize} bytes, no multiple of {_ALIGNMENT_BYTES}",
                argument="strides",
            )


def _offset(b: Builder, value: object, function: str, argument: str) -> tensor:
    plain = unwrap(value)
    if isinstance(plain, tensor) and plain.dtype.primitive_bitwidth > 32:
        raise DtypeNotAllowed(
            f"{function}(): `{argument}` holds {plain.dtype}; offsets are int32",
            argument=argument,
            hint="convert it with .to(tl.int32)",
        )
    return index_scalar(b, value, int32, function, argument)


def _offsets(b: Builder, desc: tuple_, offsets: object, function: str) -> list[tensor]:
    rank = len(_handle_type(desc).block_type.extents)
    parts = sequence(offsets)
    if len(parts) != rank:
        raise ShapeMismatch(
            f"{function}(): `offsets` has {len(parts)} value(s) for {rank} dimension(s)",
            argument="offsets",
        )
    return [_offset(b, part, function, "offsets") for part in parts]


def _block_value(b: Builder, desc: tuple_, value: object, function: str) -> tensor:
    """`value` as the block's element type and shape."""
    block = _handle_type(desc).block_type
    converted = convert(b, to_tensor(b, value), block.scalar)
    return _stretched(b, converted, block.extents, function)


def _stretched(b: Builder, value: tensor, shape: tuple[int, ...], function: str) -> tensor:
    try:
        fits = broadcast_shapes(value.static_shape, shape) == shape
    except BroadcastMismatch:
        fits = False
    if not fits:
        raise ShapeMismatch(
            f"{function}(): `value` of shape {list(value.static_shape)} does not fit the block "
            f"{list(shape)}",
            argument="value",
        )
    return broadcast_tensor(b, value, shape)


@surface()
def load_tensor_descriptor(b: Builder, desc: object, offsets: object) -> tensor:
    """The block of `desc` that starts at `offsets`; elements out of bounds are the padding.

    Raises: ShapeMismatch; DtypeNotAllowed for offsets wider than int32.
    """
    descriptor = _require_descriptor(desc, "load_tensor_descriptor")
    indices = _offsets(b, descriptor, offsets, "load_tensor_descriptor")
    block = _handle_type(descriptor).block_type
    check_shape(block.extents, "load_tensor_descriptor", "desc", b.groups)
    return b.tensor(DescriptorLoadOp, [_handle(descriptor), *indices], block)


@surface()
def store_tensor_descriptor(b: Builder, desc: object, offsets: object, value: object) -> None:
    """Write `value` as the block at `offsets`; elements out of bounds are dropped.

    Shapes: `value` broadcasts to the block. Dtypes: it is cast to the element type.
    Raises: ShapeMismatch, StoreToConst; DtypeNotAllowed for offsets wider than int32.
    """
    name = "store_tensor_descriptor"
    descriptor = _require_descriptor(desc, name)
    _require_writable(descriptor, name)
    check_shape(_handle_type(descriptor).block_type.extents, name, "desc", b.groups)
    indices = _offsets(b, descriptor, offsets, name)
    source = _block_value(b, descriptor, value, name)
    b.emit(DescriptorStoreOp, [ssa(v) for v in (_handle(descriptor), source, *indices)])


def _rows(b: Builder, desc: tuple_, x_offsets: object, function: str) -> tensor:
    """The row offsets of gather and scatter as int32."""
    extents = _handle_type(desc).block_type.extents
    if len(extents) != 2 or extents[0] != 1:
        raise ShapeMismatch(
            f"{function}(): the descriptor's block is {list(extents)}; it must be one row, [1, N]"
        )
    rows = require_tensor(unwrap(x_offsets), function, "x_offsets")
    if len(rows.static_shape) != 1 or rows.static_shape[0] < _LEAST_ROWS:
        raise ShapeMismatch(
            f"{function}(): `x_offsets` is {rows.type}; a 1-D tile of at least {_LEAST_ROWS} rows "
            "is needed",
            argument="x_offsets",
        )
    if rows.dtype not in (int16, int32):
        raise DtypeNotAllowed(
            f"{function}(): `x_offsets` is {rows.dtype}; int16 or int32 is needed",
            argument="x_offsets",
        )
    return convert(b, rows, int32)


def _rows_type(desc: tuple_, rows: tensor) -> block_type:
    block = _handle_type(desc).block_type
    return block_type(block.scalar, (rows.static_shape[0], block.extents[1]))


@surface()
def descriptor_gather(b: Builder, desc: object, x_offsets: object, y_offset: object) -> tensor:
    """result[i, j] = the element in row x_offsets[i] and column y_offset + j.

    Shapes: the block is [1, N], `x_offsets` [R] with R >= 8, the result [R, N]. Elements out of
    bounds are the padding.
    Raises: ShapeMismatch, DtypeNotAllowed.
    """
    descriptor = _require_descriptor(desc, "descriptor_gather")
    rows = _rows(b, descriptor, x_offsets, "descriptor_gather")
    column = _offset(b, y_offset, "descriptor_gather", "y_offset")
    type_ = _rows_type(descriptor, rows)
    return b.tensor(DescriptorGatherOp, [_handle(descriptor), rows, column], type_)


@surface()
def descriptor_scatter(
    b: Builder, desc: object, value: object, x_offsets: object, y_offset: object
) -> None:
    """Write value[i, j] to row x_offsets[i] and column y_offset + j; the inverse of gather.

    Undefined: which row stays where `x_offsets` names one twice.
    Raises: ShapeMismatch, DtypeNotAllowed, StoreToConst.
    """
    name = "descriptor_scatter"
    descriptor = _require_descriptor(desc, name)
    _require_writable(descriptor, name)
    rows = _rows(b, descriptor, x_offsets, name)
    column = _offset(b, y_offset, name, "y_offset")
    type_ = _rows_type(descriptor, rows)
    source = _stretched(b, convert(b, to_tensor(b, value), type_.scalar), type_.extents, name)
    operands = [_handle(descriptor), rows, column, source]
    b.emit(DescriptorScatterOp, [ssa(v) for v in operands])


_BITWISE = (uint32, int32, uint64, int64)


def _define_atomic(kind: str, allowed: tuple[dtype, ...], meaning: str) -> None:
    name = f"descriptor_atomic_{kind}"

    def function(b: Builder, desc: object, offsets: object, value: object) -> None:
        descriptor = _require_descriptor(desc, name)
        _require_writable(descriptor, name)
        element = _handle_type(descriptor).block_type.scalar
        if element not in allowed:
            names = " or ".join(str(a) for a in allowed)
            raise DtypeNotAllowed(f"{name}(): the elements are {element}; they must be {names}")
        indices = _offsets(b, descriptor, offsets, name)
        source = _block_value(b, descriptor, value, name)
        operands = [_handle(descriptor), source, *indices]
        code = RMW_KINDS.index(_kind_for(kind, element))
        b.emit(DescriptorReduceOp, [ssa(v) for v in operands], [], {"kind": integer_property(code)})

    function.__name__ = name
    function.__doc__ = (
        f"Combine `value` atomically into the block at `offsets` by {meaning}.\n\n"
        "Elements out of bounds are dropped.\n"
        f"Dtypes: {', '.join(map(str, allowed))}.\n"
        "Raises: ShapeMismatch, DtypeNotAllowed, StoreToConst."
    )
    surface(name)(function)


def _kind_for(kind: str, element: dtype) -> str:
    if kind == "add" and element.is_floating():
        return "fadd"
    return f"u{kind}" if kind in ("min", "max") and element.is_int_unsigned() else kind


_define_atomic("add", (uint32, int32, uint64, float32, float16, bfloat16), "their sum")
_define_atomic("min", _BITWISE, "the lesser")
_define_atomic("max", _BITWISE, "the greater")
_define_atomic("and", _BITWISE, "bitwise and")
_define_atomic("or", _BITWISE, "bitwise or")
_define_atomic("xor", _BITWISE, "bitwise exclusive or")
