"""The plans that are annotated: of products and accesses on T0, of copies and exchanges on T1."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, ClassVar

from xdsl.ir import Operation
from xdsl.irdl import irdl_attr_definition

from tilewright.ir.annotations import PlanAttr, annotated
from tilewright.support.dataclass import dataclass

if TYPE_CHECKING:
    from typing import Self

REGISTERS, SHARED = "registers", "shared"
"""Where an operand of a product is when its instruction reads it."""
_PRODUCT_TEXT = re.compile(
    r"(?P<instruction>\w+) (?P<shape>\d+x\d+x\d+), warps (?P<warps>\d+x\d+), "
    r"a (?P<a>registers|shared), b (?P<b>registers|shared)"
)
_ACCESS_TEXT = re.compile(
    r"vector (?P<vector>\d+), order (?P<order>\d+(?: \d+)*)(?P<scattered>, scattered)?"
)
_COPY_TEXT = re.compile(r"registers|async(?: (?P<elems>\d+))?")


@dataclass(frozen=True)
class ProductPlan:
    """How one matrix product is computed.

    `instruction` is `wgmma`, `mma` or `fma` (single threads); `shape` is M, N, K of one
    instruction; `warps` share the rows and the columns; `a` and `b` say where the instruction
    reads its operands; `reason` says why not the faster one.
    """

    WHAT: ClassVar[str] = "a product"
    EXAMPLE: ClassVar[str] = "wgmma 64x128x16, warps 4x1, a shared, b shared"
    DECIDED_BY: ClassVar[str] = "decide-products"

    instruction: str
    shape: tuple[int, int, int]
    warps: tuple[int, int]
    a: str
    b: str
    reason: str = ""

    @property
    def columns(self) -> int:
        """N of one instruction."""
        return self.shape[1]

    @property
    def depth(self) -> int:
        """K of one instruction."""
        return self.shape[2]

    @classmethod
    def read(cls, text: str, reason: str = "") -> Self | None:
        """The plan that a text says; None where it says none."""
        match = _PRODUCT_TEXT.fullmatch(text)
        if match is None:
            return None
        m, n, k = map(int, match["shape"].split("x"))
        down, across = map(int, match["warps"].split("x"))
        return cls(match["instruction"], (m, n, k), (down, across), match["a"], match["b"], reason)

    def __str__(self) -> str:
        shape, warps = ("x".join(map(str, sizes)) for sizes in (self.shape, self.warps))
        return f"{self.instruction} {shape}, warps {warps}, a {self.a}, b {self.b}"


@irdl_attr_definition
class ProductAttr(PlanAttr[ProductPlan]):
    """The plan of a `tt.dot`, as `#tw.product<"…">`."""

    name = "tw.product"
    plan = ProductPlan


@dataclass(frozen=True)
class AccessPlan:
    """How a tile of pointers is loaded from, stored to or updated.

    `vector` elements that are adjacent in memory, aligned as a whole and under one value of the
    mask move at once: at T0 at most, at T1 and T2 as many registers in a row. `order` names the
    dims, the one along which memory is adjacent first. `is_scattered`: no two addresses are known
    to be adjacent or equal.
    """

    WHAT: ClassVar[str] = "an access"
    EXAMPLE: ClassVar[str] = "vector 8, order 1 0"
    DECIDED_BY: ClassVar[str] = "decide-accesses"

    vector: int
    order: tuple[int, ...]
    is_scattered: bool = False
    reason: str = ""

    @classmethod
    def read(cls, text: str, reason: str = "") -> Self | None:
        """The plan that a text says; None where it says none."""
        match = _ACCESS_TEXT.fullmatch(text)
        if match is None:
            return None
        order = tuple(map(int, match["order"].split()))
        return cls(int(match["vector"]), order, match["scattered"] is not None, reason)

    def __str__(self) -> str:
        order = " ".join(map(str, self.order))
        return f"vector {self.vector}, order {order}" + ", scattered" * self.is_scattered


@irdl_attr_definition
class AccessAttr(PlanAttr[AccessPlan]):
    """The plan of an access to global memory, as `#tw.access<"vector 8, order 1 0">`."""

    name = "tw.access"
    plan = AccessPlan


def vector_elems(op: Operation) -> int:
    """The registers that one access of a laid-out op moves; 1 for a scalar."""
    plan = annotated(op, AccessAttr)
    return 1 if plan is None else plan.vector


@dataclass(frozen=True)
class CopyPlan:
    """How a loaded tile gets to shared memory: `async` by the machine, or through `registers`.

    `elems` move by one copy instruction of a lane, 0 before that is known; `reason` says why the
    tile passes registers.
    """

    WHAT: ClassVar[str] = "a copy"
    EXAMPLE: ClassVar[str] = "async 8"
    DECIDED_BY: ClassVar[str] = "decide-copies"

    kind: str
    elems: int = 0
    reason: str = ""

    @property
    def is_async(self) -> bool:
        """Whether the machine copies it."""
        return self.kind == "async"

    @classmethod
    def read(cls, text: str, reason: str = "") -> Self | None:
        """The plan that a text says; None where it says none."""
        match = _COPY_TEXT.fullmatch(text)
        if match is None:
            return None
        return cls(text.split()[0], int(match["elems"] or 0), reason)

    def __str__(self) -> str:
        return f"{self.kind} {self.elems}" if self.elems else self.kind


@irdl_attr_definition
class CopyAttr(PlanAttr[CopyPlan]):
    """How a load gets to shared memory, as `#tw.copy<"async 8">`."""

    name = "tw.copy"
    plan = CopyPlan


_EXCHANGE_TEXT = re.compile(
    r"(?P<method>[a-z]+(?: order)?)(?:, positions (?P<positions>\d+))?"
    r"(?:, passes (?P<passes>\d+))?(?:, bytes (?P<bytes>\d+))?"
)


@dataclass(frozen=True)
class ExchangePlan:
    """How the elements of a laid-out tile get to the threads that need them.

    `method` is what the op's family offers (`schedule/exchanges.py`): `registers`, `shuffle` or
    `memory` for elements that move; `any order` or `axis order` for elements that are combined;
    `unrolled` or `loop` for the comparisons of a sort, whose elements carry `position_bits`.
    `scratch_bytes` of shared memory are filled `num_passes` times while the op runs. Before a plan
    is completed, 0 and one pass leave a number open.
    """

    WHAT: ClassVar[str] = "an exchange"
    EXAMPLE: ClassVar[str] = "memory, passes 2, bytes 32768"
    DECIDED_BY: ClassVar[str] = "decide-exchanges"

    method: str
    scratch_bytes: int = 0
    num_passes: int = 1
    position_bits: int = 0
    reason: str = ""

    @classmethod
    def read(cls, text: str, reason: str = "") -> Self | None:
        """The plan that a text says; None where it says none."""
        match = _EXCHANGE_TEXT.fullmatch(text)
        if match is None:
            return None
        size, passes, positions = (int(match[n] or 0) for n in ("bytes", "passes", "positions"))
        return cls(match["method"], size, passes or 1, positions, reason)

    def __str__(self) -> str:
        parts = [self.method]
        parts += [f"positions {self.position_bits}"] * bool(self.position_bits)
        parts += [f"passes {self.num_passes}"] * (self.num_passes > 1)
        return ", ".join(parts + [f"bytes {self.scratch_bytes}"] * bool(self.scratch_bytes))


@irdl_attr_definition
class ExchangeAttr(PlanAttr[ExchangePlan]):
    """How an op moves elements between threads, as `#tw.exchange<"memory, bytes 4096">`."""

    name = "tw.exchange"
    plan = ExchangePlan
