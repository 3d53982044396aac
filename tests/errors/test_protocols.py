"""Roles that do not keep to their protocol: which role, which ring, and which line."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from xdsl.dialects.builtin import IntegerAttr, ModuleOp, i32
from xdsl.ir import Operation

from tests.plugins.goldens import Golden
from tests.roles.gemm import Gemm
from tests.roles.running import placed
from tilewright.ir.attributes import integer_array
from tilewright.machine.gpus import SM_90A
from tilewright.ops.function import find_kernel
from tilewright.schedule.protocol.check import check_protocol
from tilewright.schedule.protocol.run import run_protocol
from tilewright.schedule.protocol.scalars import Launch
from tilewright.support.errors import ProtocolBroken

SMALL = Gemm(columns=64, slots=2)


def found(module: ModuleOp, name: str) -> Operation:
    """The first op of a name."""
    return next(op for op in module.walk() if op.name == name)


def set_number(op: str, name: str, value: int) -> Callable[[ModuleOp], None]:
    """A change of one number of the first op of a name."""

    def change(module: ModuleOp) -> None:
        found(module, op).properties[name] = IntegerAttr(value, i32)

    return change


def drop(name: str) -> Callable[[ModuleOp], None]:
    """Leave the first op of a name out."""

    def change(module: ModuleOp) -> None:
        op = found(module, name)
        op.detach()
        op.erase()

    return change


def grant(registers: tuple[int, int]) -> Callable[[ModuleOp], None]:
    """Grant so many registers."""

    def change(module: ModuleOp) -> None:
        found(module, "tw.roles").properties["registers"] = integer_array(registers)

    return change


WRONG = {
    "protocol_without_a_release": drop("ttg.ring_release"),
    "protocol_of_too_few_bytes": set_number("ttg.ring_commit", "announced_bytes", 1024),
    "protocol_of_too_many_registers": grant((40, 240)),
    "protocol_of_too_many_consumers": set_number("ttg.ring", "consumers", 3),
}


@pytest.mark.parametrize("name", WRONG)
def test_the_message_of_a_protocol_that_is_broken(name: str, golden: Golden) -> None:
    module = placed(SMALL.module())
    WRONG[name](module)
    with pytest.raises(ProtocolBroken) as caught:
        check_protocol(find_kernel(module), SM_90A)
    golden(f"golden/{name}", without_lines(str(caught.value)))


def test_the_message_of_roles_that_wait_for_each_other(golden: Golden) -> None:
    module = placed(Gemm(columns=64, slots=1, late=True).module())
    with pytest.raises(ProtocolBroken) as caught:
        run_protocol(find_kernel(module), Launch({3: 128, 4: 64, 5: 128}))
    golden("golden/protocol_that_waits_for_itself", without_lines(str(caught.value)))


def without_lines(message: str) -> str:
    """A message whose lines of the test program are not numbered: they move with it."""
    assert "gemm.py:" in message
    start, _, rest = message.partition("gemm.py:")
    return f"{start}gemm.py:LINE{rest.lstrip('0123456789')}"
