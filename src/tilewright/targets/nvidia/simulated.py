"""A launch on the simulator of a GPU's threads: arguments, tensor maps and shared memory."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping, Sequence

import numpy as np

from tilewright.frontend.arrays import array_facts, bounds_of, descriptor_slots
from tilewright.interp.simt.in_flight import WARP_GROUP
from tilewright.interp.simt.simulate import Argument, simulate
from tilewright.interp.simt.statistics import Report
from tilewright.interp.simt.tensor_map import TensorMap
from tilewright.interp.simt.timeline import Timeline
from tilewright.interp.values import dtype_of
from tilewright.ir.op import Array
from tilewright.ops.builder import ir_type
from tilewright.ops.function import find_kernel
from tilewright.ops.roles import find_roles
from tilewright.runtime.grid import persistent_grid
from tilewright.runtime.launch_numbers import words_of
from tilewright.runtime.launcher import pack_slot
from tilewright.support.errors import ArgumentNotSupported
from tilewright.targets.nvidia.errors import no_clusters
from tilewright.targets.nvidia.kernel_shape import launch_cluster
from tilewright.targets.nvidia.symbols import entry_symbol
from tilewright.targets.nvidia.tensor_map import TensorMapRecipe
from tilewright.targets.target import Scheduled

_HALVES = {"fp16": "half", "bf16": "bfloat"}
_INTEGERS = {"u8": "u1", "u16": "u2", "u32": "u4", "i32": "i4", "u64": "u8", "i64": "i8"}


def simulate_launch(
    scheduled: Scheduled,
    text: str,
    kernel: str,
    grid: tuple[int, int, int],
    values: Sequence[tuple[str, object]],
    seed: int | None = None,
    timeline: Timeline | None = None,
    reached: Sequence[tuple[str, object]] = (),
) -> Report:
    """The launch of an emitted kernel over `grid`, simulated; arrays are written in place.

    `values` are the runtime arguments with the types that they were specialised to, `reached`
    names the arrays that pointers in memory lead to. *Raises* a `KernelFault` for what the program
    does wrong, `UnsupportedError` for what the simulator does not know, `LaunchRefused` for a grid
    that its clusters do not divide.
    """
    arguments: list[Argument] = []
    slots: list[object] = []
    for type_, value in values:
        taken = _arguments(type_, value)
        arguments.extend(taken)
        slots.extend(_address(a) if isinstance(a, np.ndarray) else a for a in taken)
    arrays = {_address(a): a for a in arguments if isinstance(a, np.ndarray)}
    names = _names(scheduled)
    maps = tensor_maps(scheduled.metadata, slots, arrays, names, kernel)
    threads = 32 * int(str(scheduled.metadata["num_warps"]))
    shared_bytes = int(str(scheduled.metadata["shared_bytes"]))
    programs, extents = started_grid(scheduled.metadata, grid)
    _require_clusters(kernel, programs, launch_cluster(scheduled.metadata))
    everything = (*arguments, *maps, *extents)
    symbol, cluster = entry_symbol(kernel), cluster_size(scheduled.metadata)
    if timeline is not None:
        groups = warp_group_names(scheduled, threads)
        timeline.call([f"{name}{of}" for of in ("", " (beside)")[:cluster] for name in groups])
    return simulate(
        text,
        symbol,
        programs,
        threads,
        everything,
        shared_bytes,
        reachable=[(name, _array(value)) for name, value in reached],
        cluster=cluster,
        seed=seed,
        checks_global_order=True,
        timeline=timeline,
        names=names,
    )


def _require_clusters(
    kernel: str, programs: tuple[int, int, int], cluster: tuple[int, int, int] | None
) -> None:
    """*Raises*: LaunchRefused where programs do not come apart into clusters."""
    if any(extent % of for extent, of in zip(programs, cluster or (1, 1, 1), strict=True)):
        raise no_clusters(kernel, cluster)


def _names(scheduled: Scheduled) -> list[str]:
    """What the kernel's author calls its arguments, as far as that is known."""
    arguments = find_kernel(scheduled.module).body.block.args
    return [a.name_hint or f"argument {number}" for number, a in enumerate(arguments)]


def started_grid(
    metadata: Mapping[str, object], grid: tuple[int, int, int]
) -> tuple[tuple[int, int, int], tuple[int, ...]]:
    """The programs that a launch starts, and the parameters that say which it asks for.

    One program of a persistent kernel is taken to fit on each SM.
    """
    most = int(str(metadata["most_programs"]))
    cluster = cluster_size(metadata)
    return (persistent_grid(grid, most, cluster), grid) if most else (grid, ())


def cluster_size(metadata: Mapping[str, object]) -> int:
    """How many programs are a cluster that loads for each other."""
    return int(str(metadata["cluster"]))


