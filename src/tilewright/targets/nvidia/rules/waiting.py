"""Waits at mbarriers, with or without a bound, and pauses.

A wait that lasts longer than its bound leaves a record for the host, gives the other warps time
to leave theirs, and stops the kernel. One program of the launch has the report to itself: 32
bytes for each of its warps, in memory of the host that the driver made and told the kernel of.
As soon as one of its warps gives up, all others that wait leave their records too.
"""

from __future__ import annotations

from collections.abc import Callable

from xdsl.ir import Operation

from tilewright.codegen.llvm_builder import FunctionBuilder
from tilewright.codegen.simt.context import SimtContext
from tilewright.support.dataclass import dataclass
from tilewright.targets.nvidia.bound_waits import WaitBound, wait_bound
from tilewright.targets.nvidia.hang_reports import RECORD_BYTES, REPORT_SYMBOL
from tilewright.targets.nvidia.ops import PauseOp
from tilewright.targets.nvidia.rules import NVIDIA_RULES

GiveUp = Callable[[], None]
# By definition: in nanoseconds.
_SECOND = 1_000_000_000
# Chosen, not measured: a look at an mbarrier takes microseconds; in a longer one the GPU ran the
# programs of another process, and the roles that are waited for stood still as well.
_LONGEST_LOOK = _SECOND // 10
# Chosen: warps that wait see within one look that another one has given up, and shares of the GPU
# that other processes have count, up to the longest look.
_GRACE = _SECOND // 2
_OWNER = "tw_hanging_program"
_RECORD = "<4 x i32>"
_WAIT = "wait.parity.scope.cta.space.cta"
_TRY, _TEST = f"@llvm.nvvm.mbarrier.try.{_WAIT}", f"@llvm.nvvm.mbarrier.test.{_WAIT}"
# Chosen: nanoseconds between two looks at an mbarrier, so that other warps have the issue slots.
_BETWEEN_LOOKS = 200
_SREG = "@llvm.nvvm.read.ptx.sreg"
# By definition: of a multiplicative hash, odd, and its high bits depend on all bits of the clock.
_HASH = 0x9E3779B1
# By definition: 2^(32 - 20) nanoseconds, 4 µs: several steps of a loop of products.
_PAUSE_SHIFT = 20


def wait_parity(
    fn: FunctionBuilder,
    barrier: str,
    parity: str,
    attached: str = "",
    give_up: tuple[WaitBound, GiveUp] | None = None,
) -> None:
    """Wait until the phase of a parity of an mbarrier has ended; `attached` is metadata."""
    operands = f"(ptr addrspace(3) {barrier}, i32 {parity}){attached}"
    again, done = fn.new_label(), fn.new_label()
    if give_up is None:
        fn.branch(again)
        fn.place(again)
        fn.branch_if(fn.value(f"call i1 {_TRY}{operands}"), done, again)
        fn.place(done)
        return
    # A test does not suspend the warp: it has to see when its time is over.
    is_over, (bound, leave) = f"call i1 {_TEST}{operands}", give_up
    begins, late, hanging = fn.new_label(), fn.new_label(), fn.new_label()
    fn.branch_if(fn.value(is_over), done, begins)
    fn.place(begins)
    own = _own_number(fn)
    elapsed = _Elapsed.start(fn)
    fn.branch(again)
    fn.place(again)
    elapsed.enter(fn, late)
    fn.branch_if(fn.value(is_over), done, late)
    fn.place(late)
    is_late = elapsed.passes(fn, bound.seconds * _SECOND)
    owner = fn.value(f"load volatile i32, ptr addrspace(1) {_owner(fn)}, align 4")
    has_told = fn.value(f"icmp eq i32 {owner}, {own}")
    fn.branch_if(fn.value(f"or i1 {is_late}, {has_told}"), hanging, again)
    fn.place(hanging)
    leave()
    fn.place(done)


@dataclass(frozen=True)
class _Elapsed:
    """Time that a loop has run, without looks in which another process had the GPU.

    `before` is the block in front of the loop; the other names are of values that the loop makes.
    """

    before: str
    since: str
    last: str
    waited: str
    now: str
    longer: str

    @classmethod
    def start(cls, fn: FunctionBuilder) -> _Elapsed:
        """Look at the clock; the caller ends the block with a jump to the loop."""
        since = _time(fn)
        last, waited, now, longer = (fn.new_value() for _ in range(4))
        return cls(fn.block, since, last, waited, now, longer)

    def enter(self, fn: FunctionBuilder, again: str) -> None:
        """Begin the loop's first block; it is gone to again from block `again`."""
        for name, first, next_ in (
            (self.last, self.since, self.now),
            (self.waited, "0", self.longer),
        ):
            fn.emit(f"{name} = phi i64 [ {first}, %{self.before} ], [ {next_}, %{again} ]")

    def passes(self, fn: FunctionBuilder, bound: int) -> str:
        """Sleep until the next look; whether the loop has run longer than so many nanoseconds."""
        fn.emit(f"call void @llvm.nvvm.nanosleep(i32 {_BETWEEN_LOOKS})")
        fn.emit(f"{self.now} = call i64 {_SREG}.globaltimer()")
        step = fn.value(f"sub i64 {self.now}, {self.last}")
        has_run = fn.value(f"icmp ult i64 {step}, {_LONGEST_LOOK}")
        counted = fn.value(f"select i1 {has_run}, i64 {step}, i64 0")
        fn.emit(f"{self.longer} = add i64 {self.waited}, {counted}")
        return fn.value(f"icmp ugt i64 {self.longer}, {bound}")


