"""Moves conversions of layout behind the loads that stand between them and their use (T1 to T1).

    %x = load %p; %y = convert %x; %z = load %q; use %y, %z
    ⇒ %x = load %p; %z = load %q; %y = convert %x; use %y, %z

A conversion through shared memory waits for its source and for the other warps, and no load is
started across such a wait: in the order of the text %q is asked for when %p has come. What moves
reads registers only, so nothing else changes. It stays in front of other users of its source: one
may be a product that adds to the registers in place.

*Why here*: behind `copy-async`, which makes copies of loads and of their conversions; before
`decide-exchanges`, which is about the conversions that are left.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import takewhile

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation

from tilewright.ir.effects import is_plain_read
from tilewright.ir.passes import Pass
from tilewright.ops.function import find_kernel
from tilewright.ops.staging import ConvertLayoutOp
from tilewright.support.dataclass import dataclass


@dataclass(frozen=True)
class DelayConversions(Pass):
    """The pass; see the module."""

    name = "delay-conversions"
    requires = "T1"
    produces = "T1"
    after = ("copy-async",)

    def apply(self, module: ModuleOp) -> None:
        """Move the conversions of the kernel, the last one first."""
        conversions = [op for op in find_kernel(module).walk() if isinstance(op, ConvertLayoutOp)]
        for conversion in reversed(conversions):
            _delay(conversion)


def _delay(conversion: ConvertLayoutOp) -> None:
    """Move a conversion in front of what uses its result or source if a load stands in between."""
    block = conversion.parent
    assert block is not None
    uses = [use.operation for v in (conversion.result, conversion.src) for use in v.uses]
    users = {op for use in uses if (op := block.find_ancestor_op_in_block(use)) is not None}
    between = list(takewhile(lambda op: op not in users, _behind(conversion)))
    if any(map(is_plain_read, between)):
        conversion.detach()
        block.insert_op_after(conversion, between[-1])


def _behind(op: Operation) -> Iterator[Operation]:
    """The ops of a block behind one of them."""
    following = op.next_op
    while following is not None:
        yield following
        following = following.next_op
