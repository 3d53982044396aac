"""Writes `docs/libdevice.md`: every function of libdevice, its forms and its error bounds.

    python -m tilewright.tools.document_libdevice

The page is checked in; a test writes it anew and compares.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tilewright.ops.extern.ir import Extern

PAGE = Path("docs") / "libdevice.md"
_HEAD = """# The functions of libdevice

`tl.extra.libdevice` serves the 198 names that Triton publishes, with the same operand types, on
the interpreter, the CPU and NVIDIA GPUs alike; no bitcode library is opened. The symbols behind
them (`__nv_erfcf`) work through `tl.extern_elementwise` and in TTIR that Triton wrote.

```python
import numpy as np
import tilewright
import tilewright.language as tl


@tilewright.jit
def log_gamma(x, out, SIZE: tl.constexpr):
    at = tl.arange(0, SIZE)
    tl.store(out + at, tl.extra.libdevice.lgamma(tl.load(x + at)))


x = np.linspace(0.5, 8.5, 16, dtype=np.float32)
out = np.zeros_like(x)
log_gamma[(1,)](x, out, SIZE=16)
assert abs(out[-1] - 9.5492) < 1e-4
```

Operands of other dtypes are promoted together; where no form fits then, `DtypeNotAllowed` lists
the forms. Signed and unsigned integers stand for each other where a name has one form of a width.

**Bounds** are in units in the last place of the exact result, fp32 / fp64. "exact" means the one
right result, by the rounding mode where the name has one. The GPU's bounds of fp32 count what
the PTX ISA states for the instructions used; they are not measured. Results below
2^-126 of the fp32 `exp2` are 0 on the GPU.

"""
_NOTES = """
Beyond the table:

- The interpreter computes fp32 functions in fp64 and rounds once.
- The Bessel functions of fp64 keep {j0} and {j1} ulp (`j0`, `j1`) up to 8. Beyond it, and for
  the second kind everywhere, the bound is near a zero an absolute one: a few times 2^-53 of the
  function's size around it. The same holds for `lgamma` of fp64 below 0. `jn` and `yn` take
  about |n| rounds of a loop.
- Arithmetic in a directed mode on the CPU is exact but for the last place of an fp64
  `fma` whose product underflows.
- A float that is out of an integer's range saturates. NaN gives 0 from fp32 to 32 bits, else the
  integer with the top bit alone, as NVIDIA's instruction does.
- `rcp64h` keeps the upper 32 bits: of the rounded reciprocal on the CPU, of the GPU's 20-bit
  approximation there.
- The functions called `fast_…` are accurate on the CPU. On the GPU:

| name | error on the GPU |
| --- | --- |
"""
_LETTERS = {"fp32": "float", "fp64": "double"}
Bounds = Mapping[tuple[str, str], float]


def page() -> str:
    """The text of the page; loads the compiler."""
    extern = importlib.import_module("tilewright.ops.extern.ir")
    libdevice = importlib.import_module("tilewright.ops.extern.surface")
    meanings = importlib.import_module("tilewright.ops.extern.meanings")
    cpu = importlib.import_module("tilewright.codegen.math.accuracy")
    gpu = importlib.import_module("tilewright.targets.nvidia.math.accuracy")
    shared = {**cpu.LIBRARY_BOUND, **cpu.ULP_BOUND}
    lines = ["| name | computes | forms | CPU | GPU |", "| --- | --- | --- | --- | --- |"]
    for name in libdevice.NAMES:
        rows: Sequence[Extern] = extern.overloads(name)
        forms = "; ".join(f"{', '.join(row.operands)} → {row.result}" for row in rows)
        cells = [f"`{name}`", _escaped(meanings.MEANINGS[name]), forms]
        cells += [_bound(rows, shared, {}), _bound(rows, gpu.ULP_BOUND, gpu.FAST_BOUND)]
        lines.append(f"| {' | '.join(cells)} |")
    fast = [f"| `{name}` | {_escaped(text)} |" for name, text in gpu.FAST_BOUND.items()]
    notes = _NOTES.format(**{name: f"{shared[name, 'double']:g}" for name in ("j0", "j1")})
    return _HEAD + "\n".join(lines) + "\n" + notes + "\n".join(fast) + "\n"


def _escaped(text: str) -> str:
    """Text for a cell of a table."""
    return text.replace("|", "\\|")


def _bound(rows: Sequence[Extern], bounds: Bounds, fast: Mapping[str, str]) -> str:
    """The bounds of a function's float forms, one for each type."""
    if rows[0].routine in fast:
        return "below"
    found: list[str] = []
    for row in rows:
        element = _LETTERS.get(row.operands[row.selector])
        if element is None:
            return "exact"
        name = row.routine.removeprefix("fast_")
        bound = bounds.get((name, element), 0.0)
        # The rounded forms and the moves are exact; half a place is the nearest number.
        found.append("exact" if bound in (0.0, 0.5) else f"{bound:g}")
    distinct = list(dict.fromkeys(found))
    return " / ".join(found if len(distinct) > 1 else distinct)


def main() -> None:
    """Write the page below the current folder."""
    PAGE.write_text(page(), encoding="utf-8")
    print(f"wrote {PAGE}")


if __name__ == "__main__":
    main()
