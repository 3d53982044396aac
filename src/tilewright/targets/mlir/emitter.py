"""From T0 to the text of one function in MLIR's core dialects.

Numbers are scalars, tiles tensors, pointers numbers of elements from the start of an argument's
memref (`roots.py`) or addresses. A tile that is computed element by element is none until
something needs it as a whole (`evaluate.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager

from xdsl.ir import Attribute, Block, BlockArgument, Operation, SSAValue
from xdsl.traits import IsTerminator

from tilewright.analysis.affine.access import Accesses
from tilewright.ir.types import PointerType, element_of, is_pointer, shape_of, storage_bytes
from tilewright.ops.creation.ir import constant_of
from tilewright.ops.elementwise.comparisons import CmpIOp
from tilewright.ops.elementwise.ir import BitcastOp, IntToPtrOp, PtrToIntOp, SelectOp
from tilewright.ops.function import FuncOp
from tilewright.ops.memory.ir import AddPtrOp
from tilewright.support.dataclass import dataclass
from tilewright.support.errors import InternalError
from tilewright.support.rules import RuleTable
from tilewright.targets.mlir.evaluate import LAZY, Coord, Coords, Evaluator, dims_of, scalar_of
from tilewright.targets.mlir.roots import Roots
from tilewright.targets.mlir.rules.elements import emit_element, has_element_rule
from tilewright.targets.mlir.text import (
    INDEX,
    Code,
    ModuleText,
    memory_text,
    memref_text,
    tensor_text,
    type_text,
)

Rule = Callable[["Emitter", Operation], None]
RULES: RuleTable[Rule] = RuleTable("mlir")
IN_PLACE: RuleTable[Callable[..., SSAValue]] = RuleTable("mlir, in place")
"""Of an op that writes its result where it reads: the tile in whose tensor it works."""
"""What an op that is not computed element by element becomes."""
_ON_POINTERS = (AddPtrOp, IntToPtrOp, PtrToIntOp)
# Chosen, not measured: what an element may cost, in simple ops, to be computed again wherever it is
# used. Index arithmetic stays below it.
_CHEAP = 6
# Chosen, not measured: in simple ops, too; divisions are several of these on every CPU.
_COSTS = {
    "arith.divsi": 4,
    "arith.divui": 4,
    "arith.remsi": 4,
    "arith.remui": 4,
    "tt.extern_elementwise": 8,
}


def is_lazy(op: Operation) -> bool:
    """Whether an op's elements are computed where they are needed."""
    return isinstance(op, (*LAZY, *_ON_POINTERS)) or has_element_rule(op)


@dataclass(frozen=True)
class Tensor:
    """A tensor or a scalar that an op of linalg or scf gives: its name and type."""

    name: str
    type: str


