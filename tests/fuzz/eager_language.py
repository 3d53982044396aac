"""The language's functions on NumPy arrays: the namespace `tl` of a kernel that Python runs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import SimpleNamespace

import numpy as np

from tests.fuzz.eager_values import (
    NAMES,
    Pointer,
    Tile,
    converted,
    counted,
    is_float,
    is_unsigned,
    promote,
    scalar,
)
from tests.fuzz.program import DTYPES

Fold = Callable[..., object]


class _Launch:
    """Where the program that runs stands in its grid."""

    program = 0
    programs = 1


def _tile(value: object, beside: Tile | None = None) -> Tile:
    if isinstance(value, Tile):
        return value
    if beside is None:
        return Tile(np.asarray(value), NAMES[np.asarray(value).dtype])
    return beside.meet(value)[1]


def _arange(start: int, end: int) -> Tile:
    return Tile(np.arange(start, end, dtype=np.int32), "int32")


def _full(shape: Sequence[int], value: object, dtype: str) -> Tile:
    values = value.values if isinstance(value, Tile) else np.asarray(value)
    return Tile(np.broadcast_to(values, tuple(shape)).astype(DTYPES[dtype]), dtype)


def _zeros(shape: Sequence[int], dtype: str) -> Tile:
    return _full(shape, 0, dtype)


def _load(pointers: Pointer, mask: object = None, other: object = 0) -> Tile:
    name, shape = NAMES[pointers.array.dtype], pointers.at.shape
    if mask is None:
        return Tile(pointers.array[pointers.at], name)
    is_on = np.broadcast_to(_tile(mask).values, shape)
    rest = other.to(name) if isinstance(other, Tile) else scalar(other, name)  # type: ignore[arg-type]
    values = pointers.array[np.where(is_on, pointers.at, 0)]
    return Tile(np.where(is_on, values, rest.values).astype(DTYPES[name]), name)


def _spread(pointers: Pointer, value: object, mask: object) -> tuple[np.ndarray, np.ndarray]:
    name, shape = NAMES[pointers.array.dtype], pointers.at.shape
    tile = value.to(name) if isinstance(value, Tile) else scalar(value, name)  # type: ignore[arg-type]
    is_on = np.broadcast_to(True if mask is None else _tile(mask).values, shape)
    return pointers.at[is_on], np.broadcast_to(tile.values, shape)[is_on]


def _store(pointers: Pointer, value: object, mask: object = None) -> None:
    at, values = _spread(pointers, value, mask)
    pointers.array[at] = values


def _atomic(function: np.ufunc) -> Callable[..., None]:
    def atomic(pointers: Pointer, value: object, mask: object = None, **_: object) -> None:
        at, values = _spread(pointers, value, mask)
        function.at(pointers.array, at, values)

    return atomic


def _where(test: Tile, x: object, y: object) -> Tile:
    if not isinstance(x, Tile):
        x = _tile(x, _tile(y))
    y = _tile(y, x)
    name = promote(x.name, y.name)
    values = np.where(test.values, x.to(name).values, y.to(name).values)
    return Tile(values.astype(DTYPES[name]), name)


def _extremum(function: Callable[[np.ndarray, np.ndarray], np.ndarray]) -> Callable[..., Tile]:
    def extremum(x: object, y: object) -> Tile:
        return x.combine(y, function) if isinstance(x, Tile) else _tile(y).combine(x, function)

    return extremum


def _abs(x: Tile) -> Tile:
    return Tile(np.abs(x.values), x.name)


def _floor(x: Tile) -> Tile:
    return Tile(np.floor(x.values), x.name)


def _folded(function: Callable[..., np.ndarray]) -> Callable[..., Tile]:
    def fold(x: Tile, axis: int | None = None, keep_dims: bool = False) -> Tile:
        # As in Triton: what is narrower than 32 bits is widened.
        is_sum, is_narrow = function is np.sum, x.values.itemsize < 4 and not is_float(x.name)
        wide = "uint32" if is_sum and is_unsigned(x.name) else "int32"
        name = wide if is_narrow else x.name
        values = converted(x.values, x.name, name)
        found = np.asarray(function(values, axis=axis, keepdims=keep_dims))
        return Tile(found.astype(DTYPES[name]), name)

    return fold


def _place(function: Callable[..., np.ndarray]) -> Callable[[Tile, int], Tile]:
    def place(x: Tile, axis: int) -> Tile:
        values = x.values.astype(np.int32) if x.name == "int1" else x.values
        return Tile(function(values, axis=axis).astype(np.int32), "int32")

    return place


def _cumsum(x: Tile, axis: int = 0, reverse: bool = False) -> Tile:
    values = np.flip(x.values, axis) if reverse else x.values
    sums = np.cumsum(values, axis=axis, dtype=values.dtype)
    return Tile(np.flip(sums, axis) if reverse else sums, x.name)


def _as_tuple(value: object) -> tuple[Tile, ...]:
    return tuple(value) if isinstance(value, tuple | list) else (value,)  # type: ignore[arg-type]


def _slices(tiles: Sequence[Tile], axis: int, at: int) -> list[Tile]:
    return [Tile(np.take(tile.values, at, axis), tile.name) for tile in tiles]


def _scan(value: object, axis: int, combine: Fold, reverse: bool = False) -> object:
    tiles, length = _as_tuple(value), _as_tuple(value)[0].shape[axis]
    order = range(length - 1, -1, -1) if reverse else range(length)
    kept: dict[int, tuple[Tile, ...]] = {}
    total: tuple[Tile, ...] | None = None
    for at in order:
        here = tuple(_slices(tiles, axis, at))
        total = here if total is None else _as_tuple(combine(*total, *here))
        kept[at] = total
    rows = [
        Tile(np.stack([kept[at][k].values for at in range(length)], axis), tile.name)
        for k, tile in enumerate(tiles)
    ]
    return tuple(rows) if isinstance(value, tuple) else rows[0]


def _reduce(value: object, axis: int, combine: Fold) -> object:
    tiles = _as_tuple(value)
    total = tuple(_slices(tiles, axis, 0))
    for at in range(1, tiles[0].shape[axis]):
        total = _as_tuple(combine(*total, *_slices(tiles, axis, at)))
    return total if isinstance(value, tuple) else total[0]


def _dot(x: Tile, y: Tile, acc: Tile | None = None, **_: object) -> Tile:
    name = "int32" if x.name == "int8" else "float32"
    wide = np.int64 if name == "int32" else np.float64
    product = x.values.astype(wide) @ y.values.astype(wide)
    if acc is not None:
        product = product + acc.values.astype(wide)
    return Tile(product.astype(DTYPES[name]), name)


def _gather(x: Tile, index: Tile, axis: int) -> Tile:
    return Tile(np.take_along_axis(x.values, index.values.astype(np.int64), axis), x.name)


def _sort(x: Tile, descending: bool = False) -> Tile:
    values = np.sort(x.values, axis=-1)
    return Tile(values[..., ::-1] if descending else values, x.name)


def _histogram(x: Tile, bins: int) -> Tile:
    return Tile(np.bincount(x.values, minlength=bins)[:bins].astype(np.int32), "int32")


def _join(x: Tile, y: Tile) -> Tile:
    return Tile(np.stack([x.values, y.values], -1), x.name)


def _split(x: Tile) -> tuple[Tile, Tile]:
    return Tile(x.values[..., 0], x.name), Tile(x.values[..., 1], x.name)


def _cdiv(x: int, y: int) -> int:
    return -(-x // y)


LANGUAGE = SimpleNamespace(
    **{name: name for name in DTYPES},
    constexpr=object(),
    program_id=lambda axis: scalar(_Launch.program),
    num_programs=lambda axis: scalar(_Launch.programs),
    arange=_arange,
    full=_full,
    zeros=_zeros,
    load=_load,
    store=_store,
    atomic_add=_atomic(np.add),
    atomic_max=_atomic(np.maximum),
    atomic_xor=_atomic(np.bitwise_xor),
    where=_where,
    maximum=_extremum(np.fmax),
    minimum=_extremum(np.fmin),
    abs=_abs,
    floor=_floor,
    sum=_folded(np.sum),
    max=_folded(np.max),
    min=_folded(np.min),
    argmax=_place(np.argmax),
    argmin=_place(np.argmin),
    cumsum=_cumsum,
    associative_scan=_scan,
    reduce=_reduce,
    dot=_dot,
    gather=_gather,
    sort=_sort,
    histogram=_histogram,
    join=_join,
    split=_split,
    cdiv=_cdiv,
    flip=lambda x, axis: Tile(np.flip(x.values, axis), x.name),
    reshape=lambda x, shape: Tile(x.values.reshape(shape), x.name),
    ravel=lambda x: Tile(x.values.reshape(-1), x.name),
    permute=lambda x, order: Tile(x.values.transpose(order), x.name),
    trans=lambda x: Tile(x.values.T, x.name),
    expand_dims=lambda x, axis: Tile(np.expand_dims(x.values, axis), x.name),
    broadcast_to=lambda x, shape: Tile(np.broadcast_to(x.values, shape), x.name),
    static_range=range,
    range=counted,
)


def run(text: str, arguments: dict[str, object], programs: int) -> None:
    """Run the kernel of a module's text on its arguments, one program behind the other."""
    module = SimpleNamespace(jit=lambda function: function)
    names: dict[str, object] = {"tl": LANGUAGE, "tilewright": module, "range": counted}
    body = "".join(line for line in text.splitlines(True) if not line.startswith("import"))
    exec(compile(body, "<eager>", "exec"), names)  # the generator's own text
    kernel = names["kernel"]
    assert callable(kernel)
    given = {
        name: Pointer(value, np.asarray(0, np.int64)) if isinstance(value, np.ndarray)
        else value if name.isupper() else scalar(value)  # type: ignore[arg-type]  # a number
        for name, value in arguments.items()
    }  # fmt: skip
    _Launch.programs = programs
    with np.errstate(all="ignore"):
        for _Launch.program in range(programs):
            kernel(**given)
