"""Whether a module keeps to the contract of a level (`ir/levels.py`)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import field

from xdsl.dialects.builtin import ModuleOp, StringAttr, TensorType
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.utils.exceptions import VerifyException

from tilewright.ir.levels import Level, TypeRule
from tilewright.ir.locations import describe, is_known, span_of
from tilewright.ir.op import plans_of
from tilewright.support.dataclass import dataclass
from tilewright.support.errors import InternalError

_Asked = tuple[Sequence[str], Sequence[str]] | tuple[()]
"""What a level asks of the ops of a class, if anything: properties that must be set, and plans."""


def verify_level(module: ModuleOp, level: Level) -> None:
    """Check a module against the contract of a level.

    *Raises* InternalError that names the op, its source line and the rule that it breaks.
    """
    try:
        module.verify()
    except VerifyException as error:
        raise InternalError(f"invalid {level.name}: {str(error).strip()}") from error
    check_level(module, level)
    for operation in module.walk():
        if not is_known(operation.location):
            raise _broken(operation, level, "has no source location")


@dataclass(frozen=True)
class LegalTypes:
    """The types that passed a level's rule in one compile, which the next check need not ask.

    By identity: to hash one with a layout takes longer than to look at it. They are held, so that
    no other type takes the place of one.
    """

    by_rule: dict[TypeRule, dict[int, Attribute]] = field(default_factory=dict)

    def at(self, level: Level) -> dict[int, Attribute]:
        """Those of a level."""
        return self.by_rule.setdefault(level.type_rule, {})


def check_level(module: ModuleOp, level: Level, legal: LegalTypes | None = None) -> None:
    """Check what a level says of a module, and not what each op says of itself.

    An eighth of the time of `verify_level`: every compile takes it. Where an op came from is left
    out: a program whose code is right compiles, though an error in it would name no line.

    *Raises* InternalError that names the op, its source line and the rule that it breaks.
    """
    _check_top(module, level)
    operations = check_types(module, level, legal)
    standing = frozenset(map(id, operations))
    for operation in operations:
        for value in _made_by(operation) if operation.regions else operation.results:
            for use in value.uses:
                if id(use.operation) not in standing:
                    raise _used_from_nowhere(value, use.operation, level)


def check_types(
    module: ModuleOp, level: Level, legal: LegalTypes | None = None
) -> Sequence[Operation]:
    """Check which ops a level has, and the types of what they make; the ops of the module.

    For levels on the way: every compile takes it where the types of a module change. What is left
    out, the last level's check finds as well.

    *Raises* InternalError that names the op, its source line and the rule that it breaks.
    """
    operations: list[Operation] = []
    _collect(module, operations)
    passed = (legal or LegalTypes()).at(level)
    asked: dict[type, _Asked] = {}
    for operation in operations:
        known = asked.get(type(operation))
        if known is None:
            known = asked[type(operation)] = _asked_of(operation, level)
        if known:
            _check_decided(operation, level, *known)
        if operation.regions:
            _check_regions(operation, level)
        for value in _made_by(operation) if operation.regions else operation.results:
            type_ = value.type
            if id(type_) not in passed:
                _check_type(operation, type_, level)
                passed[id(type_)] = type_
    return operations


def _collect(operation: Operation, found: list[Operation]) -> None:
    """Append an op and the ops in it, in the order of the text: a third of the time of `walk`."""
    found.append(operation)
    for region in operation.regions:
        for block in region.blocks:
            for inner in block.ops:
                if inner.regions:
                    _collect(inner, found)
                else:
                    found.append(inner)


def _check_top(module: ModuleOp, level: Level) -> None:
    public = 0
    for operation in module.ops:
        if operation.name != "tt.func":
            raise _broken(operation, level, "stands outside of every function")
        visibility = operation.properties.get("sym_visibility", StringAttr("public"))
        public += visibility == StringAttr("public")
    if public != 1:
        raise _broken(module, level, f"the module has {public} public functions, not one")


def _asked_of(operation: Operation, level: Level) -> _Asked:
    """What a level asks of the ops of an op's class, which are ops of the level."""
    if not level.allows(operation.name):
        raise _broken(operation, level, "is no op of this level")
    plans = plans_of(type(operation)) if level.is_decided else ()
    required = level.required.get(operation.name, ())
    return (required, plans) if required or plans else ()


def _check_regions(operation: Operation, level: Level) -> None:
    for region in operation.regions:
        if region.first_block is not region.last_block:
            raise _broken(operation, level, "has a region of several blocks")


def _check_decided(
    operation: Operation, level: Level, required: Sequence[str], plans: Sequence[str]
) -> None:
    """Check that an op has what must be set on ops of its name."""
    for name in required:
        if name not in operation.properties:
            raise _broken(operation, level, f"has no `{name}` yet")
    for name in plans:
        if name not in operation.attributes and _has_tiles(operation):
            raise _broken(operation, level, f"has no `{name}` yet: that is not decided")


def _has_tiles(operation: Operation) -> bool:
    """Whether an op takes or makes a tile: what is of scalars alone leaves nothing to decide."""
    values = (*operation.operands, *operation.results)
    return any(isinstance(value.type, TensorType) for value in values)


def _made_by(operation: Operation) -> Iterator[SSAValue]:
    """The results of an op and the arguments of its regions."""
    yield from operation.results
    for region in operation.regions:
        for block in region.blocks:
            yield from block.args


def _used_from_nowhere(value: SSAValue, user: Operation, level: Level) -> InternalError:
    return _broken(_maker(value), level, f"is used by {user.name}, which stands nowhere")


def _maker(value: SSAValue) -> Operation:
    """The op that has a value as a result, or as an argument of a region."""
    owner = value.owner
    maker = owner if isinstance(owner, Operation) else owner.parent_op()
    assert maker is not None
    return maker


def _check_type(operation: Operation, type_: Attribute, level: Level) -> None:
    reason = level.type_rule(type_)
    if reason:
        raise _broken(operation, level, f"has a value of type {type_}: {reason}")


def _broken(operation: Operation, level: Level, reason: str) -> InternalError:
    span, chain = span_of(operation)
    return InternalError(
        f"invalid {level.name}: {operation.name} at {describe(operation)} {reason}",
        span=span,
        chain=chain,
    )
