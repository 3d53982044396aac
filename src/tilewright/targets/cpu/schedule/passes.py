"""T0 to C2 for a CPU: products, nests, arena, in order."""

from __future__ import annotations

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Region

from tilewright.analysis.affine.tiles import AffineTiles
from tilewright.ir.passes import Pass
from tilewright.machine.cpus import MADE_UP_AMX_CPU, MADE_UP_CPU
from tilewright.machine.model import MachineModel
from tilewright.ops.function import FuncOp, functions_of, require_launchable
from tilewright.ops.matmul.ir import DotOp
from tilewright.passes.fold_additions import FoldAdditions
from tilewright.support.dataclass import dataclass
from tilewright.support.options import CompileOptions
from tilewright.targets.cpu.nests.alone import may_be_alone
from tilewright.targets.cpu.report import NestReport, ReportBuilder
from tilewright.targets.cpu.schedule.arena import place_buffers
from tilewright.targets.cpu.schedule.bufferization import Bufferization
from tilewright.targets.cpu.schedule.control import emit_block
from tilewright.targets.cpu.schedule.count_cycles import count_cycles
from tilewright.targets.cpu.schedule.direct_stores import will_store_directly
from tilewright.targets.cpu.schedule.in_place import read_in_place
from tilewright.targets.cpu.schedule.inline import Costs, is_bound_by_memory
from tilewright.targets.cpu.schedule.lengthen_counters import lengthen_counters
from tilewright.targets.cpu.schedule.lowering import Lowering
from tilewright.targets.cpu.schedule.materialization import decide, normalize, operand_spec
from tilewright.targets.cpu.schedule.peel_first_products import peel_first_products
from tilewright.targets.cpu.schedule.pitches import spread_rows
from tilewright.targets.cpu.schedule.round_early import round_early
from tilewright.targets.cpu.schedule.split_amx_products import (
    is_split_for_amx,
    split_amx_products,
)
from tilewright.targets.cpu.schedule.turned_tiles import turn_tiles
from tilewright.targets.cpu.schedule.widen_k_loops import (
    product_depth,
    reads_of,
    widen_k_loops,
)

__all__ = ["ArenaReport", "NestReport", "cpu_schedule"]


def cpu_schedule(machine: MachineModel, options: CompileOptions) -> tuple[Pass, ...]:
    """The passes from T0, without block pointers and descriptors, to C2."""
    return (
        FoldAdditions(adds_last=True),
        WidenKLoops(machine),
        PeelFirstProducts(machine),
        LengthenCounters(machine),
        SplitAmxProducts(machine),
        RoundEarly(),
        WidenProducts(machine),
        EmitNests(machine, options.count_cycles),
        PlaceBuffers(),
    )


@dataclass(frozen=True)
class WidenKLoops(Pass):
    """Let a step of a loop over K multiply more of K; see `widen_k_loops.py`."""

    machine: MachineModel = MADE_UP_CPU
    name = "widen-k-loops"
    after = ("fold-additions",)

    def apply(self, module: ModuleOp) -> None:
        """Rewrite every function."""
        for kernel in functions_of(module):
            widen_k_loops(
                kernel,
                lambda product: product_depth(product, self.machine),
                lambda product: reads_of(product, self.machine),
            )


@dataclass(frozen=True)
class PeelFirstProducts(Pass):
    """Let AMX's first product of a sum overwrite the result; see `peel_first_products.py`."""

    machine: MachineModel = MADE_UP_AMX_CPU
    name = "peel-first-products"
    after = ("widen-k-loops",)

    def apply(self, module: ModuleOp) -> None:
        """Rewrite every function."""
        for kernel in functions_of(module):
            peel_first_products(kernel, self._is_worth)

    def _is_worth(self, product: DotOp) -> bool:
        if is_split_for_amx(product, self.machine):
            return True
        is_amx = operand_spec(product, self.machine).is_amx
        return is_amx and not will_store_directly(product)


