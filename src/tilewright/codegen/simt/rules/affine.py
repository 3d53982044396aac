"""Index arithmetic with its constants kept apart, down to the displacement of each access.

The registers of an index tile differ by constants. Where each would be a sum of its own, a
thread would hold an address for each access of a tile; kept as (base, constant) they share the
base. Sums and products are exact modulo their width. A signed offset of 32 bits that is added to a
pointer, widened or not, is taken not to overflow (the checked mode reports one that does). Whatever
else is widened keeps its constant where its numbers are known to leave room for it, as those of a
range do; what may have wrapped is widened as it is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from xdsl.ir import Attribute, Operation, SSAValue

from tilewright.analysis.ranges import Range
from tilewright.codegen.llvm_types import llvm_type
from tilewright.codegen.simt.context import SimtContext, element_type
from tilewright.codegen.simt.rules import SIMT_RULES
from tilewright.ir import types as ir
from tilewright.ir.encoding import has_layout
from tilewright.ops.creation.ir import SplatOp
from tilewright.ops.elementwise.ir import ELEMENTWISE, ExtSIOp, ExtUIOp
from tilewright.ops.memory.ir import AddPtrOp
from tilewright.ops.shape.ir import BroadcastOp, ExpandDimsOp, ReshapeOp, TransOp
from tilewright.ops.staging import ConvertLayoutOp

Affine = tuple[str, int]
# Signed numbers of at least this width are taken not to overflow where they are offsets.
_ADDRESS_BITS = 32
_ADD, _SUBTRACT, _MULTIPLY, _SHIFT = (
    ELEMENTWISE[f"arith.{name}"] for name in ("addi", "subi", "muli", "shli")
)


_SHAPE_OPS = BroadcastOp | ExpandDimsOp | ReshapeOp | TransOp | SplatOp | ConvertLayoutOp
_LINEAR = (_ADD, _SUBTRACT, _MULTIPLY, _SHIFT)


def _is_number(name: str) -> bool:
    return name.lstrip("-").isdigit()


def affine_of(ctx: SimtContext, name: str) -> Affine:
    """An integer or pointer as a base, "0" for none, and a constant."""
    if _is_number(name):
        return "0", int(name)
    return ctx.affine.get(name, (name, 0))


class _Combined:
    """The registers of one op's result; equal bases and equal sums are emitted once."""

    def __init__(self, ctx: SimtContext, type_: Attribute) -> None:
        self.ctx = ctx
        self.kind = llvm_type(type_)
        self.bits = ir.width_bits(type_)
        self._known: dict[str, str] = {}
        self._sums: dict[Affine, str] = {}

    def value(self, text: str) -> str:
        """The value of an instruction that was emitted for this op already, or is now."""
        if text not in self._known:
            self._known[text] = self.ctx.fn.value(text)
        return self._known[text]

    def binary(self, name: str, left: str, right: str) -> str:
        """An integer instruction; 0 as a base is left out of sums."""
        if name == "add" and "0" in (left, right):
            return right if left == "0" else left
        if name == "sub" and right == "0":
            return left
        if name == "mul" and "0" in (left, right):
            return "0"
        return self.value(f"{name} {self.kind} {left}, {right}")

    def sum(self, base: str, constant: int) -> str:
        """The register that is `base` + `constant`, remembered as such."""
        constant = (constant + (1 << self.bits - 1)) % (1 << self.bits) - (1 << self.bits - 1)
        if base == "0":
            return str(constant)
        if constant == 0:
            return base
        if (base, constant) not in self._sums:
            name = self.ctx.fn.value(f"add {self.kind} {base}, {constant}")
            self.ctx.affine[name] = (base, constant)
            self._sums[base, constant] = name
        return self._sums[base, constant]


def _default(ctx: SimtContext, op: Operation) -> bool:
    """Emit an op on scalars, or on i1, by its default rule; whether that was it."""
    if has_layout(op.results[0].type) and ir.width_bits(op.results[0].type) > 1:
        return False
    ctx.emit_default(op)
    return True


def _each(ctx: SimtContext, op: Operation, combine: Callable[[Affine, Affine], str]) -> None:
    rows = zip(*(ctx.registers(v) for v in op.operands), strict=True)
    names = [combine(affine_of(ctx, x), affine_of(ctx, y)) for x, y in rows]
    ctx.define_tile(op.results[0], names)


@SIMT_RULES.register(_ADD, _SUBTRACT)
def _sum(ctx: SimtContext, op: Operation) -> None:
    if _default(ctx, op):
        return
    combined = _Combined(ctx, element_type(op.results[0].type))
    name, sign = ("add", 1) if isinstance(op, _ADD) else ("sub", -1)

    def combine(x: Affine, y: Affine) -> str:
        return combined.sum(combined.binary(name, x[0], y[0]), x[1] + sign * y[1])

    _each(ctx, op, combine)


@SIMT_RULES.register(_MULTIPLY)
def _product(ctx: SimtContext, op: Operation) -> None:
    if _default(ctx, op):
        return
    combined = _Combined(ctx, element_type(op.results[0].type))

    def combine(x: Affine, y: Affine) -> str:
        for (base, constant), (other, factor) in ((x, y), (y, x)):
            if other == "0":
                return combined.sum(combined.binary("mul", base, str(factor)), constant * factor)
        return combined.binary("mul", combined.sum(*x), combined.sum(*y))

    _each(ctx, op, combine)