class Emitter:
    """The state of one function's emission: names of values, by scope."""

    def __init__(self, module: ModuleText, kernel: FuncOp) -> None:
        self.code = Code(module)
        self.roots = Roots(kernel)
        self.accesses = Accesses()
        self._scopes: list[dict[SSAValue, str]] = [{}]
        self._costs: dict[SSAValue, int] = {}
        self.program_ids: tuple[str, ...] = ()
        self.num_programs: tuple[str, ...] = ()

    # Names.

    def bind(self, value: SSAValue, name: str) -> None:
        """Name a value in the region that is being written."""
        self._scopes[-1][value] = name

    def find(self, value: SSAValue) -> str | None:
        """The name of a scalar, or of a tile that is a tensor; None where it has none yet."""
        return next((scope[value] for scope in reversed(self._scopes) if value in scope), None)

    @contextmanager
    def scope(self) -> Generator[None]:
        """A region: names given there are unknown behind it."""
        self._scopes.append({})
        try:
            yield
        finally:
            self._scopes.pop()

    def scalar(self, value: SSAValue) -> str:
        """The name of a scalar; a pointer is a number of elements, or an address."""
        found = self.find(value)
        if found is not None:
            return found
        number = constant_of(value)
        if number is not None:
            return self.code.number(value.type, number)
        raise InternalError(f"a value of type {value.type} was not emitted before its use")

    def scalar_as(self, value: SSAValue, receiver: SSAValue) -> str:
        """A scalar as one of the values that `receiver` may be."""
        return self.as_pointer_of(self.scalar(value), value, receiver)

    # Pointers.

    def as_pointer_of(self, name: str, source: SSAValue, receiver: SSAValue) -> str:
        """A pointer (or number) of `source` in the form that `receiver` has."""
        if not is_pointer(source.type) or self.roots.of(receiver) is not None:
            return name
        return self.address(name, source)

    def address(self, name: str, pointer: SSAValue) -> str:
        """The address that an element of `pointer`, called `name`, is."""
        root = self.roots.of(pointer)
        if root is None:
            return name
        base = self.base(root)
        kind = f"memref<?x{self.memory_of(root)}>"
        start = self.code.value(f"memref.extract_aligned_pointer_as_index {base} : {kind} -> index")
        start = self.code.value(f"arith.index_cast {start} : index to i64")
        size = self.code.constant("i64", storage_bytes(pointee_of(pointer)))
        bytes_ = self.code.value(f"arith.muli {name}, {size} : i64")
        return self.code.value(f"arith.addi {start}, {bytes_} : i64")

    def base(self, root: SSAValue) -> str:
        """The memref of an argument."""
        return f"%{argument_name(root)}"

    def memory_of(self, root: SSAValue) -> str:
        """The type of an argument's elements in memory."""
        return memory_text(pointee_of(root))

    # Elements.

    def element(self, op: Operation, operands: Sequence[str]) -> str:
        """One element of the result of an op that is computed element by element."""
        pointers = [v for v in (*op.operands, *op.results) if is_pointer(v.type)]
        if not pointers:
            return emit_element(self.code, op, operands)
        match op:
            case AddPtrOp():
                return self._add_pointer(op, operands)
            case IntToPtrOp():
                return self._extended(operands[0], type_text(op.src.type))
            case PtrToIntOp():
                return self.address(operands[0], op.src)
            case BitcastOp():
                return self.as_pointer_of(operands[0], op.src, op.result)
            case SelectOp():
                sides = zip(operands[1:], op.operands[1:], strict=True)
                names = [self.as_pointer_of(name, v, op.result) for name, v in sides]
                return self.code.value(f"arith.select {operands[0]}, {names[0]}, {names[1]} : i64")
            case CmpIOp():
                names = [self.address(n, v) for n, v in zip(operands, op.operands, strict=True)]
                return emit_element(self.code, op, names)
            case _:
                return self.as_pointer_of(operands[0], op.operands[0], op.results[0])

    def _add_pointer(self, op: AddPtrOp, operands: Sequence[str]) -> str:
        start, offset = operands
        offset = self._extended(offset, type_text(op.offset.type))
        if self.roots.of(op.result) is None:
            size = storage_bytes(pointee_of(op.result))
            offset = self.code.value(
                f"arith.muli {offset}, {self.code.constant('i64', size)} : i64"
            )
            start = self.address(start, op.ptr)
        return self.code.value(f"arith.addi {start}, {offset} : i64")

    def _extended(self, name: str, kind: str) -> str:
        return name if kind == "i64" else self.code.value(f"arith.extsi {name} : {kind} to i64")

    def cost(self, value: SSAValue) -> int:
        """What an element of a tile costs to compute where it is needed."""
        if not shape_of(value.type) or self.find(value) is not None:
            return 0
        if value not in self._costs:
            op = value.owner
            assert isinstance(op, Operation)
            own = 0 if isinstance(op, LAZY) else _COSTS.get(op.name, _cost_of(op))
            self._costs[value] = own + sum(map(self.cost, op.operands))
        return self._costs[value]

    # Tensors.

    def tensor(self, value: SSAValue, receiver: SSAValue | None = None) -> str:
        """A tile as a tensor; of pointers, in the form that `receiver` has."""
        is_same = receiver is None or self.roots.of(receiver) == self.roots.of(value)
        found = self.find(value)
        if found is not None and is_same:
            return found
        target = value if receiver is None else receiver
        name = self.generic(
            shape_of(value.type),
            type_text(value.type),
            lambda ev, coords: self.as_pointer_of(ev.at(value, coords), value, target),
            splat=self.uniform(value) if is_same else None,
        )
        if is_same:
            self.bind(value, name)
        return name

    def uniform(self, value: SSAValue) -> str | None:
        """The scalar that every element of a tile is, where it was made of one."""
        number = constant_of(value)
        if number is not None:
            return self.code.number(value.type, number)
        source = scalar_of(value)
        return None if source is None else self.scalar_as(source, value)

    def empty(self, shape: Sequence[int], element: str) -> str:
        """A tensor whose elements are not defined yet."""
        return self.code.value(f"tensor.empty() : {tensor_text(shape, element)}")

    def filled(self, shape: Sequence[int], element: str, number: str) -> str:
        """A tensor of one number."""
        type_ = tensor_text(shape, element)
        empty = self.empty(shape, element)
        return self.code.value(
            f"linalg.fill ins({number} : {element}) outs({empty} : {type_}) -> {type_}"
        )

    def generic(
        self,
        shape: tuple[int, ...],
        element: str,
        compute: Callable[[Evaluator, Coords], str],
        splat: str | None = None,
    ) -> str:
        """A tensor whose elements `compute` gives, as one `linalg.generic`."""
        if splat is not None:
            return self.filled(shape, element, splat)
        inputs: dict[tuple[str, str, str], str] = {}
        with self.code.capture(2) as body, self.scope():
            result = compute(Evaluator(self, inputs), dims_of(len(shape)))
            self.code.emit(f"linalg.yield {result} : {element}")
        out = Tensor(self.empty(shape, element), tensor_text(shape, element))
        iterators = ["parallel"] * len(shape)
        identity = ", ".join(f"d{d}" for d in range(len(shape)))
        return self.structured(inputs, [(out, identity, element)], iterators, body)[0]

    def structured(
        self,
        inputs: dict[tuple[str, str, str], str],
        outs: Sequence[tuple[Tensor, str, str]],
        iterators: Sequence[str],
        body: Sequence[str],
        out_names: Sequence[str] = (),
        extents: Sequence[int] = (),
    ) -> list[str]:
        """A `linalg.generic` with a body that was written before.

        Every dimension is one of an operand, so that its extent is known: where none of those
        has it, an operand without a meaning does (`extents`).
        """
        dims = ", ".join(f"d{d}" for d in range(len(iterators)))
        known = {word for _, _, at in inputs for word in at.split(", ")}
        known |= {word for _, at, _ in outs for word in at.split(", ")}
        missing = [d for d in range(len(iterators)) if f"d{d}" not in known]
        if missing:
            shape = [extents[d] for d in missing]
            at = ", ".join(f"d{d}" for d in missing)
            inputs[self.empty(shape, "i1"), tensor_text(shape, "i1"), at] = "%extent"
        results = [at for _, _, at in inputs] + [at for _, at, _ in outs]
        maps = ", ".join(f"affine_map<({dims}) -> ({result})>" for result in results)
        kinds = ", ".join(f'"{kind}"' for kind in iterators)
        head = f"linalg.generic {{indexing_maps = [{maps}], iterator_types = [{kinds}]}}"
        if inputs:
            names = ", ".join(name for name, _, _ in inputs)
            types = ", ".join(type_ for _, type_, _ in inputs)
            head += f" ins({names} : {types})"
        names = ", ".join(out.name for out, _, _ in outs)
        types = ", ".join(out.type for out, _, _ in outs)
        found = self.code.values(len(outs), f"{head} outs({names} : {types}) {{")
        named = [(name, _element(type_)) for (_, type_, _), name in inputs.items()]
        taken = out_names or [f"%out{i}" for i in range(len(outs))]
        named += [(name, kind) for name, (_, _, kind) in zip(taken, outs, strict=True)]
        arguments = ", ".join(f"{name}: {kind}" for name, kind in named)
        self.code.close(f"^bb0({arguments}):")
        self.code.lines.extend(body)
        self.code.close(f"}} -> {types}" if len(outs) == 1 else f"}} -> ({types})")
        return found

    def nest(
        self,
        shape: Sequence[int | str],
        body: Callable[[list[str], list[str]], Sequence[str]],
        carried: Sequence[Tensor] = (),
    ) -> list[str]:
        """Loops over an index space, in order; `body(indices, carried)` gives what is carried.

        An extent that is no integer is the name of a value of type index.
        """
        return self._nest(list(shape), [], [t.name for t in carried], carried, body)

    def _nest(
        self,
        shape: list[int | str],
        indices: list[str],
        names: list[str],
        carried: Sequence[Tensor],
        body: Callable[[list[str], list[str]], Sequence[str]],
    ) -> list[str]:
        if not shape:
            return list(body(indices, names))
        code, index = self.code, self.code.new_name()
        zero, one = code.index(0), code.index(1)
        inner = [code.new_name() for _ in carried]
        end = shape[0] if isinstance(shape[0], str) else code.index(shape[0])
        head = f"scf.for {index} = {zero} to {end} step {one}"
        if carried:
            pairs = ", ".join(f"{a} = {b}" for a, b in zip(inner, names, strict=True))
            head += f" iter_args({pairs}) -> ({', '.join(t.type for t in carried)})"
        found = code.values(len(carried), f"{head} {{")
        with code.capture(1) as lines, self.scope():
            following = self._nest(shape[1:], [*indices, index], inner, carried, body)
            if carried:
                types = ", ".join(t.type for t in carried)
                code.emit(f"scf.yield {', '.join(following)} : {types}")
        code.lines.extend(lines)
        code.close("}")
        return found

    # Ops.

    def emit_block(self, block: Block) -> Operation:
        """Emit the ops of a block but the last one, which is returned."""
        for op in block.ops:
            if op.has_trait(IsTerminator):
                return op
            self.emit(op)
        raise InternalError("a block ends without a terminator")

    def emit(self, op: Operation) -> None:
        """Emit one op, or leave it to what needs its elements."""
        if not is_lazy(op):
            rule = RULES.find(type(op))
            if rule is None:
                raise InternalError(f"{op.name} reached the emission of MLIR")
            rule(self, op)
        elif not shape_of(op.results[0].type):
            self._emit_scalar(op)
        elif self._is_worth_keeping(op):
            for result in op.results:
                self.tensor(result)

    def _emit_scalar(self, op: Operation) -> None:
        if constant_of(op.results[0]) is not None:
            return
        if isinstance(op, LAZY):
            ev = Evaluator(self)
            for result in op.results:
                self.bind(result, ev.at(result, ()))
            return
        self.bind(op.results[0], self.element(op, [self.scalar(v) for v in op.operands]))

    def _is_worth_keeping(self, op: Operation) -> bool:
        """Whether a tile is a tensor from the start, as it is needed more than once."""
        uses = [use.operation for result in op.results for use in result.uses]
        is_used_again = len(uses) > 1 or any(u.parent is not op.parent for u in uses)
        return is_used_again and max(map(self.cost, op.results)) > _CHEAP

    def row(self, names: Sequence[str]) -> Coords:
        """Coordinates that are values."""
        return tuple(Coord(name=name) for name in names)

    def buffer(self, shape: Sequence[int], element: str) -> Tensor:
        """Memory for a tile that is being loaded."""
        type_ = memref_text(shape, element)
        return Tensor(self.code.value(f"memref.alloc() : {type_}"), type_)

    def from_buffer(self, buffer: Tensor, shape: Sequence[int], element: str) -> str:
        """A tensor that is what a buffer holds, which nothing else uses from now on."""
        type_ = tensor_text(shape, element)
        return self.code.value(
            f"bufferization.to_tensor {buffer.name} restrict writable : {buffer.type} to {type_}"
        )

    def to_index(self, name: str, kind: str = "i64") -> str:
        """A number as an index."""
        if kind == INDEX:
            return name
        return self.code.value(f"arith.index_cast {name} : {kind} to index")


def pointee_of(pointer: SSAValue) -> Attribute:
    """What a pointer, or each of a tile of pointers, points to."""
    element = element_of(pointer.type)
    assert isinstance(element, PointerType)
    return element.pointee


def argument_name(argument: SSAValue) -> str:
    """The name of an argument of the function: as in the source, where it says."""
    assert isinstance(argument, BlockArgument)
    return f"a{argument.index}"


def _cost_of(op: Operation) -> int:
    return 8 if op.dialect_name() == "math" else 1


def _element(tensor_type: str) -> str:
    return tensor_type[len("tensor<") : -1].rpartition("x")[2]
