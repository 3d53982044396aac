"""`triton.tools.LinearLayout`: linear maps over GF(2) between named dimensions.

The algebra is the one that lays tiles out here (`tilewright.layout.map`), under the names that
Triton's class has; values of an out-dim are XORs of its bases, for each bit of the in-dims.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import product
from math import prod

from tilewright.layout.gf2 import Span
from tilewright.layout.map import LinearMap
from tilewright.support.errors import LayoutError

Bases = Sequence[tuple[str, Sequence[Sequence[int]]]]


class LinearLayoutError(LayoutError, ValueError):
    """A layout is asked for that does not exist, or for a place that it has not."""


class LinearLayout:
    """A linear map from named in-dims to named out-dims, each of a power of two values.

    `a * b` has the in-dims and out-dims of both; where they share one, `a` has its low bits.
    """

    def __init__(self, bases: Bases, out_dims: Sequence[tuple[str, int]]) -> None:
        self._out_names = tuple(name for name, _ in out_dims)
        self._in_names = tuple(name for name, _ in bases)
        for names in (self._in_names, self._out_names):
            if len(set(names)) != len(names):
                raise LinearLayoutError(f"LinearLayout: a dimension is named twice in {names}")
        vectors = tuple((name, tuple(tuple(v) for v in given)) for name, given in bases)
        try:
            self._map = LinearMap(vectors, tuple(size for _, size in out_dims))
        except LayoutError as error:
            raise LinearLayoutError(error.summary) from None

    # --- constructors -----------------------------------------------------------------------

    @staticmethod
    def identity_1d(size: int, inDim: str, outDim: str) -> LinearLayout:
        """The map of `size` values of `inDim` to the same values of `outDim`."""
        return LinearLayout.strided_1d(size, 1, inDim, outDim)

    @staticmethod
    def strided_1d(size: int, stride: int, inDim: str, outDim: str) -> LinearLayout:
        """The map of `size` values to their multiples by `stride`, both powers of two."""
        num_bits = _log2(size, "size")
        shift = _log2(stride, "stride")
        vectors = [(1 << shift + bit,) for bit in range(num_bits)]
        return LinearLayout([(inDim, vectors)], [(outDim, stride * size if num_bits else 1)])

    @staticmethod
    def zeros_1d(size: int, inDim: str, outDim: str, outDimSize: int = 1) -> LinearLayout:
        """The map of `size` values to 0, in an out-dim of `outDimSize` values."""
        vectors = [(0,)] * _log2(size, "size")
        return LinearLayout([(inDim, vectors)], [(outDim, outDimSize)])

    @staticmethod
    def from_bases(
        bases: Bases | Mapping[str, Sequence[Sequence[int]]],
        out_dim_names: Sequence[str],
        out_dim_sizes: Sequence[int] | None = None,
        require_surjective: bool = True,
    ) -> LinearLayout:
        """The map with these images of the bits of each in-dim.

        Without sizes an out-dim is as large as its bases reach.
        Raises: `ValueError` where a basis has another length or lies outside, or the map is not
        surjective and `require_surjective` holds.
        """
        items = tuple(bases.items()) if isinstance(bases, Mapping) else tuple(bases)
        rank = len(out_dim_names)
        for name, vectors in items:
            if any(len(vector) != rank for vector in vectors):
                raise LinearLayoutError(
                    f"LinearLayout: a basis of `{name}` has not {rank} value(s), one for each of "
                    f"{list(out_dim_names)}"
                )
        if out_dim_sizes is None:
            every = [vector for _, vectors in items for vector in vectors]
            out_dim_sizes = [
                1 << max((vector[dim].bit_length() for vector in every), default=0)
                for dim in range(rank)
            ]
        made = LinearLayout(items, tuple(zip(out_dim_names, out_dim_sizes, strict=True)))
        if require_surjective and not made.is_surjective():
            raise LinearLayoutError(
                f"LinearLayout: these bases do not reach every value: {made!r}",
                hint="pass require_surjective=False",
            )
        return made

    # --- what it is -------------------------------------------------------------------------

    @property
    def bases(self) -> list[tuple[str, list[list[int]]]]:
        """The images of the bits of each in-dim."""
        return [(name, [list(vector) for vector in given]) for name, given in self._map.bases]

    @property
    def in_dims(self) -> list[tuple[str, int]]:
        """The in-dims, each with the number of its values."""
        return [(name, 1 << len(given)) for name, given in self._map.bases]

    @property
    def out_dims(self) -> list[tuple[str, int]]:
        """The out-dims, each with the number of its values."""
        return list(zip(self._out_names, self._map.atom, strict=True))

    @property
    def num_in_dims(self) -> int:
        """The number of in-dims."""
        return len(self._in_names)

    @property
    def num_out_dims(self) -> int:
        """The number of out-dims."""
        return len(self._out_names)

    def is_surjective(self) -> bool:
        """Whether every place of the out-dims is reached."""
        return self._map.is_surjective

    def is_injective(self) -> bool:
        """Whether no place is reached twice."""
        return self._map.is_injective

    def is_invertible(self) -> bool:
        """Whether it is one-to-one."""
        return self.is_surjective() and self.is_injective()

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, LinearLayout):
            return NotImplemented
        return self._map == other._map and self._out_names == other._out_names

    def __hash__(self) -> int:
        return hash((self._map, self._out_names))

    def __repr__(self) -> str:
        lines = [
            f" - {name}={2**bit} -> ({', '.join(map(str, vector))})"
            for name, given in self._map.bases
            for bit, vector in enumerate(given)
        ]
        lines += [f" - {name} is a size 1 dimension" for name, n in self.in_dims if n == 1]
        out = ", ".join(f"{name} (size {size})" for name, size in self.out_dims)
        return "\n".join([*lines, f"where out dims are: [{out}]"])

    # --- what it does -----------------------------------------------------------------------

    def apply(self, inputs: Mapping[str, int]) -> dict[str, int]:
        """The values of the out-dims at one place. Raises: `ValueError` for other in-dims."""
        if set(inputs) != set(self._in_names):
            raise LinearLayoutError(
                f"LinearLayout.apply: the in-dims are {list(self._in_names)}, not {list(inputs)}"
            )
        for name, size in self.in_dims:
            if not 0 <= inputs[name] < size:
                raise LinearLayoutError(
                    f"LinearLayout.apply: `{name}` is {inputs[name]}, of {size} values"
                )
        at = [0] * self.num_out_dims
        for name, given in self._map.bases:
            for bit, vector in enumerate(given):
                if inputs[name] >> bit & 1:
                    at = [a ^ v for a, v in zip(at, vector, strict=True)]
        return dict(zip(self._out_names, at, strict=True))

    def __mul__(self, other: LinearLayout) -> LinearLayout:
        mine, its = dict(self.out_dims), dict(other.out_dims)
        out_names = _united(self._out_names, other._out_names)
        sizes = [mine.get(name, 1) * its.get(name, 1) for name in out_names]
        low, high = dict(self._map.bases), dict(other._map.bases)
        bases: list[tuple[str, list[tuple[int, ...]]]] = []
        for name in _united(self._in_names, other._in_names):
            vectors = [_spread(v, self._out_names, out_names, {}) for v in low.get(name, ())]
            vectors += [_spread(v, other._out_names, out_names, mine) for v in high.get(name, ())]
            bases.append((name, vectors))
        return LinearLayout(bases, tuple(zip(out_names, sizes, strict=True)))

    def compose(self, other: LinearLayout) -> LinearLayout:
        """The map `x → other(self(x))`. Raises: `ValueError` where dims or sizes differ."""
        takes = dict(other.in_dims)
        if set(takes) != set(self._out_names) or any(
            size > takes[name] for name, size in self.out_dims
        ):
            raise LinearLayoutError(
                f"LinearLayout.compose: {other.in_dims} does not take {self.out_dims}"
            )
        bases = [
            (name, [tuple(other._at(vector, self._out_names)) for vector in given])
            for name, given in self._map.bases
        ]
        return LinearLayout(bases, other.out_dims)

    def _at(self, values: Sequence[int], names: Sequence[str]) -> Sequence[int]:
        return tuple(self.apply(dict(zip(names, values, strict=True))).values())

    def invert(self) -> LinearLayout:
        """The map back. Raises: `ValueError` where this one is not one-to-one."""
        if not self.is_invertible():
            raise LinearLayoutError(f"LinearLayout.invert: not one-to-one:\n{self!r}")
        return self.pseudoinvert()

    def pseudoinvert(self) -> LinearLayout:
        """A map `g` such that `self(g(y)) = y` wherever this one reaches `y`."""
        return self._solved_for(
            [(name, _units(self.num_out_dims, dim, size)) for dim, (name, size) in self._sized()]
        )

    def invert_and_compose(self, other: LinearLayout) -> LinearLayout:
        """A map `x → y` such that `other(y) = self(x)`, from the in-dims of this one.

        Raises: `ValueError` where the out-dims differ, or `other` does not reach what this does.
        """
        if set(self._out_names) != set(other._out_names):
            raise LinearLayoutError(
                f"LinearLayout.invert_and_compose: {self.out_dims} and {other.out_dims} differ"
            )
        order = [self._out_names.index(name) for name in other._out_names]
        wanted = [
            (name, [tuple(vector[dim] for dim in order) for vector in given])
            for name, given in self._map.bases
        ]
        return other._solved_for(wanted, must_reach=True)

    def _sized(self) -> list[tuple[int, tuple[str, int]]]:
        return list(enumerate(self.out_dims))

    def _solved_for(self, wanted: Bases, must_reach: bool = False) -> LinearLayout:
        """The map whose images this one takes to those that are wanted."""
        span = Span(self._map.columns)
        bases: list[tuple[str, list[tuple[int, ...]]]] = []
        for name, vectors in wanted:
            places: list[tuple[int, ...]] = []
            for vector in vectors:
                is_inside = all(v < size for v, size in zip(vector, self._map.atom, strict=True))
                rest, combination = span.reduce(self._map.pack(vector)) if is_inside else (1, 0)
                if rest and must_reach:
                    raise LinearLayoutError(f"LinearLayout: {vector} is not reached by:\n{self!r}")
                places.append(self._bits(combination))
            bases.append((name, places))
        return LinearLayout(bases, self.in_dims)

    def _bits(self, combination: int) -> tuple[int, ...]:
        values: list[int] = []
        for _, size in self.in_dims:
            values.append(combination & size - 1)
            combination >>= size.bit_length() - 1
        return tuple(values)

    # --- pictures ---------------------------------------------------------------------------

    def get_matrix_view(self) -> list[list[int]]:
        """The matrix over GF(2): a row for each bit of the out-dims, a column for each in-bit."""
        columns = [vector for _, given in self._map.bases for vector in given]
        return [
            [vector[dim] >> bit & 1 for vector in columns]
            for dim, size in enumerate(self._map.atom)
            for bit in range(size.bit_length() - 1)
        ]

    def get_shared_view(self, useHWPointOfView: bool = False) -> str:
        """A picture of the elements in memory (or, by element, of the offsets that hold them)."""
        return self._picture(useHWPointOfView, lambda at: str(at[0]))

    def get_distributed_view(self, useHWPointOfView: bool = False) -> str:
        """A picture of the threads and registers that hold each element, or the other way."""
        return self._picture(useHWPointOfView, lambda at: ":".join(map(str, at)))

    def _picture(self, by_place: bool, holder: Callable[[Sequence[int]], str]) -> str:
        holders: dict[tuple[int, ...], list[str]] = {}
        lines: list[str] = []
        for at in product(*(range(size) for _, size in reversed(self.in_dims))):
            place = tuple(reversed(at))
            element = tuple(self.apply(dict(zip(self._in_names, place, strict=True))).values())
            names = ", ".join(f"{n}={v}" for n, v in zip(self._in_names, place, strict=True))
            lines.append(f"{names}: ({', '.join(map(str, element))})")
            holders.setdefault(element, []).append(holder(place))
        if by_place:
            return "\n".join(lines) + "\n"
        last = self._map.atom[-1] if self._map.atom else 1
        cells = [
            "|".join(holders.get(element, ["-"]))
            for element in product(*(range(size) for size in self._map.atom))
        ]
        width = max(map(len, cells), default=0)
        rows = [cells[i : i + last] for i in range(0, prod(self._map.atom), last)]
        return "".join(f"[ {', '.join(c.rjust(width) for c in row)} ]\n" for row in rows)


def _log2(value: int, name: str) -> int:
    if value < 1 or value & value - 1:
        raise LinearLayoutError(f"LinearLayout: the {name} {value} is not a power of two")
    return value.bit_length() - 1


def _units(rank: int, dim: int, size: int) -> list[tuple[int, ...]]:
    """The places with one bit of one dimension set."""
    return [
        tuple(1 << bit if at == dim else 0 for at in range(rank))
        for bit in range(size.bit_length() - 1)
    ]


def _united(mine: Sequence[str], its: Sequence[str]) -> tuple[str, ...]:
    return (*mine, *(name for name in its if name not in mine))


def _spread(
    vector: Sequence[int], names: Sequence[str], into: Sequence[str], factors: Mapping[str, int]
) -> tuple[int, ...]:
    """A basis in more out-dims, each value above the low bits that another layout has there."""
    values = dict(zip(names, vector, strict=True))
    return tuple(values.get(name, 0) * factors.get(name, 1) for name in into)
