"""Which roots share the loops of one nest."""

from __future__ import annotations

from xdsl.ir import SSAValue

from tilewright.targets.cpu.schedule.block_steps import BlockContents, Step
from tilewright.targets.cpu.schedule.inline import is_tile
from tilewright.targets.cpu.schedule.roots import SCALAR_KINDS, Root, RootKind

# Chosen, not measured: it bounds the code and the registers of a nest; what does not fit runs in a
# nest of its own.
_MAX_ROOTS = 12


def may_join(block: BlockContents, step: Step, root: Root) -> bool:
    """Whether a root may run in the same loops as the step's roots."""
    first = step.roots[0]
    if first.space != root.space or len(step.roots) >= _MAX_ROOTS:
        return False
    kinds = {other.kind for other in step.roots} | {root.kind}
    if kinds & SCALAR_KINDS or RootKind.SCAN in kinds:
        return False
    axes = {other.axis for other in (*step.roots, root) if other.axis is not None}
    if len(axes) > 1:
        return False
    return not any(_conflicts(block, other, root) for other in step.roots)


def _conflicts(block: BlockContents, earlier: Root, root: Root) -> bool:
    """Whether a root needs what an earlier one of the nest completes, or changes what it reads."""
    if earlier.kind is RootKind.REDUCE and any(v in root.reached for v in earlier.outputs()):
        return True
    if earlier.kind is RootKind.MATERIALIZE:
        is_pointwise = root.reached.get(earlier.values[0])
        is_crossed = earlier.values[0] in block.bufferization.crossed
        if is_pointwise is False or (is_crossed and is_pointwise is not None):
            return True
    if earlier.kind is RootKind.STORE:
        if _moves_store(block, root, earlier):
            return True
        computed = root.values[0] if root.kind is RootKind.MATERIALIZE else None
        return any(
            block.loaded.get(v, -1) > earlier.position
            and (v is computed or v not in block.bufferization.stored)
            for v in root.reached
        )
    return _buffer_conflict(block, earlier, root) or _buffer_conflict(block, root, earlier)


def _buffer_conflict(block: BlockContents, writer: Root, reader: Root) -> bool:
    """Whether `reader` reads the writer's buffer at other indices, or through a copy."""
    buffer = _buffer_of(block, writer)
    elsewhere = (v for v, pointwise in reader.reached.items() if not pointwise and is_tile(v))
    return buffer is not None and any(block.bufferization.key(v) is buffer for v in elsewhere)


def _moves_store(block: BlockContents, writer: Root, store: Root) -> bool:
    """Whether a store would go elsewhere once the writer's buffer is written.

    A store that waits in the arena for the end of its nest (`hazards`) evaluates its
    addresses and its mask again there, after all that the nest writes.
    """
    buffer = _buffer_of(block, writer)
    places = (v for v in block.places_of(store) if is_tile(v))
    return buffer is not None and any(block.bufferization.key(v) is buffer for v in places)


def _buffer_of(block: BlockContents, writer: Root) -> SSAValue | None:
    """What tells the buffer that a root fills from others."""
    if writer.kind is RootKind.COPY:
        assert writer.target is not None
        return block.bufferization.key(writer.target)
    if writer.kind is RootKind.MATERIALIZE:
        return block.bufferization.key(writer.values[0])
    return None
