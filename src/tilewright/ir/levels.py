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
* `tw.slice` is the part of a tile that is one replica's;
* at `tw.meet` all roles wait for each other.

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

from collections.abc import Callable, Mapping
from dataclasses import field
from math import prod
from types import MappingProxyType

from xdsl.dialects.builtin import (
    IndexType,
    IntegerType,
    NoneAttr,
    Signedness,
    TensorType,
    VectorType,
)
from xdsl.ir import Attribute, Operation

from tilewright.ir.op import ADDED_OPS
from tilewright.ir.types import FLOATS, DescriptorType, PointerType
from tilewright.support.dataclass import dataclass, replace

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
_CHANNELS = frozenset(
    {"tw.channel", "tw.put", "tw.put_part", "tw.get", "tw.skip", "tw.meet", "tw.slice"}
)
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
