"""Asks for roles in attention that is faster so, and drops hints where it is slower (T0 to T0).

    for … { s = dot q, k; p = softmax(s); o = dot p, v, o }   ⇒   the same, {tt.warp_specialize}

It asks where nobody says how the loops run, the roles can be formed with the products of each loop
a stage apart, and they were measured to be faster. So it does for loops of attention's backward
(`gradients.py`), whose products run in the order of the text. A hint of a loop is dropped where
roles were measured to be slower; a launch decides by `num_consumer_groups`, of which 0 asks for
none.

Before `bulk-access`, which has the copy engine make what roles load; the roles are formed in a
copy of the kernel to see whether they can be.
"""

from __future__ import annotations

from collections.abc import Iterator

from xdsl.dialects.builtin import IntegerAttr, ModuleOp, UnitAttr

from tilewright.analysis.facts import MAX_ACCESS_BYTES
from tilewright.ir.locations import describe
from tilewright.ir.passes import Pass
from tilewright.ir.schedule_attributes import hint_of, place_of, schedule_of, tasks_of
from tilewright.ir.types import element_of, shape_of, width_bits
from tilewright.machine.gpus import SM_90A
from tilewright.machine.model import MachineModel
from tilewright.ops.control_flow import ForOp
from tilewright.ops.function import FuncOp, find_kernel
from tilewright.ops.memory.ir import LoadOp
from tilewright.support.dataclass import dataclass
from tilewright.support.errors import TilewrightError
from tilewright.support.options import CompileOptions
from tilewright.targets.nvidia.partition.ask_warps import AskWarps
from tilewright.targets.nvidia.partition.copied_loads import are_copied_whole, why_not_copied
from tilewright.targets.nvidia.partition.decide import ROLES_HINT, DecideRoles
from tilewright.targets.nvidia.partition.default_roles import makes_clusters
from tilewright.targets.nvidia.partition.form import FormRoles, partition_remarks
from tilewright.targets.nvidia.partition.gradients import (
    GradientLoop,
    gradient_loops,
    num_products,
)
from tilewright.targets.nvidia.partition.order import Pair, pairs_of
from tilewright.targets.nvidia.partition.two_programs import fits_twice, runs_twice
from tilewright.targets.nvidia.tma.bulk_access import BulkAccess
from tilewright.targets.nvidia.tma.select_tensor_maps import add_remarks

_STAGES_HINT = "tt.num_stages"
_MEASURED_ROWS, _LEAST_ROWS = (64, 128), 128
"""Those of one group, and of two. Measured on an H200, 2026-11-22, fp16 (4, 32, 4096, 128),
TFLOP/s: 128 rows by two groups 648, as one program 499; 64 rows by one group 413, as programs of
four warps 504."""
_LEAST_COLUMNS = 128
"""Measured on an H200, 2026-11-22, fp16 (4, 32, 4096, 64), TFLOP/s: 128 rows by two groups 349 and
64 by one 264, as programs of four warps 387 and 472. With 64 keys two programs run at once, and are
faster than programs without roles (`two_programs.py`)."""
# By definition: one that is filled while another one is read.
_LEAST_SLOTS = 2
# By definition: float16 and bfloat16, which were measured.
_OPERAND_BITS = 16


