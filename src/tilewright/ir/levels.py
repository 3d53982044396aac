"""The levels of the IR as contracts: which ops and types a module may hold at each of them.

At every level:

* the top is one `builtin.module` with nothing but `tt.func` ops in it, one of them public;
* every op verifies by itself, and values are defined before they are used;
* a value has no users but ops of the module: one that stands nowhere is left over from a rewrite;
* control flow is structured: every region has one block, and it ends with its terminator;
* every op has a known source location, so that errors and profiles name a line;
* integers are signless and have 1, 8, 16, 32 or 64 bits; signedness lives in the ops.

T0, tile: what the user wrote.

* ops of `tt`, `tw`, `arith`, `math` and `scf`, `gpu.barrier` and `llvm.intr.assume`;
* a tile has a static shape without zeros, at most 2^20 elements, and no layout;
* a pointer points into global memory, to a scalar or (a block pointer) to a tile;
* no vectors, no memory spaces, no target ops.

T0r, roles: T0 where the body of the kernel is one `tw.roles`.

* regions of `tw.roles` pass values through channels: `tw.put` and `tw.get`, in no other place;
* `tw.slice` is the part of a tile that is one replica's.

T1, laid out: T0r with `ttg` ops, where every tile has a layout; shared tiles and tokens.

T2, scheduled: T1 with the target's ops; shared tiles have their place, barriers stand, and every
op carries what is decided about it: nothing is left to decide.

C2, nests (CPU): scalar and vector code.

* `scf`, elementwise `arith`, `math` and `tt` ops, program ids, pointer arithmetic, splats, atomics,
  and `cpu` ops; no op of T0 that works on tiles or touches memory plainly;
* scalars, pointers, and vectors of one dimension; no tiles and no descriptors;
* every arena buffer has its place.

C1 is C2 before the buffers have their places.

A target adds its ops to a level with `Level.extended`. Ops of extensions are legal at each level,
as far as its types go.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import field
from math import prod
from types import MappingProxyType

from xdsl.dialects.builtin import (
    IndexType,
    IntegerType,
    ModuleOp,
    NoneAttr,
    Signedness,
    StringAttr,
    TensorType,
    VectorType,
)
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.utils.exceptions import VerifyException

from tilewright.ir.locations import describe, is_known, span_of
from tilewright.ir.op import ADDED_OPS, plans_of
from tilewright.ir.types import FLOATS, DescriptorType, PointerType
from tilewright.support.dataclass import dataclass, replace
from tilewright.support.errors import InternalError

MAX_TILE_ELEMENTS = 1 << 20
_WIDTHS = frozenset({1, 8, 16, 32, 64})

TypeRule = Callable[[Attribute], str]
"""Why a type is not legal at a level; '' when it is."""


@dataclass(frozen=True)
class Level:
    """A contract: legal ops by dialect or by name, a rule for types, properties that must be set.

    `ops` adds single ops to the `dialects`; `excluded` takes single ones away.
    Every module of a level that this one `includes` is one of this level, too.
    """

    name: str
    summary: str
    dialects: frozenset[str]
    ops: frozenset[str]
    type_rule: TypeRule
    excluded: frozenset[str] = frozenset()
    required: Mapping[str, tuple[str, ...]] = field(default_factory=lambda: MappingProxyType({}))
    is_decided: bool = False
    includes: frozenset[str] = frozenset()

    def allows(self, name: str) -> bool:
        """Whether an op of this name is legal."""
        if name in self.excluded:
            return False
        return name in self.ops or name in ADDED_OPS or name.partition(".")[0] in self.dialects

    def extended(self, *ops: type[Operation]) -> Level:
        """This level with the ops of a target."""
        return replace(self, ops=self.ops | {op.name for op in ops})


def _scalar_reason(type_: Attribute) -> str:
    """Why a type is no scalar of any level."""
    if isinstance(type_, IntegerType):
        if type_.signedness.data is not Signedness.SIGNLESS:
            return "integers are signless"
        return "" if type_.width.data in _WIDTHS else f"no integers of {type_.width.data} bits"
    if isinstance(type_, IndexType) or type_ in FLOATS:
        return ""
    return f"{type_} is no type of this level"


def _tile_reason(type_: TensorType[Attribute], element: TypeRule) -> str:
    shape = type_.get_shape()
    if not shape or min(shape) <= 0:
        return f"the shape {tuple(shape)} is not static and positive"
    count = prod(shape)
    if count > MAX_TILE_ELEMENTS:
        return f"{count} elements are more than {MAX_TILE_ELEMENTS}"
    return element(type_.element_type)


def _t0_type(type_: Attribute) -> str:
    if isinstance(type_, TensorType):
        has_layout = not isinstance(type_.encoding, NoneAttr)
        return "a tile has no layout" if has_layout else _tile_reason(type_, _t0_element)
    if isinstance(type_, DescriptorType):
        return _t0_type(type_.block)
    if isinstance(type_, PointerType) and isinstance(type_.pointee, TensorType):
        return _t0_type(type_.pointee)
    return _t0_element(type_)


def _t0_element(type_: Attribute) -> str:
    if not isinstance(type_, PointerType):
        return _scalar_reason(type_)
    if type_.address_space.data != 1:
        return "a pointer points into global memory"
    return _t0_element(type_.pointee)


def _t0r_type(type_: Attribute) -> str:
    return "" if type_.name == "tw.channel" else _t0_type(type_)


# Shared tiles, tokens and what joins roles, by name: what compiles for a CPU loads no layouts.
_STAGED = frozenset({"ttg.memdesc", "ttg.async.token", "ttg.ring", "tw.channel"})


def _t1_type(type_: Attribute) -> str:
    if type_.name in _STAGED:
        return ""
    if isinstance(type_, TensorType):
        is_bare = isinstance(type_.encoding, NoneAttr)
        return "a tile has a layout" if is_bare else _tile_reason(type_, _t0_element)
    return _t0_type(type_)


def _c2_type(type_: Attribute) -> str:
    if isinstance(type_, VectorType):
        if type_.get_num_dims() != 1:
            return "a vector has one dimension"
        return _c2_type(type_.element_type)
    if isinstance(type_, PointerType):
        return "" if isinstance(type_.pointee, PointerType) else _scalar_reason(type_.pointee)
    return _scalar_reason(type_)


# What carries values between roles, by name.
_CHANNELS = frozenset({"tw.channel", "tw.put", "tw.put_part", "tw.get", "tw.skip", "tw.slice"})
_CONTROL_FLOW = frozenset({"scf.for", "scf.if", "scf.while", "scf.yield", "scf.condition"})

T0 = Level(
    name="T0",
    summary="tile: shapes, dtypes and structured control flow, as the user wrote them",
    dialects=frozenset({"tt", "tw", "arith", "math"}),
    ops=_CONTROL_FLOW | {"builtin.module", "gpu.barrier", "llvm.intr.assume"},
    type_rule=_t0_type,
    excluded=_CHANNELS | {"tw.roles"},
)
T0R = replace(
    T0,
    name="T0r",
    summary="roles: what runs at once, and the values that go from one role to another",
    type_rule=_t0r_type,
    excluded=frozenset(),
    includes=frozenset({"T0"}),
)
T1 = Level(
    name="T1",
    summary="laid out: every tile has a layout, conversions are explicit",
    dialects=T0.dialects | {"ttg"},
    ops=T0.ops,
    type_rule=_t1_type,
)
T2 = Level(
    name="T2",
    summary="scheduled: slots, stages, async copies, waits and partitions are explicit",
    dialects=T1.dialects,
    ops=T1.ops,
    type_rule=_t1_type,
    excluded=_CHANNELS,
    required=MappingProxyType({"ttg.local_alloc": ("offset_bytes",)}),
    is_decided=True,
)
C1 = Level(
    name="C1",
    summary="nests whose arena buffers have no place yet",
    dialects=frozenset({"arith", "math", "cpu"}),
    ops=_CONTROL_FLOW
    | {"builtin.module", "gpu.barrier", "llvm.intr.assume"}
    | {"tt.func", "tt.return", "tt.get_program_id", "tt.get_num_programs", "tt.addptr"}
    | {"tt.splat", "tt.bitcast", "tt.int_to_ptr", "tt.ptr_to_int", "tt.fp_to_fp", "tt.mulhiui"}
    | {"tt.clampf", "tt.precise_divf", "tt.precise_sqrt", "tw.hint", "tw.clock"}
    | {"tt.extern_elementwise"}
    | {"tt.atomic_rmw", "tt.atomic_cas", "tw.atomic_load", "tw.atomic_store"},
    type_rule=_c2_type,
)
C2 = replace(
    C1,
    name="C2",
    summary="nests: loops over vectors with explicit bounds, arena buffers, packed panels",
    required=MappingProxyType({"cpu.alloc": ("offset_bytes",)}),
)
LEVELS: Mapping[str, Level] = MappingProxyType(
    {level.name: level for level in (T0, T0R, T1, T2, C1, C2)}
)


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


def check_locations(module: ModuleOp) -> None:
    """Check that every op of a module names a line of the source.

    *Raises* InternalError that names the first op that does not.
    """
    for operation in module.walk():
        if not is_known(operation.location):
            raise InternalError(f"{operation.name} has no source location")


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
