"""How the tiles of a role are cut for its replicas: which tile along which dim, or whole.

Products say it: their rows (or columns) are cut, and so is what is computed from them. Of what
they and the stores need besides, each op is asked for the parts that are needed of it; what many
need, whole or in parts, is computed in each of these versions. A carried value has one version.
"""

from __future__ import annotations

from xdsl.ir import Block, Operation, SSAValue

from tilewright.ir.effects import Access, Resource, own_effects
from tilewright.ir.regions import ControlFlowOp, Edge, is_control_flow, receivers_of
from tilewright.ir.types import shape_of
from tilewright.ops.channels import GetOp
from tilewright.ops.creation.ir import ConstantOp, MakeRangeOp
from tilewright.ops.matmul.ir import ProductOp
from tilewright.ops.shape.ir import PermutingOp
from tilewright.schedule.partition.conditions import writes_block
from tilewright.schedule.partition.refusal import Refused
from tilewright.schedule.partition.transfer import WHOLE, Dim, result_dim, transfer

SOURCES = (ConstantOp, MakeRangeOp, GetOp)
"""Ops of which a part is made without parts of their operands."""


class Cuts:
    """The versions of every value of a role's body that are needed, for `parts` replicas.

    *Raises*: Refused where an op cannot be cut as it would have to be.
    """

    def __init__(self, body: Block, parts: int, split: str) -> None:
        self._body = body
        self._parts = parts
        self._split = split
        self._seeds: dict[SSAValue, int] = {}
        self.dims: dict[SSAValue, int] = {}
        self.versions: dict[SSAValue, set[Dim]] = {}
        self.gathered: dict[SSAValue, None] = {}
        self.parts_of_gathered: dict[SSAValue, list[int]] = {}
        while not self._settles():
            pass

    def version(self, value: SSAValue) -> Dim:
        """How a carried value is cut."""
        return self.dims.get(value, WHOLE)

    def cut_of(self, store: Operation) -> Dim:
        """The dim along which what a store writes is cut."""
        for operand in store.operands:
            if operand in self.dims:
                return self.dims[operand]
        return WHOLE

    def operand_dims(self, op: Operation, dim: Dim) -> tuple[Dim, ...]:
        """How the operands of an op are cut whose results are cut along a dim."""
        if dim is None or isinstance(op, SOURCES):
            return (WHOLE,) * len(op.operands)
        dims = transfer(op, dim)
        if dims is None:
            raise Refused(op, f"{op.name} cannot be shared by replicas")
        return dims

    def _settles(self) -> bool:
        """Find all versions; False where a carried value turned out to be cut, too."""
        self.dims, self.versions = {}, {}
        self.gathered, self.parts_of_gathered = {}, {}
        num_seeds = len(self._seeds)
        self._follow_cuts()
        for op in self._body.walk():
            self._need(op)
            if len(self._seeds) > num_seeds:
                return False
        return True

    # --- what is cut: products, and what is computed from them ---

    def _follow_cuts(self) -> None:
        for op in self._body.walk():
            if isinstance(op, ProductOp):
                rank = len(shape_of(op.result.type))
                self._cut(op, op.result, rank - (2 if self._split == "m" else 1))
        if not self.dims:
            raise Refused(self._first(), "no product whose tiles replicas could share")
        for value, dim in self._seeds.items():
            self._cut(maker_of(value), value, dim)
        pending = list(self.dims)
        while pending:
            value = pending.pop()
            for use in tuple(value.uses):
                for receiver, dim in self._receivers(use.operation, use.index, value):
                    if receiver not in self.dims:
                        pending.append(receiver)
                    self._cut(use.operation, receiver, dim)

    def _receivers(self, op: Operation, index: int, value: SSAValue) -> list[tuple[SSAValue, int]]:
        """What becomes cut because an operand is, and along which dim."""
        dim = self.dims[value]
        use = next(u for u in value.uses if u.operation is op and u.index == index)
        handed_on = receivers_of(use)
        if handed_on:
            return [(receiver, dim) for receiver in handed_on]
        if not op.results:
            return []
        cut = result_dim(op, index, dim)
        if cut is None and isinstance(op, ProductOp):
            return []  # it takes the whole tile; see `_ask`
        if cut is None:
            raise Refused(op, f"{op.name} needs all of a tile that replicas share")
        return [(result, cut) for result in op.results]

    def _cut(self, op: Operation, value: SSAValue, dim: int) -> None:
        """Note that a value is cut along a dim. *Raises*: Refused where it cannot be."""
        shape = shape_of(value.type)
        if self.dims.setdefault(value, dim) != dim:
            raise Refused(op, "a tile would be cut along two dims")
        if shape[dim] % self._parts:
            raise Refused(op, f"{shape[dim]} of {shape} are not shared by {self._parts} replicas")

    def _first(self) -> Operation:
        first = self._body.first_op
        assert first is not None
        return first

    # --- what is needed, whole and in parts ---

    def _need(self, op: Operation) -> None:
        """Ask for what an op needs that is there for its effects, or steers."""
        if is_control_flow(op):
            assert isinstance(op, ControlFlowOp)
            for edge in op.edges():
                for value in edge.giver.operands[: edge.first]:
                    self._ask(op, value, WHOLE)
            return
        if is_end_of_channel(op):
            for value in op.results:
                self.versions.setdefault(value, set()).add(WHOLE)
        if not is_root(op):
            return
        dim = self.cut_of(op)
        for operand, cut in zip(op.operands, self._dims_of(op, dim), strict=True):
            self._ask(op, operand, cut)

    def _dims_of(self, op: Operation, dim: Dim) -> tuple[Dim, ...]:
        """How the operands of an op with effects are cut."""
        if writes_block(op):
            return tuple(dim if v in self.dims else WHOLE for v in op.operands)
        return self.operand_dims(op, dim)

    def _ask(self, user: Operation, value: SSAValue, dim: Dim) -> None:
        """Need a version of a value, and what it is computed from."""
        pending = [(user, value, dim)]
        while pending:
            asker, value, dim = pending.pop()
            if dim is not None and shape_of(value.type)[dim] == 1:
                dim = WHOLE
            if dim in self.versions.get(value, ()):
                continue
            if self._is_gathered(asker, value, dim):
                dim = self._gather(value, dim)
                if dim in self.versions.get(value, ()):
                    continue
            is_view = dim is not None and isinstance(value.owner, PermutingOp)
            if self.dims.get(value, dim) != dim and not is_view:
                what = "whole" if dim is None else "cut along another dim"
                raise Refused(asker, f"{asker.name} needs a tile {what} that replicas share")
            self.versions.setdefault(value, set()).add(dim)
            pending += self._sources(asker, value, dim)

    def _is_gathered(self, asker: Operation, value: SSAValue, dim: Dim) -> bool:
        """Whether a product takes of a tile that is cut what no replica has alone."""
        if self.dims.get(value, dim) == dim:
            return False
        if dim is None:
            return isinstance(asker, ProductOp)
        return isinstance(asker, ProductOp | PermutingOp) and not isinstance(
            value.owner, PermutingOp
        )

    def _gather(self, value: SSAValue, dim: Dim) -> int:
        """Note that all of a tile is asked for, or a part of all; how the tile is cut."""
        self.gathered[value] = None
        parts = self.parts_of_gathered.setdefault(value, [])
        if dim is not None and dim not in parts:
            if shape_of(value.type)[dim] % self._parts:
                raise Refused(
                    maker_of(value),
                    f"{shape_of(value.type)} is not shared by {self._parts} replicas",
                )
            parts.append(dim)
        return self.dims[value]

    def _sources(
        self, asker: Operation, value: SSAValue, dim: Dim
    ) -> list[tuple[Operation, SSAValue, Dim]]:
        """What a version of a value is computed from."""
        op = maker_of(value)
        if value.owner is self._body or not self._is_inside(op):
            return []
        if is_control_flow(op):
            return self._carried(op, value, dim)
        if dim is not None and shape_of(value.type)[dim] % self._parts:
            raise Refused(op, f"{shape_of(value.type)} is not shared by {self._parts} replicas")
        dims = self.operand_dims(op, dim)
        return [(op, operand, cut) for operand, cut in zip(op.operands, dims, strict=True)]

    def _carried(
        self, op: Operation, value: SSAValue, dim: Dim
    ) -> list[tuple[Operation, SSAValue, Dim]]:
        assert isinstance(op, ControlFlowOp)
        if dim is not None and value not in self.dims:
            self._seeds[value] = dim
            return []
        sources: list[tuple[Operation, SSAValue, Dim]] = []
        for edge in op.edges():
            for given, receiver in zip(edge.values, edge.receivers, strict=True):
                if receiver is value:
                    beside = _beside(op, edge, receiver)
                    sources += [(op, other, dim) for other in (given, *beside)]
        return sources

    def _is_inside(self, op: Operation) -> bool:
        return self._body.find_ancestor_op_in_block(op) is not None


