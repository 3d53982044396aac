"""What the per-thread rules ask of an NVIDIA GPU: identity, shuffles, barriers, global memory."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import Attribute

from tilewright.codegen.llvm_builder import FunctionBuilder, ModuleBuilder
from tilewright.codegen.simt.services import AtomicAccess, CallSite, GlobalAccess
from tilewright.codegen.simt.shared import shared_pointer
from tilewright.machine.model import MachineModel
from tilewright.schedule.role_registers import entry_registers
from tilewright.support.dataclass import dataclass
from tilewright.targets.nvidia.atomics import atomic_width, emit_atomic, emit_fence
from tilewright.targets.nvidia.convert import convert_float, convert_floats
from tilewright.targets.nvidia.global_memory import load_global, store_global, to_global
from tilewright.targets.nvidia.math import NvidiaMath
from tilewright.targets.nvidia.reports import emit_failure, emit_print

_AXES = "xyz"
_FULL_WARP = "i32 -1"
_ELECTED = "{ i32, i1 }"  # The lane, and whether it is this one.


@dataclass(frozen=True)
class NvidiaServices:
    """One kernel's view of the GPU; `cta_warps` run a program."""

    module: ModuleBuilder
    math: NvidiaMath
    cta_warps: int
    machine: MachineModel

    @property
    def lanes(self) -> int:
        """The lanes of a warp."""
        return self.machine.lanes

    @property
    def num_barriers(self) -> int:
        """The named barriers of a cta."""
        return self.machine.num_barriers

    def start_registers(self, fn: FunctionBuilder, granted: int) -> None:
        """maxnreg: what roles are granted together, so that as many ctas fit an SM as these let.

        ptxas ignores setmaxnreg (C7508) unless it knows with how many registers the kernel starts.
        Only kernels with roles say so: with `.minnctapersm 1` ptxas 13.0.88 takes more registers
        than it needs in 8 of 17 kernels of the corpus (30 → 64 for a small product; seen
        2026-11-22).
        """
        fn.attributes["nvvm.minctasm"] = "1"
        fn.attributes["nvvm.maxnreg"] = str(entry_registers(self.machine, self.cta_warps, granted))

    def resize_registers(self, fn: FunctionBuilder, registers: int) -> None:
        """setmaxnreg; see ThreadServices."""
        direction = "inc" if registers > int(fn.attributes["nvvm.maxnreg"]) else "dec"
        fn.emit(f"call void @llvm.nvvm.setmaxnreg.{direction}.sync.aligned.u32(i32 {registers})")

    def convert_float(
        self,
        fn: FunctionBuilder,
        source: Attribute,
        target: Attribute,
        lanes: int | None,
        value: str,
        rounding: str,
    ) -> str:
        """Convert between float element types, correctly rounded."""
        return convert_float(fn, source, target, lanes, value, rounding)

    def convert_floats(
        self,
        fn: FunctionBuilder,
        source: Attribute,
        target: Attribute,
        values: Sequence[str],
        rounding: str,
    ) -> list[str]:
        """Convert several floats, two at a time where an instruction takes two."""
        return convert_floats(fn, source, target, values, rounding)

    def emit_math(
        self, fn: FunctionBuilder, name: str, type_: Attribute, operands: Sequence[str]
    ) -> str:
        """A math function on a float32 or float64."""
        return self.math.emit_math(fn, name, type_, operands)

    def opaque(self, fn: FunctionBuilder, value: str) -> str:
        """A number of 64 bits that LLVM knows nothing of, equal to `value`."""
        return fn.value(f'call i64 asm "mov.b64 $0, $1;", "=l,l"(i64 {value})')

    def thread_id(self, fn: FunctionBuilder) -> str:
        """The index of the thread in its cta."""
        return fn.prologue_value(
            f"call range(i32 0, {self.lanes * self.cta_warps}) i32 {_sreg('tid.x')}"
        )

    def uniform_warp(self, fn: FunctionBuilder) -> str:
        """The index of the warp, shuffled: ptxas keeps what follows in uniform registers."""
        warp = fn.prologue_value(f"lshr i32 {self.thread_id(fn)}, 5")
        kind, arguments = f"range(i32 0, {self.cta_warps}) i32", f"i32 {warp}, i32 0, i32 31"
        name = "@llvm.nvvm.shfl.sync.idx.i32"
        return fn.prologue_value(f"call {kind} {name}({_FULL_WARP}, {arguments})")

    def program_id(self, fn: FunctionBuilder, axis: int) -> str:
        """The coordinate of the program along an axis."""
        return fn.prologue_value(f"call i32 {_sreg(f'ctaid.{_AXES[axis]}')}")

    def num_programs(self, fn: FunctionBuilder, axis: int) -> str:
        """The extent of the grid along an axis."""
        return fn.prologue_value(f"call i32 {_sreg(f'nctaid.{_AXES[axis]}')}")

    def grid_extent(self, axis: int) -> str:
        """The extent of the grid that the launch asks for: a parameter of a persistent kernel."""
        return f"%g{axis}"

    def warp_barrier(self, fn: FunctionBuilder) -> None:
        """Wait for the lanes of the warp."""
        fn.emit(f"call void @llvm.nvvm.bar.warp.sync({_FULL_WARP})")

    def barrier(
        self, fn: FunctionBuilder, number: str, threads: int | None, attached: str = ""
    ) -> None:
        """Wait at a named barrier for so many threads, or for all of the cta."""
        kind, arguments = "all", f"i32 {number}"
        if threads is not None:
            kind, arguments = "count", f"{arguments}, i32 {threads}"
        fn.emit(f"call void @llvm.nvvm.barrier.cta.sync.aligned.{kind}({arguments}){attached}")

    def barrier_arrive(self, fn: FunctionBuilder, number: str, threads: int) -> None:
        """Arrive at a named barrier of so many threads, and do not wait there."""
        counted = f"i32 {number}, i32 {threads}"
        fn.emit(f"call void @llvm.nvvm.barrier.cta.arrive.aligned.count({counted})")

    def elect(self, fn: FunctionBuilder) -> str:
        """Whether this lane is its warp's leader.

        *Source*: PTX ISA 8.8, "elect.sync": the same members elect the same leader each time.
        """
        elected = fn.value(f"call {_ELECTED} @llvm.nvvm.elect.sync({_FULL_WARP})")
        return fn.value(f"extractvalue {_ELECTED} {elected}, 1")

    def shuffle_xor(self, fn: FunctionBuilder, word: str, mask: int) -> str:
        """The word of the lane whose index is this one's xor `mask`."""
        arguments = f"{_FULL_WARP}, i32 {word}, i32 {mask}, i32 31"
        return fn.value(f"call i32 @llvm.nvvm.shfl.sync.bfly.i32({arguments})")

    def shuffle_index(self, fn: FunctionBuilder, word: str, lane: str) -> str:
        """The word of lane `lane` of the warp."""
        arguments = f"{_FULL_WARP}, i32 {word}, i32 {lane}, i32 31"
        return fn.value(f"call i32 @llvm.nvvm.shfl.sync.idx.i32({arguments})")

    def fold_warp(self, fn: FunctionBuilder, kind: str, word: str) -> str | None:
        """The words of all lanes of the warp folded."""
        return fn.value(f"call i32 @llvm.nvvm.redux.sync.{kind}(i32 {word}, {_FULL_WARP})")

    @property
    def has_matrix_moves(self) -> bool:
        """Hopper has ldmatrix and stmatrix."""
        return True

    def store_matrices(
        self, fn: FunctionBuilder, offset: str, words: Sequence[str], is_transposed: bool
    ) -> None:
        """stmatrix; see ThreadServices."""
        pointer = shared_pointer(fn, offset)
        name = f"stmatrix.sync.aligned.m8n8.x{len(words)}{_trans(is_transposed)}.b16.p3"
        values = ", ".join(f"i32 {word}" for word in words)
        fn.emit(f"call void @llvm.nvvm.{name}(ptr addrspace(3) {pointer}, {values})")

    def load_matrices(
        self, fn: FunctionBuilder, offset: str, count: int, is_transposed: bool
    ) -> list[str]:
        """ldmatrix; see ThreadServices."""
        pointer = shared_pointer(fn, offset)
        name = f"ldmatrix.sync.aligned.m8n8.x{count}{_trans(is_transposed)}.b16.p3"
        kind = "i32" if count == 1 else "{" + ", ".join(["i32"] * count) + "}"
        loaded = fn.value(f"call {kind} @llvm.nvvm.{name}(ptr addrspace(3) {pointer})")
        if count == 1:
            return [loaded]
        return [fn.value(f"extractvalue {kind} {loaded}, {i}") for i in range(count)]

    def copy_async(
        self,
        fn: FunctionBuilder,
        offset: str,
        pointer: str,
        num_bytes: int,
        mask: str | None,
        own: str | None,
    ) -> None:
        """cp.async; 16 bytes go past the first cache."""
        target, source = shared_pointer(fn, offset), to_global(fn, pointer)
        if own is not None:
            _copy_where(fn, own, target, source, num_bytes, mask)
            return
        name = f"{'cg' if num_bytes == 16 else 'ca'}.shared.global.{num_bytes}"
        arguments = f"ptr addrspace(3) {target}, ptr addrspace(1) {source}"
        if mask is not None:
            size = fn.value(f"select i1 {mask}, i32 {num_bytes}, i32 0")
            name, arguments = f"{name}.s", f"{arguments}, i32 {size}"
        fn.emit(f"call void @llvm.nvvm.cp.async.{name}({arguments})")

    def commit_copies(self, fn: FunctionBuilder) -> None:
        """Close the group of the copies that this thread started."""
        fn.emit("call void @llvm.nvvm.cp.async.commit.group()")

    def wait_copies(self, fn: FunctionBuilder, pending: int) -> None:
        """Wait until at most `pending` groups of this thread's copies run."""
        fn.emit(f"call void @llvm.nvvm.cp.async.wait.group(i32 {pending})")

    def load_global(
        self,
        fn: FunctionBuilder,
        pointer: str,
        words: int,
        word_bits: int,
        predicate: str | None,
        fallback: Sequence[str] | None,
        access: GlobalAccess,
    ) -> list[str]:
        """Load `words` integers of `word_bits`; see ThreadServices."""
        return load_global(fn, pointer, words, word_bits, predicate, fallback, access)

    def store_global(
        self,
        fn: FunctionBuilder,
        pointer: str,
        words: Sequence[str],
        word_bits: int,
        predicate: str | None,
        access: GlobalAccess,
    ) -> None:
        """Store integers of `word_bits`; see ThreadServices."""
        store_global(fn, pointer, words, word_bits, predicate, access)

    def atomic_width(self, access: AtomicAccess, adjacent: int) -> int:
        """How many of `adjacent` elements one atomic access takes."""
        return atomic_width(access, adjacent)

    def atomic(
        self,
        fn: FunctionBuilder,
        access: AtomicAccess,
        pointer: str,
        operands: Sequence[Sequence[str]],
        width: int,
        predicate: str | None,
    ) -> list[str]:
        """One atomic access; see ThreadServices."""
        return emit_atomic(fn, access, to_global(fn, pointer), operands, width, predicate)

    def fence(self, fn: FunctionBuilder, scope: str) -> None:
        """Order this thread's accesses, as seen from `scope`."""
        emit_fence(fn, scope)

    def print_line(
        self, fn: FunctionBuilder, text: str, arguments: Sequence[tuple[str, str]]
    ) -> None:
        """Print by a format of printf."""
        emit_print(fn, self.module, text, arguments)

    def fail(self, fn: FunctionBuilder, message: str, site: CallSite) -> None:
        """Report that an assertion failed in this thread, and stop the kernel."""
        emit_failure(fn, self.module, message, site)


def _trans(is_transposed: bool) -> str:
    return ".trans" if is_transposed else ""


def _sreg(name: str) -> str:
    return f"@llvm.nvvm.read.ptx.sreg.{name}()"


def _copy_where(
    fn: FunctionBuilder, own: str, target: str, source: str, num_bytes: int, mask: str | None
) -> None:
    """cp.async of the threads in which `own` is set: no branch between products in flight."""
    opcode = f"@$2 cp.async.{'cg' if num_bytes == 16 else 'ca'}.shared.global"
    address = fn.value(f"ptrtoint ptr addrspace(3) {target} to i32")
    arguments = f"i32 {address}, ptr addrspace(1) {source}, i1 {own}"
    size, constraints = "", "r,l,b"
    if mask is not None:
        chosen = fn.value(f"select i1 {mask}, i32 {num_bytes}, i32 0")
        size, constraints, arguments = ", $3", "r,l,b,r", f"{arguments}, i32 {chosen}"
    text = f"{opcode} [$0], [$1], {num_bytes}{size};"
    fn.emit(f'call void asm sideeffect "{text}", "{constraints},~{{memory}}"({arguments})')
