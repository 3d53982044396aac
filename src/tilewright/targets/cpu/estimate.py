"""How long nests and products take by a machine's rates: an estimate for people, in cycles.

`explain` shows shares of it, and nothing is decided by it. What it leaves out: latencies, misses,
branches, and whether other cores want the same memory.
"""

from __future__ import annotations

from math import prod

from xdsl.ir import Operation

from tilewright.support.dataclass import dataclass
from tilewright.targets.cpu.dot.amx_product import PART_PAIRS
from tilewright.targets.cpu.dot.panels import ELEMENT_BYTES, Instruction
from tilewright.targets.cpu.dot.spec import DotSpec
from tilewright.targets.cpu.schedule.inline import own_cost

VECTORS_PER_CYCLE = 2
"""Vector instructions that start in a cycle. By definition: the pipes of Zen, Golden Cove and
Neoverse that take arithmetic of full width."""

MEMORY_BYTES_PER_CYCLE = 9
"""Measured on Emerald Rapids, 2026-11-22: a core reads 27 GB/s from the third-level cache, and
writes as much, at about 3 GHz."""

TILE_BYTES_PER_CYCLE = 32
"""Bytes of tiles in the arena. Chosen, not measured: between a first-level cache (64 and more) and
a second-level one (21, measured on Emerald Rapids), for either holds them."""

PACKED_BYTES_PER_CYCLE = 9
"""Measured on Emerald Rapids, 2026-11-22: packing an operand that is near takes 25 to 28 GB/s."""

AMX_PRODUCT_CYCLES = 32
"""A product of two of AMX's tiles. Measured on Emerald Rapids, 2026-11-23: one starts in 16 cycles;
whole products with their loads and stores of C reach half of that."""

MATH_INSTRUCTIONS = {
    "arith.divf": 5,
    "math.sqrt": 9,
    "math.rsqrt": 13,
    "math.exp": 18,
    "math.exp2": 14,
    "math.log": 35,
    "math.log2": 37,
    "math.erf": 48,
    "math.sin": 32,
    "math.cos": 32,
    "math.tanh": 38,
}
"""Vector instructions of a function of f32. Measured on a Zen 3 (AVX2), 2026-11-26, 2.4 GHz: twice
the cycles that a vector takes in tiles in the first-level cache, the least of 40 launches."""

OTHER_MATH_INSTRUCTIONS = 40
"""Those of the others. Chosen, not measured: as many as those of the longer ones above."""

# By definition: products in a lane of sums for each instruction; `I32` and `MULTIPLY_ADD` take two
# instructions, `I16_PAIRS` two for two products.
_DENSITY = {
    Instruction.FMA: 1.0,
    Instruction.MULTIPLY_ADD: 0.5,
    Instruction.BF16_DOT: 2.0,
    Instruction.BF16_DOT_NEON: 2.0,
    Instruction.I8_DOT: 4.0,
    Instruction.I8_DOT_NEON: 4.0,
    Instruction.BF16_2X2_NEON: 4.0,
    Instruction.I8_2X2_NEON: 8.0,
    Instruction.I16_PAIRS: 1.0,
    Instruction.I32: 0.5,
}


@dataclass(frozen=True)
class Estimate:
    """How many cycles something takes, and what most of them are spent on.

    `bound` is "arithmetic", "memory" (the user's), "tiles" (the arena) or "packing".
    """

    cycles: int
    bound: str


def product_time(
    spec: DotSpec, packed: tuple[str, ...], in_place: tuple[str, ...] = (), count: int = 1
) -> Estimate:
    """`count` products with the packing of the operands named in `packed` ("A", "B").

    Operands `in_place` come from the user's memory, others from tiles; arithmetic hides that, or
    the reverse. What is packed is there when the product starts.
    """
    sizes = _operand_bytes(spec)
    packing = sum(sizes[name] for name in packed) * spec.multiply.parts / PACKED_BYTES_PER_CYCLE
    moving = sum(
        size / (MEMORY_BYTES_PER_CYCLE if name in in_place else TILE_BYTES_PER_CYCLE)
        for name, size in sizes.items()
    )
    multiplying = _multiplying_cycles(spec)
    times = {
        "packing": packing,
        "arithmetic": multiplying,
        "memory" if in_place else "tiles": moving,
    }
    cycles = count * (packing + max(multiplying, moving))
    return Estimate(round(max(cycles, 1)), _longest(times))


def _operand_bytes(spec: DotSpec) -> dict[str, int]:
    """The bytes of A and B, as the product reads them."""
    element_bytes = ELEMENT_BYTES[spec.multiply.a_element]
    return {"A": spec.m * spec.k * element_bytes, "B": spec.k * spec.n * element_bytes}


def _multiplying_cycles(spec: DotSpec) -> float:
    """The instructions of a product by the rate at which they start."""
    multiply = spec.multiply
    if spec.is_amx:
        depth = 64 // ELEMENT_BYTES[multiply.a_element]
        tiles = -(-spec.m // 16) * -(-spec.n // 16) * -(-spec.k // depth)
        return tiles * len(PART_PAIRS[multiply.parts]) * AMX_PRODUCT_CYCLES
    lanes = spec.vector_bytes // multiply.lane_bytes
    products = spec.m * spec.k * -(-spec.n // lanes)
    return products / (_DENSITY[multiply.instruction] * VECTORS_PER_CYCLE)


def num_instructions(op: Operation) -> int:
    """The vector instructions of an op for a vector of elements, its operands not counted."""
    if op.name in MATH_INSTRUCTIONS:
        return MATH_INSTRUCTIONS[op.name]
    cost = own_cost(op)
    is_long = op.name.startswith(("math.", "tt.extern_elementwise")) and cost > 1
    return OTHER_MATH_INSTRUCTIONS if is_long else cost


def nest_time(space: tuple[int, ...], vectors: int, cost: int, moved: tuple[int, int]) -> Estimate:
    """A nest over `space`, in so many elements a vector, that costs so many instructions each.

    *Units* `moved`: bytes of memory and of tiles. Arithmetic hides what is moved, or the reverse.
    """
    computing = prod(space) * cost / (vectors * VECTORS_PER_CYCLE)
    memory, tiles = moved[0] / MEMORY_BYTES_PER_CYCLE, moved[1] / TILE_BYTES_PER_CYCLE
    bound = "arithmetic"
    if memory + tiles > computing:
        bound = _longest({"memory": memory, "tiles": tiles})
    return Estimate(round(max(computing, memory + tiles, 1)), bound)


def _longest(times: dict[str, float]) -> str:
    """What takes the longest; the first where several do."""
    return max(times, key=lambda name: times[name])