def is_root(op: Operation) -> bool:
    """Whether an op is there for what it does, and not for its results alone.

    What it writes of the launch's own memory is there for who takes its result.
    """
    effects = own_effects(op)
    is_seen = any(not isinstance(e, Access) or _is_seen(e) for e in effects)
    return is_seen and not is_end_of_channel(op)


def _is_seen(access: Access) -> bool:
    return access.writes and access.resource is not Resource.WORKSPACE


def is_end_of_channel(op: Operation) -> bool:
    """Whether an op puts to a channel, or gets from one."""
    effects = own_effects(op)
    is_queue = [isinstance(e, Access) and e.resource is Resource.QUEUE for e in effects]
    return bool(effects) and all(is_queue)


def maker_of(value: SSAValue) -> Operation:
    """The op that makes a value, or whose region takes it."""
    owner = value.owner
    op = owner if isinstance(owner, Operation) else owner.parent_op()
    assert op is not None
    return op


def _beside(op: ControlFlowOp, edge: Edge, receiver: SSAValue) -> list[SSAValue]:
    """What else receives the operand that `receiver` gets along an edge."""
    index = next(i for i, other in enumerate(edge.receivers) if other is receiver)
    return [
        other.receivers[index]
        for other in op.edges()
        if other.giver is edge.giver and other.first == edge.first and other.receivers
    ]
