"""What the per-thread emission asks of a target: identity, barriers, memory, atomics, reports."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Protocol

from xdsl.ir import Attribute

from tilewright.codegen.context import TargetServices
from tilewright.codegen.llvm_builder import FunctionBuilder
from tilewright.codegen.simt.scope import ScopeServices
from tilewright.support.dataclass import dataclass


@dataclass(frozen=True)
class GlobalAccess:
    """How a global access is made: codes of the published attributes, and volatility."""

    cache: str = ""
    evict: str = ""
    is_volatile: bool = False


@dataclass(frozen=True)
class AtomicAccess:
    """An access of global memory in one step, and what it orders.

    `kind` is that of a `tt.atomic_rmw` (add for floats too), or cas, load, store; `number` the
    float type that an addition is of, else ''. `order` is relaxed, acquire, release or acq_rel,
    `scope` gpu, cta or sys. Where `returns` is False nobody reads the old values.
    """

    kind: str
    bits: int
    number: str
    order: str
    scope: str
    returns: bool = True

    @property
    def releases(self) -> bool:
        """Whether accesses before it are done when it is."""
        return self.order in ("release", "acq_rel")

    @property
    def acquires(self) -> bool:
        """Whether accesses after it come after it."""
        return self.order in ("acquire", "acq_rel")

    def relaxed(self) -> AtomicAccess:
        """The same access, which orders nothing."""
        return replace(self, order="relaxed", returns=self.returns or self.acquires)


@dataclass(frozen=True)
class CallSite:
    """A line of the author's, and the kernel that it is in."""

    file: str
    line: int
    kernel: str


class ThreadServices(TargetServices, ScopeServices, Protocol):
    """What the default per-thread rules ask of a target; every value is an LLVM name.

    Which threads there are, and how they wait for each other, rules ask of their scope.
    """

    @property
    def num_barriers(self) -> int:
        """How many named barriers a cta has."""
        ...

    def start_registers(self, fn: FunctionBuilder, granted: int) -> None:
        """Say with how many registers a thread starts, where roles take `granted` of them later.

        They are those of one lane of each warp, added up; 0 where it is not known.
        """
        ...

    def resize_registers(self, fn: FunctionBuilder, registers: int) -> None:
        """Take or give back registers: from here on each thread of the warp group has so many."""
        ...

    def elect(self, fn: FunctionBuilder) -> str:
        """Whether this lane is the one that its warp elects, always the same one (i1)."""
        ...

    def barrier_arrive(self, fn: FunctionBuilder, number: str, threads: int) -> None:
        """Arrive at a named barrier (i32) of so many threads, and do not wait there."""
        ...

    def convert_floats(
        self,
        fn: FunctionBuilder,
        source: Attribute,
        target: Attribute,
        values: Sequence[str],
        rounding: str,
    ) -> list[str]:
        """Convert several floats; neighbours may share an instruction."""
        ...

    @property
    def has_matrix_moves(self) -> bool:
        """Whether a warp moves 8 x 8 matrices of 16-byte rows to and from shared memory."""
        ...

    def store_matrices(
        self, fn: FunctionBuilder, offset: str, words: Sequence[str], is_transposed: bool
    ) -> None:
        """Write one word of each lane for each of 1, 2 or 4 matrices to shared memory.

        Lane `8 m + j` gives the byte offset (i32) of row `j` of matrix `m`.
        """
        ...

    def load_matrices(
        self, fn: FunctionBuilder, offset: str, count: int, is_transposed: bool
    ) -> list[str]:
        """Read `count` matrices, a word of each for each lane; offsets as for stores."""
        ...

    def copy_async(
        self,
        fn: FunctionBuilder,
        offset: str,
        pointer: str,
        num_bytes: int,
        mask: str | None,
        own: str | None,
    ) -> None:
        """Start copying 4, 8 or 16 bytes to shared memory; zeros where `mask` (i1) is false.

        Threads in which `own` (i1) is false copy nothing; None: all copy.
        """
        ...

    def commit_copies(self, fn: FunctionBuilder) -> None:
        """Close the group of the copies that this thread started."""
        ...

    def wait_copies(self, fn: FunctionBuilder, pending: int) -> None:
        """Wait until at most `pending` groups of this thread's copies run."""
        ...

    def opaque(self, fn: FunctionBuilder, value: str) -> str:
        """A number of 64 bits that LLVM knows nothing of, equal to `value`."""
        ...

    def program_id(self, fn: FunctionBuilder, axis: int) -> str:
        """The coordinate of the program along an axis, i32."""
        ...

    def num_programs(self, fn: FunctionBuilder, axis: int) -> str:
        """The extent of the grid along an axis, i32."""
        ...

    def grid_extent(self, axis: int) -> str:
        """The extent of the grid that the launch asks for along an axis, i32."""
        ...

    def shuffle_xor(self, fn: FunctionBuilder, word: str, mask: int) -> str:
        """The i32 `word` of the lane whose index is this one's xor `mask`."""
        ...

    def shuffle_index(self, fn: FunctionBuilder, word: str, lane: str) -> str:
        """The i32 `word` of lane `lane` (i32) of the same warp."""
        ...

    def fold_warp(self, fn: FunctionBuilder, kind: str, word: str) -> str | None:
        """The i32 words of all lanes of the warp folded; None where there is no such instruction.

        `kind` is one of add, and, or, xor, min, max, umin, umax.
        """
        ...

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
        """`words` integers of `word_bits` at `pointer`, naturally aligned as a whole.

        Where `predicate` (i1) is false nothing is read and the values are `fallback`
        (undefined without).
        """
        ...

    def store_global(
        self,
        fn: FunctionBuilder,
        pointer: str,
        words: Sequence[str],
        word_bits: int,
        predicate: str | None,
        access: GlobalAccess,
    ) -> None:
        """Write the integers `words` to `pointer` where `predicate` holds."""
        ...

    def atomic_width(self, access: AtomicAccess, adjacent: int) -> int:
        """How many of `adjacent` elements one atomic access takes."""
        ...

    def atomic(
        self,
        fn: FunctionBuilder,
        access: AtomicAccess,
        pointer: str,
        operands: Sequence[Sequence[str]],
        width: int,
        predicate: str | None,
    ) -> list[str]:
        """One atomic access of `width` adjacent elements; the old values, none where not read.

        `operands` (of a cas: what is compared, then what is stored) and old values are integers
        of the access's width; where `predicate` is false nothing is done and they are 0.
        """
        ...

    def fence(self, fn: FunctionBuilder, scope: str) -> None:
        """Order this thread's accesses before against those after, as seen from `scope`."""
        ...

    def print_line(
        self, fn: FunctionBuilder, text: str, arguments: Sequence[tuple[str, str]]
    ) -> None:
        """Print by a format of printf; `arguments` are (LLVM type, name): i32, i64, double."""
        ...

    def fail(self, fn: FunctionBuilder, message: str, site: CallSite) -> None:
        """Report that an assertion failed in this thread, and stop the kernel."""
        ...