@dataclass(frozen=True)
class AskRoles(Pass):
    """The pass; see the module. `is_bulk` says that the copy engine may make plain loads."""

    machine: MachineModel = SM_90A
    num_warps: int = 4
    num_stages: int = 0
    is_bulk: bool = True
    name = "ask-roles"
    after = ("select-tensor-maps", "merge-duplicates")

    def apply(self, module: ModuleOp) -> None:
        """Mark the loops of attention, or drop their hints, and say so."""
        kernel = find_kernel(module)
        if _is_placed(kernel):
            return
        total = num_products(kernel)
        pairs, gradients = list(pairs_of(kernel)), list(gradient_loops(kernel))
        if pairs and len(pairs) * 2 == total:
            if all(map(_is_measured, pairs)):
                self._decide_pairs(module, pairs)
        elif gradients and sum(len(found.products) for found in gradients) == total:
            loops = [found.loop for found in gradients]
            if all(map(_is_faster, gradients)) and not self._has_hint_or_one_stage(loops):
                self._ask(module, loops)

    def _decide_pairs(self, module: ModuleOp, pairs: list[Pair]) -> None:
        """Ask for roles in attention's forward, or drop the hints where they are slower."""
        kernel, loops = find_kernel(module), [pair.loop for pair in pairs]
        slower = next(filter(None, map(_slower, pairs)), "")
        if slower and any(ROLES_HINT in loop.attributes for loop in loops):
            _drop_hints(kernel)
            text = f"no roles, as warp_specialize asks for: {slower} are slower so"
            text = f"{describe(loops[0])}: {text}; num_consumer_groups makes them"
            add_remarks(kernel, [text])
        elif not slower and not self._has_hint_or_one_stage(loops):
            self._ask(module, loops)

    def _ask(self, module: ModuleOp, loops: list[ForOp]) -> None:
        """Mark the loops where the roles can be formed, and say so, or why they cannot."""
        kernel, where = find_kernel(module), describe(loops[0])
        problem = self._problem(module)
        if problem:
            add_remarks(kernel, [f"{where}: no roles, which attention is faster in: {problem}"])
            return
        _mark(kernel)
        text = "roles, as attention is faster so; num_consumer_groups=0 has one program"
        add_remarks(kernel, [f"{where}: {text}"])

    def _has_hint_or_one_stage(self, loops: list[ForOp]) -> bool:
        """Whether a loop says itself that it runs as roles, or that nothing is to run ahead."""
        return any(ROLES_HINT in loop.attributes or self._stages(loop) == 1 for loop in loops)

    def _stages(self, loop: ForOp) -> int:
        """How many stages a loop is said to have; 0 where nothing is said."""
        hint = loop.attributes.get(_STAGES_HINT)
        return hint.value.data if isinstance(hint, IntegerAttr) else self.num_stages

    def _problem(self, module: ModuleOp) -> str:
        """Why a kernel cannot run in roles that are faster; '' where it can."""
        clone = module.clone()
        kernel = find_kernel(clone)
        has_pairs = next(pairs_of(kernel), None) is not None
        _mark(kernel)
        try:
            if self.is_bulk:
                BulkAccess(self.machine).apply(clone)
            plain = list(_plain_loads(kernel))
            if plain and not _are_worth_copying(kernel, plain):
                return _why_not_made(kernel, plain)
            DecideRoles(self.machine, self.num_warps).apply(clone)
            schedule = schedule_of(kernel)
            FormRoles(self.machine).apply(clone)
        except TilewrightError as error:  # tiles that groups do not share, or what does not fit
            return error.summary
        if partition_remarks(kernel):
            return "; ".join(partition_remarks(kernel))
        if schedule is None:
            return "its products do not run a stage apart"
        if has_pairs and not (schedule.loops or runs_twice(find_kernel(module))):
            return next(reversed(schedule.reasons), "its products do not run a stage apart")
        if max(channel.slots for channel in schedule.channels) < _LEAST_SLOTS:
            return "a ring of its loads has no room for a second slot"
        return ""


def asked_roles(machine: MachineModel, options: CompileOptions) -> tuple[Pass, ...]:
    """The passes where options leave it to the compiler how a kernel runs."""
    is_open = options.num_consumer_groups is None and options.num_ctas == 1
    is_plain = options.schedule is None and options.plan is None and options.loop_schedule is None
    is_checked = options.checked or options.debug or options.sanitize_overflow
    is_shaped = options.maxnreg or makes_clusters(options) or options.launch_pdl
    is_able = machine.has_setmaxnreg and machine.has_wgmma and machine.has_tma
    if not (is_open and is_plain and is_able) or is_checked or is_shaped:
        return ()
    if options.descriptors == "pointers":
        return ()
    is_bulk = options.bulk_access != "never"
    roles = AskRoles(machine, options.num_warps, options.num_stages or 0, is_bulk)
    return (roles, AskWarps(options.num_warps)) if is_bulk else (roles,)


