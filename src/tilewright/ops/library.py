"""The fixed list of modules that declare user functions; importing it fills the registry."""

from __future__ import annotations

from tilewright.ops import casting, random
from tilewright.ops.atomics import surface as atomics
from tilewright.ops.atomics import words
from tilewright.ops.block_pointers import surface as block_pointers
from tilewright.ops.creation import surface as creation
from tilewright.ops.debug import surface as debug
from tilewright.ops.descriptors import surface as descriptors
from tilewright.ops.elementwise import surface as elementwise
from tilewright.ops.extern import surface as extern
from tilewright.ops.indexing import surface as indexing
from tilewright.ops.inline import surface as inline
from tilewright.ops.matmul import scaled
from tilewright.ops.matmul import surface as matmul
from tilewright.ops.memory import surface as memory
from tilewright.ops.program import surface as program
from tilewright.ops.program import target_info
from tilewright.ops.reduction import surface as reduction
from tilewright.ops.shape import surface as shape
from tilewright.ops.surface import MEMBERS, SURFACE

MODULES = (
    atomics,
    block_pointers,
    casting,
    creation,
    debug,
    descriptors,
    elementwise,
    extern,
    indexing,
    inline,
    matmul,
    memory,
    program,
    random,
    reduction,
    scaled,
    shape,
    target_info,
    words,
)

__all__ = ["MEMBERS", "MODULES", "SURFACE"]
