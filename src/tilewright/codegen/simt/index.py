"""Linear functions of the thread: where a lane of a warp stands in a layout.

A layout maps the bits of lane and warp to coordinates by exclusive or. Each such function is
computed once a scope, at its start, and shared by all ops that ask for it. Warps count from the
first one of the thread's group.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field
from typing import Protocol

from tilewright.codegen.llvm_builder import FunctionBuilder
from tilewright.codegen.simt.partition import Partition
from tilewright.support.dataclass import dataclass
from tilewright.support.powers_of_two import is_power_of_two

Bases = tuple[int, ...]


class ThreadIdentity(Protocol):
    """What a target says about the thread; every value is emitted into the prologue."""

    @property
    def lanes(self) -> int:
        """The lanes of a warp."""
        ...

    def thread_id(self, fn: FunctionBuilder) -> str:
        """The index of the thread in its cta, i32."""
        ...

    def uniform_warp(self, fn: FunctionBuilder) -> str:
        """The index of the warp in its cta, i32, as a value that its lanes share."""
        ...


@dataclass
class ThreadIndex:
    """The lane and warp of the thread, and the linear functions of them computed so far.

    What depends on the warp alone can be had as uniform: a target may keep it, and the addresses
    in a loop that follow from it, in registers of the warp.
    """

    target: ThreadIdentity
    partition: Partition
    lane: str
    warp: str
    known: dict[tuple[Bases, Bases], str] = field(default_factory=dict)
    known_uniform: dict[Bases, str] = field(default_factory=dict)
    _cta_warp: str = field(default="", init=False)
    _uniform_warp: str = field(default="", init=False)
    _replica: str = field(default="", init=False)

    @classmethod
    def start(
        cls, fn: FunctionBuilder, target: ThreadIdentity, partition: Partition
    ) -> ThreadIndex:
        """Split the thread's index into lane and warp, in the prologue."""
        thread, bits = target.thread_id(fn), target.lanes.bit_length() - 1
        lane = fn.prologue_value(f"and i32 {thread}, {target.lanes - 1}")
        warp = fn.prologue_value(f"lshr i32 {thread}, {bits}")
        return cls(target, partition, lane, _in_group(fn, partition, warp))

    def cta_warp(self, fn: FunctionBuilder) -> str:
        """The warp in its cta as a value that its lanes share, made when first asked for."""
        if not self._cta_warp:
            one = self.partition.cta_warps == 1
            self._cta_warp = "0" if one else self.target.uniform_warp(fn)
        return self._cta_warp

    def uniform_warp(self, fn: FunctionBuilder) -> str:
        """The warp in its group as a value that its lanes share."""
        if self.partition.warps == 1:
            return "0"
        if not self._uniform_warp:
            self._uniform_warp = _in_group(fn, self.partition, self.cta_warp(fn))
        return self._uniform_warp

    def replica(self, fn: FunctionBuilder) -> str:
        """Which of the partition's groups the warp is in, i32, shared by its lanes."""
        part = self.partition
        if part.replicas == 1:
            return "0"
        if not self._replica:
            inside = _minus(fn, self.cta_warp(fn), part.first_warp)
            shift = part.warps.bit_length() - 1
            self._replica = fn.prologue_value(f"lshr i32 {inside}, {shift}") if shift else inside
        return self._replica

    def linear(self, fn: FunctionBuilder, lane: Sequence[int], warp: Sequence[int]) -> str:
        """The exclusive or of the bases whose bit is set in lane and warp, i32.

        `lane[k]` and `warp[k]` belong to bit k; all are non-negative.
        """
        key = (tuple(lane), tuple(warp))
        if key not in self.known:
            self.known[key] = self._emit(fn, *key)
        return self.known[key]

    def _emit(self, fn: FunctionBuilder, lane: Bases, warp: Bases) -> str:
        return _sum(fn, [*_terms(fn, self.lane, lane), *_terms(fn, self.warp, warp)])

    def uniform(self, fn: FunctionBuilder, warp: Sequence[int]) -> str:
        """The same function of the warp alone, i32, as a value that its lanes share.

        *Why not always*: a register of the warp pays where instructions take nothing else, as
        descriptors of wgmma; else the bits of the thread's index are cheaper.
        """
        if not any(warp):
            return "0"
        key: Bases = tuple(warp)
        if key not in self.known_uniform:
            self.known_uniform[key] = _sum(fn, _terms(fn, self.uniform_warp(fn), key))
        return self.known_uniform[key]


def _in_group(fn: FunctionBuilder, partition: Partition, warp: str) -> str:
    """A warp of the cta as a warp of its group."""
    if partition.is_cta:
        return warp
    inside = warp
    if partition.first_warp % partition.warps:
        inside = _minus(fn, warp, partition.first_warp)
    elif partition.end_warp == partition.warps:
        return warp  # The first warps of the cta are numbered as they are.
    return fn.prologue_value(f"and i32 {inside}, {partition.warps - 1}")


def _minus(fn: FunctionBuilder, value: str, amount: int) -> str:
    return value if amount == 0 else fn.prologue_value(f"sub nuw nsw i32 {value}, {amount}")


def _sum(fn: FunctionBuilder, terms: Sequence[tuple[str, int]]) -> str:
    """The exclusive or of parts."""
    if not terms:
        return "0"
    total, covered = terms[0]
    for name, bits in terms[1:]:
        # An `or` without common bits lets the back end fold constants into addresses.
        combine = "xor" if covered & bits else "or disjoint"
        total = fn.prologue_value(f"{combine} i32 {total}, {name}")
        covered |= bits
    return total


def _terms(fn: FunctionBuilder, source: str, bases: Bases) -> list[tuple[str, int]]:
    """The parts of a linear function of one index: (value, bits that it may have set)."""
    terms: list[tuple[str, int]] = []
    position = 0
    while position < len(bases):
        base = bases[position]
        if base == 0:
            position += 1
            continue
        count = 1
        while _continues(bases, position, count):
            count += 1
        terms.append(_field(fn, source, position, count, base))
        position += count
    return terms


def _continues(bases: Bases, start: int, count: int) -> bool:
    """Whether the run of single bits, each twice the one before, goes on."""
    base, following = bases[start], start + count
    is_single = is_power_of_two(base)
    return is_single and following < len(bases) and bases[following] == base << count


def _field(
    fn: FunctionBuilder, source: str, position: int, count: int, base: int
) -> tuple[str, int]:
    """`count` bits of `source` from `position` on, as multiples of `base`."""
    mask = (1 << count) - 1
    is_single = is_power_of_two(base)
    if is_single and base == 1 << position:
        kept = mask << position
        return fn.prologue_value(f"and i32 {source}, {kept}"), kept
    value = source if position == 0 else fn.prologue_value(f"lshr i32 {source}, {position}")
    value = fn.prologue_value(f"and i32 {value}, {mask}")
    if is_single:
        shift = base.bit_length() - 1
        if shift:
            value = fn.prologue_value(f"shl nuw nsw i32 {value}, {shift}")
        return value, mask << shift
    negated = fn.prologue_value(f"sub i32 0, {value}")
    return fn.prologue_value(f"and i32 {negated}, {base}"), base