def _is_measured(pair: Pair) -> bool:
    """Whether a loop is like those that were measured: tiles of 64 or 128 rows, of 16 bits."""
    products = (pair.first, pair.second)
    shapes = [shape_of(product.result.type) for product in products]
    operands = [product.operands[0].type for product in products]
    is_sized = all(len(shape) == 2 and shape[0] in _MEASURED_ROWS for shape in shapes)
    return is_sized and all(width_bits(element_of(type_)) == _OPERAND_BITS for type_ in operands)


def _slower(pair: Pair) -> str:
    """What of a loop is slower in roles; '' where they are faster."""
    rows, columns = shape_of(pair.second.result.type)
    if rows < _LEAST_ROWS:
        return f"{rows} rows"
    if fits_twice(pair):
        return ""
    return f"heads of {columns}" if columns < _LEAST_COLUMNS else ""


def _is_placed(kernel: FuncOp) -> bool:
    """Whether the author says where the ops of the kernel run."""
    return any(hint_of(op) or place_of(op) or tasks_of(op) for op in kernel.walk())


def _is_faster(found: GradientLoop) -> bool:
    """Whether a loop of gradients is like those that were measured to be faster in roles.

    *Source*: Triton's tutorial 06 backward, fp16 (4, 32, 4096, 128), H200, 2026-11-23, TFLOP/s: two
    groups 344, as programs of eight warps 292 and of four 107, which spill.
    """
    sums = [shape_of(product.result.type) for product in found.sums]
    operands = [product.operands[0].type for product in found.products]
    is_sized = all(
        len(shape) == 2 and shape[0] == _LEAST_ROWS and shape[1] >= _LEAST_COLUMNS for shape in sums
    )
    return is_sized and all(width_bits(element_of(type_)) == _OPERAND_BITS for type_ in operands)


def _loops(kernel: FuncOp) -> list[ForOp]:
    """The loops that may be asked for roles."""
    return [found.loop for found in (*pairs_of(kernel), *gradient_loops(kernel))]


def _plain_loads(kernel: FuncOp) -> Iterator[LoadOp]:
    """The loads of tiles in the loops that threads would make."""
    for loop in _loops(kernel):
        for op in loop.walk():
            if isinstance(op, LoadOp) and len(shape_of(op.result.type)) > 1:
                yield op


def _are_worth_copying(kernel: FuncOp, loads: list[LoadOp]) -> bool:
    """Whether roles are faster though their threads copy what a loop of attention loads.

    *Source*: attention over pages of 16 rows, bfloat16 (64, 4096, 128), H200, 2026-11-23, TFLOP/s:
    two groups and 128 keys 595, as programs of eight warps 452, with 64 keys 521 and 534.
    """
    pairs = list(pairs_of(kernel))
    keys = [shape_of(pair.first.result.type)[-1] for pair in pairs]
    columns = [shape_of(pair.second.result.type)[-1] for pair in pairs]
    is_large = bool(pairs) and min(keys + columns) >= _LEAST_COLUMNS
    return is_large and are_copied_whole(kernel, loads)


def _why_not_made(kernel: FuncOp, loads: list[LoadOp]) -> str:
    """Why nobody makes plain loads in roles: no engine, and threads cannot or should not."""
    for load in loads:
        reason = why_not_copied(kernel, load)
        if reason:
            return f"{_no_box(load)}, and threads do not copy it: {reason}"
    least = f"{MAX_ACCESS_BYTES} bytes at once, {_LEAST_COLUMNS} keys and columns of a head on"
    return f"{_no_box(loads[0])}, and copies of threads pay from {least}"


def _no_box(load: LoadOp) -> str:
    return f"the copy engine does not make the load at {describe(load)}"


def _mark(kernel: FuncOp) -> None:
    for loop in _loops(kernel):
        loop.attributes[ROLES_HINT] = UnitAttr()


def _drop_hints(kernel: FuncOp) -> None:
    for op in kernel.walk():
        op.attributes.pop(ROLES_HINT, None)
