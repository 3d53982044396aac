"""Waits that say which phase of an mbarrier they mean, not only whether it is odd or even.

Hardware tells the phases of an mbarrier apart by parity alone. A wait that is two phases off
passes, or hangs, as it happens: on a device only now and then. A wait for a slot of a ring names
the ring, `!tw.ring`, and takes its parity off a counter of the slot's phases, one `and` more:

    %parity = and i32 %phase, 1
    %passes = call i1 @llvm.nvvm.mbarrier.try.wait.parity…(ptr addrspace(3) %full, i32 %parity),
              !tw.ring !7
    !7 = !{!"k"}

*Source*: PTX ISA 8.8, "mbarrier.test_wait": with `.parity` a wait is for the current phase or the
one just before.

Behind the name may stand where the ring's mbarriers begin and the role that waits, for messages:
slot s has one that tells when it is full at byte 16 s, and one for empty 8 bytes behind.

A replica that waits for its turn says so too: at a named barrier by `!tw.turn`, at an mbarrier by
`!tw.ring`. The node has the turns, the barrier of the first replica (or the byte of its mbarrier,
8 bytes for each replica) and the role:

    call void @llvm.nvvm.barrier.cta.sync.aligned.count(i32 %own, i32 256), !tw.turn !9
    !9 = !{!"dots", i32 4, !"math", !"turns"}
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from tilewright.interp.simt.syntax import Block, Constant, Instruction, Local, Operand
from tilewright.interp.simt.waited_ring import Awaited, WaitedRing, WaitedTurn
from tilewright.support.errors import MalformedText

_NODE = re.compile(r'^!(\d+) = !\{!"([^"]*)"(?:, i32 (\d+), !"([^"]*)"(, !"turns")?)?\}$')
_RING = re.compile(r", !tw\.ring !(\d+)")
_TURN = re.compile(r", !tw\.turn !(\d+)")


def ring_names(lines: Iterable[str]) -> Mapping[str, Awaited]:
    """The rings and turns that waits may refer to, by the number of their node."""
    found = (_NODE.match(line) for line in lines if line.startswith("!"))
    return {node[1]: _awaited(*node.groups()[1:]) for node in found if node is not None}


def _awaited(name: str, start: str | None, role: str | None, turns: str | None) -> Awaited:
    if start is not None and turns is not None:
        return WaitedTurn(name, int(start), role or "")
    return WaitedRing(name, None if start is None else int(start), role or "")


def ring_of(op: Instruction, names: Mapping[str, Awaited]) -> Awaited | None:
    """The ring, or the turns, that a wait at an mbarrier names; None where it names none."""
    found = _RING.search(op.site.text)
    if found is None:
        return None
    name = names.get(found[1])
    if name is None:
        raise MalformedText(f"LLVM line {op.site.line}: !{found[1]} names no ring")
    return name


def turn_of(op: Instruction, names: Mapping[str, Awaited]) -> WaitedTurn | None:
    """The turns that a wait at a named barrier names; None where it names none."""
    found = _TURN.search(op.site.text)
    if found is None:
        return None
    name = names.get(found[1])
    if not isinstance(name, WaitedTurn):
        raise MalformedText(f"LLVM line {op.site.line}: !{found[1]} names no turns")
    return name


def counted_phase(op: Instruction, parity: Operand, blocks: Iterable[Block]) -> Operand:
    """The counter that a wait takes its parity off. *Raises*: MalformedText if there is none."""
    if isinstance(parity, Constant):
        return parity
    for made in (i for block in blocks for i in block.instructions):
        if isinstance(parity, Local) and made.result == parity.name and made.opcode == "and":
            phase, mask = made.operands
            if isinstance(mask, Constant) and mask.value == 1:
                return phase
    raise MalformedText(
        f"LLVM line {op.site.line}: a wait that names its ring takes its parity off a counter of "
        "phases, by `and i32 %phase, 1`"
    )
