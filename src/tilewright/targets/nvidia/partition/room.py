"""What roles take of shared memory beside their rings: the blocks that they store."""

from __future__ import annotations

from math import prod

from xdsl.ir import Attribute, Block, Operation

from tilewright.ir.effects import global_access
from tilewright.ir.schedule import Epilogue
from tilewright.ir.types import DescriptorType, shape_of, storage_bytes
from tilewright.machine.mma import WGMMA
from tilewright.ops.descriptors.ir import DescriptorReduceOp


def stored_block(op: Operation) -> Attribute | None:
    """The block that an op writes through a descriptor; None for other ops."""
    access = global_access(op)
    if access is None or access.value is None or not access.writes:
        return None
    type_ = access.value.type
    return type_.block if isinstance(type_, DescriptorType) else None


def stored_bytes(body: Block, epilogue: Epilogue, parts: int = 1) -> int:
    """The bytes of shared memory that one replica takes for what it stores, as far as is known.

    `parts` is among how many replicas the blocks of `body` are divided. Chunks have stages of
    their own, and so do blocks that are added to memory; those that are stored whole do so one
    after another.
    """
    whole, stages = [0], dict[tuple[int, ...], int]()
    for op in body.walk():
        block = stored_block(op)
        if block is None:
            continue
        part, size = _part(_own_shape(shape_of(block)), parts), storage_bytes(block)
        is_added = isinstance(op, DescriptorReduceOp)
        shape = part if is_added else chunk_shape(part, epilogue)
        if shape is None:
            whole.append(prod(part) * size)
        else:
            num = num_stages(prod(part) // prod(shape), epilogue)
            stages[(*shape, size, num)] = num * prod(shape) * size
    return max(whole) + sum(stages.values())


def _own_shape(shape: tuple[int, ...]) -> tuple[int, ...]:
    """The rows and columns of a block behind dims of one element: a head, a batch."""
    first = next((dim for dim, extent in enumerate(shape[:-2]) if extent > 1), len(shape) - 2)
    return shape[max(0, first) :]


def _part(shape: tuple[int, ...], parts: int) -> tuple[int, ...]:
    return (shape[0] // parts, *shape[1:])


def chunk_shape(shape: tuple[int, ...], epilogue: Epilogue) -> tuple[int, ...] | None:
    """The chunks of a block in which it is stored; None where it is stored whole.

    Dims in front of rows and columns have one element.
    """
    if epilogue.kind != "tma" or len(shape) < 2 or shape[-1] % epilogue.columns:
        return None
    *single, rows, _ = shape
    if prod(single) != 1:
        return None
    return (*single, WGMMA.rows if rows % WGMMA.rows == 0 else rows, epilogue.columns)


def num_stages(num_chunks: int, epilogue: Epilogue) -> int:
    """Through how many tiles a store of so many chunks goes in turn.

    A store starts with the first of them, so each has to go through all: where their number does
    not divide that of the chunks, one does.
    """
    return epilogue.buffers if num_chunks % epilogue.buffers == 0 else 1
