"""Which kernels run as roles where nobody asks for it: large products, summed up and stored.

A tile of 128 x 128 to 128 x 256 elements, of halves or 8-bit floats, that one loop sums up. Roles
pay where the store of a tile runs beside the next one, so its programs have to go from tile to
tile, by `persist` or because their author wrote it so, and the copy engine has to move all of it,
but for one operand whose rows are gathered, which threads copy.

Measured on an H200, 2026-11-22: 1.02 to 1.13 times the speed of cuBLAS with such tiles in roles,
0.60 to 0.96 with the same ones in a pipeline (fp16, 8192³, 4096³, 8192 x 8192 x 1024, pointers).
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from xdsl.dialects.builtin import IntegerAttr
from xdsl.ir import Operation

from tilewright.ir.effects import Access, global_access
from tilewright.ir.regions import loops_around
from tilewright.ir.schedule_attributes import hint_of, place_of, schedule_of, tasks_of
from tilewright.ir.types import DescriptorType, element_of, is_float, shape_of, width_bits
from tilewright.machine.model import MachineModel
from tilewright.ops.descriptors.ir import DescriptorLoadOp, DescriptorStoreOp
from tilewright.ops.function import FuncOp
from tilewright.ops.matmul.ir import ProductOp
from tilewright.ops.program.persistence import most_programs
from tilewright.passes.persist import tile_loops
from tilewright.support.options import CompileOptions
from tilewright.support.powers_of_two import is_power_of_two
from tilewright.targets.nvidia.partition.copied_loads import gathered_operand

GROUPS = 2
"""How many groups multiply. Measured on an H200, 2026-11-22, as above."""
# Measured on an H200, 2026-11-22, as above: what has other tiles was not.
_LEAST_EXTENT, _MOST_ELEMENTS = 128, 128 * 256
# By definition: halves and 8-bit floats, whose products take the most of the tensor cores.
_MOST_BITS = 16
_STAGES = "tt.num_stages"


def makes_clusters(options: CompileOptions) -> bool:
    """Whether a launch is asked to make clusters of several programs."""
    return prod(options.cluster_dims or ()) > 1


def may_cluster(options: CompileOptions) -> bool:
    """Whether the options of a launch leave it to the compiler which programs are clusters."""
    together = options.cluster_dims or options.launch_cooperative_grid or options.launch_pdl
    return not together and options.bulk_access != "never"


def leaves_open(options: CompileOptions) -> bool:
    """Whether the options of a launch say nothing of roles, and nothing against them."""
    said = (options.num_consumer_groups, options.schedule, options.plan, options.loop_schedule)
    is_said = any(option is not None for option in said) or options.maxnreg is not None
    together = makes_clusters(options) or options.launch_cooperative_grid or options.launch_pdl
    is_checked = options.checked or options.debug or options.sanitize_overflow
    return not (is_said or together or is_checked) and options.num_stages != 1


def large_product(kernel: FuncOp, machine: MachineModel) -> ProductOp | None:
    """The one product of a kernel whose tiles are worth roles; None where it is another kernel."""
    products = [op for op in kernel.walk() if isinstance(op, ProductOp)]
    if not machine.has_wgmma or len(products) != 1 or _is_said(kernel):
        return None
    (product,) = products
    return product if _is_sum(product) and _is_large(product) else None


def runs_by_default(kernel: FuncOp, machine: MachineModel, loads_alone: bool = False) -> bool:
    """Whether a kernel that goes from tile to tile is to run as roles, though nobody asks."""
    product = large_product(kernel, machine)
    if product is None or not is_moved_by_engine(kernel, loads_alone):
        return False
    return bool(most_programs(kernel)) or len(list(loops_around(product))) > 1


def is_moved_by_engine(kernel: FuncOp, loads_alone: bool = False) -> bool:
    """Whether all that loops load, but for one gathered operand, and all that is stored goes by it.

    A row that is loaded once a tile, as the bias of its columns, is loaded by those who store it;
    whole tiles would change threads in shared memory, and leave rings one slot. With `loads_alone`
    threads may store.
    """
    tiles = tile_loops(kernel)
    accesses = [(op, access) for op in kernel.walk() if (access := global_access(op)) is not None]
    stores = [op for op, access in accesses if access.writes]
    reads = [(op, access) for op, access in accesses if not access.writes]
    loads = [op for op, _ in reads if _is_in_loop(op, tiles)]
    if not all(op in loads or _is_row_or_block(op, access) for op, access in reads):
        return False
    return (
        bool(stores and loads)
        and (loads_alone or all(isinstance(op, DescriptorStoreOp) for op in stores))
        and _are_loaded_apart(kernel, loads)
    )


def _are_loaded_apart(kernel: FuncOp, loads: Sequence[Operation]) -> bool:
    """Whether a role of their own can make the loads: the copy engine's, and one that it copies."""
    plain = [op for op in loads if not isinstance(op, DescriptorLoadOp)]
    return not plain or (len(plain) == 1 < len(loads) and plain[0] is gathered_operand(kernel))


def _is_row_or_block(op: Operation, access: Access) -> bool:
    """Whether an op loads through a descriptor, or what has one dimension at most."""
    if access.value is not None and isinstance(access.value.type, DescriptorType):
        return True
    shapes = [shape_of(result.type) for result in op.results]
    return all(sum(extent > 1 for extent in shape) <= 1 for shape in shapes)


def _is_in_loop(op: Operation, tiles: Sequence[Operation]) -> bool:
    """Whether an op is in a loop other than that over the tiles of a persistent program."""
    return not set(loops_around(op)).issubset(tiles)


def _is_said(kernel: FuncOp) -> bool:
    """Whether the author says in the kernel where its ops run, or that nothing runs ahead."""
    if schedule_of(kernel) is not None:
        return True
    for op in kernel.walk():
        stages = op.attributes.get(_STAGES)
        is_single = isinstance(stages, IntegerAttr) and stages.value.data == 1
        if is_single or hint_of(op) or place_of(op) or tasks_of(op):
            return True
    return False


def _is_sum(product: ProductOp) -> bool:
    """Whether a loop does nothing with a product but add it up."""
    loop = next(loops_around(product), None)
    if loop is None or product.parent is not loop.regions[0].block:
        return False
    block = loop.regions[0].block
    is_carried = product.operands[2] in block.args
    return is_carried and [use.operation for use in product.result.uses] == [block.last_op]


def _is_large(product: ProductOp) -> bool:
    shape, element = shape_of(product.result.type), element_of(product.operands[0].type)
    is_fit = len(shape) == 2 and min(shape) >= _LEAST_EXTENT and prod(shape) <= _MOST_ELEMENTS
    is_fit = is_fit and all(map(is_power_of_two, shape))
    return is_fit and is_float(element) and width_bits(element) <= _MOST_BITS
