"""What a kernel is called in PTX, where fewer names are allowed than in Python.

*Source* PTX ISA 8.8, section 4.4: a letter and then letters, digits, `_` and `$`, or one of
`_ $ %` and at least one of those; ASCII alone.
"""

from __future__ import annotations

import re

_PLAIN = re.compile(r"[A-Za-z]\w*|_\w+", re.ASCII)
# What the emitted module may itself define, whose other names have dots, and PTX's own constant.
_TAKEN = frozenset(("WARP_SZ", "shared", "vprintf", "__assertfail", "tensor_map_slots"))
_OWN_PREFIX = "tw_"


def entry_symbol(name: str) -> str:
    """The symbol of the kernel `name`: itself where PTX takes it and nothing else has it.

    *Example*

    >>> entry_symbol("matmul"), entry_symbol("größe"), entry_symbol("_")
    ('matmul', 'gr_uf6__udf_e$', '_$')
    """
    if _PLAIN.fullmatch(name) and name not in _TAKEN and not name.startswith(_OWN_PREFIX):
        return name
    parts = (c if c.isascii() else f"_u{ord(c):x}_" for c in name)
    return f"{''.join(parts)}$"
