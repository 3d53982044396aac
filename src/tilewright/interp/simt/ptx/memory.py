"""PTX's loads, stores, atomics and prefetches."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tilewright.interp.simt import types as t
from tilewright.interp.simt.atomics import change_function
from tilewright.interp.simt.kinds import dtype_of_kind, is_kind
from tilewright.interp.simt.ptx.registers import Read
from tilewright.interp.simt.ptx.rules import Compute, PtxCall, ptx
from tilewright.ir.op import Array

_ORDERS = "relaxed acquire release acq_rel cta cluster gpu sys"
_SPACE_WORDS = "global shared shared::cta const local"
CACHE_WORDS = (
    "ca cg cs lu cv wb wt L1::evict_first L1::evict_last L1::evict_normal L1::evict_unchanged "
    "L1::no_allocate L2::64B L2::128B L2::256B L2::cache_hint L2::evict_first L2::evict_last"
)
_SPACES = {"global": t.GLOBAL, "shared": t.SHARED, "const": t.GLOBAL, "local": t.LOCAL}


def space_of_words(call: PtxCall) -> int:
    """The address space that the modifiers name, generic without one."""
    for word in call.words:
        space = _SPACES.get(word.split("::")[0])
        if space is not None:
            return space
    return t.GENERIC


def _memory_type(call: PtxCall, count: int) -> tuple[t.LlvmType, str]:
    """What lies in memory, as integers, and the PTX type of one element."""
    kind = call.kinds()[-1]
    width = 32 if kind in ("f16x2", "bf16x2") else dtype_of_kind(kind).itemsize * 8
    element = t.IntType(width)
    return (element if count == 1 else t.VectorType(count, element)), kind


@ptx("ld", "ldu", words=f"{_ORDERS} {_SPACE_WORDS} {CACHE_WORDS} volatile nc weak v2 v4 v8")
def _load(call: PtxCall) -> Compute:
    machine, site, space = call.machine, call.site, space_of_words(call)
    members = call.members(0)
    call.writes(*members)
    address, _ = call.address(1)
    type_, kind = _memory_type(call, len(members))
    is_signed = kind.startswith("s")

    def compute() -> Sequence[Array]:
        value = machine.load(space, address(), type_, t.size_bytes(type_), site)
        assert isinstance(value, np.ndarray)
        rows = value if value.ndim == 2 else value[None]
        if is_signed:
            rows = rows.view(dtype_of_kind(kind))
        return [np.ascontiguousarray(row) for row in rows]

    return compute


@ptx("st", words=f"{_ORDERS} {_SPACE_WORDS} {CACHE_WORDS} volatile weak v2 v4 v8")
def _store(call: PtxCall) -> Compute:
    machine, site, space = call.machine, call.site, space_of_words(call)
    address, _ = call.address(0)
    members = call.members(1)
    type_, _ = _memory_type(call, len(members))
    bits = f"u{t.width_bits(t.element_type(type_))}"
    readers = [call.registers.reader(member, bits) for member in members]
    is_ordered = any(call.has(word) for word in ("relaxed", "release"))
    if is_ordered and len(readers) == 1:
        return _ordered_store(call, address, readers[0], t.size_bytes(type_))

    def compute() -> None:
        rows = [read() for read in readers]
        value = rows[0] if len(rows) == 1 else np.stack(rows)
        machine.store(space, address(), value, type_, t.size_bytes(type_), site)

    return compute


def _ordered_store(call: PtxCall, address: Read, read: Read, num_bytes: int) -> Compute:
    """A store that is no race with atomics: it takes its turn among them."""
    machine, site, space = call.machine, call.site, space_of_words(call)

    def compute() -> None:
        value = read()

        def replace(_: Array, threads: Array) -> Array:
            return np.ascontiguousarray(value[threads])[:, None].view(np.uint8)

        machine.update(space, address(), num_bytes, replace, site)

    return compute


@ptx(
    "atom",
    "red",
    words=f"{_ORDERS} {_SPACE_WORDS} {CACHE_WORDS} add min max and or xor exch cas inc dec noftz "
    "v2 v4 v8",
)
def _atomic(call: PtxCall) -> Compute:
    machine, site, space = call.machine, call.site, space_of_words(call)
    returns = call.instruction.opcode[0] == "atom"
    if returns:
        call.writes(*call.members(0))
    operation = call.one_of("add", "min", "max", "and", "or", "xor", "exch", "cas", "inc", "dec")
    kind = next(word for word in reversed(call.words) if is_kind(word))
    address, _ = call.address(int(returns))
    sources = range(int(returns) + 1, len(call.operands))
    width = 4 if kind in ("f16x2", "bf16x2") else dtype_of_kind(kind).itemsize
    # A vector is one atomic for each of its elements, in no order among them.
    rows = zip(*(call.members(source) for source in sources), strict=True)
    lanes = [[call.registers.reader(member, f"u{8 * width}") for member in row] for row in rows]
    change = change_function(operation, kind)

    def element(at: Array, readers: Sequence[Read]) -> Array:
        inputs = [read() for read in readers]

        def update(old: Array, threads: Array) -> Array:
            before = np.ascontiguousarray(old).view(f"u{width}")[:, 0]
            after = change(before, *(value[threads] for value in inputs))
            return np.ascontiguousarray(after)[:, None].view(np.uint8)

        old = machine.update(space, at, width, update, site)
        return np.ascontiguousarray(old).view(f"u{width}")[:, 0]

    def compute() -> Sequence[Array] | None:
        first = address()
        step = first.dtype.type(width)
        old = [element(first + step * first.dtype.type(k), row) for k, row in enumerate(lanes)]
        return old if returns else None

    return compute


@ptx("prefetch", "prefetchu", "applypriority", "createpolicy", words=None)
def _hint(call: PtxCall) -> Compute:
    if call.instruction.opcode[0] == "createpolicy":
        call.writes(call.operands[0])
        policy = np.zeros(call.machine.threads, np.uint64)
        return lambda: [policy]
    return lambda: None


@ptx("fence", "membar", words="sc acq_rel acquire release cta cluster gpu sys gl")
def _fence(call: PtxCall) -> Compute:
    return lambda: None


@ptx("cvta", words="to global shared local const")
def _to_address(call: PtxCall) -> Compute:
    call.writes(call.operands[0])
    read, machine = call.read(1, "u64"), call.machine
    space = space_of_words(call)
    window = np.uint64(machine.window(space))
    goes_to_generic = not call.has("to")
    return lambda: [read() + window if goes_to_generic else read() - window]