@dataclass(frozen=True)
class LengthenCounters(Pass):
    """Count loops of products that store their sums in 64 bits; see `lengthen_counters.py`."""

    machine: MachineModel = MADE_UP_AMX_CPU
    name = "lengthen-counters"
    after = ("widen-k-loops", "peel-first-products")

    def apply(self, module: ModuleOp) -> None:
        """Rewrite every function."""
        for kernel in functions_of(module):
            lengthen_counters(kernel, self._is_worth)

    def _is_worth(self, product: DotOp) -> bool:
        is_amx = operand_spec(product, self.machine).is_amx
        return is_amx and will_store_directly(product)


@dataclass(frozen=True)
class SplitAmxProducts(Pass):
    """Let AMX take an f32 product as three of bf16; see `split_amx_products.py`."""

    machine: MachineModel = MADE_UP_AMX_CPU
    name = "split-amx-products"
    after = ("widen-k-loops", "peel-first-products", "lengthen-counters")

    def apply(self, module: ModuleOp) -> None:
        """Rewrite every function."""
        for kernel in functions_of(module):
            split_amx_products(kernel, self.machine)


@dataclass(frozen=True)
class RoundEarly(Pass):
    """Round a product's operands where they are made; see `round_early.py`."""

    name = "round-early"
    after = ("split-amx-products",)

    def apply(self, module: ModuleOp) -> None:
        """Rewrite every function."""
        for kernel in functions_of(module):
            round_early(kernel)


@dataclass(frozen=True)
class WidenProducts(Pass):
    """Accumulate products in the microkernel's type, and define what blocks hand on."""

    machine: MachineModel = MADE_UP_CPU
    name = "widen-products"
    after = ("widen-k-loops", "peel-first-products", "split-amx-products", "round-early")

    def apply(self, module: ModuleOp) -> None:
        """Rewrite every function."""
        for kernel in functions_of(module):
            normalize(kernel, self.machine)


@dataclass(frozen=True)
class EmitNests(Pass):
    """Fuse tile ops into nests of loops over vectors (T0 to C1)."""

    machine: MachineModel = MADE_UP_CPU
    counts: bool = False
    name = "emit-nests"
    produces = "C1"
    after = ("fold-additions", "widen-k-loops", "peel-first-products", "widen-products")

    def apply(self, module: ModuleOp) -> NestReport:
        """Lower every function; its nests."""
        reports = ReportBuilder()
        for kernel in functions_of(module):
            require_launchable(kernel)
            _emit_nests(kernel, self.machine, reports)
            if self.counts:
                count_cycles(kernel, reports)
        return reports.finish(0)


@dataclass(frozen=True)
class PlaceBuffers(Pass):
    """Give every buffer its place in the worker's arena (C1 to C2)."""

    name = "place-buffers"
    requires = "C1"
    produces = "C2"

    def apply(self, module: ModuleOp) -> ArenaReport:
        """Place them; what the arena holds."""
        sizes = [place_buffers(kernel) for kernel in functions_of(module)]
        return ArenaReport(max(sizes, default=0))


@dataclass(frozen=True)
class ArenaReport:
    """The size of a worker's arena."""

    num_bytes: int


def _emit_nests(kernel: FuncOp, machine: MachineModel, reports: ReportBuilder) -> None:
    structure = AffineTiles()
    bufferization = Bufferization(structure, Costs(structure))
    decide(kernel, bufferization, machine)
    read_in_place(bufferization, machine)
    spread_rows(kernel, bufferization, machine)
    turn_tiles(kernel, bufferization)
    source = kernel.body.block
    out = Block(arg_types=[argument.type for argument in source.args])
    for old, new in zip(source.args, out.args, strict=True):
        new.name_hint = old.name_hint
    facts = may_be_alone(kernel), is_bound_by_memory(kernel)
    lowering = Lowering(machine, bufferization, out, reports, kernel.location, *facts)
    lowering.define(dict(zip(source.args, out.args, strict=True)))
    emit_block(lowering, source, out)
    kernel.detach_region(kernel.body)
    kernel.add_region(Region(out))
