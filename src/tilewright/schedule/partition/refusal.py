"""Why a program stays as it is."""

from __future__ import annotations

from xdsl.ir import Operation

from tilewright.ir.locations import describe


class Refused(Exception):
    """A program cannot be partitioned: the op that stands in the way, and why."""

    def __init__(self, op: Operation, reason: str) -> None:
        super().__init__(reason)
        self.op = op
        self.reason = reason

    def remark(self) -> str:
        """The refusal as a line for people."""
        return f"{describe(self.op)}: the kernel is not split into roles: {self.reason}"


class NoRoom(Refused):
    """What the roles of a program keep in shared memory does not fit there. *Units* bytes."""

    def __init__(self, op: Operation, reason: str, required: int, limit: int) -> None:
        super().__init__(op, reason)
        self.required, self.limit = required, limit
