"""Numbers that a launch computes from its arguments, and what a kernel demands of them.

Part of the launch path: it imports neither xDSL nor the compiler. An artifact says in its metadata
what is to be computed; the words of a launch's arguments, its slots, are what it is computed from.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TypeAlias, TypeVar, cast

from tilewright.support.dataclass import dataclass, replace
from tilewright.support.errors import NotPowerOfTwo
from tilewright.support.options import CompileOptions

LaunchNumber: TypeAlias = "tuple[str | int | LaunchNumber, ...] | list[str | int | LaunchNumber]"
"""`("slot", index, bits)`, `("constant", value)`, or an operation, its width and its operands.

What differs from program to program is `("program", axis)`, its number, and `("count", bits, start,
end, step)`, the counter of a loop. `("programs", axis)` is how many the launch asks for.
"""
_LEAVES = frozenset({"slot", "constant", "program", "programs"})
"""The kinds of numbers that are made of no others."""
Grid: TypeAlias = tuple[int, int, int]
_Kernel = TypeVar("_Kernel")
Slots: TypeAlias = Sequence[int] | Mapping[int, int]
# Chosen, not measured: launches of more kinds than this are looked at again, which is right.
_MAX_KNOWN = 1024
ALONE = (1, 1, 1)
"""The clusters of programs that are for themselves."""
GUARDS = "launch_guards"
"""The entry of an artifact's metadata that lists its guards."""


def _quotient(a: int, b: int) -> int:
    """a / b towards zero."""
    return -(-a // b) if (a < 0) != (b < 0) else a // b


_OPERATIONS: dict[str, Callable[..., int]] = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "div": _quotient,
    "rem": lambda a, b: a - b * _quotient(a, b),
    "min": min,
    "max": max,
    "signed": lambda a: a,
}


def evaluate(number: LaunchNumber, slots: Slots) -> int:
    """A number for the arguments `slots`, signed. *Raises*: ZeroDivisionError."""
    kind, first, *rest = number
    if kind == "slot":
        return _signed(slots[cast("int", first)], cast("int", rest[0]))
    if kind == "constant":
        return cast("int", first)
    operands = [evaluate(cast("LaunchNumber", operand), slots) for operand in rest]
    bits = cast("int", first)
    if kind == "unsigned":
        return operands[0] % (1 << bits)
    return _signed(_OPERATIONS[str(kind)](*operands), bits)


def _signed(value: int, bits: int) -> int:
    low = value % (1 << bits)
    return low - (1 << bits) if low >> (bits - 1) else low


def operands_of(number: LaunchNumber) -> Sequence[LaunchNumber]:
    """The numbers that a number is computed from."""
    return () if number[0] in _LEAVES else cast("Sequence[LaunchNumber]", number[2:])


def parts_of(numbers: Sequence[LaunchNumber]) -> Iterator[LaunchNumber]:
    """The numbers and all that they are computed from, each object once, operands first."""
    seen = set[int]()
    pending = [(number, False) for number in reversed(numbers)]
    while pending:
        number, is_ready = pending.pop()
        if is_ready:
            yield number
        elif id(number) not in seen:
            seen.add(id(number))
            pending.append((number, True))
            pending += [(operand, False) for operand in reversed(operands_of(number))]


def slots_of(number: LaunchNumber) -> list[int]:
    """The arguments that a number depends on, each once, in order."""
    slots = (cast("int", part[1]) for part in parts_of([number]) if part[0] == "slot")
    return list(dict.fromkeys(slots))


@dataclass(frozen=True)
class Bounds:
    """The least and the most that a number comes to in any program of a launch."""

    low: int
    high: int

    def within(self, bits: int) -> Bounds:
        """The same as a signed number of so many bits: any such number where it may wrap."""
        half = 1 << (bits - 1)
        if -half <= self.low and self.high < half:
            return self
        if self.low == self.high:
            return exactly(_signed(self.low, bits))
        return Bounds(-half, half - 1)


def exactly(value: int) -> Bounds:
    """The bounds of one number."""
    return Bounds(value, value)


def bounds_of(
    number: LaunchNumber, slots: Slots, grid: Grid, known: dict[int, Bounds] | None = None
) -> Bounds:
    """What a number comes to in the programs of `grid`. *Raises*: ZeroDivisionError.

    It may come to less and more nowhere; whether it comes to either bound is not said. `known` is
    what was found of this launch before, by the identity of the number; more is added to it.
    """
    known = {} if known is None else known
    if id(number) not in known:
        known[id(number)] = _bounds_of(number, slots, grid, known)
    return known[id(number)]


def _bounds_of(number: LaunchNumber, slots: Slots, grid: Grid, known: dict[int, Bounds]) -> Bounds:
    kind, first, *rest = number
    if kind in ("slot", "constant"):
        return exactly(evaluate(number, slots))
    if kind == "program":
        return Bounds(0, grid[cast("int", first)] - 1)
    if kind == "programs":
        return exactly(grid[cast("int", first)])
    operands = [bounds_of(cast("LaunchNumber", part), slots, grid, known) for part in rest]
    bits = cast("int", first)
    if kind == "unsigned":
        is_same = operands[0].low >= 0
        return operands[0] if is_same else Bounds(0, (1 << bits) - 1)
    return _BOUNDS[str(kind)](*operands).within(bits)


