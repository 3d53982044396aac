"""Which element types the elementwise ops take: what makes an op of another type no program.

Text may say anything; the frontend writes only what these rules allow. An op of a wrong class of
elements would else be emitted as an instruction that LLVM refuses, or that means something else.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from xdsl.dialects.builtin import IndexType, IntegerAttr
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.utils.exceptions import VerifyException

from tilewright.ir.op import require_one_element
from tilewright.ir.types import (
    element_of,
    i1,
    is_float,
    is_integer,
    is_pointer,
    shape_of,
    width_bits,
)

TypeTest = Callable[[Attribute], bool]


def is_counted(type_: Attribute) -> bool:
    """Whether the element type is an integer type or the index type."""
    return is_integer(type_) or isinstance(element_of(type_), IndexType)


def is_compared(type_: Attribute) -> bool:
    """Whether elements compare as integers do."""
    return is_counted(type_) or is_pointer(type_)


def verify_one_type(op: Operation, is_legal: TypeTest, kind: str) -> None:
    """All operands and results have one element type, which is of a kind."""
    require_one_element(op, (*op.operands, *op.results))
    _require(op, op.operands, is_legal, kind)


def verify_comparison(op: Operation, is_legal: TypeTest, kind: str) -> None:
    """Both sides have one element type of a kind; the result is i1."""
    require_one_element(op, op.operands)
    _require(op, op.operands, is_legal, kind)
    _require(op, op.results, _is_bit, "i1")


def verify_choice(op: Operation) -> None:
    """The condition is i1, a scalar or of the shape of the sides, which are as the result."""
    condition, *sides = op.operands
    _require(op, (condition,), _is_bit, "i1")
    require_one_element(op, (*sides, *op.results))
    shapes = {shape_of(v.type) for v in (*sides, *op.results)}
    if len(shapes) > 1 or shape_of(condition.type) not in ((), *shapes):
        raise VerifyException(f"{op.name}: the condition, the sides and the result differ in shape")


def verify_cast(op: Operation) -> None:
    """Source and result are of the kinds that the op converts, and as wide as it says."""
    rule = _CASTS.get(op.name)
    if rule is None:
        return
    from_kind, to_kind, order = rule
    (source,), (result,) = op.operands, op.results
    _require(op, (source,), _KINDS[from_kind], from_kind)
    _require(op, (result,), _KINDS[to_kind], to_kind)
    if order and not _is_ordered(width_bits(source.type), width_bits(result.type), order):
        raise VerifyException(
            f"{op.name}: {element_of(result.type)} is not {order} {element_of(source.type)}"
        )


def verify_code(op: Operation, code: IntegerAttr, count: int) -> None:
    """A predicate is one of `count`."""
    if not 0 <= code.value.data < count:
        raise VerifyException(f"{op.name}: there is no predicate {code.value.data}")


def _is_ordered(source_bits: int, result_bits: int, order: str) -> bool:
    if order == "as wide as":
        return result_bits == source_bits
    return result_bits > source_bits if order == "wider than" else result_bits < source_bits


def _is_bit(type_: Attribute) -> bool:
    return element_of(type_) == i1


def _is_plain(type_: Attribute) -> bool:
    return is_float(type_) or is_integer(type_)


def _is_bits(type_: Attribute) -> bool:
    return _is_plain(type_) or is_pointer(type_)


def _require(op: Operation, values: Sequence[SSAValue], is_legal: TypeTest, kind: str) -> None:
    for value in values:
        if not is_legal(value.type):
            raise VerifyException(f"{op.name}: {element_of(value.type)} is no {kind}")


_KINDS: Mapping[str, TypeTest] = {
    "integer": is_integer,
    "integer or index": is_counted,
    "float": is_float,
    "pointer": is_pointer,
    "number": _is_plain,
    "number or pointer": _is_bits,
}
_CASTS: Mapping[str, tuple[str, str, str]] = {
    "arith.sitofp": ("integer", "float", ""),
    "arith.uitofp": ("integer", "float", ""),
    "arith.fptosi": ("float", "integer", ""),
    "arith.fptoui": ("float", "integer", ""),
    "arith.extsi": ("integer", "integer", "wider than"),
    "arith.extui": ("integer", "integer", "wider than"),
    "arith.trunci": ("integer", "integer", "narrower than"),
    "arith.extf": ("float", "float", "wider than"),
    "arith.truncf": ("float", "float", "narrower than"),
    "arith.bitcast": ("number", "number", "as wide as"),
    "tt.bitcast": ("number or pointer", "number or pointer", "as wide as"),
    "arith.index_cast": ("integer or index", "integer or index", ""),
    "tt.int_to_ptr": ("integer", "pointer", ""),
    "tt.ptr_to_int": ("pointer", "integer", ""),
    "tt.fp_to_fp": ("float", "float", ""),
}
