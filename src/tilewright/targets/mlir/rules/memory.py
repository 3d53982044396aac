"""Loads and stores: views of memrefs that are copied, else elements one by one.

What a mask leaves out is neither read nor written. Elements that a load leaves out without
`other` are zero.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from xdsl.dialects.builtin import StringAttr
from xdsl.ir import SSAValue

from tilewright.analysis.affine.memref import MemrefView, as_reinterpret_cast
from tilewright.ir.types import is_pointer, shape_of
from tilewright.ops.memory.ir import LoadOp, StoreOp
from tilewright.targets.mlir.emitter import RULES, Emitter, Tensor, pointee_of
from tilewright.targets.mlir.evaluate import Coord, Coords, Evaluator
from tilewright.targets.mlir.text import memory_text, tensor_text, type_text
from tilewright.targets.mlir.views import (
    Frame,
    make_frame,
    part_text,
    rows_of,
    strided_text,
    view_at,
)

ACCESSES = (LoadOp, StoreOp)
"""What has one of the forms, where it accesses a tile."""
FORM = "tw.access_form"
"""The attribute that says how an access is written: `view`, or `elements` with the reason."""


@RULES.register(LoadOp)
def _load(emitter: Emitter, op: LoadOp) -> None:
    if not shape_of(op.result.type):
        emitter.bind(op.result, _load_scalar(emitter, op))
        return
    frame = frame_of(emitter, op)
    if frame is not None:
        emitter.bind(op.result, _load_views(emitter, op, frame))
    else:
        emitter.bind(op.result, _load_elements(emitter, op))


@RULES.register(StoreOp)
def _store(emitter: Emitter, op: StoreOp) -> None:
    shape = shape_of(op.value.type)
    frame = frame_of(emitter, op) if shape else None
    if frame is not None:
        _store_views(emitter, op, frame)
        return

    def body(indices: list[str], carried: list[str]) -> Sequence[str]:
        ev, coords = Evaluator(emitter), emitter.row(indices)

        def write(inner: Evaluator) -> None:
            name = inner.at(op.value, coords)
            if is_pointer(op.value.type):
                name = emitter.address(name, op.value)
            Place(emitter, inner, op.ptr, coords).store(name)

        where(ev, op.mask, coords, write)
        return []

    emitter.nest(shape, body)


def where(
    ev: Evaluator, mask: SSAValue | None, coords: Coords, do: Callable[[Evaluator], None]
) -> None:
    """Do something at an element if its mask holds."""
    if mask is None:
        do(ev)
        return
    code = ev.code
    code.emit(f"scf.if {ev.at(mask, coords)} {{")
    with code.capture(1) as lines:
        do(ev.fork())
    code.lines.extend(lines)
    code.close("}")


def loaded_where(
    ev: Evaluator, mask: SSAValue | None, coords: Coords, kind: str,
    do: Callable[[Evaluator], str], otherwise: Callable[[Evaluator], str],
) -> str:  # fmt: skip
    """What `do` gives if the mask holds, else what `otherwise` gives."""
    if mask is None:
        return do(ev)
    code = ev.code
    (name,) = code.values(1, f"scf.if {ev.at(mask, coords)} -> ({kind}) {{")
    for side, end in ((do, "} else {"), (otherwise, "}")):
        with code.capture(1) as lines:
            code.emit(f"scf.yield {side(ev.fork())} : {kind}")
        code.lines.extend(lines)
        code.close(end)
    return name


class Place:
    """One element of memory: of an argument's memref by its index, or at an address."""

    def __init__(self, emitter: Emitter, ev: Evaluator, pointer: SSAValue, coords: Coords) -> None:
        self.emitter, self.code = emitter, emitter.code
        self.pointee = pointee_of(pointer)
        self.element, self.memory = type_text(self.pointee), memory_text(self.pointee)
        self._root, self._pointer = emitter.roots.of(pointer), pointer
        self._at = ev.at(pointer, coords)

    @property
    def is_in_memref(self) -> bool:
        """Whether an argument's memref holds it, as whatever type."""
        return self._root is not None

    def memref(self) -> tuple[str, str, str]:
        """The memref, the index and the memref's element type."""
        assert self._root is not None
        held = self.emitter.memory_of(self._root)
        at = self.emitter.to_index(self._at)
        return self.emitter.base(self._root), at, held

    def address(self) -> str:
        """Where the element is, as a number."""
        return self.emitter.address(self._at, self._pointer)

    def pointer(self) -> str:
        """The element as a pointer of the LLVM dialect."""
        return self.code.value(f"llvm.inttoptr {self.address()} : i64 to !llvm.ptr")

    def load(self) -> str:
        """What stands there."""
        if self._root is None:
            return self.from_memory(
                self.code.value(f"llvm.load {self.pointer()} : !llvm.ptr -> {self.memory}")
            )
        base, at, held = self.memref()
        name = self.code.value(f"memref.load {base}[{at}] : memref<?x{held}>")
        return self.from_memory(self._as(name, held, self.memory))

    def store(self, name: str) -> None:
        """Write a value of the element's type."""
        name = self.to_memory(name)
        if self._root is None:
            self.code.emit(f"llvm.store {name}, {self.pointer()} : {self.memory}, !llvm.ptr")
            return
        base, at, held = self.memref()
        name = self._as(name, self.memory, held)
        self.code.emit(f"memref.store {name}, {base}[{at}] : memref<?x{held}>")

    def _as(self, name: str, source: str, target: str) -> str:
        if source == target:
            return name
        return self.code.value(f"arith.bitcast {name} : {source} to {target}")

    def from_memory(self, name: str) -> str:
        """A value as it stands in memory, as one of the element's type."""
        if self.element == self.memory:
            return name
        zero = self.code.constant("i8", 0)
        return self.code.value(f"arith.cmpi ne, {name}, {zero} : i8")

    def to_memory(self, name: str) -> str:
        """A value of the element's type as it stands in memory."""
        if self.element == self.memory:
            return name
        return self.code.value(f"arith.extui {name} : i1 to i8")


