"""The table of the language's names: complete, and true.

`python -m tilewright.tools.support_table` writes it anew.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tilewright.runtime.tensor_descriptor import TensorDescriptor
from tilewright.tools.language_examples import ABSENT, EXAMPLES
from tilewright.tools.support_table import (
    COLUMNS,
    PATH,
    YES,
    Row,
    example_arguments,
    example_kernel,
    interpret,
    parse,
    public_names,
    render,
    render_row,
    state_of,
)

STATES = parse(PATH.read_text(encoding="utf-8"))
# Functions of which a target may give another result in the last bits, or by chance.
APPROXIMATE = (
    "math.",
    "exp",
    "log",
    "sin",
    "cos",
    "erf",
    "sigmoid",
    "rsqrt",
    "softmax",
    "rand",
    "pair_",
)


def arrays(arguments: dict[str, object]) -> dict[str, np.ndarray]:
    """The memory of an example's arguments."""
    bases = {
        name: value.base if isinstance(value, TensorDescriptor) else value
        for name, value in arguments.items()
    }
    return {name: value for name, value in bases.items() if isinstance(value, np.ndarray)}


def test_every_public_name_has_an_example_and_a_row() -> None:
    assert set(EXAMPLES) == set(public_names()) == set(STATES)
    assert not set(ABSENT) & set(EXAMPLES)


def test_no_cell_is_empty() -> None:
    for name, states in STATES.items():
        assert len(states) == len(COLUMNS)
        assert all(state == YES or len(state) > 10 for state in states), name


@pytest.mark.parametrize("name", public_names())
def test_an_example_runs_where_the_table_says(name: str, tmp_path: Path) -> None:
    kernel = example_kernel(name, tmp_path)
    stated = dict(zip(COLUMNS, STATES[name], strict=True))
    found = {column: state_of(column, kernel) for column in COLUMNS}
    assert found["interpreter"] == stated["interpreter"]
    assert found["CPU"] == stated["CPU"]
    # What the GPU learns in the meantime asks for a new table only, what it forgets is an error.
    assert stated["sm_90a"] != YES or found["sm_90a"] == YES, found["sm_90a"]
    if found["interpreter"] == found["CPU"] == YES:
        require_agreement(name, kernel)


def require_agreement(name: str, kernel: object) -> None:
    """The compiled example leaves the same memory as the interpreted one."""
    compiled, interpreted = example_arguments(), interpret(kernel)
    kernel[(1,)](**compiled)
    rtol = 1e-5 if name.startswith(APPROXIMATE) else 0.0
    for key, expected in arrays(interpreted).items():
        np.testing.assert_allclose(arrays(compiled)[key], expected, rtol=rtol, atol=rtol)


def test_a_rendered_table_can_be_read_back() -> None:
    row = Row("f", "a | b\nc", (YES, "no | never", YES))
    assert render_row(row).startswith("| `f` | `a \\| b`<br>`c` | yes | no \\| never |")
    assert parse(render([row])) == {"f": row.states}
