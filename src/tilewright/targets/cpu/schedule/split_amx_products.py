"""Takes f32 products that may be three of bf16 apart, where AMX multiplies bf16.

    dot %a, %b, %c {bf16x3}
    ⇒ dot %a_hi, %b_hi, dot(%a_hi', %b_lo, dot(%a_lo, %b_hi', %c))

with zeros in the place of infinities in `%a_hi'` and `%b_hi'`.

Only where `input_precision="bf16x3"` is said: the error of each product is up to 3·2⁻¹⁸ of it, and
what is larger than the largest bf16, 2¹²⁸ - 2¹²⁰, may round to infinity. Other precisions, and
every machine without AMX, keep f32. See `passes/split_products.py`.

*Why*: AMX multiplies 16 times as fast as vectors of f32, so that three products and the conversion
of both operands take less time than one of f32, where a tile is large enough.
"""

from __future__ import annotations

from xdsl.ir import Operation

from tilewright.ir.types import bf16, shape_of
from tilewright.machine.model import MachineModel
from tilewright.ops.matmul.ir import ProductOp
from tilewright.passes.split_products import precision_of, split_product
from tilewright.targets.cpu.dot.types import dot_spec
from tilewright.targets.cpu.dot.units import choose_unit

SPLIT_SIDE = 128
"""The columns, for each element of A and B that is converted, from which three products are faster:
m·n / (m + n) of a tile.
Measured on Emerald Rapids, 2026-11-23, one thread, times MKL's f32 product: tiles of 128x128x64
(64 of these) 0.54 at 1024³; 256x512x512 (171) 0.93 at 512³; 512x256x256 (171) 1.25 and 512x512x512
(256) 0.96 at 1024³; 512x512x512 1.49 and 1024x512x512 (341) 1.62 at 2048³."""


def split_amx_products(kernel: Operation, machine: MachineModel) -> None:
    """Split the products of a kernel that AMX takes in three."""
    for op in tuple(kernel.walk()):
        if isinstance(op, ProductOp) and is_split_for_amx(op, machine):
            split_product(op)


def is_split_for_amx(product: ProductOp, machine: MachineModel) -> bool:
    """Whether a product is one that AMX takes in three on a machine."""
    if precision_of(product) != "bf16x3":
        return False
    a, b = (shape_of(value.type) for value in (product.a, product.b))
    m, n, shape = a[-2], b[-1], (a[-2], b[-1], a[-1])
    if m * n < SPLIT_SIDE * (m + n):
        return False
    spec = dot_spec(bf16, bf16, shape, machine.enabled_features, machine.vector_bytes)
    return choose_unit(spec).spec.is_amx
