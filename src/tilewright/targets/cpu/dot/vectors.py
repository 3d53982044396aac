"""Idioms of vector code in LLVM text: counted loops, splats, partial access, transposes."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tilewright.codegen.llvm_builder import FunctionBuilder
from tilewright.targets.cpu.transposition import PART_BITS, transposed

# By definition: the widths of the types.
ELEMENT_BITS = {
    **{"double": 64, "float": 32, "half": 16, "bfloat": 16},
    **{"i64": 64, "i32": 32, "i16": 16, "i8": 8},
}
"""Bits of the LLVM scalar types that buffers are made of."""


def counted_loop(fn: FunctionBuilder, count: int, body: Callable[[str], None]) -> None:
    """Emit `body` for an i64 index running from 0 to `count`; straight code for one."""

    def carry_nothing(index: str, values: Sequence[str]) -> Sequence[str]:
        body(index)
        return values

    carried_loop(fn, count, "i64", (), carry_nothing)


def carried_loop(
    fn: FunctionBuilder,
    count: int,
    type_: str,
    initial: Sequence[str],
    body: Callable[[str, Sequence[str]], Sequence[str]],
) -> Sequence[str]:
    """A counted loop whose body maps values of `type_` to their next; returns the last ones."""
    if count <= 1:
        return body("0", initial) if count == 1 else initial
    before, head, latch, done = fn.block, fn.new_label(), fn.new_label(), fn.new_label()
    fn.branch(head)
    fn.place(head)
    index = fn.value(f"phi i64 [ 0, %{before} ], [ %{latch}.next, %{latch} ]")
    carried = [f"%{latch}.carried{position}" for position in range(len(initial))]
    phis_at = len(fn.lines)
    last = body(index, carried)
    # The values that flow back are known only now; the phis must stand first in the block.
    fn.lines[phis_at:phis_at] = [
        f"  {name} = phi {type_} [ {first}, %{before} ], [ {next_}, %{latch} ]"
        for name, first, next_ in zip(carried, initial, last, strict=True)
    ]
    fn.branch(latch)
    fn.place(latch)
    fn.emit(f"%{latch}.next = add nuw nsw i64 {index}, 1")
    fn.branch_if(fn.value(f"icmp ult i64 %{latch}.next, {count}"), head, done)
    fn.place(done)
    return last


def counted_while(fn: FunctionBuilder, count: str, body: Callable[[str], None]) -> None:
    """Emit `body` for an i64 index running from 0 to `count`, known at run time; maybe never."""

    def carry_nothing(index: str, values: Sequence[str]) -> Sequence[str]:
        body(index)
        return values

    carried_while(fn, ("0", count), "i64", (), carry_nothing)


def carried_while(
    fn: FunctionBuilder,
    bounds: tuple[str, str],
    type_: str,
    initial: Sequence[str],
    body: Callable[[str, Sequence[str]], Sequence[str]],
) -> Sequence[str]:
    """The same from the first i64 of `bounds` up to the second, known at run time; maybe never."""
    first, end = bounds
    before, head, inside, done = fn.block, fn.new_label(), fn.new_label(), fn.new_label()
    fn.branch(head)
    fn.place(head)
    index = f"%{head}.index"
    carried = [f"%{head}.carried{position}" for position in range(len(initial))]
    phis_at = len(fn.lines)
    fn.branch_if(fn.value(f"icmp slt i64 {index}, {end}"), inside, done)
    fn.place(inside)
    last = body(index, carried)
    following = fn.value(f"add nsw i64 {index}, 1")
    back = fn.block
    fn.branch(head)
    entries = zip((index, *carried), (first, *initial), (following, *last), strict=True)
    types = ("i64", *(type_ for _ in carried))
    fn.lines[phis_at:phis_at] = [
        f"  {name} = phi {kind} [ {start}, %{before} ], [ {next_}, %{back} ]"
        for kind, (name, start, next_) in zip(types, entries, strict=True)
    ]
    fn.place(done)
    return carried


def scaled(fn: FunctionBuilder, index: str, factor: int | str, offset: int | str = 0) -> str:
    """The i64 value `index * factor + offset`; constants fold."""
    if isinstance(factor, int) and index.isdecimal():
        product = str(int(index) * factor)
    elif factor == 1 or index == "0":
        product = index
    else:
        product = fn.value(f"mul nsw i64 {index}, {factor}")
    if offset in (0, "0"):
        return product
    if product == "0":
        return str(offset)
    if isinstance(offset, int) and product.isdecimal():
        return str(int(product) + offset)
    return fn.value(f"add nsw i64 {product}, {offset}")


def element_address(fn: FunctionBuilder, type_: str, base: str, index: int | str) -> str:
    """The address of element `index` of the array of `type_` at `base`."""
    if index in (0, "0"):
        return base
    return fn.value(f"getelementptr inbounds {type_}, ptr {base}, i64 {index}")


def splat(fn: FunctionBuilder, lanes: int, type_: str, scalar: str) -> str:
    """A vector whose lanes are all `scalar`."""
    one = fn.value(f"insertelement <{lanes} x {type_}> poison, {type_} {scalar}, i64 0")
    vector = f"<{lanes} x {type_}>"
    return fn.value(
        f"shufflevector {vector} {one}, {vector} poison, <{lanes} x i32> zeroinitializer"
    )


def shuffle(
    fn: FunctionBuilder, lanes: int, type_: str, first: str, second: str, indices: Sequence[int]
) -> str:
    """The chosen lanes of the concatenation of two vectors."""
    vector = f"<{lanes} x {type_}>"
    mask = ", ".join(f"i32 {index}" for index in indices)
    return fn.value(
        f"shufflevector {vector} {first}, {vector} {second}, <{len(indices)} x i32> <{mask}>"
    )


def load_prefix(fn: FunctionBuilder, lanes: int, type_: str, address: str, valid: int) -> str:
    """A vector whose first `valid` lanes come from memory and whose others are zero.

    Touches no byte beyond the valid lanes. A `valid` of 0 or below is a zero vector.
    """
    if valid <= 0:
        return "zeroinitializer"
    align = ELEMENT_BITS[type_] // 8
    if valid >= lanes:
        return fn.value(f"load <{lanes} x {type_}>, ptr {address}, align {align}")
    short = fn.value(f"load <{valid} x {type_}>, ptr {address}, align {align}")
    indices = [min(lane, valid) for lane in range(lanes)]
    return shuffle(fn, valid, type_, short, "zeroinitializer", indices)


def prefix_mask(fn: FunctionBuilder, lanes: int, bound: str, first: int) -> str:
    """Which lanes of a vector that begins at column `first` are before `bound`, an i64 value."""
    numbers = ", ".join(f"i64 {first + lane}" for lane in range(lanes))
    return fn.value(f"icmp slt <{lanes} x i64> <{numbers}>, {splat(fn, lanes, 'i64', bound)}")


def clamped(fn: FunctionBuilder, value: str, most: int) -> str:
    """An i64 value brought between 0 and `most`."""
    for name, bound in (("smax", 0), ("smin", most)):
        callee = fn.module.declare(f"llvm.{name}.i64", "i64", "i64, i64")
        value = fn.value(f"call i64 {callee}(i64 {value}, i64 {bound})")
    return value


def prefix_mask_of(fn: FunctionBuilder, lanes: int, type_: str, count: str) -> str:
    """Which lanes of a vector of `type_` are among the first `count`, an i64 up to `lanes`.

    Compared as integers as wide as the elements: one instruction.
    """
    kind = f"i{ELEMENT_BITS[type_]}"
    short = count if kind == "i64" else fn.value(f"trunc i64 {count} to {kind}")
    numbers = ", ".join(f"{kind} {lane}" for lane in range(lanes))
    return fn.value(f"icmp ult <{lanes} x {kind}> <{numbers}>, {splat(fn, lanes, kind, short)}")


def load_masked(fn: FunctionBuilder, lanes: int, type_: str, address: str, mask: str) -> str:
    """A vector whose lanes come from memory where `mask` is set, and are zero elsewhere."""
    suffix = {"float": "f32", "double": "f64"}.get(type_, type_)
    kind = f"<{lanes} x {type_}>"
    align = ELEMENT_BITS[type_] // 8
    name = f"llvm.masked.load.v{lanes}{suffix}.p0"
    callee = fn.module.declare(name, kind, f"ptr, <{lanes} x i1>, {kind}")
    mask_and_fill = f"<{lanes} x i1> {mask}, {kind} zeroinitializer"
    return fn.value(f"call {kind} {callee}(ptr align {align} {address}, {mask_and_fill})")


def store_masked(
    fn: FunctionBuilder, lanes: int, type_: str, value: str, address: str, mask: str
) -> None:
    """Store the lanes of a vector where `mask` is set and touch no other byte."""
    suffix = {"float": "f32", "double": "f64", "half": "f16", "bfloat": "bf16"}.get(type_, type_)
    kind = f"<{lanes} x {type_}>"
    align = ELEMENT_BITS[type_] // 8
    name = f"llvm.masked.store.v{lanes}{suffix}.p0"
    callee = fn.module.declare(name, "void", f"{kind}, ptr, <{lanes} x i1>")
    operands = f"{kind} {value}, ptr align {align} {address}, <{lanes} x i1> {mask}"
    fn.emit(f"call void {callee}({operands})")


def store_prefix(
    fn: FunctionBuilder, lanes: int, type_: str, value: str, address: str, valid: int
) -> None:
    """Store the first `valid` lanes of a vector and touch no byte beyond them."""
    if valid < lanes:
        value = shuffle(fn, lanes, type_, value, "poison", range(valid))
    count = min(valid, lanes)
    align = ELEMENT_BITS[type_] // 8
    fn.emit(f"store <{count} x {type_}> {value}, ptr {address}, align {align}")


def interleave(fn: FunctionBuilder, lanes: int, type_: str, rows: Sequence[str]) -> str:
    """A vector that takes lane 0 of each row, then lane 1 of each, and so on.

    *Constraints* the number of rows is a power of two.
    """
    if len(rows) == 1:
        return rows[0]
    half = len(rows) // 2
    even = interleave(fn, lanes, type_, rows[0::2])
    odd = interleave(fn, lanes, type_, rows[1::2])
    width = lanes * half
    indices = [lane + source * width for lane in range(width) for source in (0, 1)]
    return shuffle(fn, width, type_, even, odd, indices)


def transpose(fn: FunctionBuilder, lanes: int, type_: str, rows: Sequence[str]) -> list[str]:
    """The columns of a square of `lanes` vectors of `lanes` lanes each: see `transposition.py`."""

    def pick(low: str, high: str, indices: list[int]) -> str:
        return shuffle(fn, lanes, type_, low, high, indices)

    return transposed(lanes, PART_BITS // ELEMENT_BITS[type_], rows, pick)


def whole_and_rest(
    fn: FunctionBuilder, extent: int, size: int, body: Callable[[str, int], None]
) -> None:
    """Emit `body(start, valid)` for chunks of `size` in a loop and for the rest, if any."""
    whole, rest = divmod(extent, size)
    counted_loop(fn, whole, lambda index: body(scaled(fn, index, size), size))
    if rest:
        body(str(whole * size), rest)


def unrolled(extent: int, size: int, body: Callable[[str, int], None]) -> None:
    """Emit `body(start, valid)` for chunks of `size` one after the other, without a loop."""
    for start in range(0, extent, size):
        body(str(start), min(size, extent - start))
