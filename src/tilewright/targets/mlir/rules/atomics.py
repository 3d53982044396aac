"""Atomic accesses: `memref.atomic_rmw` and its general form, element by element in order.

Every one acquires and releases, which is as much as any order that a program asks for.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from xdsl.ir import SSAValue

from tilewright.ir.types import shape_of
from tilewright.ops.atomics.ir import (
    AtomicCasOp,
    AtomicLoadOp,
    AtomicOp,
    AtomicRmwOp,
    AtomicStoreOp,
)
from tilewright.targets.mlir.emitter import RULES, Emitter, Tensor
from tilewright.targets.mlir.evaluate import Coords, Evaluator
from tilewright.targets.mlir.rules.memory import Place, loaded_where, where
from tilewright.targets.mlir.text import Code, is_float_text, tensor_text, type_text, width_text

_KINDS = {
    "and": "andi", "or": "ori", "xor": "xori", "add": "addi", "fadd": "addf", "max": "maxs",
    "min": "mins", "umax": "maxu", "umin": "minu", "exch": "assign",
}  # fmt: skip
_LLVM_KINDS = {
    "and": "_and", "or": "_or", "xor": "_xor", "add": "add", "fadd": "fadd", "max": "max",
    "min": "min", "umax": "umax", "umin": "umin", "exch": "xchg",
}  # fmt: skip
Access = Callable[[Evaluator, Coords], str]


def _each(emitter: Emitter, op: AtomicOp, pointers: SSAValue, mask: SSAValue | None, do: Access):
    """Do an access at every element where the mask holds, and name what they gave."""
    code, shape = emitter.code, shape_of(pointers.type)
    result = op.results[0] if op.results else None
    is_used = result is not None and any(True for _ in result.uses)
    if result is None or not is_used:

        def without(indices: list[str], carried: list[str]) -> Sequence[str]:
            coords = emitter.row(indices)
            where(Evaluator(emitter), mask, coords, lambda ev: _drop(do(ev, coords)))
            return []

        emitter.nest(shape, without)
        return
    kind = type_text(result.type)

    def one(coords: Coords) -> str:
        return loaded_where(
            Evaluator(emitter),
            mask,
            coords,
            kind,
            lambda ev: do(ev, coords),
            lambda ev: ev.code.constant(kind, 0),
        )

    if not shape:
        emitter.bind(result, one(()))
        return
    type_ = tensor_text(shape, kind)

    def body(indices: list[str], carried: list[str]) -> Sequence[str]:
        name, at = one(emitter.row(indices)), ", ".join(indices)
        return [code.value(f"tensor.insert {name} into {carried[0]}[{at}] : {type_}")]

    inits = [Tensor(emitter.empty(shape, kind), type_)]
    emitter.bind(result, emitter.nest(shape, body, inits)[0])


def _drop(name: str) -> None:
    """What an access gives, where nobody asks."""


@RULES.register(AtomicRmwOp)
def _rmw(emitter: Emitter, op: AtomicRmwOp) -> None:
    kind = op.kind_name()

    def access(ev: Evaluator, coords: Coords) -> str:
        place = Place(emitter, ev, op.ptr, coords)
        return combine_in_place(place, kind, ev.at(op.value, coords))

    _each(emitter, op, op.ptr, op.mask, access)


def access_function(
    code: Code, name: str, operands: Sequence[tuple[str, str]], result: str,
    write: Callable[[Code, list[str]], str],
) -> str:  # fmt: skip
    """Call the function of one access, which is written the first time.

    `operands` are names and types; `write` gives the name of the result, of type `result`.
    """
    symbol = f"tw_access_{name}"
    if symbol not in code.module.functions:
        inner = Code(code.module)
        names = [f"%a{index}" for index in range(len(operands))]
        found = write(inner, names)
        inner.emit(f"return {found} : {result}" if result else "return")
        pairs = zip(names, operands, strict=True)
        parameters = ", ".join(f"{name}: {kind}" for name, (_, kind) in pairs)
        arrow = f" -> {result}" if result else ""
        code.module.functions[symbol] = inner.function(
            f"func.func private @{symbol}({parameters}){arrow}"
        )
    given = ", ".join(name for name, _ in operands)
    kinds = ", ".join(kind for _, kind in operands)
    call = f"func.call @{symbol}({given}) : ({kinds}) -> {result or '()'}"
    if result:
        return code.value(call)
    code.emit(call)
    return ""


def combine_in_place(place: Place, kind: str, value: str) -> str:
    """What stood at a place before it was combined with a value in one step."""
    code, element = place.code, place.element
    if place.is_in_memref and place.memref()[2] == element:
        base, at, held = place.memref()
        return code.value(
            f"memref.atomic_rmw {_KINDS[kind]} {value}, {base}[{at}] : "
            f"({element}, memref<?x{held}>) -> {element}"
        )
    if element == "i1":
        value = place.to_memory(value)
    memory, name = place.memory, _LLVM_KINDS[kind]

    def write(inner: Code, names: list[str]) -> str:
        at = inner.value(f"llvm.inttoptr {names[0]} : i64 to !llvm.ptr")
        return inner.value(f"llvm.atomicrmw {name} {at}, {names[1]} acq_rel : !llvm.ptr, {memory}")

    operands = [(place.address(), "i64"), (value, memory)]
    return place.from_memory(access_function(code, f"{kind}_{memory}", operands, memory, write))


@RULES.register(AtomicCasOp)
def _cas(emitter: Emitter, op: AtomicCasOp) -> None:
    def access(ev: Evaluator, coords: Coords) -> str:
        place = Place(emitter, ev, op.ptr, coords)
        return _exchanged(place, ev.at(op.compare, coords), ev.at(op.value, coords))

    _each(emitter, op, op.ptr, None, access)


def _exchanged(place: Place, compare: str, value: str) -> str:
    code, element = place.code, place.element
    if place.is_in_memref and place.memref()[2] == element and not is_float_text(element):
        base, at, held = place.memref()
        operands = [(base, f"memref<?x{held}>"), (at, "index")]
        operands += [(side, element) for side in (compare, value)]
        return access_function(
            code, f"cas_{element}", operands, element, lambda c, n: _written_cas(c, n, element)
        )
    bits = f"i{width_text(place.memory)}"
    sides = [_bits(code, place.to_memory(side), place.memory, bits) for side in (compare, value)]

    def write(inner: Code, names: list[str]) -> str:
        at = inner.value(f"llvm.inttoptr {names[0]} : i64 to !llvm.ptr")
        pair = inner.value(
            f"llvm.cmpxchg {at}, {names[1]}, {names[2]} acq_rel acquire : !llvm.ptr, {bits}"
        )
        return inner.value(f"llvm.extractvalue {pair}[0] : !llvm.struct<({bits}, i1)>")

    operands = [(place.address(), "i64"), *((side, bits) for side in sides)]
    old = access_function(code, f"cas_at_{bits}", operands, bits, write)
    return place.from_memory(_bits(code, old, bits, place.memory))


def _written_cas(code: Code, names: Sequence[str], element: str) -> str:
    """What stood in a memref, and was replaced if it was what is compared with."""
    base, at, compare, value = names
    name = code.value(f"memref.generic_atomic_rmw {base}[{at}] : memref<?x{element}> {{")
    with code.capture(1) as lines:
        old = code.new_name()
        is_equal = code.value(f"arith.cmpi eq, {old}, {compare} : {element}")
        new = code.value(f"arith.select {is_equal}, {value}, {old} : {element}")
        code.emit(f"memref.atomic_yield {new} : {element}")
    code.close(f"^bb0({old}: {element}):")
    code.lines.extend(lines)
    code.close("}")
    return name


def _bits(code: Code, name: str, source: str, target: str) -> str:
    return name if source == target else code.value(f"arith.bitcast {name} : {source} to {target}")


@RULES.register(AtomicLoadOp)
def _atomic_load(emitter: Emitter, op: AtomicLoadOp) -> None:
    def access(ev: Evaluator, coords: Coords) -> str:
        place = Place(emitter, ev, op.ptr, coords)
        memory = place.memory
        size = width_text(memory) // 8

        def write(inner: Code, names: list[str]) -> str:
            at = inner.value(f"llvm.inttoptr {names[0]} : i64 to !llvm.ptr")
            return inner.value(
                f"llvm.load {at} atomic acquire {{alignment = {size} : i64}} : "
                f"!llvm.ptr -> {memory}"
            )

        operands = [(place.address(), "i64")]
        return place.from_memory(
            access_function(ev.code, f"load_{memory}", operands, memory, write)
        )

    _each(emitter, op, op.ptr, op.mask, access)


@RULES.register(AtomicStoreOp)
def _atomic_store(emitter: Emitter, op: AtomicStoreOp) -> None:
    def access(ev: Evaluator, coords: Coords) -> str:
        place = Place(emitter, ev, op.ptr, coords)
        memory = place.memory
        size = width_text(memory) // 8
        value = place.to_memory(ev.at(op.value, coords))

        def write(inner: Code, names: list[str]) -> str:
            at = inner.value(f"llvm.inttoptr {names[0]} : i64 to !llvm.ptr")
            inner.emit(
                f"llvm.store {names[1]}, {at} atomic release {{alignment = {size} : i64}} : "
                f"{memory}, !llvm.ptr"
            )
            return ""

        operands = [(place.address(), "i64"), (value, memory)]
        return access_function(ev.code, f"store_{memory}", operands, "", write)

    _each(emitter, op, op.ptr, op.mask, access)
