"""Writes T2 programs with roles and rings op by op; each op has the line that asked for it."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Sequence

from xdsl.dialects.builtin import (
    ArrayAttr,
    DenseArrayBase,
    DenseIntOrFPElementsAttr,
    FileLineColLoc,
    FloatAttr,
    FunctionType,
    IntAttr,
    IntegerAttr,
    ModuleOp,
    StringAttr,
    TensorType,
    UnitAttr,
)
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue

from tilewright.ir.attributes import integer_array
from tilewright.ir.encoding import TOKEN, SharedType, shared_part, shared_tile
from tilewright.ir.op import build
from tilewright.ir.plans import SHARED, ProductAttr, ProductPlan
from tilewright.ir.types import DescriptorType, i1, i32
from tilewright.ops.control_flow import ForOp, IfOp, YieldOp
from tilewright.ops.creation.ir import ConstantOp
from tilewright.ops.elementwise.ir import ELEMENTWISE
from tilewright.ops.function import FuncOp, ReturnOp
from tilewright.ops.program.ir import GetNumProgramsOp, GetProgramIdOp
from tilewright.ops.rings import (
    RING,
    RingAcquireOp,
    RingCommitOp,
    RingOp,
    RingReleaseOp,
    RingSeekOp,
    RingWaitOp,
    slot_types,
)
from tilewright.ops.roles import RolesOp, TurnPassOp, TurnWaitOp
from tilewright.ops.staging import (
    ConvertLayoutOp,
    DotWaitOp,
    ExtractSliceOp,
    LaidOutDotOp,
    LocalAllocOp,
    LocalBarrierOp,
    LocalStoreOp,
    MemdescSliceOp,
    MemdescTransOp,
)
from tilewright.targets.nvidia.ops import FenceAsyncSharedOp
from tilewright.targets.nvidia.tensor_map import TensorMapRecipe
from tilewright.targets.nvidia.tma.box_annotations import annotate_box
from tilewright.targets.nvidia.tma.boxes import BoxPlan, plan_boxes
from tilewright.targets.nvidia.tma_ops import TensorMapOp, TmaFillOp, TmaStoreOp, TmaStoreWaitOp

Values = list[SSAValue]
Position = tuple[SSAValue, SSAValue]
_PREDICATES = {"eq": 0, "ne": 1, "lt": 2, "le": 3, "gt": 4, "ge": 5}


class Writer:
    """One kernel; `arguments` are its types, pointers first."""

    def __init__(self, arguments: Sequence[Attribute], name: str = "k") -> None:
        self.name = name
        self.block = self.top = Block(arg_types=list(arguments))
        self.num_maps = 0

    # --- ops ---

    def emit(
        self,
        cls: type[Operation],
        operands: Sequence[SSAValue] = (),
        types: Sequence[Attribute] = (),
        properties: dict[str, Attribute] | None = None,
        regions: Sequence[Region] = (),
    ) -> Operation:
        """Append an op at the line of the test that asked for it."""
        op = build(cls, operands, types, properties, regions, location=_caller())
        self.block.add_op(op)
        return op

    def value(self, cls: type[Operation], *args: object) -> SSAValue:
        """Append an op of one result."""
        return self.emit(cls, *args).results[0]  # type: ignore[arg-type]

    def constant(self, value: int) -> SSAValue:
        """A number."""
        return self.value(ConstantOp, (), [i32], {"value": IntegerAttr(value, i32)})

    def splat(self, value: float, type_: TensorType) -> SSAValue:
        """A tile of one float."""
        dense = DenseIntOrFPElementsAttr.from_list(type_, [value])  # pyright: ignore[reportCallIssue]
        return self.value(ConstantOp, (), [type_], {"value": dense})

    def scalar(self, value: float, type_: Attribute) -> SSAValue:
        """A float."""
        return self.value(ConstantOp, (), [type_], {"value": FloatAttr(value, type_)})  # pyright: ignore[reportCallIssue]

    def op(self, name: str, *operands: SSAValue, to: Attribute | None = None) -> SSAValue:
        """An elementwise op by its name."""
        cls = ELEMENTWISE[name] if "." in name else ELEMENTWISE[f"arith.{name}"]
        return self.value(cls, operands, [operands[0].type if to is None else to])

    def compare(self, predicate: str, left: SSAValue, right: SSAValue) -> SSAValue:
        """Whether a comparison of signed integers holds."""
        properties = {"predicate": IntegerAttr(_PREDICATES[predicate], 64)}
        return self.value(ELEMENTWISE["arith.cmpi"], [left, right], [i1], properties)

    def program(self, axis: int = 0) -> SSAValue:
        """The program along an axis."""
        return self.value(GetProgramIdOp, (), [i32], {"axis": IntegerAttr(axis, i32)})

    def programs(self, axis: int = 0) -> SSAValue:
        """How many programs there are along an axis."""
        return self.value(GetNumProgramsOp, (), [i32], {"axis": IntegerAttr(axis, i32)})

    # --- control ---

    def _inside(
        self, types: Sequence[Attribute], write: Callable[..., Sequence[SSAValue]]
    ) -> Block:
        outer, self.block = self.block, Block(arg_types=list(types))
        given = write(*self.block.args)
        self.emit(YieldOp, list(given or ()))
        inner, self.block = self.block, outer
        return inner

    def loop(
        self,
        bounds: tuple[SSAValue, SSAValue, SSAValue],
        carried: Sequence[SSAValue],
        write: Callable[..., Sequence[SSAValue]],
    ) -> Values:
        """A loop whose body takes the index and the carried values, and gives the next ones."""
        types = [value.type for value in carried]
        body = self._inside([i32, *types], write)
        return list(self.emit(ForOp, [*bounds, *carried], types, None, [Region(body)]).results)

    def branch(
        self,
        condition: SSAValue,
        types: Sequence[Attribute],
        yes: Callable[[], Sequence[SSAValue]],
        no: Callable[[], Sequence[SSAValue]],
    ) -> Values:
        """A branch with values."""
        regions = [Region(self._inside((), yes)), Region(self._inside((), no))]
        return list(self.emit(IfOp, [condition], types, None, regions).results)

    def roles(
        self,
        rows: Sequence[tuple[str, int, int, int]],
        bodies: Sequence[Callable[[SSAValue], None]],
    ) -> RolesOp:
        """Roles by name, warps, replicas and registers."""

        def region(body: Callable[[SSAValue], None]) -> Region:
            def write(replica: SSAValue) -> Sequence[SSAValue]:
                body(replica)
                return ()

            return Region(self._inside([i32], write))

        names, *numbers = zip(*rows, strict=True)
        keys = ("warps", "replicas", "registers")
        properties: dict[str, Attribute] = {
            "roles": ArrayAttr([StringAttr(name) for name in names]),
            **{key: integer_array(row) for key, row in zip(keys, numbers, strict=True)},
        }
        made = self.emit(RolesOp, (), (), properties, [region(body) for body in bodies])
        assert isinstance(made, RolesOp)
        return made

    # --- rings and turns ---

    def alloc(self, type_: SharedType) -> SSAValue:
        """A shared tile."""
        return self.value(LocalAllocOp, (), [type_])

    def ring(
        self, name: str, tiles: Sequence[SSAValue], consumers: int, producers: int = 1
    ) -> RingOp:
        """A ring over tiles."""
        properties = {
            "ring_name": StringAttr(name),
            "producers": IntegerAttr(producers, i32),
            "consumers": IntegerAttr(consumers, i32),
        }
        made = self.emit(RingOp, tiles, [RING], properties)
        assert isinstance(made, RingOp)
        return made

    def acquire(self, ring: RingOp, at: Position) -> Values:
        """The tiles of a slot to fill."""
        return list(self.emit(RingAcquireOp, [ring.result, *at], slot_types(ring)).results)

    def wait(self, ring: RingOp, at: Position) -> Values:
        """The tiles of a full slot."""
        return list(self.emit(RingWaitOp, [ring.result, *at], slot_types(ring)).results)

    def commit(self, ring: RingOp, at: Position, announced: int | None) -> None:
        """A slot is filled."""
        given = {} if announced is None else {"announced_bytes": IntegerAttr(announced, i32)}
        self.emit(RingCommitOp, [ring.result, at[0]], (), given)

    def release(self, ring: RingOp, slot: SSAValue, condition: SSAValue | None = None) -> None:
        """A slot is read."""
        rest = [] if condition is None else [condition]
        segments = integer_array((1, 1, len(rest)))
        self.emit(RingReleaseOp, [ring.result, slot, *rest], (), {"operandSegmentSizes": segments})

    def seek(self, ring: RingOp, at: Position, count: SSAValue) -> Position:
        """Where a role stands `count` fills on."""
        made = self.emit(RingSeekOp, [ring.result, count, *at], [i32, i32])
        return made.results[0], made.results[1]

    def take_turn(self, name: str) -> None:
        """Wait for the replica's turn."""
        self.emit(TurnWaitOp, (), (), {"turns": StringAttr(name)})

    def pass_turn(self, name: str) -> None:
        """The next replica's turn."""
        self.emit(TurnPassOp, (), (), {"turns": StringAttr(name)})

    # --- the copy engine ---

    def tensor_map(
        self, base: int, shape: Sequence[int], strides: Sequence[int], tile: TensorType
    ) -> SSAValue:
        """A map of an argument; shape and strides are the numbers of arguments."""
        plan = _boxes(tile)
        arguments = self.top.args
        recipe = TensorMapRecipe(
            "bf16",
            ("slot", base, 64),
            tuple(("slot", index, 32) for index in shape),
            tuple(("slot", index, 32) for index in strides),
            plan.box,
            plan.swizzle_bytes,
        )
        properties = {
            "recipe": StringAttr(json.dumps(recipe.to_metadata())),
            "index": IntegerAttr(self.num_maps, i32),
        }
        self.num_maps += 1
        used = dict.fromkeys([base, *shape, *strides])
        operands = [arguments[index] for index in used]
        made = self.emit(TensorMapOp, operands, [DescriptorType(tile)], properties)
        annotate_box(made, plan)
        return made.results[0]

    def fill(
        self, ring: RingOp, slot: SSAValue, desc: SSAValue, dst: SSAValue, *at: SSAValue
    ) -> None:
        """Copy a block into a tile of a slot."""
        segments = integer_array((1, 1, 1, 1, len(at), 0))
        made = self.emit(
            TmaFillOp, [desc, dst, ring.result, slot, *at], (), {"operandSegmentSizes": segments}
        )
        assert isinstance(desc.type, DescriptorType)
        annotate_box(made, _boxes(desc.type.block))

    def store_block(self, desc: SSAValue, src: SSAValue, *at: SSAValue) -> None:
        """Copy a shared tile to a block."""
        made = self.emit(TmaStoreOp, [desc, src, *at], [TOKEN])
        assert isinstance(desc.type, DescriptorType)
        annotate_box(made, _boxes(desc.type.block))

    def wait_stores(self, pending: int) -> None:
        """At most `pending` stores of the role still read their tiles."""
        self.emit(TmaStoreWaitOp, (), (), {"pending": IntegerAttr(pending, i32)})

    # --- tiles ---

    def part(self, tile: SSAValue, number: SSAValue, extents: tuple[int, ...], dim: int = 0):
        """A part of a shared tile."""
        assert isinstance(tile.type, SharedType)
        type_ = shared_part(tile.type, extents)
        return self.value(MemdescSliceOp, [tile, number], [type_], {"dim": IntegerAttr(dim, i32)})

    def transposed(self, tile: SSAValue) -> SSAValue:
        """A shared tile seen transposed."""
        assert isinstance(tile.type, SharedType)
        type_ = shared_tile(tile.type.element, tile.type.layout.data.permute((1, 0)))
        properties = {"order": DenseArrayBase.from_list(i32, (1, 0))}
        return self.value(MemdescTransOp, [tile], [type_], properties)

    def columns(self, tile: SSAValue, number: int, type_: Attribute, dim: int = 1) -> SSAValue:
        """Columns of a register tile."""
        properties = {"dim": IntegerAttr(dim, i32), "part": IntegerAttr(number, i32)}
        return self.value(ExtractSliceOp, [tile], [type_], properties)

    def rows(self, tile: SSAValue, number: int, type_: Attribute) -> SSAValue:
        """Rows of a register tile."""
        return self.columns(tile, number, type_, dim=0)

    def dot(
        self,
        a: SSAValue,
        b: SSAValue,
        c: SSAValue,
        columns: int,
        *,
        is_async: bool = True,
        a_place: str = SHARED,
    ) -> SSAValue:
        """A product of one warp group."""
        plan = ProductPlan("wgmma", (64, columns, 16), (4, 1), a_place, SHARED)
        properties: dict[str, Attribute] = {"product": ProductAttr(plan)}
        if is_async:
            properties["is_async"] = UnitAttr()
        return self.value(LaidOutDotOp, [a, b, c], [c.type], properties)

    def dot_wait(self, pending: int, *tiles: SSAValue) -> Values:
        """Wait for products; the tiles anew."""
        types = [tile.type for tile in tiles]
        return list(
            self.emit(DotWaitOp, tiles, types, {"pending": IntegerAttr(pending, i32)}).results
        )

    def convert(self, tile: SSAValue, type_: Attribute) -> SSAValue:
        """A tile in another layout."""
        return self.value(ConvertLayoutOp, [tile], [type_])

    def store_local(self, tile: SSAValue, place: SSAValue) -> None:
        """Write a shared tile."""
        self.emit(LocalStoreOp, [tile, place])

    def barrier(self) -> None:
        """All warps of the replica meet."""
        self.emit(LocalBarrierOp)

    def fence(self) -> None:
        """Asynchronous units see what threads wrote."""
        self.emit(FenceAsyncSharedOp)

    def module(self) -> ModuleOp:
        """The finished module."""
        self.emit(ReturnOp)
        inputs = list(self.top.arg_types)
        properties: dict[str, Attribute] = {
            "sym_name": StringAttr(self.name),
            "sym_visibility": StringAttr("public"),
            "function_type": FunctionType.from_lists(inputs, []),
        }
        kernel = build(FuncOp, [], [], properties, [Region(self.top)], location=_caller())
        module = ModuleOp([kernel])
        module.location = _caller()
        return module


def _boxes(tile: Attribute) -> BoxPlan:
    assert isinstance(tile, TensorType)
    plan = plan_boxes(tile.get_shape(), 2)
    assert isinstance(plan, BoxPlan), plan
    return plan


def _caller() -> FileLineColLoc:
    """The line outside of this module that an op is made for."""
    frame = sys._getframe(1)
    while frame is not None and frame.f_code.co_filename == __file__:
        frame = frame.f_back
    assert frame is not None
    name = frame.f_code.co_filename.rpartition("/")[2]
    return FileLineColLoc(StringAttr(name), IntAttr(frame.f_lineno), IntAttr(0))