def warp_group_names(scheduled: Scheduled, threads: int) -> list[str]:
    """What the warp groups of a kernel are called: by their roles, or by their numbers."""
    roles = find_roles(find_kernel(scheduled.module))
    names = [
        f"{role.name} {number}" if role.replicas > 1 else role.name
        for role in (() if roles is None else roles.described())
        for number in range(role.replicas)
    ]
    count = -(-threads // WARP_GROUP)
    return names if len(names) == count else [f"warp group {k}" for k in range(count)]


def launch_words(values: Sequence[tuple[str, object]]) -> list[int]:
    """The slots of a launch, as far as tensor maps and guards are made of them."""
    slots: list[object] = []
    for type_, value in values:
        slots += [_address(a) if isinstance(a, np.ndarray) else a for a in _arguments(type_, value)]
    return words_of(slots)


def _address(array: Array) -> int:
    return int(array.ctypes.data)


def _arguments(type_: str, value: object) -> list[Argument]:
    if type_.startswith("tensordesc"):
        _, *rest = descriptor_slots(value)
        return [_array(getattr(value, "base", None)), *rest]
    if type_.startswith("*"):
        return [_array(value)]
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, bool | int | float):
        # Floats of 16 bits are parameters of that many bits.
        return [_bits(type_, value) if type_ in _HALVES else value]
    raise ArgumentNotSupported(f"the simulator takes no argument {value!r}")


def _bits(type_: str, value: float) -> int:
    return int.from_bytes(pack_slot(_HALVES[type_], value), "little")


def _array(value: object) -> Array:
    """The memory of an array of any package: NumPy's as it is, else what lies behind its start."""
    if isinstance(value, np.ndarray):
        return value
    facts = array_facts(value)
    if facts is None:
        raise ArgumentNotSupported(f"the simulator cannot read {type(value).__name__}")
    return _memory(value, facts.address, dtype_of(ir_type(facts.element)))


def _memory(value: object, address: int, dtype: np.dtype) -> Array:
    """What lies from the start of an array to its end, whatever its strides are."""
    _, end = bounds_of(value)
    size = max(0, end - address) // dtype.itemsize * dtype.itemsize
    raw = (ctypes.c_ubyte * size).from_address(address)
    return np.ctypeslib.as_array(raw).view(dtype)


def tensor_maps(
    metadata: Mapping[str, object],
    values: Sequence[object],
    arrays: Mapping[int, Array],
    names: Sequence[str] = (),
    kernel: str = "kernel",
) -> list[TensorMap]:
    """The maps of a launch with these slots; `arrays` are by the address of their memory.

    `names` are those of the slots, as far as they are known. *Raises*: ArgumentNotSupported for a
    tensor that the copy engine does not take.
    """
    slots = words_of(values)
    known = [*names, *(f"argument {number}" for number in range(len(names), len(slots)))]
    maps: list[TensorMap] = []
    for recipe in recipes_of(metadata):
        recipe.check(recipe.describe(slots), known, kernel)
        maps.append(_tensor_map(recipe, slots, arrays))
    return maps


def recipes_of(metadata: Mapping[str, object]) -> list[TensorMapRecipe]:
    """How the launch of a compiled kernel makes its tensor maps."""
    entries = metadata["tensor_maps"]
    assert isinstance(entries, list)
    return [TensorMapRecipe.from_metadata(entry) for entry in entries]


def _tensor_map(
    recipe: TensorMapRecipe, slots: Sequence[int], arrays: Mapping[int, Array]
) -> TensorMap:
    tensor = recipe.describe(slots)
    below = max(address for address in arrays if address <= tensor.address)
    array = arrays[below]
    is_dense = array.flags.c_contiguous
    array = array.reshape(-1) if is_dense else _memory(array, below, array.dtype)
    skipped = (tensor.address - below) // array.itemsize
    if recipe.number in _INTEGERS:
        array = array.view(_INTEGERS[recipe.number])
    elif array.itemsize == 1:  # 8-bit floats are not NumPy's own
        array = array.view(np.uint8)
    strides = (*tensor.strides_bytes, array.itemsize)
    reach = sum((n - 1) * step for n, step in zip(tensor.shape, strides, strict=True))
    if reach >= array.nbytes - skipped * array.itemsize:
        rest = array[skipped:]
        box, swizzle, fills = recipe.box, recipe.swizzle_bytes, recipe.fills_nan
        return TensorMap(rest, box, swizzle, fills, tensor.shape, strides)
    view = np.lib.stride_tricks.as_strided(array[skipped:], tensor.shape, strides)
    return TensorMap(view, recipe.box, recipe.swizzle_bytes, recipe.fills_nan)
