"""Lowers T0 to T1 by a decision: types get layouts, conversions become ops.

In place, op by op. What the decision leaves open is made again, before its old self, in each
layout that is asked for; a conversion stands right after the value that it converts, so that it
dominates every use and leaves every loop that does not change the value.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import DenseIntOrFPElementsAttr, LocationAttr, TensorType
from xdsl.ir import Attribute, Block, BlockArgument, Operation, SSAValue
from xdsl.traits import IsTerminator

from tilewright.ir.annotations import decided
from tilewright.ir.edits import erase
from tilewright.ir.encoding import SharedType, laid_out, layout_of, shared_tile
from tilewright.ir.locations import span_of
from tilewright.ir.op import build
from tilewright.ir.plans import ProductAttr
from tilewright.ir.regions import OUTSIDE, ControlFlowOp, Edge, ancestor_in
from tilewright.ir.types import element_of
from tilewright.layout.linear import LinearLayout
from tilewright.ops.function import FuncOp
from tilewright.ops.matmul.ir import ProductOp
from tilewright.ops.shape.ir import PermutingOp
from tilewright.ops.staging import ConvertLayoutOp, LocalAllocOp, MemdescTransOp
from tilewright.schedule.layout.anchors import Anchored
from tilewright.schedule.layout.annotations import LayoutPlanAttr
from tilewright.schedule.layout.decided import Layouts
from tilewright.schedule.layout.stage_products import stage_product
from tilewright.schedule.layout.transfer import is_flexible, is_source, is_tile, operand_layouts
from tilewright.support.errors import InternalError, UnsupportedLayout
from tilewright.support.worklist import needed_first


def assign_layouts(kernel: FuncOp, layouts: Layouts) -> None:
    """Rewrite a T0 kernel to T1 in place by the decision `layouts`."""
    rewriter = Rewriter(layouts)
    rewriter.block(kernel.body.block)
    rewriter.finish()


Placed = tuple[SSAValue, LinearLayout]
"""A value in a layout."""


class Rewriter:
    """The rewriting of one kernel; `place` finds a value in the layout that is asked for."""

    def __init__(self, layouts: Layouts) -> None:
        self.layouts = layouts
        self._placed: dict[Placed, SSAValue] = {}
        self._staged: dict[tuple[SSAValue, Attribute], SSAValue] = {}
        self._dead: list[Operation] = []
        # Transposes of tiles that are staged as they are; in the order of a dict's keys.
        self._bypassed: dict[Operation, None] = {}
        self._old_arguments: list[tuple[Block, list[BlockArgument]]] = []

    # --- values ---

    def place(self, value: SSAValue, layout: LinearLayout | None) -> SSAValue:
        """`value` in `layout`; itself when it is no tile."""
        if layout is None or not is_tile(value):
            return value
        found = self._placed.get((value, layout))
        if found is not None:
            return found
        for needed in needed_first((value, layout), self._sources, self._placed.__contains__):
            is_open = self.layouts.own.get(needed[0]) is None
            make = self._made_again if is_open else self._converted
            self._placed[needed] = make(*needed)
        return self._placed[value, layout]

    def _sources(self, key: Placed) -> list[Placed]:
        """What an open value is made again from, in the layouts that it takes."""
        value, layout = key
        op = value.owner
        if self.layouts.own.get(value) is not None or isinstance(op, Block) or not is_flexible(op):
            return []
        pairs = zip(op.operands, _taken(op, layout), strict=True)
        return [(v, at) for v, at in pairs if at is not None and is_tile(v)]

    def define(self, value: SSAValue, layout: LinearLayout, new: SSAValue) -> None:
        """Note that `new` is `value` in `layout`."""
        new.name_hint = value.name_hint
        self._placed[value, layout] = new

    def _converted(self, value: SSAValue, layout: LinearLayout) -> SSAValue:
        source = self._placed[value, self.layouts.own[value]]
        op = build(
            ConvertLayoutOp,
            [source],
            [laid_out(element_of(value.type), layout)],
            location=_location(source),
        )
        _insert_after(op, source)
        return op.results[0]

    def _made_again(self, value: SSAValue, layout: LinearLayout) -> SSAValue:
        op = value.owner
        if isinstance(op, Block) or not is_flexible(op):
            raise InternalError(f"a value of type {value.type} has no layout of its own")
        wanted = _taken(op, layout)
        operands = [self.place(v, at) for v, at in zip(op.operands, wanted, strict=True)]
        index = next(i for i, result in enumerate(op.results) if result is value)
        new = self._copy(op, operands, [layout] * len(op.results))
        return new.results[index]

    def _copy(
        self, op: Operation, operands: Sequence[SSAValue], layouts: Sequence[LinearLayout | None]
    ) -> Operation:
        """The same op on laid-out values, inserted before the old one; regions move over."""
        types = [
            laid_out(element_of(r.type), at) if at is not None else r.type
            for r, at in zip(op.results, layouts, strict=True)
        ]
        regions = tuple(op.regions)
        for region in regions:
            op.detach_region(region)
        properties = dict(op.properties)
        if is_source(op) and not op.operands and layouts[0] is not None:
            properties = _retyped(properties, types[0])
        new = build(type(op), operands, types, properties, regions, op.location)
        new.attributes = dict(op.attributes)
        new.attributes.pop(LayoutPlanAttr.name, None)  # its types say it from here on
        self.insert_before(new, op)
        return new

    def insert_before(self, new: Operation, op: Operation) -> None:
        """Insert an op before another one."""
        assert op.parent is not None
        op.parent.insert_op_before(new, op)

    # --- ops ---

    def block(self, block: Block) -> None:
        """Rewrite a block."""
        for op in tuple(block.ops):
            self._op(op)

    def _op(self, op: Operation) -> None:
        if isinstance(op, ControlFlowOp):
            self._control_flow(op)
        elif not any(is_tile(value) for value in (*op.operands, *op.results)):
            return
        elif not op.has_trait(IsTerminator):
            self._dead.append(op)
            decided_layouts = self.layouts.of_ops.get(op)
            if decided_layouts is not None:  # an open op waits until it is asked for
                self._laid_out(op, decided_layouts)

    def _laid_out(self, op: Operation, at: Anchored) -> None:
        operands = [self.place(v, to) for v, to in zip(op.operands, at.operands, strict=True)]
        if isinstance(op, ProductOp):
            results = self._product(op, operands)
        else:
            results = tuple(self._copy(op, operands, at.results).results)
        self._define_each(op.results, at.results, results)

    def _define_each(
        self,
        old: Sequence[SSAValue],
        layouts: Sequence[LinearLayout | None],
        new: Sequence[SSAValue],
    ) -> None:
        """Put new results in the place of old ones: where no layout is, at once."""
        for before, at, after in zip(old, layouts, new, strict=True):
            if at is None:
                before.replace_all_uses_with(after)
            else:
                self.define(before, at, after)

    def _product(self, op: ProductOp, operands: Sequence[SSAValue]) -> Sequence[SSAValue]:
        """A product with its operands staged."""

        def stage(tile: SSAValue, type_: SharedType) -> SSAValue:
            return self._stage(op, tile, type_)

        product = stage_product(op, operands, decided(op, ProductAttr), stage)
        self.insert_before(product, op)
        return tuple(product.results)

    def _stage(self, op: ProductOp, tile: SSAValue, type_: SharedType) -> SSAValue:
        """A tile in shared memory for a product; once for all products that read it as it lies.

        One that no loop changes is staged before it. One that is a transposed tile is that tile,
        staged as it is and seen transposed.
        """
        trans = tile.owner
        if isinstance(trans, PermutingOp):
            order = trans.permutation()
            back = tuple(order.index(dim) for dim in range(len(order)))
            lying = shared_tile(type_.element, layout_of(type_).permute(back))
            whole = self._stage(op, trans.src, lying)
            properties: dict[str, Attribute] = {"order": trans.order}
            view = build(MemdescTransOp, [whole], [type_], properties, location=op.location)
            self.insert_before(view, op)
            self._bypassed.setdefault(trans)
            return view.results[0]
        staged = self._staged.get((tile, type_))
        if staged is None:
            alloc = build(LocalAllocOp, [tile], [type_], location=op.location)
            self.insert_before(alloc, ancestor_in(_block_of(tile), op))
            staged = self._staged[tile, type_] = alloc.results[0]
        return staged

    # --- control flow ---

    def _arguments(
        self, block: Block, old: Sequence[SSAValue], layouts: Sequence[LinearLayout | None]
    ) -> None:
        """New arguments with layouts, each behind its old one, which goes in the end."""
        gone: list[BlockArgument] = []
        for argument, layout in zip(old, layouts, strict=True):
            assert isinstance(argument, BlockArgument)
            type_ = argument.type
            if layout is not None:
                type_ = laid_out(element_of(argument.type), layout)
            new = block.insert_arg(type_, argument.index + 1)
            new.name_hint = argument.name_hint
            if layout is None:
                argument.replace_all_uses_with(new)
            else:
                self.define(argument, layout, new)
                self.layouts.own[argument] = layout
            gone.append(argument)
        self._old_arguments.append((block, gone))

    def _replace(
        self, op: Operation, operands: Sequence[SSAValue], layouts: Sequence[LinearLayout | None]
    ) -> None:
        new = self._copy(op, operands, layouts)
        self._define_each(op.results, layouts, new.results)
        self._dead.append(op)

    def _control_flow(self, op: ControlFlowOp) -> None:
        """Rewrite the regions of an op and what it takes, hands on and results in."""
        edges = op.edges()
        operands = self._handed(op, next(e for e in edges if e.source is OUTSIDE))
        for index, region in enumerate(op.regions):
            for block in region.blocks:
                receivers = next(e.receivers for e in edges if e.target == index)
                self._arguments(block, receivers, self.layouts.carried[op, index])
                self.block(block)
                leaving = next(e for e in edges if e.source == index)
                leaving.giver.operands = self._handed(op, leaving)
        self._replace(op, operands, self.layouts.carried[op, OUTSIDE])

    def _handed(self, op: ControlFlowOp, edge: Edge) -> list[SSAValue]:
        """The operands of what hands on along an edge, in the layouts of what receives."""
        layouts = self.layouts.carried[op, edge.target]
        placed = [self.place(v, at) for v, at in zip(edge.values, layouts, strict=True)]
        return [*edge.giver.operands[: edge.first], *placed]

    def finish(self) -> None:
        """Erase the old ops and arguments, users before definitions, and what nothing uses."""
        for op in reversed(self._dead):
            for result in op.results:
                if any(True for _ in result.uses):
                    raise InternalError(f"{op.name} is still used after its layout was assigned")
            erase(op)
        for trans in reversed(self._bypassed):
            if not any(True for _ in trans.results[0].uses):
                erase(trans)
        for block, arguments in self._old_arguments:
            for argument in reversed(arguments):
                block.erase_arg(argument)


def _taken(op: Operation, layout: LinearLayout) -> list[LinearLayout | None]:
    """The layouts of the operands of an open op. *Raises*: UnsupportedLayout that names its line.

    Only a reshape has none, of a tile with an odd part in a dim that is not its first; no other
    layout of that tile would do.
    """
    try:
        return operand_layouts(op, layout)
    except UnsupportedLayout as error:
        error.span, error.chain = span_of(op)
        raise


def _block_of(value: SSAValue) -> Block:
    owner = value.owner
    if isinstance(owner, Block):
        return owner
    assert owner.parent is not None
    return owner.parent


def _retyped(properties: dict[str, Attribute], type_: Attribute) -> dict[str, Attribute]:
    """The properties of a constant whose value names its type."""
    value = properties.get("value")
    if isinstance(value, DenseIntOrFPElementsAttr):
        assert isinstance(type_, TensorType)
        properties["value"] = DenseIntOrFPElementsAttr(type_, value.data)
    return properties


def _location(value: SSAValue) -> LocationAttr | None:
    owner = value.owner
    if isinstance(owner, Operation):
        return owner.location
    parent = owner.parent_op()
    return None if parent is None else parent.location


def _insert_after(op: Operation, value: SSAValue) -> None:
    owner = value.owner
    if isinstance(owner, Block):
        first = owner.first_op
        assert first is not None
        owner.insert_op_before(op, first)
        return
    assert owner.parent is not None
    owner.parent.insert_op_after(op, owner)
