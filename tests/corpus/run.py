"""Running a case: on the interpreter, compiled, for other machines, and at one IR level."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from xdsl.dialects.builtin import ModuleOp

from tests.corpus.case import Addresses, Array, Case, Values, arrays_of
from tilewright.codegen.optimize import compile_module
from tilewright.compiler.compile import to_schedule, to_tiles
from tilewright.compiler.request import CompileRequest
from tilewright.frontend.arrays import descriptor_slots
from tilewright.frontend.passing import runtime_values
from tilewright.frontend.program import ArgumentPath
from tilewright.interp.code import Rules
from tilewright.interp.evaluate import Argument, run_kernel
from tilewright.interp.rules import TILE_RULES
from tilewright.language.core import constexpr
from tilewright.machine.model import MachineModel
from tilewright.runtime.artifact import Artifact
from tilewright.runtime.drivers import load_driver
from tilewright.runtime.grid import check_grid
from tilewright.runtime.tensor_descriptor import TensorDescriptor
from tilewright.support.options import option_names
from tilewright.targets.cpu.driver import CpuKernel, pack_slot
from tilewright.targets.cpu.host import describe_machine
from tilewright.targets.cpu.runtime.pool import KernelRecord, ThreadPool
from tilewright.targets.target import load_target

GUARD_BYTES = 4096
_GUARD = 0xA5
_NO_FUSION = {"enable_fp_fusion": False}


@dataclass(frozen=True)
class _Buffer:
    """A guarded copy of one array that owns its memory: bytes [start, start + size)."""

    root: Array
    memory: Array
    start: int

    def view(self, value: Array) -> Array:
        """The view of the copy that `value` is of the root."""
        offset = self.start + value.ctypes.data - self.root.ctypes.data
        return np.ndarray(value.shape, value.dtype, self.memory.data, offset, value.strides)

    def has_guards(self) -> bool:
        """Whether nothing was written outside of the payload."""
        after = self.start + self.root.nbytes
        parts = self.memory[: self.start], self.memory[after:]
        return all(bool((part == _GUARD).all()) for part in parts)


@dataclass(frozen=True)
class Memory:
    """The arguments of a launch, every array between guard bytes that no kernel may change.

    Arrays that share bytes still do.
    """

    values: Values
    buffers: tuple[_Buffer, ...]
    tables: frozenset[str]

    def arrays(self) -> dict[str, Array]:
        """The array arguments by name, without tables of addresses, which differ each time."""
        found = arrays_of(self.values)
        return {name: array for name, array in found.items() if name not in self.tables}

    def require_guards(self, title: str) -> None:
        """Fail if memory outside of the arrays was written."""
        assert all(buffer.has_guards() for buffer in self.buffers), f"{title}: wrote outside"


def guarded(values: Values, shift: int = 0) -> Memory:
    """Guarded copies of `values`, `shift` elements away from an aligned address."""
    buffers: dict[int, _Buffer] = {}
    moved: Values = {}
    for name, value in values.items():
        array = value.base if isinstance(value, TensorDescriptor) else value
        if isinstance(array, np.ndarray):
            root = _root(array)
            if id(root) not in buffers:
                buffers[id(root)] = _copied(root, shift)
            array = buffers[id(root)].view(array)
        is_descriptor = isinstance(value, TensorDescriptor)
        moved[name] = replace(value, base=array) if is_descriptor else array
    tables = frozenset(n for n, value in values.items() if isinstance(value, Addresses))
    for name in tables:
        moved[name] = _addresses(values[name], moved)
    return Memory(moved, tuple(buffers.values()), tables)


def _root(array: Array) -> Array:
    while isinstance(array.base, np.ndarray):
        array = array.base
    return array


def _copied(root: Array, shift: int) -> _Buffer:
    assert root.flags.c_contiguous
    memory = np.full(root.nbytes + 2 * GUARD_BYTES, _GUARD, np.uint8)
    middle = GUARD_BYTES // 2
    start = middle - (memory.ctypes.data + middle) % 64 + shift * root.itemsize
    memory[start : start + root.nbytes] = np.frombuffer(root.tobytes(), np.uint8)
    return _Buffer(root, memory, start)


def _addresses(table: object, values: Values) -> Array:
    assert isinstance(table, Addresses)
    addresses = []
    for name, index in table.of:
        array = values[name]
        assert isinstance(array, np.ndarray)
        addresses.append(array.ctypes.data + index * array.itemsize)
    return np.array(addresses, np.int64)


def run_interpreted(case: Case) -> dict[str, Array]:
    """What the arrays hold after the interpreter ran the case."""
    memory = guarded(case.values())
    case.kernel.interpret[case.grid](**memory.values, **_NO_FUSION, **case.options)
    return memory.arrays()


def run_compiled(case: Case, shift: int = 0, **options: object) -> dict[str, Array]:
    """What the arrays hold after the compiled kernel ran; checks the memory around them."""
    memory = guarded(case.values(), shift)
    case.kernel[case.grid](**memory.values, **{**_NO_FUSION, **case.options, **options})
    memory.require_guards(case.name)
    return memory.arrays()


@dataclass(frozen=True)
class Prepared:
    """A case bound to memory: its compile request and the launch's runtime arguments."""

    case: Case
    memory: Memory
    request: CompileRequest
    arguments: tuple[object, ...]


