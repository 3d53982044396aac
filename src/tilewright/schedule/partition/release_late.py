"""Gives slots back one product late, so that a product starts before the last one ends (T2 to T2).

    for %k (%acc, %s, …) { … %d = dot %a, %b, %acc; ring_release %ab, %s; yield %d, … }
    ⇒ for %k (%acc, %s, …, %before = 0)
        { … %d = dot async %a, %b, %acc; %e = dot_wait 1 %d
          ring_release %ab, %before if %k != %lb; yield %e, …, %s }
      turn_pass; %f = dot_wait 0 %acc; ring_release %ab, %before if %lb < %ub

For rings that the schedule releases `late`, in loops whose one product sums up what one iteration
takes from them. Other loops stay as they are, which is slower and computes the same.

*Why here*: behind `count-rings`, which gives the releases their slots, and in front of the
barriers, which see how long a product reads.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import IntegerAttr, ModuleOp, UnitAttr
from xdsl.ir import Attribute, Operation, SSAValue

from tilewright.ir.attributes import integer_array
from tilewright.ir.edits import erase
from tilewright.ir.op import build
from tilewright.ir.passes import Pass
from tilewright.ir.plans import SHARED
from tilewright.ir.regions import rebuilt
from tilewright.ir.schedule_attributes import schedule_of
from tilewright.ir.types import i1, i32, i64
from tilewright.ops.control_flow import ForOp
from tilewright.ops.creation.ir import ConstantOp, constant_of
from tilewright.ops.elementwise.comparisons import CmpIOp
from tilewright.ops.function import FuncOp, find_kernel
from tilewright.ops.rings import RingOp, RingReleaseOp, RingWaitOp
from tilewright.ops.roles import TurnPassOp
from tilewright.ops.staging import DotWaitOp, LaidOutDotOp, MemdescSliceOp, MemdescTransOp
from tilewright.support.dataclass import dataclass

# By definition: the numbers of `ne` and `slt` among INTEGER_PREDICATES.
_UNEQUAL, _LESS = 1, 2


@dataclass(frozen=True)
class ReleaseLate(Pass):
    """The pass; see the module."""

    name = "release-late"
    requires = "T2"
    produces = "T2"
    after = ("count-rings",)

    def apply(self, module: ModuleOp) -> None:
        """Rewrite the loops of the kernel."""
        release_late(find_kernel(module))


def release_late(kernel: FuncOp) -> None:
    """Rewrite every loop that releases rings which the schedule releases late."""
    schedule = schedule_of(kernel)
    if schedule is None:
        return
    late = {channel.name for channel in schedule.channels if channel.release == "late"}
    loops: dict[ForOp, list[RingReleaseOp]] = {}
    for op in kernel.walk():
        if isinstance(op, RingReleaseOp) and op.ring_of().ring_name.data in late:
            parent = op.parent_op()
            if isinstance(parent, ForOp):
                loops.setdefault(parent, []).append(op)
    for loop, releases in loops.items():
        product = _product(loop)
        if product is not None and _are_all(releases, product):
            _rewrite(loop, product, releases)


def _product(loop: ForOp) -> LaidOutDotOp | None:
    """The one product of a loop, which adds to what it carries; None for other loops."""
    products = [op for op in loop.walk() if isinstance(op, LaidOutDotOp)]
    if len(products) != 1 or not _counts_up(loop):
        return None
    (product,) = products
    plan, block = product.product.data, loop.body.block
    is_async = plan.instruction == "wgmma" and plan.a == plan.b == SHARED
    if product.parent is not block or not is_async or product.is_async is not None:
        return None
    uses = [(use.operation, use.index) for use in product.result.uses]
    total = product.c
    if len(uses) != 1 or total not in block.args or len(list(total.uses)) != 1:
        return None
    (user, index) = uses[0]
    is_carried = user is block.last_op and block.args[index + 1] is total
    return product if is_carried else None


def _counts_up(loop: ForOp) -> bool:
    return loop.lb.type == i32 and (constant_of(loop.step) or 0) > 0


def _are_all(releases: Sequence[RingReleaseOp], product: LaidOutDotOp) -> bool:
    """Whether all that the product reads are slots that are given back once, right behind it."""
    behind: list[Operation] = []
    op = product.next_op
    while isinstance(op, RingReleaseOp):
        behind.append(op)
        op = op.next_op
    rings = {release.ring_of() for release in releases}
    plain = all(r.slot is not None and r.condition is None for r in releases)
    slots = all(ring.num_slots > 1 for ring in rings)
    # What threads write they would write again while the product reads it.
    read = [_ring_of(operand) for operand in (product.a, product.b)]
    is_read = all(ring in rings for ring in read)
    once = len(rings) == len(releases) and all(r in behind for r in releases)
    return plain and slots and is_read and once


def _ring_of(operand: SSAValue) -> RingOp | None:
    """The ring of whose slot a shared tile is a view; None for other tiles."""
    op = operand.owner
    while isinstance(op, MemdescSliceOp | MemdescTransOp):
        op = op.src.owner
    return op.ring_of() if isinstance(op, RingWaitOp) else None


def _rewrite(loop: ForOp, product: LaidOutDotOp, releases: Sequence[RingReleaseOp]) -> None:
    block = loop.body.block
    end = block.last_op
    assert end is not None
    number = next(use.index for use in product.result.uses)
    product.properties["is_async"] = UnitAttr()
    running = _wait(product, product.result, 1)
    block.insert_op_after(running, product)
    given = [running.results[0] if v is product.result else v for v in end.operands]
    is_later = _compare(_UNEQUAL, block.args[0], loop.lb, product)
    block.insert_op_before(is_later, product)
    for release in releases:
        before = block.insert_arg(i32, len(block.args))
        assert release.slot is not None
        given.append(release.slot)
        block.insert_op_before(_release(release, before, is_later.results[0]), release)
    end.operands = given
    made = _with_slots(loop, len(releases))
    _finish(made, number, releases)
    for release in releases:
        erase(release)


def _with_slots(loop: ForOp, count: int) -> ForOp:
    """The loop with so many slots more that it carries, from 0 on."""
    around = loop.parent
    assert around is not None
    zero = build(ConstantOp, (), [i32], {"value": IntegerAttr(0, i32)}, location=loop.location)
    around.insert_op_before(zero, loop)
    operands = [*loop.operands, *[zero.results[0]] * count]
    made = rebuilt(loop, operands, [*(r.type for r in loop.results), *[i32] * count])
    for old, new in zip(loop.results, made.results, strict=False):
        new.name_hint = old.name_hint
        old.replace_all_uses_with(new)
    erase(loop)
    assert isinstance(made, ForOp)
    return made


def _finish(loop: ForOp, number: int, releases: Sequence[RingReleaseOp]) -> None:
    """Wait for the last product behind the loop, and give back what it read."""
    around = loop.parent
    assert around is not None
    following = loop.next_op
    place: Operation = following if isinstance(following, TurnPassOp) else loop
    total = loop.results[number]
    done = _wait(loop, total, 0)
    total.replace_all_uses_with(done.results[0])
    done.operands = [total]
    has_run = _compare(_LESS, loop.lb, loop.ub, loop)
    slots = loop.results[len(loop.results) - len(releases) :]
    given = [_release(r, s, has_run.results[0]) for r, s in zip(releases, slots, strict=True)]
    for op in reversed((done, has_run, *given)):
        around.insert_op_after(op, place)


def _wait(like: Operation, tile: SSAValue, pending: int) -> Operation:
    properties: dict[str, Attribute] = {"pending": IntegerAttr(pending, i32)}
    return build(DotWaitOp, [tile], [tile.type], properties, location=like.location)


def _compare(predicate: int, left: SSAValue, right: SSAValue, like: Operation) -> Operation:
    properties: dict[str, Attribute] = {"predicate": IntegerAttr(predicate, i64)}
    return build(CmpIOp, [left, right], [i1], properties, location=like.location)


def _release(like: RingReleaseOp, slot: SSAValue, condition: SSAValue) -> Operation:
    sizes: dict[str, Attribute] = {"operandSegmentSizes": integer_array((1, 1, 1))}
    operands = [like.operands[0], slot, condition]
    return build(RingReleaseOp, operands, (), sizes, location=like.location)
