"""The ops and user functions of extensions, taken into the tile dialects when they are needed."""

from __future__ import annotations

from xdsl.ir import Operation

from tilewright.ir.effects import declares_effects
from tilewright.ir.op import ADDED_OPS, ops_of
from tilewright.language.extensions import import_extensions, load_part
from tilewright.ops.dialects import TILE_OPS
from tilewright.support.errors import DuplicateRegistration, EffectsNotDeclared
from tilewright.support.source import definition_span

_OURS = frozenset(op.name for op in TILE_OPS)


def add_extensions(names: tuple[str, ...] = ()) -> None:
    """Take in the ops and user functions of the extensions, those named imported first.

    Raises: InvalidExtension; DuplicateRegistration for an op under a name that is taken;
    EffectsNotDeclared for one that does not say what it does to memory.
    """
    import_extensions(names)
    for name, module in load_part("ops"):
        for op in ops_of(module):
            _add(op, name)


def _add(op: type[Operation], extension: str) -> None:
    if not declares_effects(op):
        raise EffectsNotDeclared(
            f"extension `{extension}`: {op.name}, `{op.__name__}`, does not say what it does to "
            "memory",
            span=definition_span(op),
        )
    known = ADDED_OPS.setdefault(op.name, op)
    if op.name in _OURS or known is not op:
        owner = "Tilewright" if op.name in _OURS else f"`{known.__module__}`"
        raise DuplicateRegistration(
            f"extension `{extension}`: {op.name}, `{op.__name__}`, is an op of {owner} already",
            span=definition_span(op),
        )