def prepare(case: Case, machine: MachineModel | None = None, shift: int = 0) -> Prepared:
    """Bind a case for the CPU target, on this machine or another."""
    memory = guarded(case.values(), shift)
    call = case.kernel.specialize_call((), {**memory.values, **_NO_FUSION, **case.options})
    options = {name: getattr(call.options, name) for name in option_names()}
    source = case.kernel.source
    request = CompileRequest(
        source.functions,
        source.kernel,
        call.specialization,
        options,
        "cpu",
        machine or load_driver("cpu").machine(),
    )
    arguments = runtime_values(call.specialization, call.arguments)
    return Prepared(case, memory, request, tuple(arguments))


def launch(
    prepared: Prepared,
    *,
    optimize: bool = True,
    pool: ThreadPool | None = None,
    module: ModuleOp | None = None,
    may_be_alone: bool = True,
) -> dict[str, Array]:
    """Compile, run on the CPU and return the arrays; by default on the process's own pool.

    `optimize=False` leaves out LLVM's passes and the back end's optimisations; `module` stands
    in place of the kernel's own T0. Without `may_be_alone` atomics are those of a launch that
    runs beside others.
    """
    kernel = load_kernel(prepared, optimize=optimize, module=module)
    if not may_be_alone:
        kernel.record.flags &= ~KernelRecord.MAY_BE_ALONE
    extents = check_grid(prepared.case.name, prepared.case.grid, prepared.memory.values)
    if pool is None:
        kernel.launch(extents, prepared.arguments)
    else:
        slots = zip(kernel.types, prepared.arguments, strict=True)
        packed = b"".join(pack_slot(type_, value) for type_, value in slots)
        record = pool.make_record(kernel.code.address, kernel.record.arena_bytes)
        kernel.runtime.launch_raw(record, extents, packed)
    prepared.memory.require_guards(prepared.case.name)
    return prepared.memory.arrays()


def load_kernel(
    prepared: Prepared, *, optimize: bool = True, module: ModuleOp | None = None
) -> CpuKernel:
    """Compile for the request's machine and link into this process, past every cache."""
    request, target = prepared.request, load_target("cpu")
    module = tile_module(request) if module is None else module
    scheduled = to_schedule(request, target, module)
    compiled = compile_module(
        target.emit(scheduled, request.machine, request.compile_options),
        request.machine.arch,
        request.machine.features,
        optimize=optimize,
        opt_level=3 if optimize else 0,
    )
    metadata = {"name": request.name, **scheduled.metadata}
    artifact = Artifact("", metadata, {"object": compiled.object})
    kernel = load_driver("cpu").load(artifact)
    assert isinstance(kernel, CpuKernel)
    return kernel


def reduced_machine(*, without: tuple[str, ...]) -> MachineModel:
    """This machine with some of its vector features switched off."""
    host = load_driver("cpu").machine()
    features = {f[1:]: f[0] == "+" for f in host.features}
    features = {n: on and not n.startswith(without) for n, on in features.items()}
    small = describe_machine(host.triple, "x86-64", features)
    return replace(small, l3_bytes=host.l3_bytes)


def tile_module(
    request: CompileRequest, observe: Callable[[str, ModuleOp], None] | None = None
) -> ModuleOp:
    """The T0 module of a request after the target's passes."""
    return to_tiles(request, load_target(request.target), observe)


def run_module(
    case: Case, module: ModuleOp, rules: Rules = TILE_RULES, **settings: Any
) -> dict[str, Array]:
    """Interpret a module of the case's kernel, at any level, on fresh memory.

    `settings` are those of `run_kernel`.
    """
    memory = guarded(case.values())
    call = case.kernel.specialize_call((), {**memory.values, **_NO_FUSION, **case.options})
    arguments: list[Argument] = []
    for path, _ in call.specialization.runtime_leaves():
        arguments.extend(_module_arguments(_at(path, call.arguments)))
    run_kernel(module, arguments, case.grid, rules=rules, races=False, **settings)
    return memory.arrays()


def _module_arguments(value: object) -> list[Argument]:
    if isinstance(value, TensorDescriptor):
        assert isinstance(value.base, np.ndarray)
        return [value.base, *descriptor_slots(value)[1:]]
    assert isinstance(value, np.ndarray | np.generic | int | float)
    return [value.item() if isinstance(value, np.generic) else value]


def _at(path: ArgumentPath, arguments: Mapping[str, object]) -> object:
    value: object = arguments[str(path[0])]
    for step in path[1:]:
        value = value[step]  # type: ignore[index]  # the path came from this value's structure
    return value.value if isinstance(value, constexpr) else value
