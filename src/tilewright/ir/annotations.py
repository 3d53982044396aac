"""Decisions of the schedule as attributes of the op that they are about.

Each is decided once, by a pass that leaves alone what is annotated already, then verified, then
only read. `docs/internals/gpu.md` lists them with who decides and who reads.

    tw.product = #tw.product<"wgmma 64x128x16, warps 4x1, a shared, b shared">
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from xdsl.ir import Data, Operation
from xdsl.irdl import irdl_attr_definition

from tilewright.ir.locations import span_of
from tilewright.support.dataclass import dataclass
from tilewright.support.errors import PlanMissing

if TYPE_CHECKING:  # a compile neither parses nor prints
    from xdsl.parser import AttrParser
    from xdsl.printer import Printer

PRODUCT = "tw.product"
"""The attribute of a `tt.dot` that holds its plan."""
ACCESS = "tw.access"
"""The attribute of an access to global memory that holds its plan."""
COPY = "tw.copy"
"""The attribute of a load of a shared tile that says how it gets there."""
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

    def __str__(self) -> str:
        shape, warps = ("x".join(map(str, sizes)) for sizes in (self.shape, self.warps))
        return f"{self.instruction} {shape}, warps {warps}, a {self.a}, b {self.b}"


@irdl_attr_definition
class ProductAttr(Data[ProductPlan]):
    """The plan of a product, as `#tw.product<"…">`; a second string says why not a faster one."""

    name = "tw.product"

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> ProductPlan:
        """Read what stands behind the name."""
        text, reason = _strings(parser)
        match = _PRODUCT_TEXT.fullmatch(text)
        if match is None:
            parser.raise_error(
                f"`{text}` is no plan of a product, such as "
                "`wgmma 64x128x16, warps 4x1, a shared, b shared`"
            )
        m, n, k = map(int, match["shape"].split("x"))
        down, across = map(int, match["warps"].split("x"))
        return ProductPlan(
            match["instruction"], (m, n, k), (down, across), match["a"], match["b"], reason
        )

    def print_parameter(self, printer: Printer) -> None:
        """Write what stands behind the name."""
        _print_strings(printer, str(self.data), self.data.reason)


def annotated_product(op: Operation) -> ProductPlan | None:
    """The plan that is annotated on a product; None before it is decided."""
    attribute = op.attributes.get(PRODUCT)
    return attribute.data if isinstance(attribute, ProductAttr) else None


def plan_of(op: Operation) -> ProductPlan:
    """The plan of a product. *Raises*: PlanMissing before it is decided."""
    plan = annotated_product(op)
    if plan is None:
        raise _missing(op, PRODUCT, "decide-products")
    return plan


@dataclass(frozen=True)
class AccessPlan:
    """How a tile of pointers is loaded from, stored to or updated.

    `vector` elements that are adjacent in memory, aligned as a whole and under one value of the
    mask move at once: at T0 at most, at T1 and T2 as many registers in a row. `order` names the
    dims, the one along which memory is adjacent first. `is_scattered`: no two addresses are known
    to be adjacent or equal.
    """

    vector: int
    order: tuple[int, ...]
    is_scattered: bool = False

    def __str__(self) -> str:
        order = " ".join(map(str, self.order))
        return f"vector {self.vector}, order {order}" + ", scattered" * self.is_scattered


@irdl_attr_definition
class AccessAttr(Data[AccessPlan]):
    """The plan of an access, as `#tw.access<"vector 8, order 1 0">`."""

    name = "tw.access"

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> AccessPlan:
        """Read what stands behind the name."""
        with parser.in_angle_brackets():
            text = parser.parse_str_literal()
        match = _ACCESS_TEXT.fullmatch(text)
        if match is None:
            parser.raise_error(f"`{text}` is no plan of an access, such as `vector 8, order 1 0`")
        order = tuple(map(int, match["order"].split()))
        return AccessPlan(int(match["vector"]), order, match["scattered"] is not None)

    def print_parameter(self, printer: Printer) -> None:
        """Write what stands behind the name."""
        with printer.in_angle_brackets():
            printer.print_string_literal(str(self.data))


def annotated_access(op: Operation) -> AccessPlan | None:
    """The plan that is annotated on an access; None before it is decided, and of scalars."""
    attribute = op.attributes.get(ACCESS)
    return attribute.data if isinstance(attribute, AccessAttr) else None


def access_of(op: Operation) -> AccessPlan:
    """The plan of an access of tiles. *Raises*: PlanMissing before it is decided."""
    plan = annotated_access(op)
    if plan is None:
        raise _missing(op, ACCESS, "decide-accesses")
    return plan


def annotate_access(op: Operation, plan: AccessPlan) -> None:
    """Write the plan of an access on it."""
    op.attributes[ACCESS] = AccessAttr(plan)


def vector_elems(op: Operation) -> int:
    """The registers that one access of a laid-out op moves; 1 for a scalar."""
    plan = annotated_access(op)
    return 1 if plan is None else plan.vector


@dataclass(frozen=True)
class CopyPlan:
    """How a loaded tile gets to shared memory: `async` by the machine, or through `registers`.

    `elems` move by one copy instruction of a lane, 0 before that is known; `reason` says why the
    tile passes registers.
    """

    kind: str
    elems: int = 0
    reason: str = ""

    @property
    def is_async(self) -> bool:
        """Whether the machine copies it."""
        return self.kind == "async"

    def __str__(self) -> str:
        return f"{self.kind} {self.elems}" if self.elems else self.kind


@irdl_attr_definition
class CopyAttr(Data[CopyPlan]):
    """How a load gets to shared memory, as `#tw.copy<"async 8">`; a second string says why not."""

    name = "tw.copy"

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> CopyPlan:
        """Read what stands behind the name."""
        text, reason = _strings(parser)
        match = _COPY_TEXT.fullmatch(text)
        if match is None:
            parser.raise_error(f"`{text}` is no plan of a copy: `async`, `async 8` or `registers`")
        return CopyPlan(text.split()[0], int(match["elems"] or 0), reason)

    def print_parameter(self, printer: Printer) -> None:
        """Write what stands behind the name."""
        _print_strings(printer, str(self.data), self.data.reason)


def annotated_copy(op: Operation) -> CopyPlan | None:
    """How a load was planned to get to shared memory; None where nothing is annotated."""
    attribute = op.attributes.get(COPY)
    return attribute.data if isinstance(attribute, CopyAttr) else None


def copy_of(op: Operation) -> CopyPlan:
    """How a load gets to shared memory. *Raises*: PlanMissing before it is decided."""
    plan = annotated_copy(op)
    if plan is None:
        raise _missing(op, COPY, "decide-copies")
    return plan


def annotate_copy(op: Operation, plan: CopyPlan) -> None:
    """Write on a load how it gets to shared memory."""
    op.attributes[COPY] = CopyAttr(plan)


def _strings(parser: AttrParser) -> tuple[str, str]:
    """A plan in quotes, and behind a comma the reason where one is given."""
    with parser.in_angle_brackets():
        text = parser.parse_str_literal()
        has_reason = parser.parse_optional_punctuation(",") is not None
        return text, parser.parse_str_literal() if has_reason else ""


def _print_strings(printer: Printer, text: str, reason: str) -> None:
    with printer.in_angle_brackets():
        printer.print_string_literal(text)
        if reason:
            printer.print_string(", ")
            printer.print_string_literal(reason)


def _missing(op: Operation, attribute: str, decision: str) -> PlanMissing:
    span, chain = span_of(op)
    return PlanMissing(
        f"{op.name} is rewritten before it is planned: it has no `{attribute}`",
        hint=f"run `{decision}` first, or annotate it",
        span=span,
        chain=chain,
    )
