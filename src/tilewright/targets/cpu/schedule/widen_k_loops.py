"""Takes several steps of a matrix product's k loop at once.

    for k in lo..hi step B iter_args(acc, s) { … dot(a: [M, B], b: [B, N], acc) … yield s + d }
    ⇒ (acc', s') = for k in lo..lo + n·U·B step U·B { … dot(a: [M, U·B], b: [U·B, N], acc) … }
      for k in lo + n·U·B..hi step B iter_args(acc', s') { … as it was … }

Why: the microkernel keeps a block of the result in registers through the depth of a tile, and
moves it to and from memory once per tile. Kernels are written with depths of 32 or 64 for the
shared memory of GPUs; a CPU wants more. Only loops are taken whose operands of the
next iteration continue those of this one (`shifts.py`), and n counts whole iterations, so the
deep loop sees no tail, unless what lies beyond is masked anyway (`masked_ends.py`): then it goes
to the end, and there is no loop behind it. The sum is that of the deeper tile: products of U
steps are added up before they meet the accumulator.

T0 to T0, with pointers no longer carried. It belongs to the schedule: tile passes change no
bit, and the order of a sum is the schedule's to choose.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum, auto

from xdsl.ir import Block, Operation

from tilewright.analysis.affine.tiles import AffineTiles
from tilewright.ir.effects import is_free
from tilewright.ir.op import PointwiseOp
from tilewright.ir.types import element_of, f32, f64, i32, shape_of
from tilewright.machine.model import MachineModel
from tilewright.ops.control_flow import ForOp, counted_loops
from tilewright.ops.creation.ir import constant_of
from tilewright.ops.matmul.ir import ProductOp
from tilewright.targets.cpu.dot.limits import multiplies_prefixes
from tilewright.targets.cpu.dot.panels import ELEMENT_BYTES
from tilewright.targets.cpu.schedule.deep_loop import DeepLoop
from tilewright.targets.cpu.schedule.loop_ends import mask_behind_end
from tilewright.targets.cpu.schedule.masked_ends import adds_up_alone, end_in_masks
from tilewright.targets.cpu.schedule.materialization import operand_spec
from tilewright.targets.cpu.schedule.shifts import Shifts
from tilewright.targets.cpu.schedule.split_amx_products import is_split_for_amx

DEPTH = 128
"""The depth to which tiles are brought. Twice the depth halves the result's round trip once more,
but rows of B from twice as many pages cost more.
Measured on Emerald Rapids, 2026-11-21, f32 1024³, 1280³, 2048³: with 128x128 tiles depth 128
reaches 0.93, 0.96, 0.94 of the peak, depth 256 0.90 in all three."""

AMX_DEPTH_BYTES = 1024
"""The depth of tiles that AMX multiplies, in bytes of a row: 512 bf16, 1,024 bytes.
Measured on Emerald Rapids, 2026-11-22, bf16 1024³: a depth of 512 bytes reaches 0.8 of the speed,
since C's way to the registers and back is the longest part of a product."""


def product_depth(product: ProductOp, machine: MachineModel) -> int:
    """The depth to which the tiles of a product are brought on a machine."""
    if is_split_for_amx(product, machine):
        return AMX_DEPTH_BYTES // ELEMENT_BYTES["bf16"]
    spec = operand_spec(product, machine)
    bytes_of_k = spec.multiply.parts * ELEMENT_BYTES[spec.multiply.a_element]
    return AMX_DEPTH_BYTES // bytes_of_k if spec.is_amx else DEPTH


class Reads(Enum):
    """What a product reads of operands that masks cut: all, or no more than is left.

    `ROWS` where they are rows in memory, `PARTS` however they lie.
    """

    ALL = auto()
    ROWS = auto()
    PARTS = auto()


def reads_of(product: ProductOp, machine: MachineModel) -> Reads:
    """What a product reads of its operands on a machine."""
    spec = operand_spec(product, machine)
    if is_split_for_amx(product, machine) or not multiplies_prefixes(spec, machine):
        return Reads.ALL
    return Reads.PARTS if spec.is_amx else Reads.ROWS


def widen_k_loops(
    kernel: Operation,
    depth_of: Callable[[ProductOp], int] = lambda product: DEPTH,
    reads_of: Callable[[ProductOp], Reads] = lambda product: Reads.ALL,
) -> None:
    """Take the k loops of a kernel's products in steps of about a depth, where they allow it.

    Where a product does not read all, a last step that is longer than what is left costs no more.
    """
    for loop in counted_loops(kernel):
        product = _product_of(loop)
        if product is not None:
            _deepen(loop, product, depth_of(product), reads_of(product))


def _product_of(loop: ForOp) -> ProductOp | None:
    """The product of a loop that does nothing but load operands and add products up."""
    body = loop.body.block
    products = [op for op in body.ops if isinstance(op, ProductOp)]
    if len(products) != 1 or not _accumulates(products[0], body):
        return None
    if any(op.regions or _is_kept(op) for op in body.ops):
        return None
    return products[0]


def _is_kept(op: Operation) -> bool:
    """Whether an op does more than to compute or to load what it may load once more."""
    if is_free(op):
        return False
    flag = getattr(op, "is_volatile", None)
    return not isinstance(op, PointwiseOp) or bool(getattr(flag, "value", None))


def _accumulates(product: ProductOp, body: Block) -> bool:
    """Whether a product's result is only handed on, and its addend what was handed in."""
    shape = shape_of(product.result.type)
    if len(shape) != 2 or element_of(product.result.type) not in (f32, f64, i32):
        return False
    terminator = body.last_op
    assert terminator is not None
    if product.c not in body.args or not (product.c.has_one_use() and product.result.has_one_use()):
        return False
    return terminator.operands[body.args.index(product.c) - 1] is product.result


def _deepen(loop: ForOp, product: ProductOp, depth: int, reads: Reads) -> None:
    step = shape_of(product.a.type)[1]
    factor = _factor(loop, depth // step)
    if factor < 2:
        return
    shifts = Shifts(loop, AffineTiles())
    if not (shifts.continues(product.a, 1) and shifts.continues(product.b, 0)):
        return
    if any(shifts.change(a) is None for a in loop.body.block.args if a is not product.c):
        return
    if not _can_widen(DeepLoop(loop, shifts, factor, False), product):
        return
    is_long = reads is not Reads.ALL and _ends(loop, product, step, reads is Reads.PARTS)
    # Operands may have got masks.
    DeepLoop(loop, Shifts(loop, AffineTiles()), factor, is_long).rewrite(product)


def _can_widen(widening: DeepLoop, product: ProductOp) -> bool:
    """Whether every op that has to be longer can be."""
    return widening.is_known(product.a, 1) and widening.is_known(product.b, 0)


def _ends(loop: ForOp, product: ProductOp, depth: int, may_be_turned: bool) -> bool:
    """Whether masks end with a loop, or do from now on, where its steps would not all be deep."""
    if not adds_up_alone(loop, product, may_be_turned):
        return False
    if end_in_masks(loop, product, depth):
        return True
    is_open = loop.trips().most is None and may_be_turned
    return is_open and mask_behind_end(loop, product, depth)


def _factor(loop: ForOp, most: int) -> int:
    """How many iterations to take at once, such that constant bounds leave none over."""
    step, count = constant_of(loop.step), loop.trips().most
    if step is None or step <= 0:
        return 0
    if count is None:
        return most
    return count // -(-count // most) if count and most else 0
