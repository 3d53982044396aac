"""The assembler: PTX text to a cubin, with what ptxas reports; and back to SASS for people."""

from __future__ import annotations

import json
import signal
import subprocess
import tempfile
from collections.abc import Mapping
from dataclasses import asdict, field
from pathlib import Path

from tilewright.runtime.artifact import RESOURCES_SECTION
from tilewright.support.dataclass import dataclass
from tilewright.support.errors import InternalError
from tilewright.support.options import CompileOptions
from tilewright.support.source import Span
from tilewright.targets.nvidia.errors import (
    AssemblerFailed,
    AssemblerNotFound,
    ResourcesExceeded,
)
from tilewright.targets.nvidia.ptxas_messages import (
    Message,
    Resources,
    parse_messages,
    parse_resources,
)
from tilewright.targets.nvidia.toolchain import Assembler, find_assembler, find_tool

# Chosen, not measured: ptxas takes seconds for the largest kernel; this ends one that hangs.
TIMEOUT_S = 600
_DEFAULT_OPTIONS = CompileOptions()
# What a ptxas says of an architecture or a PTX version that came after it.
_TOO_OLD = ("is not defined for option", "Unsupported .version")


@dataclass(frozen=True)
class Assembled:
    """A cubin with what ptxas said of it; `resources` are those of the kernel."""

    cubin: bytes
    ptx: str
    resources: Resources = field(default_factory=Resources)
    messages: tuple[Message, ...] = ()

    def remarks(self) -> tuple[str, ...]:
        """What costs speed, in lines of the kernel where they are known."""
        notes = [message.remark() for message in self.messages]
        used = self.resources
        if used.has_spills:
            notes.append(
                f"registers are spilled to memory: {used.spill_store_bytes} bytes stored and "
                f"{used.spill_load_bytes} bytes loaded a thread, at {used.registers} registers; "
                "use smaller blocks or more warps"
            )
        return tuple(dict.fromkeys(notes))

    def sections(self) -> dict[str, bytes]:
        """The sections of the artifact: cubin, PTX, and the resources with the remarks."""
        counts: dict[str, object] = {**asdict(self.resources), "remarks": self.remarks()}
        return {
            "cubin": self.cubin,
            "ptx": self.ptx.encode(),
            RESOURCES_SECTION: json.dumps(counts, sort_keys=True).encode(),
        }


def assemble_ptx(
    ptx: str,
    arch: str,
    options: CompileOptions = _DEFAULT_OPTIONS,
    *,
    assembler: Assembler | None = None,
    timeout_s: float = TIMEOUT_S,
) -> Assembled:
    """Assemble the PTX of one kernel for `arch` (such as `sm_90a`).

    Raises: AssemblerNotFound, AssemblerFailed (it cannot be run, or ran past the timeout),
    ResourcesExceeded, InternalError when ptxas refuses the text.
    """
    tool = assembler or find_assembler()
    with tempfile.TemporaryDirectory(prefix="tilewright-") as folder:
        source, target = Path(folder, "kernel.ptx"), Path(folder, "kernel.cubin")
        source.write_text(ptx, encoding="utf-8")
        command = [str(tool.path), *assembler_flags(ptx, arch, options), str(source)]
        result = _run(tool, [*command, "-o", str(target)], timeout_s)
        output = result.stdout + result.stderr
        if result.returncode < 0:
            raise _death(tool, -result.returncode)
        messages = parse_messages(output, ptx)
        if result.returncode != 0 or not target.is_file():
            raise _refusal(tool, ptx, messages, output)
        cubin = target.read_bytes()
    return Assembled(cubin, ptx, _of_kernel(ptx, parse_resources(output)), messages)


def assembler_flags(ptx: str, arch: str, options: CompileOptions) -> tuple[str, ...]:
    """The flags that ptxas is run with; equal flags and text give equal cubins."""
    flags = ["-v", f"-arch={arch}"]
    # Without the flag ptxas drops the `.loc` lines, and profilers show no source.
    if "\t.loc" in ptx or "\n.loc" in ptx:
        flags.append("--generate-line-info")
    return (*flags, *(options.ptx_options or "").split())


def _run(tool: Assembler, command: list[str], timeout_s: float) -> subprocess.CompletedProcess[str]:
    try:
        return subprocess.run(
            command,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=timeout_s,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise AssemblerFailed(
            f"ptxas ({tool.path}) was stopped after {timeout_s:g} s",
            hint="use smaller blocks, or fewer iterations of `static_range`",
        ) from error
    except OSError as error:
        raise AssemblerFailed(
            f"{tool.path} cannot be run: {error}", hint="set TILEWRIGHT_PTXAS to another ptxas"
        ) from error


def _death(tool: Assembler, number: int) -> AssemblerFailed:
    """The error for a ptxas that a signal ended."""
    return AssemblerFailed(
        f"ptxas {tool.version} ({tool.path}) died of {signal.Signals(number).name} on this kernel",
        hint="take another ptxas: `pip install nvidia-cuda-nvcc`, then set TILEWRIGHT_PTXAS to it",
    )


def _refusal(
    tool: Assembler, ptx: str, messages: tuple[Message, ...], output: str
) -> ResourcesExceeded | AssemblerFailed | InternalError:
    """The error that ptxas's own error stands for."""
    for message in messages:
        span = Span(message.file, message.line) if message.line else None
        if message.kind == "resources":
            return ResourcesExceeded(message.text, span=span)
        if any(text in message.text for text in _TOO_OLD):
            return AssemblerFailed(
                f"ptxas {tool.version} ({tool.path}) is too old: {message.text}",
                hint="install a newer one: `pip install nvidia-cuda-nvcc`",
            )
        if message.kind == "error":
            line = _line(ptx, message.ptx_line)
            return InternalError(f"ptxas rejects the emitted PTX: {message.text}{line}", span=span)
    return InternalError(f"ptxas {tool.version} failed: {output.strip()[-400:]}")


def _line(ptx: str, number: int) -> str:
    lines = ptx.splitlines()
    return f"\n  {lines[number - 1].strip()}" if 0 < number <= len(lines) else ""


def _of_kernel(ptx: str, found: Mapping[str, Resources]) -> Resources:
    """The resources of the entry function; a module has one."""
    for name, resources in found.items():
        if f".entry {name}(" in ptx:
            return resources
    return next(iter(found.values()), Resources())


def sass_of(sections: Mapping[str, bytes]) -> str:
    """The SASS of an artifact's cubin. Raises: AssemblerNotFound without a disassembler."""
    text = disassemble_cubin(sections["cubin"])
    if text is None:
        raise AssemblerNotFound(
            "no disassembler is on this machine",
            hint="run `pip install nvidia-cuda-nvdisasm`, or put nvdisasm on PATH",
        )
    return text


def disassemble_cubin(cubin: bytes) -> str | None:
    """The SASS of a cubin, or None where the machine has no disassembler."""
    tools = (("nvdisasm", ("-c",)), ("cuobjdump", ("-sass",)))
    for name, flags in tools:
        path = find_tool(name)
        if path is not None:
            return _disassembled(path, flags, cubin)
    return None


def _disassembled(path: Path, flags: tuple[str, ...], cubin: bytes) -> str | None:
    with tempfile.TemporaryDirectory(prefix="tilewright-") as folder:
        file = Path(folder, "kernel.cubin")
        file.write_bytes(cubin)
        command = [str(path), *flags, str(file)]
        result = subprocess.run(
            command, capture_output=True, text=True, timeout=TIMEOUT_S, check=False
        )
    return result.stdout if result.returncode == 0 else None
