"""Whether objects of the Python that runs lie in memory as the native launch reads them."""

from __future__ import annotations

import ctypes
import importlib

from tilewright.runtime.launch_table import ARRAY_ALIGNED, ARRAY_WRITEABLE, OBJECT_FIELDS


def has_known_object_layout() -> bool:
    """Whether live objects of this Python and NumPy lie in memory as the launcher reads them."""
    # A launch brings arrays, or needs none: `import tilewright` does without NumPy.
    np = importlib.import_module("numpy")
    array = np.arange(3, dtype=np.float32)
    frozen = array[1:]
    frozen.flags.writeable = False
    if any(_word(x, "type") != id(type(x)) for x in (1, 1.5, True, None, array)):
        return False
    if any(_word(x, "size") != len(x) for x in ([], [1], [1, 2, 3])):
        return False
    return all(
        _word(x, "array_data") == x.ctypes.data
        and _word(x, "array_dtype") == id(x.dtype)
        and bool(_word(x, "array_flags") & ARRAY_WRITEABLE) == x.flags.writeable
        and bool(_word(x, "array_flags") & ARRAY_ALIGNED) == x.flags.aligned
        for x in (array, frozen, array.view(np.uint8)[1:5].view(np.float32))
    )


def _word(value: object, field: str) -> int:
    return ctypes.c_int64.from_address(id(value) + OBJECT_FIELDS[field]).value
