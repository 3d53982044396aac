"""How many tiles of a loop are under way where its author does not say: as was fastest on an H200.

Only loops of products are worth it: where a loop has none, several programs on a multiprocessor
overlap each other as well. Where something is computed between products, it is worth it only if
as many programs fit beside each other as before (decision 6). A loop that writes memory is left
as its author wrote it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from xdsl.ir import Operation

from tilewright.ir.effects import stops_reads
from tilewright.machine.model import MachineModel
from tilewright.schedule.product_registers import OTHER_REGISTERS, programs_per_sm
from tilewright.support.dataclass import dataclass

_DEEP_STEP_BYTES = 48 << 10
"""Tiles of one iteration from which on 4 slots are best, and below which 2 are.

Measured on an H200, 2026-11-22, fp16 8192³ by pointers: 128 x 256 x 64 350 TFLOP/s with one slot,
461 with 3 and 621 with 4; 128 x 128 x 64 495 with one, 577 with 2 and 521 with 4."""
# Measured on an H200, 2026-11-22: see above.
_DEEP, _SHALLOW = 4, 2
_SMALL_STEP_BYTES = 16 << 10
"""Tiles of one iteration below which products of single warps are best with 3 slots, else with 2.

Measured on an H200, 2026-11-27, fp16, us with 1, 2, 3 and 4 slots: 4096³ in 32 x 32 x 32 (4 KiB)
1960, 947, 911, 924, in 32 x 128 x 64 (20 KiB) 1180, 513, 594, 693; 16 x 4096 x 4096 in 16 x 64 x 64
(10 KiB) 34.4, 19.6, 13.8, 16.1, in 16 x 64 x 128 (20 KiB) 29.5, 13.0, 12.3, 12.5."""
_SMALL = 3  # Measured on an H200, 2026-11-27: see above.


@dataclass(frozen=True)
class LoopOfProducts:
    """What the choice depends on.

    `products` are those that stand directly in the loop, `is_accumulating` says that each is only
    added to what it was an iteration before; `step_bytes` are the loaded tiles of an iteration,
    which come `by_engine` or are copied by the threads, `held_bytes` what lies beside them.
    `is_looked_up` says that the loop loads where its tiles are: rows that a table names.
    `are_of_warps` says that single warps multiply, by `mma`.
    """

    loop: Operation
    products: Sequence[Operation]
    is_accumulating: bool
    step_bytes: int
    by_engine: bool
    is_looked_up: bool
    held_bytes: int
    num_warps: int
    are_of_warps: bool = False

    def default_stages(self, machine: MachineModel) -> int:
        """How many of its tiles are under way; 1 for none but its own."""
        if self.why_one(machine):
            return 1
        if self.are_of_warps:
            return self._slots_of_warps
        is_deep = self.is_accumulating and self.step_bytes >= _DEEP_STEP_BYTES
        return _DEEP if is_deep else _SHALLOW

    def why_one(self, machine: MachineModel) -> str:
        """Why no tiles but its own are under way; '' where others are."""
        if not self.products:
            return "it has no products"
        if any(stops_reads(op) for op in self._body()):
            return "it writes memory"
        if self.is_accumulating or self._has_room(machine) or self._keeps_programs(machine):
            return ""
        return f"with {_SHALLOW} slots fewer programs may run beside each other"

    def _body(self) -> Iterator[Operation]:
        return (op for op in self.loop.walk() if op is not self.loop)

    def _has_room(self, machine: MachineModel) -> bool:
        """Whether single warps multiply, and the slots of two programs fit beside each other.

        Without slots their tiles pass registers and barriers. *Source*: H200, 2026-11-27, fp16, 16
        rows of queries to 4,096 keys that a table names, 16 at a time, 32 x 8 programs: 150 us with
        3 slots, 383 with one. Of keys in a row 110 and 365 (H100, 2026-11-28; Triton 3.6 has 142).
        """
        used_bytes = 2 * (self._slots_of_warps * self.step_bytes + self.held_bytes)
        return self.are_of_warps and used_bytes <= machine.max_shared_bytes

    @property
    def _slots_of_warps(self) -> int:
        return _SMALL if self.step_bytes < _SMALL_STEP_BYTES else _SHALLOW

    def _keeps_programs(self, machine: MachineModel) -> bool:
        """Whether as many programs run on a multiprocessor with two slots as with one.

        The copy engine takes hardly any registers of threads, so what is asked then is shared
        memory, unless one program of two may be lost (128 x 128 x 64 causal with 8 warps: 127
        registers with one slot, 139 with two; ptxas 13.0).
        *Source*: H200, 2026-11-22, bf16 (4, 32, 4096, 64), 64 x 64 by four warps, four or five
        programs: 493 TFLOP/s with two slots, 456 with one; causal 458 and 433. Of tiles that are
        looked up, which wait for two loads, one behind the other: chosen, not measured.
        """
        most, fewest = (
            programs_per_sm(self.products, self.num_warps, machine, other)
            for other in OTHER_REGISTERS
        )
        if fewest == 1:
            return most == 1
        used_bytes = most * (_SHALLOW * self.step_bytes + self.held_bytes)
        return (self.by_engine or self.is_looked_up) and used_bytes <= machine.max_shared_bytes
