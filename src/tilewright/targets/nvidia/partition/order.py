"""Which order the products of a role's loops have: one after the other, or a stage apart.

    straight   dot#0(i); rest(i); dot#1(i), where replicas take turns at dot#0
    second     dot#0(i + 1); dot#1(i); rest(i + 1): the rest runs beside dot#1
    first      dot#0(i + 1); rest(i); dot#1(i): the rest runs beside dot#0

It is about loops of two products of which the second takes what is computed of the first. They are
a stage apart where the registers of a thread hold what that takes; else replicas take turns.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from xdsl.ir import Operation, SSAValue

from tilewright.ir.locations import describe
from tilewright.ir.regions import ControlFlowOp
from tilewright.ir.schedule import REST, Anchor, LoopSchedule, Place, Role, Schedule, Turns
from tilewright.machine.model import MachineModel
from tilewright.ops.control_flow import ForOp, counted_loops
from tilewright.ops.descriptors.ir import DescriptorLoadOp
from tilewright.ops.function import FuncOp
from tilewright.ops.matmul.ir import ProductOp
from tilewright.ops.shape.ir import PermutingOp
from tilewright.schedule.pipeline.staging import FEWEST_SLOTS
from tilewright.schedule.plan.anchors import anchors_of
from tilewright.schedule.plan.verify_schedule import role_problems
from tilewright.support.dataclass import dataclass

Places = Mapping[str, tuple[Place, Place, Place]]
PLACES: Places = {
    "FA_secondDot": (Place(0, 0), Place(1, 1), Place(0, 2)),
    "FA_firstDot": (Place(0, 0), Place(1, 2), Place(1, 1)),
}
"""The places of both products and of the rest, by the published names of the orders."""


@dataclass(frozen=True)
class Order:
    """The loops of which products are a stage apart, the turns of the others, and why."""

    loops: tuple[LoopSchedule, ...] = ()
    turns: Turns | None = None
    reasons: tuple[str, ...] = ()


def decide_order(
    kernel: FuncOp, roles: tuple[Role, ...], slots: int, wanted: str, machine: MachineModel
) -> Order:
    """The order of all loops of two products: as `wanted`, or '' what registers and slots allow.

    *Source*: attention as compiled, H200, bf16, TFLOP/s sustained: two groups a stage apart 640 to
    675 and by turns 539 ((8, 16, 8192, 128)); three groups 486 and 483 ((4, 32, 4096, 64)).
    """
    pairs = list(pairs_of(kernel))
    math = next(role for role in roles if role.kind == "math")
    turns = _turns(kernel) if math.replicas > 1 else None
    if not pairs or wanted == "straight":
        return Order(turns=turns)
    if slots < FEWEST_SLOTS:
        reason = "products are not a stage apart: the rings have a single slot"
        return Order(turns=turns, reasons=(reason,))
    order = wanted or "FA_secondDot"
    names = {op: anchor for anchor, op in anchors_of(kernel).items() if anchor.index >= 0}
    loops = tuple(_apart(pair, order, names) for pair in pairs)
    asked = Schedule(roles, loops=loops)
    problem = next(role_problems(asked, anchors_of(kernel), machine), None)
    if problem is not None:
        reason = f"products are not a stage apart: {problem.reason} ({describe(problem.op)})"
        return Order(turns=turns, reasons=(reason,))
    return Order(loops, None, (f"the products of a loop are a stage apart, as {order} has it",))


@dataclass(frozen=True)
class Pair:
    """A loop of two products, of which the second takes what is computed of the first."""

    loop: ForOp
    first: ProductOp
    second: ProductOp


def pairs_of(kernel: FuncOp) -> Iterator[Pair]:
    """The loops of two products that an order is about, as the text has them."""
    for loop in counted_loops(kernel):
        products = [op for op in loop.body.block.ops if isinstance(op, ProductOp)]
        if len(products) == 2 and _is_computed_of(products[1].a, products[0]):
            yield Pair(loop, *products)


def _is_computed_of(value: SSAValue, product: Operation) -> bool:
    """Whether a value follows from a product's result in the same iteration."""
    seen: set[Operation] = set()
    pending = [value]
    while pending:
        op = pending.pop().owner
        if op is product:
            return True
        if isinstance(op, Operation) and op.parent is product.parent and op not in seen:
            seen.add(op)
            pending += op.operands
    return False


def _apart(pair: Pair, order: str, names: Mapping[Operation, Anchor]) -> LoopSchedule:
    anchors = (names[pair.first], names[pair.second], REST)
    return LoopSchedule(names[pair.loop], tuple(zip(anchors, PLACES[order], strict=True)))


def _turns(kernel: FuncOp) -> Turns | None:
    """Turns for the first product of a loop that has one other behind it.

    One group then computes on the result of the first while another multiplies. Source: attention
    by hand, 569 against 634 TFLOP/s sustained (H200, (8, 16, 8192, 128), bf16).
    """
    anchors = {op: anchor for anchor, op in anchors_of(kernel).items() if anchor.index >= 0}
    for op in kernel.walk():
        blocks = [block for region in op.regions for block in region.blocks]
        products = [
            inner for block in blocks for inner in block.ops if isinstance(inner, ProductOp)
        ]
        if isinstance(op, ControlFlowOp) and op.is_loop() and len(products) == 2:
            is_fed = _is_loaded(products[0].a, products[0]) or _is_loaded(
                products[0].b, products[0]
            )
            return Turns("math", anchors[products[0]]) if is_fed else None
    return None


def _is_loaded(value: SSAValue, product: Operation) -> bool:
    """Whether an operand is loaded by the copy engine where its product stands."""
    op = value.owner
    while isinstance(op, PermutingOp):
        op = op.src.owner
    return isinstance(op, DescriptorLoadOp) and op.parent is product.parent
