"""Assertions."""

from __future__ import annotations

import json
from collections.abc import Sequence

from tilewright.ir.locations import span_of
from tilewright.ir.types import shape_of
from tilewright.ops.debug.ir import AssertOp
from tilewright.ops.function import FuncOp
from tilewright.targets.mlir.emitter import RULES, Emitter
from tilewright.targets.mlir.evaluate import Evaluator


def assertions(kernel: FuncOp) -> list[AssertOp]:
    """What may fail while a kernel runs, in order."""
    return [op for op in kernel.walk() if isinstance(op, AssertOp)]


def assert_message(op: AssertOp) -> str:
    """What `cf.assert` says where it fails: the line, what was checked, and the author's words."""
    span, _ = span_of(op)
    where = "" if span is None else f"{span.position()}: "
    kind = "" if op.kind is None or op.kind.data == "assert" else f"{op.kind.data}: "
    return f"{where}{kind}{op.message.data}"


@RULES.register(AssertOp)
def _assert(emitter: Emitter, op: AssertOp) -> None:
    """`cf.assert` at every element that the mask lets through, with the line in its message."""
    code, message = emitter.code, json.dumps(assert_message(op), ensure_ascii=False)

    def body(indices: list[str], carried: list[str]) -> Sequence[str]:
        ev, coords = Evaluator(emitter), emitter.row(indices)
        holds = ev.at(op.condition, coords)
        if op.mask is not None:
            is_left_out = code.value(
                f"arith.xori {ev.at(op.mask, coords)}, {code.constant('i1', 1)} : i1"
            )
            holds = code.value(f"arith.ori {holds}, {is_left_out} : i1")
        code.emit(f"cf.assert {holds}, {message}")
        return []

    emitter.nest(shape_of(op.condition.type), body)
