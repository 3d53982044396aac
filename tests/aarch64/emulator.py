"""Kernels in AArch64 code, linked and run under qemu's emulation of a process."""

from __future__ import annotations

import atexit
import functools
import math
import shutil
import struct
import subprocess
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from tests.aarch64.machines import Emulated
from tests.corpus.case import Array, Case
from tests.corpus.run import Memory, Prepared, prepare
from tilewright.codegen.optimize import compile_module
from tilewright.compiler.compile import compile_request
from tilewright.runtime.artifact import Artifact
from tilewright.runtime.grid import check_grid
from tilewright.runtime.launcher import pack_slot
from tilewright.targets.cpu.runtime.interrupt_ir import CONTEXT_FIELDS, LAUNCH_FIELDS
from tilewright.targets.cpu.runtime.status import StatusRecord

REMEDY = "as root: `apt-get install qemu-user gcc-aarch64-linux-gnu`"
SYSROOT = Path("/usr/aarch64-linux-gnu")
# Far from where qemu puts programs, libraries and stacks.
BASE = 0x20_0000_0000
_PAGE = 4096
_TIMEOUT_S = 120
_SOURCE = Path(__file__).with_name("driver.c")


class EmulationFailed(Exception):
    """qemu or the driver ended with an error; `status` is minus the signal that ended it."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(f"status {status}: {message}")
        self.status = status


def tool(name: str) -> str:
    """The path of a tool. Raises: FileNotFoundError with how to get it."""
    path = shutil.which(name)
    if path is None:
        raise FileNotFoundError(f"{name} is not on PATH; {REMEDY}")
    return path


@dataclass
class Image:
    """The memory of a launch at the addresses that it has under qemu."""

    content: bytearray = field(default_factory=lambda: bytearray(_PAGE))
    moves: list[tuple[int, int, int]] = field(default_factory=list)

    def add(self, content: bytes, like: int = 0) -> int:
        """Add bytes; their address lies in its page as `like` does."""
        start = -(-len(self.content) // _PAGE) * _PAGE + like % _PAGE
        self.content += bytes(start - len(self.content)) + content
        return BASE + start

    def move(self, array: Array) -> None:
        """Add a contiguous array of this process."""
        start = array.ctypes.data
        self.moves.append((start, array.nbytes, self.add(array.tobytes(), start)))

    def moved(self, address: int) -> int:
        """Where an address of this process has gone."""
        for start, size, target in self.moves:
            if start <= address < start + size:
                return target + address - start
        raise ValueError(f"{address:#x} lies in no array of the launch")

    def start(self, arguments: int, grid: int, context: int, num_programs: int) -> None:
        """Write the words that the driver begins with; nothing is added after them."""
        words = (BASE, len(self.content), arguments, grid, context, num_programs)
        struct.pack_into("<6Q", self.content, 0, *words)

    def read(self, address: int, size: int) -> bytes:
        """The bytes at an address of the image."""
        return bytes(self.content[address - BASE : address - BASE + size])


def image_of(memory: Memory) -> Image:
    """The arrays of a launch, tables of addresses as they are under qemu."""
    image = Image()
    for buffer in memory.buffers:
        image.move(buffer.memory)
    for name in sorted(memory.tables):
        table = memory.values[name]
        assert isinstance(table, np.ndarray)
        moved = np.array([image.moved(int(address)) for address in table], np.int64)
        image.moves.append((table.ctypes.data, table.nbytes, image.add(moved.tobytes())))
    return image


def compile_case(case: Case, emulated: Emulated) -> tuple[Prepared, Artifact]:
    """A case and its kernel, compiled for another machine past every cache."""
    prepared = prepare(case, emulated.machine)
    return prepared, compile_request(prepared.request)


def emitted_assembly(prepared: Prepared) -> str:
    """The assembly of a case's kernel."""
    texts: dict[str, object] = {}
    compile_request(prepared.request, observe=texts.__setitem__)
    machine, text = prepared.request.machine, str(texts["llir"])
    done = compile_module(text, machine.arch, machine.features, machine.triple, emit_assembly=True)
    assert done.assembly is not None
    return done.assembly