# Element by element.


def _load_scalar(emitter: Emitter, op: LoadOp) -> str:
    return _loaded(emitter, Evaluator(emitter), op, ())


def _loaded(emitter: Emitter, ev: Evaluator, op: LoadOp, coords: Coords) -> str:
    kind = type_text(op.result.type)

    def otherwise(inner: Evaluator) -> str:
        if op.other is None:
            return inner.code.constant(kind, 0)
        name = inner.at(op.other, coords)
        return emitter.as_pointer_of(name, op.other, op.result)

    return loaded_where(
        ev,
        op.mask,
        coords,
        kind,
        lambda inner: Place(emitter, inner, op.ptr, coords).load(),
        otherwise,
    )


def _load_elements(emitter: Emitter, op: LoadOp) -> str:
    """Loops with reads that no pass moves: a `linalg.generic` that reads memory is no such op."""
    shape, kind = shape_of(op.result.type), type_text(op.result.type)
    buffer = emitter.buffer(shape, kind)

    def body(indices: list[str], carried: list[str]) -> Sequence[str]:
        name = _loaded(emitter, Evaluator(emitter), op, emitter.row(indices))
        at = ", ".join(indices)
        emitter.code.emit(f"memref.store {name}, {buffer.name}[{at}] : {buffer.type}")
        return []

    emitter.nest(shape, body)
    return emitter.from_buffer(buffer, shape, kind)


# By views.


def frame_of(emitter: Emitter, op: LoadOp | StoreOp) -> Frame | None:
    """The frame of the views that an access is written as, where it is one."""
    form = op.attributes.get(FORM)
    if isinstance(form, StringAttr) and form.data != "view":
        return None
    found = view_or_reason(emitter, op)
    if isinstance(found, str):
        return None
    access = emitter.accesses.of(op)
    assert not isinstance(access, str)
    element = memory_text(pointee_of(op.ptr))
    mask = access.mask
    return make_frame(emitter, op.ptr, found, mask.conditions, mask.positive, element)


def view_or_reason(emitter: Emitter, op: LoadOp | StoreOp) -> MemrefView | str:
    """What view an access is; why it is none where it is none."""
    access = emitter.accesses.of(op)
    if isinstance(access, str):
        return access
    found = as_reinterpret_cast(access, isinstance(op, StoreOp), takes_choices=True)
    if isinstance(found, str):
        return found
    root = emitter.roots.of(op.ptr)
    if root is None or root is not found.base:
        return "its pointers are addresses"
    held = type_text(pointee_of(op.ptr))
    if emitter.memory_of(root) != held:
        return f"elements of {held} are held as {emitter.memory_of(root)}"
    rows = rows_of(found)
    if len(rows) == len(found.dims):
        return f"dimension {rows[0]} {_kind_of_row(found, rows[0])}"
    again = found.wraps or found.looked_up is not None
    if isinstance(op, StoreOp) and again and rows != tuple(range(len(rows))):
        # Of elements that are written twice the last one stays, row by row.
        return f"dimension {rows[-1]} {_kind_of_row(found, rows[-1])}, within another one"
    return found


def _kind_of_row(found: MemrefView, dim: int) -> str:
    """Why each index of a dimension has a view of its own."""
    if dim in found.wraps:
        return "wraps"
    if found.looked_up is not None and found.looked_up[0] == dim:
        return "is looked up"
    return "has a mask that is no bound"


