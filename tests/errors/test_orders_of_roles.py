"""Schedules of roles whose loops cannot run as they say: why, in the kernel's line."""

from __future__ import annotations

import pytest

from tests.corpus.partitioned import ATTENTIONS, attend
from tests.corpus.threads import lower_for_gpu
from tests.errors.test_refused_plans import positionless
from tests.plugins.goldens import Golden
from tilewright.ir.schedule_attributes import annotate_schedule
from tilewright.ir.schedule_text import parse_schedule
from tilewright.ops.function import find_kernel
from tilewright.support.errors import PlanRefused

ORDERS = {
    "roles_with_products_in_the_wrong_order": "dot#0 @1.1 dot#1 @0.0 rest @0.1",
    "roles_with_an_order_that_releases_first": (
        "dot#0 @0.0 dot#1 @1.1 rest @0.2 order dot#0 release(k) dot#1 wait(dot#0) rest"
    ),
    "roles_with_a_product_of_another_loop": "dot#0 @0.0 dot#3 @1.1 rest @0.2",
}


def refused(text: str) -> str:
    """What is said of a schedule of attention, with lines counted from its loop's function."""
    schedule = parse_schedule(text)
    with pytest.raises(PlanRefused) as caught:
        lower_for_gpu(ATTENTIONS[0].case, lambda m: annotate_schedule(find_kernel(m), schedule))
    assert "partitioned.py" in str(caught.value)
    return positionless(caught.value, attend)


@pytest.mark.parametrize("name", ORDERS)
def test_the_message_of_a_refused_order(name: str, golden: Golden) -> None:
    text = f"{ATTENTIONS[0].text(2)}; loop for#0 {ORDERS[name]}"
    golden(f"golden/{name}", refused(text).split(", in attend")[0])


def test_what_runs_at_once_has_to_fit_the_registers_of_a_group() -> None:
    rings = ATTENTIONS[0].schedule.format(slots=2)
    text = f"roles load regs 40 | math x2 regs 80 split m; {rings}; "
    message = refused(text + "loop for#0 dot#0 @0.0 dot#1 @1.1 rest @0.2")
    assert "holds 110 registers a thread, and there are 80" in message
    assert "`attention`" in message