def run_emulated(case: Case, emulated: Emulated, cpu: str = "") -> dict[str, Array]:
    """What the arrays hold after a case ran as code for another machine; checks their guards.

    `cpu` is the one that qemu emulates, by default the machine's.

    Raises: EmulationFailed.
    """
    prepared, artifact = compile_case(case, emulated)
    image, status = _launch_image(prepared, artifact)
    with tempfile.TemporaryDirectory() as folder:
        library = link(artifact.sections["object"], Path(folder))
        run_image(image, library, cpu or emulated.cpu)
    word = StatusRecord.from_buffer_copy(image.read(status, 64)).word
    assert word == 0, f"{case.name}: the kernel reports a fault"
    _take_back(image, prepared.memory)
    prepared.memory.require_guards(case.name)
    return prepared.memory.arrays()


def _launch_image(prepared: Prepared, artifact: Artifact) -> tuple[Image, int]:
    """The image of a launch, and the address of its status record."""
    image = image_of(prepared.memory)
    types = artifact.metadata["slots"]
    assert isinstance(types, list)
    slots = b"".join(
        pack_slot(type_, image.moved(int(str(value))) if type_ == "ptr" else value)
        for type_, value in zip(map(str, types), prepared.arguments, strict=True)
    )
    extents = check_grid(prepared.case.name, prepared.case.grid, prepared.memory.values)
    arguments = image.add(slots)
    grid = image.add(struct.pack("<3I", *extents))
    status = image.add(bytes(StatusRecord(print_file=2)))
    context = _add_context(image, int(str(artifact.metadata["arena_bytes"])), status)
    image.start(arguments, grid, context, math.prod(extents))
    return image, status


def _add_context(image: Image, arena_bytes: int, status: int) -> int:
    """The kernel's last argument: of a launch that nobody interrupts."""
    signals = image.add(bytes(4))
    launch = bytearray(32)
    struct.pack_into("<Q", launch, LAUNCH_FIELDS["signals"], signals)
    fields = {
        "scratch": image.add(bytes(arena_bytes)),
        "status": status,
        "index": 0,
        "launch": image.add(bytes(launch)),
        "is_alone": 0,
        "has_begun": 0,
    }
    context = bytearray(8 * len(CONTEXT_FIELDS))
    for name, offset in CONTEXT_FIELDS.items():
        struct.pack_into("<Q", context, offset, fields[name])
    return image.add(bytes(context))


def _take_back(image: Image, memory: Memory) -> None:
    """Put what the arrays hold under qemu into the arrays of this process."""
    for buffer in memory.buffers:
        size = buffer.memory.nbytes
        content = image.read(image.moved(buffer.memory.ctypes.data), size)
        buffer.memory[:] = np.frombuffer(content, np.uint8)


def link(object_bytes: bytes, folder: Path) -> Path:
    """The shared library of one object."""
    source, library = folder / "kernel.o", folder / "kernel.so"
    source.write_bytes(object_bytes)
    _call([tool("aarch64-linux-gnu-ld"), "-shared", "-o", str(library), str(source)])
    return library


@functools.cache
def _driver() -> str:
    """The driver, built once a process. Its libraries are those that kernels may call."""
    compiler = tool("aarch64-linux-gnu-gcc")
    folder = tempfile.mkdtemp(prefix="tilewright-aarch64-")
    atexit.register(shutil.rmtree, folder)
    path = Path(folder) / "driver"
    flags = ["-O1", "-Wall", "-Werror", "-Wl,--no-as-needed", "-lm", "-lgcc_s"]
    _call([compiler, "-D_GNU_SOURCE", str(_SOURCE), "-o", str(path), *flags])
    return str(path)


def run_image(image: Image, library: Path, cpu: str) -> None:
    """Run the kernel of a library on an image, which then holds the results."""
    path = library.with_name("image")
    path.write_bytes(image.content)
    qemu = [tool("qemu-aarch64"), "-cpu", cpu, "-L", str(SYSROOT)]
    _call([*qemu, _driver(), str(library), str(path)])
    image.content = bytearray(path.read_bytes())


def _call(command: list[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True, timeout=_TIMEOUT_S, check=False)
    if done.returncode:
        raise EmulationFailed(done.returncode, f"{' '.join(command)}\n{done.stderr}")
