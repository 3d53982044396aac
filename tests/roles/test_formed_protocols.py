"""The roles that the compiler forms keep to their protocol, whatever the sizes are."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from xdsl.dialects.builtin import DictionaryAttr, IntegerType, StringAttr

from tests.corpus.partitioned import PARTITIONED, Partitioned
from tests.equivalence.test_rings import lowered
from tilewright.ops.function import FuncOp, find_kernel
from tilewright.schedule.protocol.run import run_protocol
from tilewright.schedule.protocol.scalars import Launch


def launches(kernel: FuncOp, given: dict[str, object]) -> Iterator[Launch]:
    """The sizes of the case, and each of them smaller and larger, one at a time."""
    attributes = kernel.properties["arg_attrs"]
    numbers: dict[int, int] = {}
    for index, (argument, entry) in enumerate(
        zip(kernel.body.block.args, attributes, strict=True)  # type: ignore[arg-type]  # an array
    ):
        assert isinstance(entry, DictionaryAttr)
        name = entry.data["tt.name"]
        value = given.get(name.data) if isinstance(name, StringAttr) else None
        if isinstance(argument.type, IntegerType) and isinstance(value, int):
            numbers[index] = value
    yield Launch(numbers)
    for index, value in numbers.items():
        for other in (0, 1, value // 2, 2 * value, 5 * value):
            yield Launch({**numbers, index: other})
            yield Launch({**numbers, index: other}, program=(1, 0, 0), programs=(2, 1, 1))


@pytest.mark.parametrize("case", PARTITIONED, ids=lambda case: case.name)
@pytest.mark.parametrize(("replicas", "slots"), [(1, 1), (2, 2), (2, 3)])
def test_formed_roles_keep_to_their_protocol(case: Partitioned, replicas: int, slots: int) -> None:
    kernel = find_kernel(lowered(case, case.text(replicas, slots=slots), "T2"))
    events = [run_protocol(kernel, launch) for launch in launches(kernel, case.case.values())]
    assert max(events) > 0