def _corners(operation: Callable[[int, int], int]) -> Callable[[Bounds, Bounds], Bounds]:
    """The bounds of an operation that grows or falls with each of its operands."""

    def bounds(a: Bounds, b: Bounds) -> Bounds:
        found = [operation(x, y) for x in (a.low, a.high) for y in (b.low, b.high)]
        return Bounds(min(found), max(found))

    return bounds


def _bounds_of_quotient(a: Bounds, b: Bounds) -> Bounds:
    if b.low <= 0 <= b.high:
        raise ZeroDivisionError
    return _corners(_quotient)(a, b)


def _bounds_of_remainder(a: Bounds, b: Bounds) -> Bounds:
    """A remainder has the sign of the dividend, and is smaller than the divisor."""
    if b.low <= 0 <= b.high:
        raise ZeroDivisionError
    most = max(abs(b.low), abs(b.high)) - 1
    low = 0 if a.low >= 0 else max(a.low, -most)
    return Bounds(low, 0 if a.high <= 0 else min(a.high, most))


def _bounds_of_counter(start: Bounds, end: Bounds, step: Bounds) -> Bounds:
    """From the first iteration to the last; a loop without any says nothing."""
    last = end.high - 1
    if start.low == start.high and step.low == step.high and step.low > 0:
        last = start.low + (last - start.low) // step.low * step.low
    return Bounds(start.low, max(start.low, last))


_BOUNDS: dict[str, Callable[..., Bounds]] = {
    "add": lambda a, b: Bounds(a.low + b.low, a.high + b.high),
    "sub": lambda a, b: Bounds(a.low - b.high, a.high - b.low),
    "mul": _corners(lambda a, b: a * b),
    "div": _bounds_of_quotient,
    "rem": _bounds_of_remainder,
    "min": lambda a, b: Bounds(min(a.low, b.low), min(a.high, b.high)),
    "max": lambda a, b: Bounds(max(a.low, b.low), max(a.high, b.high)),
    "signed": lambda a: a,
    "count": _bounds_of_counter,
}

_DEMANDS: dict[str, Callable[[Bounds, int], bool]] = {
    "multiple": lambda number, bound: number.low == number.high and number.low % bound == 0,
    "at_least": lambda number, bound: number.low >= bound,
    "at_most": lambda number, bound: number.high <= bound,
}


@dataclass(frozen=True)
class LaunchGuard:
    """What a kernel demands of a launch: `number` is a "multiple", "at_least" or "at_most" `bound`.

    It has to be so in every program. `text` says it in the words of the kernel. `of_stores` says
    that a kernel whose stores are those of threads demands it no more, `of_clusters` one whose
    programs do not load for each other.
    """

    number: LaunchNumber
    demand: str
    bound: int
    text: str = ""
    of_stores: bool = False
    of_clusters: bool = False

    def holds(self, slots: Slots, grid: Grid, known: dict[int, Bounds] | None = None) -> bool:
        """Whether a launch is known to keep to it; what may divide by zero is not.

        `known` is as in `bounds_of`.
        """
        try:
            return _DEMANDS[self.demand](bounds_of(self.number, slots, grid, known), self.bound)
        except ZeroDivisionError:
            return False

    def is_of_grid(self) -> bool:
        """Whether it depends on how many programs there are."""
        return any(part[0] in ("program", "programs") for part in parts_of([self.number]))


def to_table(numbers: Sequence[LaunchNumber]) -> tuple[list[list[object]], list[int]]:
    """The rows of a table, and in which of them numbers stand; what is equal shares a row.

    A tile's number is in the guards of every load and store, and several times in each.
    """
    rows: dict[tuple[object, ...], int] = {}
    places: dict[int, int] = {}
    for number in parts_of(numbers):
        operands = operands_of(number)
        own = number[:2] if operands else number
        row = (*own, *(places[id(operand)] for operand in operands))
        places[id(number)] = rows.setdefault(row, len(rows))
    return [list(row) for row in rows], [places[id(number)] for number in numbers]


def from_table(rows: Sequence[Sequence[object]]) -> list[LaunchNumber]:
    """The numbers of the rows that `to_table` wrote; what shares a row is one object."""
    numbers: list[LaunchNumber] = []
    for kind, first, *rest in rows:
        own = rest if kind in _LEAVES else [numbers[cast("int", place)] for place in rest]
        numbers.append(cast("LaunchNumber", (kind, first, *own)))
    return numbers


def guards_from_metadata(entry: Mapping[str, Sequence[Sequence[object]]]) -> list[LaunchGuard]:
    """The guards that `guards_to_metadata` wrote."""
    numbers = from_table(entry.get("numbers", ()))
    return [
        LaunchGuard(
            numbers[cast("int", place)], str(demand), cast("int", bound), str(text), *map(bool, of)
        )
        for place, demand, bound, text, *of in entry.get("guards", ())
    ]