def _load_views(emitter: Emitter, op: LoadOp, frame: Frame) -> str:
    shape, kind = frame.shape, type_text(op.result.type)
    buffer = emitter.buffer(shape, kind)
    if not frame.is_whole():
        _fill(emitter, op, buffer, shape, kind)

    def copy(indices: Sequence[str]) -> None:
        target = _part_of_buffer(emitter, buffer, frame, indices)
        source = view_at(emitter, frame, indices)
        emitter.code.emit(
            f"memref.copy {source.name}, {target.name} : {source.type} to {target.type}"
        )

    _each_row(emitter, frame, copy)
    return emitter.from_buffer(buffer, shape, kind)


def _each_row(emitter: Emitter, frame: Frame, do: Callable[[Sequence[str]], None]) -> None:
    """Do something for every index of the dimensions that have a view for each."""
    parts = [frame.parts[dim] for dim in frame.rows]
    code = emitter.code

    def body(indices: list[str], carried: list[str]) -> Sequence[str]:
        places = [
            code.value(f"arith.addi {index}, {part.start} : index") if part.start else index
            for index, part in zip(indices, parts, strict=True)
        ]
        if not frame.choices:
            do(places)
            return []
        code.emit(f"scf.if {_chosen(emitter, frame, places)} {{")
        with code.capture(1) as lines:
            do(places)
        code.lines.extend(lines)
        code.close("}")
        return []

    emitter.nest([part.size for part in parts], body)


def _chosen(emitter: Emitter, frame: Frame, places: Sequence[str]) -> str:
    """Whether the mask lets the view for some indices of the frame's rows through."""
    code, ev, total = emitter.code, Evaluator(emitter), ""
    for choice in frame.choices:
        at = Coord(name=places[frame.rows.index(choice.dim)])
        holds = ev.at(choice.value, (at,))
        if choice.is_negated:
            holds = code.value(f"arith.xori {holds}, {code.constant('i1', 1)} : i1")
        total = code.value(f"arith.andi {total}, {holds} : i1") if total else holds
    return total


def _part_of_buffer(
    emitter: Emitter, buffer: Tensor, frame: Frame, indices: Sequence[str]
) -> Tensor:
    parts = frame.parts_at(indices)
    if all(part.is_whole(extent) for part, extent in zip(parts, frame.shape, strict=True)):
        return buffer
    strides = _row_major(frame.shape)
    type_ = strided_text([p.size for p in parts], strides, frame.element)
    if all(part.start == 0 for part in parts):
        type_ = type_.replace(", offset: ?", "")
    name = emitter.code.value(
        f"memref.subview {buffer.name}{part_text(parts)} : {buffer.type} to {type_}"
    )
    return Tensor(name, type_)


def _row_major(shape: Sequence[int]) -> list[str]:
    strides, step = list[str](), 1
    for extent in reversed(shape):
        strides.append(str(step))
        step *= extent
    return strides[::-1]


def _fill(emitter: Emitter, op: LoadOp, buffer: Tensor, shape: tuple[int, ...], kind: str) -> None:
    """Give a buffer what a load gives where it reads nothing."""
    code, other = emitter.code, op.other
    number: str | None = None
    if other is None:
        number = code.constant(kind, 0)
    else:
        number = emitter.uniform(other)
    if number is not None:
        code.emit(f"linalg.fill ins({number} : {kind}) outs({buffer.name} : {buffer.type})")
        return
    assert other is not None
    tensor = emitter.tensor(other)
    code.emit(
        f"bufferization.materialize_in_destination {tensor} in writable {buffer.name} : "
        f"({tensor_text(shape, kind)}, {buffer.type}) -> ()"
    )


def _store_views(emitter: Emitter, op: StoreOp, frame: Frame) -> None:
    code, shape, kind = emitter.code, frame.shape, type_text(op.value.type)
    value, type_ = emitter.tensor(op.value), tensor_text(shape, kind)

    def write(indices: Sequence[str]) -> None:
        target, parts = view_at(emitter, frame, indices), frame.parts_at(indices)
        name, part_type = value, type_
        if not all(part.is_whole(extent) for part, extent in zip(parts, shape, strict=True)):
            dims = "".join(f"{'?' if isinstance(p.size, str) else p.size}x" for p in parts)
            part_type = f"tensor<{dims}{kind}>"
            name = code.value(
                f"tensor.extract_slice {value}{part_text(parts)} : {type_} to {part_type}"
            )
        code.emit(
            f"bufferization.materialize_in_destination {name} in writable {target.name} : "
            f"({part_type}, {target.type}) -> ()"
        )

    _each_row(emitter, frame, write)
