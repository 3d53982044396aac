"""The columns of an unpacked B that are left at a result's right edge, brought into their panel.

The first rows of a product pack whole panels while they multiply them (`block.py`). The few
columns at the edge are packed by this loop beforehand, so that all rows there share one
function: code for first rows of its own took a tenth of a product's time to compile (Zen 5,
2026-11-23, 128x128x64: 16 of 166 ms).
"""

from __future__ import annotations

from tilewright.codegen.llvm_builder import FunctionBuilder, ModuleBuilder
from tilewright.targets.cpu.dot.panels import ELEMENT_BYTES, PanelLayout
from tilewright.targets.cpu.dot.vectors import (
    counted_while,
    element_address,
    load_masked,
    prefix_mask,
    scaled,
    store_prefix,
)
from tilewright.targets.cpu.dot.widen import STORAGE_TYPE


def emit_edge_pack(module: ModuleBuilder, layout: PanelLayout, num_vectors: int) -> str:
    """Define the packing of the first vectors of a panel's rows and return `@name`.

    `fastcc void @name(ptr %b, ptr %source, i64 %source_stride, i64 %columns, i64 %depth)`: rows of
    the source are `%source_stride` elements apart, columns from `%columns` on become zeros.
    *Constraints* the source's elements are those of the panels.
    """
    assert layout.k_group == 1 and layout.parts == 1, layout
    width = 8 * ELEMENT_BYTES[layout.element]
    name = f"tw.dot.edge{num_vectors}x{layout.lanes}.{layout.columns}.f{width}"
    if module.has_function(name):
        return f"@{name}"
    arguments = "ptr noalias %b, ptr noalias %source, i64 %source_stride, i64 %columns, i64 %depth"
    fn = FunctionBuilder(
        module, f"define internal fastcc void @{name}({arguments}) noinline nounwind"
    )
    type_, lanes = STORAGE_TYPE[layout.element], layout.lanes
    starts = [vector * lanes for vector in range(num_vectors)]
    masks = [prefix_mask(fn, lanes, "%columns", start) for start in starts]

    def pack_row(k: str) -> None:
        source = element_address(fn, type_, "%source", scaled(fn, k, "%source_stride"))
        target = element_address(fn, type_, "%b", scaled(fn, k, layout.columns))
        for start, mask in zip(starts, masks, strict=True):
            value = load_masked(fn, lanes, type_, element_address(fn, type_, source, start), mask)
            place = element_address(fn, type_, target, start)
            store_prefix(fn, lanes, type_, value, place, lanes)

    counted_while(fn, "%depth", pack_row)
    fn.emit("ret void")
    return module.add_function(name, fn.text())
