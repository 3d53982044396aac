"""`import triton` for every program of an environment: Tilewright under that name.

The modules are those of the installed Tilewright; this file only says where they are.
"""

from pathlib import Path

import tilewright

_HERE = Path(__file__).parent
if any(_HERE.glob("_C/libtriton*")):
    raise ImportError(
        "Triton itself and tilewright-triton are both installed, and both are named `triton`. "
        "Keep one: `pip uninstall tilewright-triton`, then `pip install --force-reinstall triton` "
        "for Triton; or `pip uninstall triton` for Tilewright. `tilewright run SCRIPT` gives one "
        "script Tilewright beside an installed Triton."
    )

_ALIAS = Path(tilewright.__file__).parent / "_alias" / "triton"
__path__ = [str(_ALIAS)]
__file__ = str(_ALIAS / "__init__.py")
exec(compile(Path(__file__).read_text(encoding="utf-8"), __file__, "exec"))
