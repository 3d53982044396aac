"""Atomic reads and writes of memory."""

from __future__ import annotations

from xdsl.dialects.builtin import IntegerAttr
from xdsl.irdl import (
    irdl_op_definition,
    operand_def,
    opt_operand_def,
    opt_prop_def,
    prop_def,
    result_def,
    traits_def,
)

from tilewright.ir.effects import Access, Atomic, Effect, Resource
from tilewright.ir.op import ACCESSES, ACCESSES_AND_EXCHANGES, TileOp

# Positions are the published attribute codes (counted from 1; index 0 is unused).
RMW_KINDS = ("", "and", "or", "xor", "add", "fadd", "max", "min", "umax", "umin", "exch")
MEMORY_ORDERS = ("", "relaxed", "acquire", "release", "acq_rel")
MEMORY_SCOPES = ("", "gpu", "cta", "sys")


class AtomicOp(TileOp):
    """The facet of an op that synchronizes programs: `sem` and `scope` by code."""

    sem = opt_prop_def(IntegerAttr)
    scope = opt_prop_def(IntegerAttr)

    def order_name(self) -> str:
        """The memory order, acq_rel unless said otherwise."""
        return "acq_rel" if self.sem is None else MEMORY_ORDERS[self.sem.value.data]

    def atomic(self) -> Atomic:
        """How the op synchronizes, as far as what it does can."""
        scope = "gpu" if self.scope is None else MEMORY_SCOPES[self.scope.value.data]
        return Atomic(self.order_name(), scope)

    def effects(self) -> tuple[Effect, ...]:
        """A read and a write in one step."""
        pointers = self.operands[0]
        return (Access(Resource.GLOBAL, True, True, pointers, atomic=self.atomic()),)


@irdl_op_definition
class AtomicRmwOp(AtomicOp):
    """result[i] = *ptr[i]; *ptr[i] = kind(*ptr[i], value[i]), in one step where mask[i]."""

    name = "tt.atomic_rmw"
    traits = traits_def(ACCESSES_AND_EXCHANGES)
    kind = prop_def(IntegerAttr, prop_name="atomic_rmw_op")
    ptr = operand_def()
    value = operand_def()
    mask = opt_operand_def()
    result = result_def()

    def kind_name(self) -> str:
        """The name of the combination."""
        return RMW_KINDS[self.kind.value.data]


@irdl_op_definition
class AtomicCasOp(AtomicOp):
    """result[i] = *ptr[i]; *ptr[i] = value[i] if it was compare[i], in one step."""

    name = "tt.atomic_cas"
    traits = traits_def(ACCESSES_AND_EXCHANGES)
    ptr = operand_def()
    compare = operand_def()
    value = operand_def()
    result = result_def()


@irdl_op_definition
class AtomicLoadOp(AtomicOp):
    """result[i] = *ptr[i] read in one step where mask[i] (acquire or relaxed)."""

    name = "tw.atomic_load"
    traits = traits_def(ACCESSES_AND_EXCHANGES)
    ptr = operand_def()
    mask = opt_operand_def()
    result = result_def()

    def atomic(self) -> Atomic:
        """A load cannot release."""
        found = super().atomic()
        return found if found.order == "relaxed" else Atomic("acquire", found.scope)

    def effects(self) -> tuple[Effect, ...]:
        return (Access(Resource.GLOBAL, True, False, self.ptr, atomic=self.atomic()),)


@irdl_op_definition
class AtomicStoreOp(AtomicOp):
    """*ptr[i] = value[i] written in one step where mask[i] (release or relaxed)."""

    name = "tw.atomic_store"
    traits = traits_def(ACCESSES)
    ptr = operand_def()
    value = operand_def()
    mask = opt_operand_def()

    def atomic(self) -> Atomic:
        """A store cannot acquire."""
        found = super().atomic()
        return found if found.order == "relaxed" else Atomic("release", found.scope)

    def effects(self) -> tuple[Effect, ...]:
        return (Access(Resource.GLOBAL, False, True, self.ptr, atomic=self.atomic()),)
