"""Comparisons of integers and floats, by the codes that text has for their predicates."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from xdsl.dialects.builtin import IntegerAttr
from xdsl.irdl import (
    irdl_op_definition,
    operand_def,
    opt_prop_def,
    prop_def,
    result_def,
    traits_def,
)
from xdsl.traits import Pure

from tilewright.ir.attributes import FastMathAttr
from tilewright.ir.op import Array, ElementwiseOp
from tilewright.ir.types import is_float
from tilewright.ops.elementwise.reference import unsigned
from tilewright.ops.elementwise.verify import is_compared, verify_code, verify_comparison

# Index by op name: `ELEMENTWISE["arith.addf"]`.
_CMPI = {
    0: np.equal,
    1: np.not_equal,
    2: np.less,
    3: np.less_equal,
    4: np.greater,
    5: np.greater_equal,
}


INTEGER_PREDICATES = ("eq", "ne", "slt", "sle", "sgt", "sge", "ult", "ule", "ugt", "uge")

_PAIRS = (("eq", "ne"), ("slt", "sge"), ("sle", "sgt"), ("ult", "uge"), ("ule", "ugt"))
NEGATED: Mapping[str, str] = {a: b for pair in _PAIRS for a, b in (pair, pair[::-1])}
"""The predicate of integers that holds where another one does not."""

FLOAT_PREDICATES = (
    "false",
    "oeq",
    "ogt",
    "oge",
    "olt",
    "ole",
    "one",
    "ord",
    "ueq",
    "ugt",
    "uge",
    "ult",
    "ule",
    "une",
    "uno",
    "true",
)


class ComparisonOp(ElementwiseOp):
    """The facet of ops that compare: `predicate` indexes `predicates()`; the result is i1."""

    predicate = prop_def(IntegerAttr)
    lhs = operand_def()
    rhs = operand_def()
    result = result_def()

    def predicates(self) -> tuple[str, ...]:
        """The names of all predicates that the op has; floats and integers share some."""
        raise NotImplementedError(f"{self.name} has no predicates")

    def predicate_name(self) -> str:
        """The predicate's name, as LLVM spells it."""
        return self.predicates()[self.predicate.value.data]


def integer_predicate(op: object) -> str:
    """The predicate of a comparison of integers or pointers by its name; '' for other ops."""
    if not isinstance(op, ComparisonOp) or op.predicates() is not INTEGER_PREDICATES:
        return ""
    return op.predicate_name()


@irdl_op_definition
class CmpIOp(ComparisonOp):
    """Integer comparison; `predicate` indexes INTEGER_PREDICATES."""

    name = "arith.cmpi"
    traits = traits_def(Pure())

    def verify_(self) -> None:
        """Integers or pointers of one type and shape, and a known predicate."""
        super().verify_()
        verify_comparison(self, is_compared, "integer")
        verify_code(self, self.predicate, len(INTEGER_PREDICATES))

    def predicates(self) -> tuple[str, ...]:
        return INTEGER_PREDICATES

    def reference(self, lhs: Array, rhs: Array) -> Array:
        code = self.predicate.value.data
        if code >= 6:
            return _CMPI[code - 4](unsigned(lhs), unsigned(rhs))
        return _CMPI[code](lhs, rhs)


_ORDERED = {
    "eq": np.equal,
    "gt": np.greater,
    "ge": np.greater_equal,
    "lt": np.less,
    "le": np.less_equal,
    "ne": np.not_equal,
}


@irdl_op_definition
class CmpFOp(ComparisonOp):
    """Float comparison; `predicate` indexes FLOAT_PREDICATES."""

    name = "arith.cmpf"
    fastmath = opt_prop_def(FastMathAttr)
    traits = traits_def(Pure())

    def verify_(self) -> None:
        """Floats of one type and shape, and a known predicate."""
        super().verify_()
        verify_comparison(self, is_float, "float")
        verify_code(self, self.predicate, len(FLOAT_PREDICATES))

    def predicates(self) -> tuple[str, ...]:
        return FLOAT_PREDICATES

    def reference(self, lhs: Array, rhs: Array) -> Array:
        name = self.predicate_name()
        unordered = np.isnan(lhs) | np.isnan(rhs)
        if name in ("false", "true"):
            return np.full(np.shape(unordered), name == "true")
        if name in ("ord", "uno"):
            return unordered if name == "uno" else ~unordered
        compared = _ORDERED[name[1:]](lhs, rhs)
        return compared | unordered if name[0] == "u" else compared & ~unordered
