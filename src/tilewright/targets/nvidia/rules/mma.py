"""Matrix products of register fragments by mma.sync.

Source: PTX ISA 8.8, 9.7.14.5 "Matrix Multiply-Accumulate Operation using mma instruction".
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import IntegerType
from xdsl.ir import Attribute

from tilewright.codegen.llvm_builder import FunctionBuilder
from tilewright.codegen.simt.context import SimtContext, element_type
from tilewright.codegen.simt.words import pack, unpack
from tilewright.ir import types as ir
from tilewright.ir.encoding import layout_of
from tilewright.layout.linear import LinearLayout
from tilewright.ops.staging import LaidOutDotOp
from tilewright.support.dataclass import dataclass

# Source: PTX ISA 8.8, mma.m16n8: the shape of its result.
_ROWS, _COLUMNS = 16, 8
_PTX_TYPES: dict[Attribute, str] = {
    ir.f16: "f16",
    ir.bf16: "bf16",
    ir.f32: "tf32",
    ir.f8e4m3fn: "e4m3",
    ir.f8e5m2: "e5m2",
}


def ptx_type(element: Attribute) -> str:
    """The PTX name of an operand's element type."""
    return "s8" if isinstance(element, IntegerType) else _PTX_TYPES[element]


def accumulator_type(element: Attribute) -> str:
    """The PTX name of a result's element type."""
    return "s32" if isinstance(element, IntegerType) else _PTX_TYPES[element].replace("tf32", "f32")


@dataclass(frozen=True)
class MmaShape:
    """One kind of mma.sync: its K and the PTX names of its types."""

    depth: int
    accumulator: str
    a: str
    b: str

    @property
    def opcode(self) -> str:
        """The mnemonic."""
        types = f"{self.accumulator}.{self.a}.{self.b}.{self.accumulator}"
        return f"mma.sync.aligned.m16n8k{self.depth}.row.col.{types}"

    @property
    def register_kind(self) -> str:
        """The LLVM type of one accumulator register."""
        return "float" if self.accumulator == "f32" else "i32"


def emit_mma(
    fn: FunctionBuilder,
    shape: MmaShape,
    accumulators: Sequence[str],
    a: Sequence[str],
    b: Sequence[str],
) -> list[str]:
    """One instruction: the accumulators' new names. `a` has four i32, `b` two."""
    count = len(accumulators)
    kind = shape.register_kind
    constraint = "f" if kind == "float" else "r"
    names = [f"${i}" for i in range(2 * count + len(a) + len(b))]
    groups = (names[:count], names[count:][: len(a)], names[count + len(a) :][: len(b)])
    d, a_names, b_names = ("{" + ", ".join(group) + "}" for group in groups)
    text = f"{shape.opcode} {d}, {a_names}, {b_names}, {d};"
    constraints = [f"={constraint}"] * count + ["r"] * (len(a) + len(b))
    constraints += [str(i) for i in range(count)]
    arguments = [f"i32 {value}" for value in (*a, *b)]
    arguments += [f"{kind} {value}" for value in accumulators]
    result = "{" + ", ".join([kind] * count) + "}"
    # Without side effects the compiler may drop or reorder it; `convergent` keeps it uniform.
    call = f'call {result} asm "{text}", "{",".join(constraints)}"({", ".join(arguments)})'
    value = fn.value(f"{call} convergent nounwind memory(none)")
    return [fn.value(f"extractvalue {result} {value}, {i}") for i in range(count)]


class _Operand:
    """The registers of a tile by coordinates, as fragments of one instruction."""

    def __init__(self, ctx: SimtContext, layout: LinearLayout, names: Sequence[str]) -> None:
        self.ctx = ctx
        self.names = names
        self.where = {at: r for r, at in reversed(list(enumerate(layout.register_offsets())))}

    def words(self, element: Attribute, places: Sequence[Sequence[tuple[int, int]]]) -> list[str]:
        """One i32 for each group of places."""
        return [
            pack(self.ctx.fn, element, [self.names[self.where[at]] for at in group], 32)[0]
            for group in places
        ]


def emit_mma_product(ctx: SimtContext, op: LaidOutDotOp) -> None:
    """Emit a product of register operands, K innermost."""
    a_type, b_type = element_type(op.a.type), element_type(op.b.type)
    result_type = element_type(op.result.type)
    depth = op.product.data.depth
    accumulator = accumulator_type(result_type)
    shape = MmaShape(depth, accumulator, ptx_type(a_type), ptx_type(b_type))
    a = _Operand(ctx, layout_of(op.a.type), ctx.registers(op.a))
    b = _Operand(ctx, layout_of(op.b.type), ctx.registers(op.b))
    layout = layout_of(op.result.type)
    c = _Operand(ctx, layout, ctx.registers(op.c))
    values = list(ctx.registers(op.c))
    total = ir.shape_of(op.a.type)[1]
    for row, column in _blocks(layout):
        places = [(row + 8 * half, column + pair) for half in (0, 1) for pair in (0, 1)]
        own = [values[c.where[at]] for at in places]
        if accumulator == "f16":
            own = pack(ctx.fn, result_type, own, 32)
        for k in range(0, total, depth):
            own = emit_mma(
                ctx.fn,
                shape,
                own,
                a.words(a_type, _a_places(row, k, 32 // ir.width_bits(a_type))),
                b.words(b_type, _b_places(column, k, 32 // ir.width_bits(b_type))),
            )
        if accumulator == "f16":
            own = unpack(ctx.fn, result_type, own, 32)
        for at, name in zip(places, own, strict=True):
            values[c.where[at]] = name
    ctx.define_tile(op.result, values)


def _blocks(layout: LinearLayout) -> list[tuple[int, int]]:
    """The first row and column of each instruction of lane 0 of warp 0."""
    offsets = layout.register_offsets()
    return sorted({(row - row % _ROWS, column - column % _COLUMNS) for row, column in offsets})


def _a_places(row: int, k: int, packed: int) -> list[list[tuple[int, int]]]:
    return [
        [(row + below, k + right + i) for i in range(packed)]
        for right in (0, 4 * packed)
        for below in (0, 8)
    ]


def _b_places(column: int, k: int, packed: int) -> list[list[tuple[int, int]]]:
    return [[(k + below + i, column) for i in range(packed)] for below in (0, 4 * packed)]