@SIMT_RULES.register(_SHIFT)
def _shift(ctx: SimtContext, op: Operation) -> None:
    if _default(ctx, op):
        return
    names = ctx.registers(op.operands[1])
    distance = names[0]
    if len(set(names)) > 1 or not distance.isdigit():
        ctx.emit_default(op)
        return
    combined = _Combined(ctx, element_type(op.results[0].type))
    factor = 1 << int(distance) if int(distance) < combined.bits else 0

    def combine(x: Affine, _: Affine) -> str:
        return combined.sum(combined.binary("mul", x[0], str(factor)), x[1] * factor)

    _each(ctx, op, combine)


def _is_offset(value: SSAValue) -> bool:
    """Whether all that becomes of `value` are the offsets of addresses.

    Of those it may be taken that they did not overflow before they were widened; any other
    number wraps, and keeps what is left.
    """
    pending, seen = [value], {value}
    while pending:
        for use in pending.pop().uses:
            user = use.operation
            if isinstance(user, AddPtrOp):
                continue
            if not isinstance(user, _LINEAR):
                return False
            if user.results[0] not in seen:
                seen.add(user.results[0])
                pending.append(user.results[0])
    return True


@SIMT_RULES.register(ExtSIOp, ExtUIOp)
def _extend(ctx: SimtContext, op: Operation) -> None:
    (source,), (result,) = op.operands, op.results
    bits = ir.width_bits(source.type)
    if not has_layout(result.type) or bits == 1:
        ctx.emit_default(op)
        return
    wraps = isinstance(op, ExtUIOp) or bits < _ADDRESS_BITS or not _is_offset(result)
    constants = [affine_of(ctx, register)[1] for register in ctx.registers(source)]
    keeps = any(constants) and _leave_room(ctx.ranges.of(source), constants, bits)
    if wraps and not keeps:
        ctx.emit_default(op)
        return
    # A base is the number without its constant, and may be negative where the number is not.
    combined = _Combined(ctx, element_type(result.type))
    from_kind = llvm_type(element_type(source.type))
    names = []
    for register in ctx.registers(source):
        base, constant = affine_of(ctx, register)
        wide = "0"
        if base != "0":
            wide = combined.value(f"sext {from_kind} {base} to {combined.kind}")
        names.append(combined.sum(wide, constant))
    ctx.define_tile(result, names)


def _leave_room(numbers: Range, constants: Iterable[int], bits: int) -> bool:
    """Whether numbers widen alike signed or not, and none wraps when it is parted from a constant.

    `bits`: the width that they have before.
    """
    (least, most), limit = numbers, 1 << bits - 1
    return least >= 0 and all(-limit <= least - c and most - c < limit for c in constants)


@SIMT_RULES.register(AddPtrOp)
def _add_pointer(ctx: SimtContext, op: AddPtrOp) -> None:
    pointer = element_type(op.ptr.type)
    assert isinstance(pointer, ir.PointerType)
    size = ir.storage_bytes(pointer.pointee)
    kind = llvm_type(element_type(op.offset.type))
    wraps = ir.width_bits(op.offset.type) < _ADDRESS_BITS
    known: dict[str, str] = {}

    def emitted(text: str) -> str:
        if text not in known:
            known[text] = ctx.fn.value(text)
        return known[text]

    # LLVM 22 (StraightLineStrengthReduce) looks through the sign extension of an index and takes
    # `i8 x + 2` to lie two elements behind `i8 x` although it may have wrapped. It does not look
    # through a product, nor through what it knows nothing of. Seen 2026-11-22: corpus case
    # narrow-offsets-int8 on an H200; goes with an LLVM that asks for `nsw` there.
    hides = size == 1 and _is_widened(op.offset)

    def distance(step: str) -> str:
        wide = step if kind == "i64" else emitted(f"sext {kind} {step} to i64")
        if size > 1:
            return emitted(f"mul i64 {wide}, {size}")
        if hides and wide not in known:
            known[wide] = ctx.target.opaque(ctx.fn, wide)
        return known[wide] if hides else wide

    names = []
    for at, by in _rows(ctx, op):
        base, constant = ctx.affine.get(at, (at, 0))
        step, offset = (by, 0) if wraps and not _is_number(by) else affine_of(ctx, by)
        if step != "0":
            base = emitted(f"getelementptr i8, ptr {base}, i64 {distance(step)}")
        constant += offset * size
        name = base
        if constant:
            name = emitted(f"getelementptr i8, ptr {base}, i64 {constant}")
            ctx.affine[name] = (base, constant)
        names.append(name)
    ctx.define_tile(op.result, names)


def _is_widened(offset: SSAValue) -> bool:
    """Whether an offset is a number of less than 32 bits, or one that was widened."""
    while ir.width_bits(offset.type) >= _ADDRESS_BITS:
        op = offset.owner
        if not isinstance(op, ExtSIOp | _SHAPE_OPS):
            return False
        offset = op.operands[0]
    return True


def _rows(ctx: SimtContext, op: AddPtrOp) -> Iterable[tuple[str, str]]:
    return zip(ctx.registers(op.ptr), ctx.registers(op.offset), strict=True)