def giving_up(
    fn: FunctionBuilder, op: Operation, slot: str, phase: str
) -> tuple[WaitBound, GiveUp] | None:
    """The bound of a wait, and what emits what it does behind it; None where it waits for ever."""
    bound = wait_bound(op)
    if bound is None:
        return None
    return bound, lambda: _report_and_stop(fn, bound.number, slot, phase)


def _report_and_stop(fn: FunctionBuilder, number: int, slot: str, phase: str) -> None:
    """Write the record of the warp if the report is for this program, and stop the kernel."""
    module = fn.module
    module.add_global(REPORT_SYMBOL, "addrspace(1) externally_initialized global i64 0, align 8")
    place = [fn.value(f"call i32 {_SREG}.ctaid.{axis}()") for axis in "xyz"]
    writing, leaving = fn.new_label(), fn.new_label()
    address = fn.value(f"load volatile i64, ptr addrspace(1) @{REPORT_SYMBOL}, align 8")
    is_there = fn.value(f"icmp ne i64 {address}, 0")
    fn.branch_if(fn.value(f"and i1 {is_there}, {_is_owner(fn)}"), writing, leaving)
    fn.place(writing)
    warp = fn.value(f"lshr i32 {fn.value(f'call i32 {_SREG}.tid.x()')}, 5")
    offset = fn.value(f"zext i32 {fn.value(f'mul i32 {warp}, {RECORD_BYTES}')} to i64")
    _store(fn, fn.value(f"add i64 {address}, {offset}"), (str(number + 1), slot, phase, "0"))
    behind = fn.value(f"add i64 {offset}, {RECORD_BYTES // 2}")
    _store(fn, fn.value(f"add i64 {address}, {behind}"), (*place, "0"))
    fn.emit("call void @llvm.nvvm.membar.sys()")
    fn.branch(leaving)
    fn.place(leaving)
    waiting, over = fn.new_label(), fn.new_label()
    elapsed = _Elapsed.start(fn)
    fn.branch(waiting)
    fn.place(waiting)
    elapsed.enter(fn, waiting)
    fn.branch_if(elapsed.passes(fn, _GRACE), over, waiting)
    fn.place(over)
    fn.emit("call void @llvm.trap()")
    fn.emit("unreachable")


def _owner(fn: FunctionBuilder) -> str:
    """Where the number of the program stands that has the report; 0 while nobody has."""
    return fn.module.add_global(_OWNER, "internal addrspace(1) global i32 0, align 4")


def _own_number(fn: FunctionBuilder) -> str:
    """The number of this program in the launch, from 1."""
    x, y, z = (fn.value(f"call i32 {_SREG}.ctaid.{axis}()") for axis in "xyz")
    width, height = (fn.value(f"call i32 {_SREG}.nctaid.{axis}()") for axis in "xy")
    row = fn.value(f"add i32 {y}, {fn.value(f'mul i32 {z}, {height}')}")
    linear = fn.value(f"add i32 {x}, {fn.value(f'mul i32 {row}, {width}')}")
    return fn.value(f"add i32 {linear}, 1")


def _is_owner(fn: FunctionBuilder) -> str:
    """Whether the report is for this program: the first one to ask has it."""
    own = _own_number(fn)
    swap = f"cmpxchg ptr addrspace(1) {_owner(fn)}, i32 0, i32 {own} monotonic monotonic"
    before = fn.value(f"extractvalue {{ i32, i1 }} {fn.value(swap)}, 0")
    is_free, is_own = (fn.value(f"icmp eq i32 {before}, {name}") for name in ("0", own))
    return fn.value(f"or i1 {is_free}, {is_own}")


def _store(fn: FunctionBuilder, address: str, words: tuple[str, ...]) -> None:
    pointer = fn.value(f"inttoptr i64 {address} to ptr addrspace(1)")
    record = "poison"
    for index, word in enumerate(words):
        record = fn.value(f"insertelement {_RECORD} {record}, i32 {word}, i32 {index}")
    fn.emit(f"store volatile {_RECORD} {record}, ptr addrspace(1) {pointer}, align 16")


def _time(fn: FunctionBuilder) -> str:
    return fn.value(f"call i64 {_SREG}.globaltimer()")


@NVIDIA_RULES.register(PauseOp)
def _pause(ctx: SimtContext, op: PauseOp) -> None:
    fn = ctx.fn
    clock = fn.value(f"call i32 {_SREG}.clock()")
    mixed = fn.value(f"mul i32 {fn.value(f'xor i32 {clock}, {op.seed.value.data}')}, {_HASH}")
    fn.emit(f"call void @llvm.nvvm.nanosleep(i32 {fn.value(f'lshr i32 {mixed}, {_PAUSE_SHIFT}')})")