def guards_to_metadata(guards: Sequence[LaunchGuard]) -> dict[str, list[list[object]]]:
    """Guards as JSON takes them; nothing for none."""
    if not guards:
        return {}
    rows, places = to_table([guard.number for guard in guards])
    entries: list[list[object]] = [
        [place, guard.demand, guard.bound, guard.text, guard.of_stores, guard.of_clusters]
        for place, guard in zip(places, guards, strict=True)
    ]
    return {"numbers": rows, "guards": entries}


class LaunchConditions:
    """The guards of a kernel, asked for launch after launch; what was found out is kept."""

    def __init__(self, guards: Sequence[LaunchGuard]) -> None:
        self.guards = tuple(guards)
        slots = [slot for guard in self.guards for slot in slots_of(guard.number)]
        self.slots = tuple(dict.fromkeys(slots))
        self.is_of_grid = any(guard.is_of_grid() for guard in self.guards)
        self._known: dict[tuple[int, ...], bool] = {}

    def hold(self, slots: Slots, grid: Grid) -> bool:
        """Whether a launch is known to keep to all of them."""
        key = (*(slots[slot] for slot in self.slots), *(grid if self.is_of_grid else ()))
        if key not in self._known:
            if len(self._known) >= _MAX_KNOWN:
                self._known.clear()
            self._known[key] = self.first_broken(slots, grid) is None
        return self._known[key]

    def first_broken(self, slots: Slots, grid: Grid) -> LaunchGuard | None:
        """A guard that a launch does not keep to; None where it keeps to all."""
        known: dict[int, Bounds] = {}
        return next((guard for guard in self.guards if not guard.holds(slots, grid, known)), None)


def launch_guards(metadata: Mapping[str, object]) -> tuple[LaunchGuard, ...]:
    """The guards of a compiled kernel: it is right for launches that keep to all of them."""
    entry = cast("Mapping[str, Sequence[Sequence[object]]]", metadata.get(GUARDS, {}))
    return tuple(guards_from_metadata(entry))


def fits(metadata: Mapping[str, object], grid: Grid, arguments: Sequence[object]) -> bool:
    """Whether a compiled kernel is made for a launch; where not, one of `plainer_options` is.

    `arguments` are the runtime arguments, arrays by their address.
    """
    guards = launch_guards(metadata)
    return 0 in grid or not guards or LaunchConditions(guards).hold(words_of(arguments), grid)


def plainer_options(
    options: CompileOptions,
    metadata: Mapping[str, object],
    grid: Grid,
    arguments: Sequence[object],
) -> Iterator[CompileOptions]:
    """What to compile a kernel with for a launch that the one of `options` does not fit.

    What makes the most of the launch comes first; the last fits every launch.
    """
    words = words_of(arguments)
    broken = [guard for guard in launch_guards(metadata) if not guard.holds(words, grid)]
    is_open = options.schedule is None and options.plan is None
    if is_open and any(guard.of_clusters for guard in broken):
        options = replace(options, cluster_dims=ALONE)
        broken = [guard for guard in broken if not guard.of_clusters]
        if not broken:
            yield options
    with_plain_stores = options.with_plain_stores()
    if all(guard.of_stores for guard in broken) and with_plain_stores:
        yield with_plain_stores
    yield options.without_guards()


def plainer_kernels(
    options: CompileOptions,
    metadata: Mapping[str, object],
    grid: Grid,
    arguments: Sequence[object],
    made: Callable[[CompileOptions], tuple[_Kernel, Mapping[str, object]]],
) -> list[_Kernel]:
    """The kernels of `plainer_options` up to the first that fits the launch; `made` makes them.

    *Raises*: what `made` does. Tiles of 80 or 192 rows are for groups alone, so the
    error says what of the launch leaves no groups.
    """
    kernels: list[_Kernel] = []
    for plainer in plainer_options(options, metadata, grid, arguments):
        try:
            kernel, own = made(plainer)
        except NotPowerOfTwo as error:
            error.hint = _needed_for_groups(metadata, grid, arguments)
            raise
        kernels.append(kernel)
        if fits(own, grid, arguments):
            break
    return kernels


def _needed_for_groups(
    metadata: Mapping[str, object], grid: Grid, arguments: Sequence[object]
) -> str:
    words = words_of(arguments)
    left = [guard.text for guard in launch_guards(metadata) if not guard.holds(words, grid)]
    demands = " and ".join(dict.fromkeys(filter(None, left))) or "its sizes are smaller"
    return (
        "groups of warps share such a tile where the copy engine loads, which it does not in "
        f"this launch: it would if {demands}; or choose a power of two"
    )


def words_of(arguments: Sequence[object]) -> list[int]:
    """The slots of runtime arguments as far as numbers are made of them; 0 for others."""
    return [value if isinstance(value, int) else 0 for value in arguments]
