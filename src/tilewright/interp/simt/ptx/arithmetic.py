"""PTX's moves, arithmetic, comparisons, conversions and bit operations."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from tilewright.interp.simt import rounding
from tilewright.interp.simt.arithmetic import compare
from tilewright.interp.simt.functions import (
    float_to_int,
    high_product,
    int_to_float,
    leading_zeros,
    maximum,
    maximum_number,
    minimum,
    minimum_number,
    permute_bytes,
    reverse_bits,
    saturate,
)
from tilewright.interp.simt.kinds import dtype_of_kind, packed
from tilewright.interp.simt.ptx.rules import Compute, PtxCall, ptx
from tilewright.interp.simt.rounding import MODES, convert_float, flush
from tilewright.interp.simt.types import FLOAT, IntType
from tilewright.ir.op import Array

_Function = Callable[..., Array]
_MODES = " ".join(MODES)


def _elementwise(call: PtxCall, function: _Function, kind: str, count: int) -> Compute:
    """Apply a function to the operands behind the destination."""
    call.writes(call.operands[0])
    readers = [call.read(i + 1, kind) for i in range(count)]
    flushes, saturates, is_packed = call.has("ftz"), call.has("sat"), kind.endswith("x2")

    def compute() -> Sequence[Array]:
        arguments = [read() for read in readers]
        if flushes:
            arguments = [flush(a) for a in arguments]
        result = function(*arguments)
        if flushes:
            result = flush(result)
        if saturates and result.dtype.kind == "f":
            result = saturate(result)
        return [packed(result) if is_packed else result]

    return compute


@ptx("mov")
def _move(call: PtxCall) -> Compute:
    kind = call.kinds()[-1]
    sources, targets = call.members(1), call.members(0)
    call.writes(*targets)
    if len(targets) == len(sources) == 1:
        read = call.read(1, kind)
        return lambda: [read()]
    if len(targets) == 1:
        width = dtype_of_kind(kind).itemsize * 8 // len(sources)
        readers = [call.registers.reader(source, f"u{width}") for source in sources]
        return lambda: [_joined([read() for read in readers], f"u{width * len(sources) // 8}")]
    width = dtype_of_kind(kind).itemsize // len(targets)
    whole = call.read(1, kind)
    return lambda: list(np.ascontiguousarray(whole()[:, None].view(f"u{width}").T))


def _joined(parts: list[Array], dtype: str) -> Array:
    return np.ascontiguousarray(np.stack(parts, 1)).view(dtype)[:, 0]


def _mode(call: PtxCall) -> str:
    return call.one_of(*MODES, default="rn")


@ptx(
    "add",
    "sub",
    "mul",
    "div",
    "rem",
    "min",
    "max",
    "and",
    "or",
    "xor",
    "shl",
    "shr",
    words=f"{_MODES} ftz sat lo hi wide NaN approx full",
)
def _binary(call: PtxCall) -> Compute:
    kind = call.kinds()[-1]
    return _elementwise(call, _binary_function(call, kind), _read_kind(call, kind), 2)


def _read_kind(call: PtxCall, kind: str) -> str:
    if call.instruction.opcode[0] in ("and", "or", "xor", "shl") and kind != "pred":
        return f"u{dtype_of_kind(kind).itemsize * 8}"
    return kind


def _binary_function(call: PtxCall, kind: str) -> _Function:
    name, mode = call.instruction.opcode[0], _mode(call)
    if "f" in kind:
        return _float_function(call, name, mode, kind)
    if name == "mul" and call.has("hi"):
        return lambda a, b: high_product(
            a.view(f"u{a.dtype.itemsize}"),
            b.view(f"u{b.dtype.itemsize}"),
            is_signed=kind[0] == "s",
        )
    if name == "mul" and call.has("wide"):
        wide = f"{'i' if kind[0] == 's' else 'u'}{int(kind[1:]) // 4}"
        return lambda a, b: a.astype(wide) * b.astype(wide)
    if name == "shr":
        return _shift_right
    table: dict[str, _Function] = {
        "add": np.add,
        "sub": np.subtract,
        "mul": np.multiply,
        "div": lambda a, b: ((a - np.fmod(a, b)) // b).astype(a.dtype),
        "rem": np.fmod,
        "min": np.minimum,
        "max": np.maximum,
        "and": np.bitwise_and,
        "or": np.bitwise_or,
        "xor": np.bitwise_xor,
        "shl": np.left_shift,
    }
    return table[name]


def _shift_right(a: Array, b: Array) -> Array:
    """Shifts of the width or more leave what the sign fills in."""
    count = np.minimum(b.view(f"u{b.dtype.itemsize}"), 8 * a.dtype.itemsize - 1)
    return a >> count.astype(a.dtype)


def _float_function(call: PtxCall, name: str, mode: str, kind: str) -> _Function:
    if name in ("min", "max"):
        if call.has("NaN"):
            return minimum if name == "min" else maximum
        return minimum_number if name == "min" else maximum_number
    plain: dict[str, _Function] = {
        "add": np.add,
        "sub": np.subtract,
        "mul": np.multiply,
        "div": np.divide,
    }
    if mode == "rn" or kind not in ("f32", "f64"):
        return plain[name]
    directed: dict[str, _Function] = {
        "add": lambda a, b: rounding.add(a, b, mode),
        "sub": lambda a, b: rounding.add(a, np.negative(b), mode),
        "mul": lambda a, b: rounding.multiply(a, b, mode),
        "div": lambda a, b: rounding.divide(a, b, mode),
    }
    return directed[name]


@ptx("mad", "fma", words=f"{_MODES} ftz sat lo hi wide")
def _multiply_add(call: PtxCall) -> Compute:
    kind, mode = call.kinds()[-1], _mode(call)
    if "f" in kind:
        return _elementwise(
            call, lambda a, b, c: rounding.fused_multiply_add(a, b, c, mode), kind, 3
        )
    if call.has("wide") or call.has("hi"):
        raise call.unknown()
    return _elementwise(call, lambda a, b, c: a * b + c, kind, 3)


def _widened(function: _Function) -> _Function:
    return lambda a: function(a.astype(np.float64)).astype(a.dtype)


_UNARY: dict[str, _Function] = {
    "neg": np.negative,
    "abs": lambda a: np.where(np.signbit(a) if a.dtype.kind not in "iu" else a < 0, -a, a),
    "not": lambda a: ~a,
    "ex2": _widened(np.exp2),
    "lg2": _widened(np.log2),
    "rcp": _widened(np.reciprocal),
    "sqrt": _widened(np.sqrt),
    "rsqrt": _widened(lambda a: 1.0 / np.sqrt(a)),
    "sin": _widened(np.sin),
    "cos": _widened(np.cos),
    "tanh": _widened(np.tanh),
    "popc": lambda a: np.bitwise_count(a).astype(np.uint32),
    "clz": lambda a: leading_zeros(a, 8 * a.dtype.itemsize).astype(np.uint32),
    "brev": lambda a: reverse_bits(a, 8 * a.dtype.itemsize),
}


@ptx(*_UNARY, words="rn approx ftz")
def _unary(call: PtxCall) -> Compute:
    return _elementwise(call, _UNARY[call.instruction.opcode[0]], call.kinds()[-1], 1)


@ptx(
    "setp",
    words="eq ne lt le gt ge lo ls hi hs equ neu ltu leu gtu geu num nan ftz and or xor",
)
def _set_predicate(call: PtxCall) -> Compute:
    targets, kind = call.members(0), call.kinds()[-1]
    call.writes(*targets)
    predicate = call.words[0]
    function = _comparison(predicate, kind)
    a, b = call.read(1, kind), call.read(2, kind)

    def compute() -> Sequence[Array]:
        holds = function(a(), b())
        return [holds, ~holds][: len(targets)]

    if call.one_of("and", "or", "xor"):
        raise call.unknown()
    return compute


def _comparison(predicate: str, kind: str) -> _Function:
    if "f" in kind:
        names = {"num": "ord", "nan": "uno"}
        ordered = predicate if predicate.endswith("u") else "o" + predicate
        name = "u" + predicate[:-1] if predicate.endswith("u") else ordered
        name = "une" if predicate == "ne" else name
        return compare(names.get(predicate, "one" if predicate == "ne" else name), FLOAT)
    unsigned = {"lo": "lt", "ls": "le", "hi": "gt", "hs": "ge"}
    return compare(unsigned.get(predicate, predicate), IntType(32))


@ptx("selp")
def _select(call: PtxCall) -> Compute:
    call.writes(call.operands[0])
    kind = call.kinds()[-1]
    a, b, p = call.read(1, kind), call.read(2, kind), call.read(3, "pred")
    return lambda: [np.where(p(), a(), b())]


@ptx("prmt", words=None)
def _permute(call: PtxCall) -> Compute:
    if len(call.words) > 1:
        raise call.unknown()
    return _elementwise(call, permute_bytes, "u32", 3)


@ptx("lop3")
def _logic(call: PtxCall) -> Compute:
    table = call.read(4, "u32")

    def function(a: Array, b: Array, c: Array) -> Array:
        result = np.zeros_like(a)
        for row in range(8):
            if int(table()[0]) >> row & 1:
                terms = [v if row >> (2 - i) & 1 else ~v for i, v in enumerate((a, b, c))]
                result |= terms[0] & terms[1] & terms[2]
        return result

    return _elementwise(call, function, "u32", 3)


@ptx("shf", words="l r wrap clamp")
def _funnel_shift(call: PtxCall) -> Compute:
    is_left, clamps = call.has("l"), call.has("clamp")

    def function(low: Array, high: Array, count: Array) -> Array:
        shift = np.minimum(count, 32) if clamps else count & np.uint32(31)
        both = low.astype(np.uint64) | high.astype(np.uint64) << np.uint64(32)
        amount = shift.astype(np.uint64)
        moved = both << amount >> np.uint64(32) if is_left else both >> amount
        return moved.astype(np.uint32)

    return _elementwise(call, function, "u32", 3)


@ptx("bfe")
def _extract_bits(call: PtxCall) -> Compute:
    if call.kinds()[-1] != "u32":
        raise call.unknown()

    def function(a: Array, position: Array, length: Array) -> Array:
        count = np.minimum(length, 32).astype(np.uint64)
        mask = (np.uint64(1) << count) - np.uint64(1)
        return (a.astype(np.uint64) >> position.astype(np.uint64) & mask).astype(np.uint32)

    return _elementwise(call, function, "u32", 3)


# --- conversions --------------------------------------------------------------------------------


@ptx("cvt", words=f"{_MODES} rna rni rzi rmi rpi ftz sat satfinite relu")
def _convert(call: PtxCall) -> Compute:
    target, source = _conversion_kinds(call)
    call.writes(call.operands[0])
    options = {"saturates": call.has("satfinite"), "is_relu": call.has("relu")}
    mode = _mode(call)
    if target.endswith("x2") and source == "f32":
        high, low = call.read(1, source), call.read(2, source)
        return lambda: [_packed_as(target, [low(), high()], mode, options)]
    read = call.read(1, source)
    if target.endswith("x2"):
        return lambda: [_packed_as(target, list(read()), mode, options)]
    if target == "tf32":
        tf32_mode = call.one_of("rna", "rn", "rz", default="rna")
        return lambda: [rounding.round_to_tf32(read(), tf32_mode)]
    convert = _scalar_conversion(call, target, source, options)
    return lambda: [convert(read())]


def _packed_as(target: str, parts: list[Array], mode: str, options: dict[str, bool]) -> Array:
    """Two floats converted and packed, the first one lowest."""
    return packed(np.stack([convert_float(p, target[:-2], mode, **options) for p in parts]))


def _conversion_kinds(call: PtxCall) -> tuple[str, str]:
    kinds = call.kinds()
    if len(kinds) != 2:
        raise call.unknown()
    return kinds[0], kinds[1]


def _scalar_conversion(
    call: PtxCall, target: str, source: str, options: dict[str, bool]
) -> Callable[[Array], Array]:
    mode, flushes = _mode(call), call.has("ftz")
    if "f" in target and "f" in source:
        to_int = call.one_of("rni", "rzi", "rmi", "rpi")
        if to_int:
            whole = {"rni": np.rint, "rzi": np.trunc, "rmi": np.floor, "rpi": np.ceil}[to_int]
            return lambda a: whole(a)
        return lambda a: convert_float(flush(a) if flushes else a, target, mode, **options)
    if "f" in source:
        to_int = call.one_of("rni", "rzi", "rmi", "rpi")[:2]
        bits, is_signed = int(target[1:]), target[0] == "s"
        return lambda a: float_to_int(a, bits, is_signed=is_signed, mode=to_int)
    if "f" in target:
        dtype = dtype_of_kind(target)
        is_signed = source[0] == "s"
        return lambda a: int_to_float(
            a.view(f"u{a.dtype.itemsize}"), dtype, is_signed=is_signed, mode=mode
        )
    dtype = dtype_of_kind(target)
    if call.has("sat"):
        limits = np.iinfo(dtype)
        return lambda a: np.clip(a.astype(np.int64), limits.min, limits.max).astype(dtype)
    return lambda a: a.astype(dtype)
