"""Random programs compiled for vectors and registers that this machine does not have.

What the nests make of chunks, pieces and masks depends on how many elements a vector has; the
machine's own instructions do the same in more or fewer of its vectors.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.fuzz import (
    test_across,
    test_carried_masks,
    test_masked_rows,
    test_masked_tiles,
    test_narrow_columns,
)
from tilewright.runtime.drivers import load_driver
from tilewright.support.dataclass import replace

FORMS = {
    "across": test_across.check,
    "carried masks": test_carried_masks.check,
    "masked rows": test_masked_rows.check,
    "masked tiles": test_masked_tiles.check,
    "narrow columns": test_narrow_columns.check,
}
# The bytes of a vector of SSE and NEON, of AVX2 and of AVX-512, and a file of registers.
MACHINES = [(16, 16), (16, 32), (32, 16), (64, 32)]


@pytest.mark.parametrize(("vector_bytes", "num_registers"), MACHINES)
@pytest.mark.parametrize("form", FORMS)
def test_random_programs_agree_with_other_vectors(
    form: str,
    vector_bytes: int,
    num_registers: int,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    host = load_driver("cpu").machine()
    machine = replace(host, vector_bytes=vector_bytes, num_registers=num_registers)
    monkeypatch.setattr("tilewright.targets.cpu.driver.host_machine", lambda: machine)
    assert load_driver("cpu").machine().vector_bytes == vector_bytes
    check: Callable[[range, Path], None] = FORMS[form]
    first = 500 + 10 * MACHINES.index((vector_bytes, num_registers))
    check(range(first, first + 8), tmp_path)
